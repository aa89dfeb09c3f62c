"""The simulated phone: a drawn screen that touches, keys and commands change."""
