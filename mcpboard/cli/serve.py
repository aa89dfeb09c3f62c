"""`mcpboard serve`: MCP in front of this board."""

from __future__ import annotations

import argparse
import contextlib
import functools
import logging
import sys
from collections.abc import Iterable, Mapping

from mcpboard import config
from mcpboard.cli import config as config_verb
from mcpboard.cli import logs
from mcpboard.cli.config import Verbs
from mcpboard.errors import AddressTaken, ConfigError

log = logging.getLogger(__name__)


def add_to(verbs: Verbs) -> None:
    """Add the verb `serve`."""
    parser = verbs.add_parser("serve", help="serve MCP in front of this board's Agent and Config Web")
    config_verb.add_flags(parser)
    parser.set_defaults(run=serve)


def serve(arguments: argparse.Namespace) -> int:
    """Serve until SIGTERM or SIGINT; each URL is printed as it really is, where a program can wait for it."""
    given = config_verb.flags(arguments)
    try:
        return _serve(config.SettingsWatcher(given))
    except ConfigError as error:
        _leave_word(given, error)
        raise


def _serve(watched: config.SettingsWatcher) -> int:
    in_force = watched.current()
    logs.configure(in_force.log, in_force.log_level)
    for warning in in_force.warnings:
        log.warning("%s", warning)

    # Only now: what is wrong with the settings is told before the seconds that a board imports for.
    from mcpboard import board
    from mcpboard.serving import server

    app = board.build(watched.current)
    try:
        sockets = server.listeners(in_force.listen, freebind=in_force.freebind)
    except AddressTaken as taken:
        return _taken(taken, in_force.log)
    return server.serve(app, sockets, functools.partial(_announce, [server.url(listener) for listener in sockets]))


def _announce(urls: Iterable[str]) -> None:
    log.info("serving %s", ", ".join(urls))
    # In one write: a launcher may close its end after the first line.
    print("\n".join(f"mcpboard: serving {url}" for url in urls), flush=True)


def _leave_word(given: Mapping[str, object], error: ConfigError) -> None:
    """Log why it does not start where a flag names a log: an init script's stderr is often nobody's."""
    target = str(given.get("log", "stderr"))
    if target != "stderr":
        with contextlib.suppress(ConfigError):  # the log itself may be what is wrong
            logs.configure(target, "error")
            log.error("%s", error)


def _taken(taken: AddressTaken, target: str) -> int:
    """Say who has the port; when it is the Agent of a stock board, with the two lines that cure it."""
    from mcpboard.board import stock_agent

    lines = stock_agent.advice(taken.port)
    if lines is None:
        raise taken
    told = f"mcpboard: the Agent has port {taken.port}; to stand beside it, write below [{config.OURS}]:"
    print(told, lines, sep="\n", file=sys.stderr)
    if target != "stderr":
        log.error("%s %s", told, lines.replace("\n", ", "))
    return 2
