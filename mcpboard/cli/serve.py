"""`mcpboard serve`: MCP in front of this board."""

from __future__ import annotations

import argparse
import logging
import sys

from mcpboard import config
from mcpboard.cli import logs, settings
from mcpboard.cli.settings import Verbs
from mcpboard.errors import AddressTaken


def add_to(verbs: Verbs) -> None:
    """Add the verb `serve`."""
    parser = verbs.add_parser("serve", help="serve MCP in front of this board's Agent and Config Web")
    settings.add_flags(parser)
    parser.set_defaults(run=serve)


def serve(arguments: argparse.Namespace) -> int:
    """Serve until SIGTERM or SIGINT; each URL is printed as it really is, where a program can wait for it."""
    watched = config.Watched(settings.flags(arguments))
    in_force = watched.current()
    logs.configure(in_force.log, in_force.log_level)

    # After the settings: what is wrong with them is told before a second of imports on a board.
    from mcpboard import board
    from mcpboard.serving import server

    for warning in in_force.warnings:
        logging.getLogger(__name__).warning("%s", warning)
    app = board.build(watched.current)
    try:
        sockets = server.listeners(in_force.listen, freebind=in_force.freebind)
    except AddressTaken as taken:
        return _taken(taken)
    # In one write: a launcher may close its end after the first line.
    print("\n".join(f"mcpboard: serving {server.url(listener)}" for listener in sockets), flush=True)
    return server.serve(app, sockets)


def _taken(taken: AddressTaken) -> int:
    """Say who has the port; with the Agent of a stock board there, the two lines that cure it."""
    from mcpboard.board import beside

    lines = beside.advice(taken.port)
    if lines is None:
        raise taken
    print(f"mcpboard: the board's own Agent listens on port {taken.port}; write into [mcpboard]:", file=sys.stderr)
    print(lines, file=sys.stderr)
    return 2
