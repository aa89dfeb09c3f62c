"""Devices: which there are, who has leased one, and whose turn it is."""
