"""The `mcpboard` command: one file for each group of verbs, read when one of them is wanted.

Exit codes: 0 done, 1 a tool, a check or the output failed, 2 wrong usage or settings (one line on stderr),
130 interrupted, 141 nobody reads the output.
"""

from __future__ import annotations

import argparse
import importlib
import io
import os
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from mcpboard import __version__
from mcpboard.errors import ConfigError

__all__ = ["host_main", "main"]

PROGRAM, HOST_PROGRAM = "mcpboard", "device-host-agent"
DESCRIPTIONS = {
    PROGRAM: "Model Context Protocol in front of phones.",
    HOST_PROGRAM: "Model Context Protocol in front of this host's devices.",
}

HOST, DEFAULT_HOST_VERB = "host", "run"

# Who uses them -> verb -> the module here that adds it. What is below `laptop` and `host` is not on boards.
MENU: Mapping[str, Mapping[str, str]] = {
    "on a board": {"serve": "serve", "config": "config"},
    "on the laptop at the other end of the cable": {
        "connect": "laptop.connect", "doctor": "doctor", "tools": "call", "call": "call", "bridge": "laptop.bridge",
        "relay": "laptop.relay",
    },
    "on a computer with several devices": {HOST: "host"},
    "without a board": {"demo": "laptop.demo", "simulate": "laptop.simulate"},
}  # fmt: skip
HOST_MENU: Mapping[str, Mapping[str, str]] = {
    "verbs": {
        "run": "host.run", "doctor": "host.run", "devices": "host.devices", "mcp-token": "host.mcp_token",
        "token": "host.mcp_token", "enrol": "host.enroll",
    },
}  # fmt: skip

BOARD_ONLY = (
    "this installation has the board's role only, whose verbs are serve, tools, call, config and doctor --board; "
    "on a laptop or host: pip install mcpboard"
)

# What a shell reports for a program that SIGINT or SIGPIPE ended: 128 + the signal's number.
INTERRUPTED = 130
OUTPUT_CLOSED = 141


def main(argv: Sequence[str] | None = None) -> int:
    """Run one verb and return its exit code; no error that has a fix ends in a traceback."""
    words = sys.argv[1:] if argv is None else list(argv)
    if words[:1] == [HOST]:  # every word behind it is the host's
        return host_main(words[1:])
    return _run(PROGRAM, words)


def host_main(argv: Sequence[str] | None = None) -> int:
    """Run one verb of `device-host-agent`, which may be left out."""
    words = sys.argv[1:] if argv is None else list(argv)
    if not words or (words[0].startswith("-") and words[0] not in ("-h", "--help", "--version")):
        words = [DEFAULT_HOST_VERB, *words]
    return _run(HOST_PROGRAM, words)


def _run(program: str, words: Sequence[str]) -> int:
    _fill_standard_streams()
    try:
        try:
            if not words or list(words) == ["help"]:
                parser_for((), program).print_help()
                return 0
            arguments = parser_for(words, program).parse_args(words)
            code: int = arguments.run(arguments)
            return code
        finally:
            sys.stdout.flush()  # here, where a closed pipe or a full disk can still be answered
    except ConfigError as error:
        print(f"{program}:", " ".join(str(error).split("\n")), file=sys.stderr)
        return 2
    except ModuleNotFoundError as error:
        print(f"{program}: {_missing_module(error)} is not here: {BOARD_ONLY}", file=sys.stderr)
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


def _missing_module(error: ModuleNotFoundError) -> str:
    """Return the module of ours that is not here, as in a board's package; raises `error` when it is none of ours."""
    name = error.name or ""
    if not name.startswith("mcpboard."):
        raise error
    return name


class _Parser(argparse.ArgumentParser):
    """Takes no abbreviations: a script that used one would break with the next flag that begins like it."""

    def __init__(self, **options: Any) -> None:
        super().__init__(allow_abbrev=False, **options)


def parser_for(words: Sequence[str] = (), program: str = PROGRAM) -> _Parser:
    """Return the parser for `words`: with the group of their verb only, or for a menu with all that are installed."""
    menu = HOST_MENU if program == HOST_PROGRAM else MENU
    modules = {verb: module for group in menu.values() for verb, module in group.items()}
    parser = _Parser(
        prog=program, description=DESCRIPTIONS[program], formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--version", action="version", version=__version__)
    verbs = parser.add_subparsers(
        metavar="VERB", required=True, help=f"one of these; `{program} VERB --help` explains it"
    )
    verb = words[0] if words else ""
    for module in dict.fromkeys([modules[verb]] if verb in modules else modules.values()):
        try:
            importlib.import_module(f"{__name__}.{module}").add_to(verbs)
        except ModuleNotFoundError as error:
            _missing_module(error)
            if verb in modules or program == HOST_PROGRAM:  # otherwise it is only missing from the menu
                raise
    lines = []
    for title, group in menu.items():
        here = [f"    {verb:10} {verbs.choices[verb].description}" for verb in group if verb in verbs.choices]
        lines += [f"{title}:", *here, ""] if here else []
    parser.epilog = "\n".join(lines)
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
