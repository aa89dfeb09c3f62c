"""`mcpboard config`: what is in force and where it comes from; and the flags that set it."""

from __future__ import annotations

import argparse
import json
import sys
from typing import Any

from mcpboard import config
from mcpboard.net import HIGHEST_PORT

Verbs = Any  # argparse keeps the type of its sub-parsers to itself


def add_to(verbs: Verbs) -> None:
    """Add the verb `config`."""
    parser = verbs.add_parser("config", help="print the settings in force, and where each comes from")
    add_flags(parser)
    parser.add_argument("--json", action="store_true", help="as one JSON object")
    parser.set_defaults(run=show)


def add_flags(parser: argparse.ArgumentParser) -> None:
    """Add `--config` and a flag for each row of SETTINGS that has one."""
    parser.add_argument("--config", metavar="FILE", help=f"settings file (default: {config.STANDARD_FILE})")
    for row in config.SETTINGS:
        if row.flag:
            option, _, metavar = row.flag.partition(" ")
            repeatable = row.key == "listen"
            parser.add_argument(
                option,
                dest=row.key,
                metavar=metavar,
                action="append" if repeatable else "store",
                help=row.meaning + (" (repeatable)" if repeatable else ""),
            )


def port(text: str) -> int:
    """A port of this machine, 0 for any free one; the system would wrap a number above 65535 round without a word."""
    if text.isascii() and text.isdigit() and int(text) <= HIGHEST_PORT:
        return int(text)
    raise argparse.ArgumentTypeError(f"a port is 0 to {HIGHEST_PORT}")


def flags(arguments: argparse.Namespace) -> dict[str, object]:
    """What the command line said, in the form that `config` takes."""
    keys = ["config", *(row.key for row in config.SETTINGS if row.flag)]
    return {key: getattr(arguments, key) for key in keys if getattr(arguments, key) is not None}


def show(arguments: argparse.Namespace) -> int:
    """Print key, value and source of every setting; the token itself is never among them."""
    settings = config.load(flags(arguments))
    shown = {row.key: _plain(getattr(settings, row.key)) for row in config.SETTINGS}
    if arguments.json:
        print(json.dumps({key: {"value": shown[key], "source": settings.sources[key]} for key in shown}, indent=2))
    else:
        print(_aligned([(key, json.dumps(shown[key]), settings.sources[key]) for key in shown]))
    for warning in settings.warnings:
        print("mcpboard: warning:", warning, file=sys.stderr)
    return 0


def _plain(value: object) -> Any:
    """The value as TOML and JSON know it."""
    return [str(address) for address in value] if isinstance(value, tuple) else value


def _aligned(lines: list[tuple[str, str, str]]) -> str:
    key_width, value_width = (max(len(line[column]) for line in lines) for column in (0, 1))
    return "\n".join(f"{key:{key_width}}  {value:{value_width}}  {source}" for key, value, source in lines)
