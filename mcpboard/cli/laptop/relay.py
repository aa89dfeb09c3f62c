"""`mcpboard relay`: for systems that keep programs off the local network, so that they do not reach the board."""

from __future__ import annotations

import argparse
import functools
import sys

from mcpboard.cli import logs
from mcpboard.cli.config import Verbs, add_verb
from mcpboard.config.schema import address
from mcpboard.errors import ConfigError

LISTEN = "127.0.0.1:8080"


def add_to(verbs: Verbs) -> None:
    """Add the verb `relay`."""
    sentence = "Forward a port of this machine to a board, for every client here."
    parser = add_verb(verbs, "relay", sentence, "mcpboard relay http://192.168.42.1:8080/mcp", relay)
    parser.add_argument("url", metavar="URL", help="such as http://192.168.42.1:8080/mcp")
    parser.add_argument("--listen", metavar="HOST:PORT", default=LISTEN, help=f"a loopback address (default: {LISTEN})")
    text = "print a launchd daemon or systemd unit that runs this relay, and stop"
    kinds = ("auto", "launchd", "systemd")
    parser.add_argument("--print-service", metavar="KIND", nargs="?", const="auto", choices=kinds, help=text)


def relay(arguments: argparse.Namespace) -> int:
    """Relay until SIGTERM or SIGINT, or print the service that does, and on standard error how to install it."""
    from mcpboard.laptop.relay import THREADS, Relay, autostart, check_listener
    from mcpboard.transport.http import HttpClient

    client = HttpClient(arguments.url)
    try:
        listen = address(arguments.listen)
    except ConfigError as error:
        raise ConfigError(f"--listen: {error}") from None
    check_listener(listen.host, listen.port, client)
    kind = arguments.print_service
    if kind is not None:
        if kind == "auto":
            kind = "launchd" if sys.platform == "darwin" else "systemd"
        text, steps = autostart.service_file(kind, client.url, str(listen))
        sys.stdout.write(text)
        print(steps, file=sys.stderr)
        return 0

    from mcpboard.serving import server

    logs.configure("stderr", "info")
    sockets = server.listeners([listen])
    announcement = f"mcpboard: relaying {server.url(sockets[0])} to {client.url}"
    with Relay(client) as app:
        return server.serve(app, sockets, functools.partial(print, announcement, flush=True), THREADS)
