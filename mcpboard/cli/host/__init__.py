"""Verbs of `device-host-agent`, which is also `mcpboard host`. Board packages leave them out."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import TYPE_CHECKING

from mcpboard.cli.config import Verbs

if TYPE_CHECKING:
    from mcpboard.host.config import HostSettings

__all__ = ["add_to", "add_verb", "settings"]


def add_to(verbs: Verbs) -> None:
    """Add the menu's line for a command that has verbs of its own, and gets every word behind its name."""
    verbs.add_parser("host", help="several devices behind one address; see `mcpboard host --help`")


def add_verb(verbs: Verbs, name: str, run: Callable[[argparse.Namespace], int], text: str) -> argparse.ArgumentParser:
    """Add one verb of the host, with the flags that all of them have."""
    parser: argparse.ArgumentParser = verbs.add_parser(name, help=text)
    parser.add_argument("--config", metavar="FILE", help="settings file; its table [host] counts")
    parser.add_argument("--data", metavar="DIR", help="folder of identity, token and devices (default: tasks)")
    parser.set_defaults(run=run)
    return parser


def settings(arguments: argparse.Namespace) -> HostSettings:
    """Return the effective settings, with what the command line said; raises ConfigError."""
    from mcpboard.host import config

    flags = {
        key: getattr(arguments, key, None) for key in ("config", "data", *(row.key for row in config.HOST_SETTINGS))
    }
    return config.load(flags)
