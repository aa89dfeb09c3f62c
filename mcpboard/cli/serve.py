"""`mcpboard serve`: MCP in front of this board."""

from __future__ import annotations

import argparse
import logging

from mcpboard import config
from mcpboard.cli import logs, settings
from mcpboard.cli.settings import Verbs
from mcpboard.errors import AddressTaken, ConfigError, ToolError

LOOK_SECONDS = 1.0  # for the question who has our port; an Agent on loopback answers in milliseconds


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
        raise _beside_the_agent(taken.port) if _is_agent(taken.port) else taken from None
    # In one write: a launcher may close its end after the first line.
    print("\n".join(f"mcpboard: serving {server.url(listener)}" for listener in sockets), flush=True)
    return server.serve(app, sockets)


def _is_agent(port: int) -> bool:
    """Whether the program that has our port is an Agent, as on a stock board (contracts: agent-api, decision 1)."""
    from mcpboard.board.loopback import Backend
    from mcpboard.board.readers import finite_json

    try:
        answer = Backend("agent", f"http://127.0.0.1:{port}").call("GET", "/api/tools", None, LOOK_SECONDS)
        found = finite_json(answer.body)
    except (ToolError, ValueError):
        return False
    return answer.status == 200 and isinstance(found, dict) and "tools" in found


def _beside_the_agent(port: int) -> ConfigError:
    return ConfigError(
        f"the Agent has port {port}; to stand beside it, write below [{config.OURS}] in {config.STANDARD_FILE} "
        f'the lines: listen = "0.0.0.0:8090" and: agent_base_url = "http://127.0.0.1:{port}"'
    )
