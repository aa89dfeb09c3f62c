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
from mcpboard.cli import client, connect, demo, doctor, host, laptop, serve, settings, simulate
from mcpboard.errors import ConfigError

__all__ = ["host_main", "main"]

HOST = "host"
GROUPS = (serve, simulate, demo, client, laptop, connect, doctor, settings)

# What a shell reports for a program that SIGINT or SIGPIPE ended: 128 + the signal's number.
INTERRUPTED = 130
OUTPUT_CLOSED = 141


def main(argv: Sequence[str] | None = None) -> int:
    """Run one verb and return its exit code; no error that has a cure ends in a traceback."""
    words = sys.argv[1:] if argv is None else list(argv)
    if words[:1] == [HOST]:  # every word behind it is the host's
        return host_main(words[1:])
    return _guarded("mcpboard", _parser(), words)


def host_main(argv: Sequence[str] | None = None) -> int:
    """The same for `device-host-agent`, whose verb may be left out."""
    words = sys.argv[1:] if argv is None else list(argv)
    if not words or (words[0].startswith("-") and words[0] not in ("-h", "--help", "--version")):
        words = [host.DEFAULT_VERB, *words]
    return _guarded("device-host-agent", _host_parser(), words)


def _guarded(program: str, parser: _Parser, words: Sequence[str]) -> int:
    _fill_standard_streams()
    try:
        return _run(parser, words)
    except ConfigError as error:
        print(f"{program}:", " ".join(str(error).split("\n")), file=sys.stderr)
        return 2
    except ModuleNotFoundError as error:
        if not (error.name or "").startswith("mcpboard."):
            raise
        # A board's package has the board's role alone.
        print(f"{program}: this installation came without {error.name}; install mcpboard whole", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        _give_up_stdout()
        return OUTPUT_CLOSED
    except OSError as error:
        _give_up_stdout()
        print(f"{program}:", error, file=sys.stderr)
        return 1


def _run(parser: _Parser, words: Sequence[str]) -> int:
    try:
        arguments = parser.parse_args(words)
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
    verbs.add_parser(HOST, help="several devices behind one address; see `mcpboard host --help`")
    return parser


def _host_parser() -> _Parser:
    parser = _Parser(prog="device-host-agent", description="Model Context Protocol in front of this host's devices.")
    parser.add_argument("--version", action="version", version=__version__)
    verbs = parser.add_subparsers(title="verbs", metavar="VERB", required=True)
    host.add_to(verbs)
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
