"""The `mcpboard` command: one file for each group of verbs, every verb importing what it needs itself.

Exit codes: 0 done, 1 a tool, a check or the output failed, 2 wrong usage or settings (one line on stderr),
130 interrupted, 141 nobody reads the output.
"""

from __future__ import annotations

import argparse
import io
import os
import sys
from collections.abc import Sequence
from typing import Any

from mcpboard import __version__
from mcpboard.cli import client, connect, demo, doctor, laptop, serve, settings, simulate
from mcpboard.errors import ConfigError

__all__ = ["main"]

GROUPS = (serve, simulate, demo, client, laptop, connect, doctor, settings)

# What a shell reports for a program that SIGINT or SIGPIPE ended: 128 + the signal's number.
INTERRUPTED = 130
OUTPUT_CLOSED = 141


def main(argv: Sequence[str] | None = None) -> int:
    """Run one verb and return its exit code; no error that has a cure ends in a traceback."""
    _fill_standard_streams()
    try:
        return _run(argv)
    except ConfigError as error:
        print("mcpboard:", " ".join(str(error).split("\n")), file=sys.stderr)
        return 2
    except ModuleNotFoundError as error:
        if not (error.name or "").startswith("mcpboard."):
            raise
        # A board's package has the board's role alone.
        print(f"mcpboard: this installation came without {error.name}; install mcpboard whole", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        _give_up_stdout()
        return OUTPUT_CLOSED
    except OSError as error:
        _give_up_stdout()
        print("mcpboard:", error, file=sys.stderr)
        return 1


def _run(argv: Sequence[str] | None) -> int:
    try:
        arguments = _parser().parse_args(argv)
        code: int = arguments.run(arguments)
        return code
    finally:
        sys.stdout.flush()  # here, where a closed pipe or a full disk can still be answered


class _Parser(argparse.ArgumentParser):
    """Takes no abbreviations: a script that used one would break with the next flag that begins like it."""

    def __init__(self, **options: Any) -> None:
        super().__init__(allow_abbrev=False, **options)


def _parser() -> _Parser:
    parser = _Parser(prog="mcpboard", description="Model Context Protocol in front of phones.")
    parser.add_argument("--version", action="version", version=__version__)
    verbs = parser.add_subparsers(title="verbs", metavar="VERB", required=True)  # of the same class
    for group in GROUPS:
        group.add_to(verbs)
    return parser


def _fill_standard_streams() -> None:
    """Put /dev/null where a standard stream was closed.

    Otherwise the first sockets and files would get its number, and stray output would end there.
    """
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(os.open(os.devnull, os.O_RDWR), mode, closefd=False))
    if isinstance(sys.stdout, io.TextIOWrapper):  # a path of bytes that are no text can still be shown
        sys.stdout.reconfigure(errors="backslashreplace")


def _give_up_stdout() -> None:
    """Let what is still buffered go nowhere, so that the interpreter does not stumble over it at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
