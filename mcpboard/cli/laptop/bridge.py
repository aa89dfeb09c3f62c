"""`mcpboard bridge` and `mcpboard relay`: for clients and systems that do not reach the board by themselves."""

from __future__ import annotations

import argparse
import contextlib
import functools
import sys

from mcpboard.cli import logs
from mcpboard.cli.call import token_from
from mcpboard.cli.config import Verbs
from mcpboard.config.schema import Address, address
from mcpboard.errors import ConfigError

LISTEN = "127.0.0.1:8080"
SHORTEST_LINE = 1 << 20  # bytes; pictures come in that size
LONGEST_WAIT = 3600.0  # seconds; an hour without a board is no boot any more


def add_to(verbs: Verbs) -> None:
    """Add the verbs `bridge` and `relay`."""
    through = verbs.add_parser("bridge", help="an MCP server on standard input and output, in front of one over HTTP")
    _add_url(through)
    through.add_argument("--token-file", metavar="FILE", help="file with the bearer token that the server wants")
    through.add_argument("--header", metavar="K:V", action="append", default=[], help="sent along (repeatable)")
    through.add_argument(
        "--wait", metavar="SECONDS", type=float, help="how long a request waits for a board that boots (default: 45)"
    )
    through.add_argument(
        "--longest-line", metavar="BYTES", type=int, help="a longer answer is an error (default: no limit)"
    )
    through.set_defaults(run=bridge)
    forward = verbs.add_parser("relay", help="a port of this machine that leads to the board, for every client here")
    _add_url(forward)
    forward.add_argument(
        "--listen", metavar="HOST:PORT", default=LISTEN, help=f"a loopback address (default: {LISTEN})"
    )
    forward.add_argument(
        "--print-service",
        metavar="KIND",
        nargs="?",
        const="auto",
        choices=("auto", "launchd", "systemd"),
        help="print a launchd daemon or systemd unit that runs this relay, and stop",
    )
    forward.set_defaults(run=relay)


def _add_url(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("url", metavar="URL", help="such as http://192.168.42.1:8080/mcp")


# --- bridge --------------------------------------------------------------------------------------


def bridge(arguments: argparse.Namespace) -> int:
    """Carry messages until standard input ends; standard output is for them alone."""
    from mcpboard.laptop.bridge import Bridge
    from mcpboard.laptop.bridge.stdio import LineWriter
    from mcpboard.laptop.bridge.upstream import WAIT_SECONDS, Upstream
    from mcpboard.transport.http import HttpClient

    logs.configure("stderr", "info")
    wait = WAIT_SECONDS if arguments.wait is None else arguments.wait
    if not 0 <= wait <= LONGEST_WAIT:  # no NaN either
        raise ConfigError(f"--wait: seconds from 0 to {LONGEST_WAIT:.0f} are expected")
    longest: int | None = arguments.longest_line
    if longest is not None and longest < SHORTEST_LINE:
        raise ConfigError(f"--longest-line: at least {SHORTEST_LINE} bytes are expected, which a picture may have")
    token = None if arguments.token_file is None else token_from(arguments.token_file)
    link = HttpClient(arguments.url, token, [_header(text) for text in arguments.header])
    with open(sys.stdout.fileno(), "wb", buffering=0, closefd=False) as raw, contextlib.redirect_stdout(sys.stderr):
        output = LineWriter(raw)
        Bridge(Upstream(link, wait), output, longest).run(sys.stdin.buffer)
    if output.gone:
        raise BrokenPipeError
    return 0


def _header(text: str) -> tuple[str, str]:
    name, colon, value = text.partition(":")
    if not colon:
        raise ConfigError("--header: NAME:VALUE is expected")  # without the text, which may hold a secret
    return name.strip(), value.strip()


# --- relay ---------------------------------------------------------------------------------------


def relay(arguments: argparse.Namespace) -> int:
    """Relay until SIGTERM or SIGINT, or print the service that does."""
    from mcpboard.laptop.relay import Relay, check_listener
    from mcpboard.transport.http import HttpClient

    link = HttpClient(arguments.url)
    try:
        listen = address(arguments.listen)
    except ConfigError as error:
        raise ConfigError(f"--listen: {error}") from None
    check_listener(listen.host, listen.port, link)
    if arguments.print_service is not None:
        return _print_service(arguments.print_service, link.url, listen)

    from mcpboard.serving import server

    logs.configure("stderr", "info")
    sockets = server.listeners([listen])
    told = f"mcpboard: relaying {server.url(sockets[0])} to {link.url}"
    with Relay(link) as app:
        return server.serve(app, sockets, functools.partial(print, told, flush=True))


def _print_service(kind: str, url: str, listen: Address) -> int:
    """The file on standard output, what to do with it on standard error."""
    from mcpboard.laptop.relay import autostart

    chosen = ("launchd" if sys.platform == "darwin" else "systemd") if kind == "auto" else kind
    printed = autostart.SERVICES[chosen](url, str(listen))
    sys.stdout.write(printed.text)
    print(printed.steps, file=sys.stderr)
    return 0
