"""`mcpboard serve`: MCP in front of this board."""

from __future__ import annotations

import argparse
import contextlib
import logging
import sys
from functools import partial

from mcpboard import config
from mcpboard.cli import config as config_verb
from mcpboard.cli import logs
from mcpboard.cli.config import Verbs
from mcpboard.errors import AddressTaken, ConfigError

log = logging.getLogger(__name__)


def add_to(verbs: Verbs) -> None:
    """Add the verb `serve`."""
    sentence = "Serve MCP in front of this board's Agent and Config Web."
    parser = config_verb.add_verb(verbs, "serve", sentence, "mcpboard serve --listen 0.0.0.0:8090", serve)
    config_verb.add_flags(parser)


def serve(arguments: argparse.Namespace) -> int:
    """Serve until SIGTERM or SIGINT; each URL is printed as it really is, where a program can wait for it."""
    given = config_verb.flags(arguments)
    try:
        return _serve(config.SettingsWatcher(given))
    except ConfigError as error:
        # Why it does not start is logged, too, where a flag names a log: an init script's stderr is often nobody's.
        target = str(given.get("log", "stderr"))
        if target != "stderr":
            with contextlib.suppress(ConfigError):  # the log itself may be what is wrong
                logs.configure(target, "error")
                log.error("%s", error)
        raise


def _serve(watched: config.SettingsWatcher) -> int:
    settings = watched.current()
    logs.configure(settings.log, settings.log_level)
    for warning in settings.warnings:
        log.warning("%s", warning)

    # Only now: what is wrong with the settings is said before the seconds that a board imports for.
    from mcpboard import board
    from mcpboard.serving import server

    app = board.build(watched.current)
    try:
        sockets = server.listeners(settings.listen, freebind=settings.freebind)
    except AddressTaken as taken:
        from mcpboard.board import stock_agent

        lines = stock_agent.advice(taken.port)
        if lines is None:
            raise
        # The Agent of a stock board has the port: these two lines fix it.
        message = f"mcpboard: the Agent has port {taken.port}; to stand beside it, write below [{config.OURS}]:"
        print(message, lines, sep="\n", file=sys.stderr)
        if settings.log != "stderr":
            log.error("%s %s", message, lines.replace("\n", ", "))
        return 2
    urls = [server.url(listener) for listener in sockets]
    return server.serve(app, sockets, partial(logs.announce, "mcpboard", urls, settings.log))
