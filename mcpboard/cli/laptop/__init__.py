"""Verbs of a laptop. Board packages leave them out."""
