"""`mcpboard serve`: MCP in front of this board."""

from __future__ import annotations

import argparse
import logging
import socket
from collections.abc import Iterable

from mcpboard import config
from mcpboard.cli import logs, settings
from mcpboard.cli.settings import Verbs


def add_to(verbs: Verbs) -> None:
    """Add the verb `serve`."""
    parser = verbs.add_parser("serve", help="serve MCP in front of this board's Agent and Config Web")
    settings.add_flags(parser)
    parser.set_defaults(run=serve)


def serve(arguments: argparse.Namespace) -> int:
    """Serve until SIGTERM or SIGINT."""
    watched = config.Watched(settings.flags(arguments))
    in_force = watched.current()
    logs.configure(in_force.log, in_force.log_level)

    # After the settings: what is wrong with them is told before a second of imports on a board.
    from mcpboard import board
    from mcpboard.serving import server

    for warning in in_force.warnings:
        logging.getLogger(__name__).warning("%s", warning)
    app = board.build(watched.current)
    sockets = server.listeners([(a.host, a.port) for a in in_force.listen], freebind=in_force.freebind)
    _announce(sockets)
    return server.serve(app, sockets)


def _announce(sockets: Iterable[socket.socket]) -> None:
    """Print each URL as it really is, port 0 resolved, where a program can wait for it."""
    for listener in sockets:
        host, port = listener.getsockname()[:2]
        print(f"mcpboard: serving http://{config.Address(host, port)}/mcp", flush=True)
