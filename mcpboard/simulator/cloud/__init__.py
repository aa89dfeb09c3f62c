"""The simulated cloud: gives assignments to hosts and records what they report."""
