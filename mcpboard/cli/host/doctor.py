"""`device-host-agent doctor`: name what is wrong with this host, and what fixes it."""

from __future__ import annotations

import argparse

from mcpboard.cli import logs
from mcpboard.cli.config import Verbs
from mcpboard.cli.host import add_verb, settings
from mcpboard.doctor import report
from mcpboard.host.doctor import examine


def add_to(verbs: Verbs) -> None:
    """Add the verb `doctor`."""
    text = "check settings, files, port and devices, and say what to do about each; exit code 1 when a check failed"
    add_verb(verbs, "doctor", doctor, text).add_argument("--json", action="store_true", help="as one JSON object")


def doctor(arguments: argparse.Namespace) -> int:
    """Run every check and print each finding; 0 when none failed, else 1."""
    logs.configure("stderr", "warning")
    return report(examine(lambda: settings(arguments)), arguments.json)
