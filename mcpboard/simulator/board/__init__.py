"""The simulated board: the loopback APIs of the Agent and Config Web."""
