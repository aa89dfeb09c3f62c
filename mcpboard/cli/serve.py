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
    for warning in in_force.warnings:
        logging.getLogger(__name__).warning("%s", warning)

    # Only now: what is wrong with the settings is told before the seconds that a board imports for.
    from mcpboard import board
    from mcpboard.serving import server

    app = board.build(watched.current)
    try:
        sockets = server.listeners(in_force.listen, freebind=in_force.freebind)
    except AddressTaken as taken:
        return _taken(taken)
    # In one write: a launcher may close its end after the first line.
    print("\n".join(f"mcpboard: serving {server.url(listener)}" for listener in sockets), flush=True)
    return server.serve(app, sockets)


def _taken(taken: AddressTaken) -> int:
    """Say who has the port; when it is the Agent of a stock board, with the two lines that cure it."""
    from mcpboard.board import beside

    lines = beside.advice(taken.port)
    if lines is None:
        raise taken
    told = f"mcpboard: the Agent has port {taken.port}; to stand beside it, write below [{config.OURS}]:"
    print(told, lines, sep="\n", file=sys.stderr)
    return 2
