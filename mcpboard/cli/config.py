"""`mcpboard config`: the effective settings and where each comes from; and the flags that set them."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Sequence
from typing import Any

from mcpboard import config
from mcpboard.net import HIGHEST_PORT

Verbs = Any  # argparse keeps the type of its sub-parsers to itself
Run = Callable[[argparse.Namespace], int]


def add_to(verbs: Verbs) -> None:
    """Add the verb `config`."""
    sentence = "Print the effective settings, and where each comes from."
    parser = add_verb(verbs, "config", sentence, "mcpboard config --config /etc/mcpboard/mcpboard.toml", show)
    add_flags(parser)
    parser.add_argument("--json", action="store_true", help="as one JSON object")


def add_verb(verbs: Verbs, name: str, sentence: str, example: str, run: Run | None = None) -> argparse.ArgumentParser:
    """Add a verb; `sentence` stands in the menu and in the verb's own help, `example` only there.

    `run` returns its exit code; without it the verb has actions of its own.
    """
    parser: argparse.ArgumentParser = verbs.add_parser(
        name, description=sentence, epilog=f"example: {example}", formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.set_defaults(run=run)
    return parser


def add_flags(parser: argparse.ArgumentParser) -> None:
    """Add `--config` and a flag for each row of SETTINGS that has one."""
    parser.add_argument("--config", metavar="FILE", help=f"settings file (default: {config.STANDARD_FILE})")
    for row in config.SETTINGS:
        if row.flag:
            option, _, metavar = row.flag.partition(" ")
            action, note = ("append", " (repeatable)") if row.key == "listen" else ("store", "")
            parser.add_argument(option, dest=row.key, metavar=metavar, action=action, help=row.meaning + note)


def port(text: str) -> int:
    """Return a port of this machine, 0 for any free one; the system would wrap a number above 65535 silently."""
    if text.isascii() and text.isdigit() and int(text) <= HIGHEST_PORT:
        return int(text)
    raise argparse.ArgumentTypeError(f"a port is 0 to {HIGHEST_PORT}")


def flags(arguments: argparse.Namespace) -> dict[str, object]:
    """Return what the command line said, as `config` takes it."""
    keys = ["config", *(row.key for row in config.SETTINGS if row.flag)]
    return {key: getattr(arguments, key) for key in keys if getattr(arguments, key) is not None}


def print_columns(rows: Sequence[Sequence[str]]) -> None:
    """Print the rows, each column as wide as its longest cell."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        print("  ".join(f"{cell:{width}}" for cell, width in zip(row, widths, strict=True)).rstrip())


def show(arguments: argparse.Namespace) -> int:
    """Print key, value and source of every setting; the token itself is never among them."""
    settings = config.load(flags(arguments))
    values = {row.key: getattr(settings, row.key) for row in config.SETTINGS}
    shown = {key: [*map(str, value)] if isinstance(value, tuple) else value for key, value in values.items()}
    if arguments.json:
        print(json.dumps({key: {"value": shown[key], "source": settings.sources[key]} for key in shown}, indent=2))
    else:
        print_columns([(key, json.dumps(value), settings.sources[key]) for key, value in shown.items()])
    for warning in settings.warnings:
        print("mcpboard: warning:", warning, file=sys.stderr)
    return 0
