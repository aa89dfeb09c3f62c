"""Verbs of `device-host-agent`, which is also `mcpboard host`. Board packages leave them out."""

from __future__ import annotations

from mcpboard.cli.config import Verbs


def add_to(verbs: Verbs) -> None:
    """Add the menu's line for a command that has verbs of its own, and gets every word behind its name."""
    verbs.add_parser("host", help="several devices behind one address; see `mcpboard host --help`")
