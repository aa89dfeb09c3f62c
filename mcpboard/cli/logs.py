"""The one place that configures logging: where the lines go, how they look, who has to be quieter."""

from __future__ import annotations

import logging
import logging.handlers
import os
import sys

from mcpboard.errors import ConfigError

SYSLOG_SOCKET = "/dev/log"
LARGEST_LOG = 1 << 20  # bytes, twice: the file and the one before it; a board has little room

QUIETER = {
    "waitress": logging.ERROR,  # warns of every request that waits a moment, and of every full house
}


class OneLine(logging.Formatter):
    """A message is one line, whatever a client has put into it; a traceback follows as it is."""

    def formatMessage(self, record: logging.LogRecord) -> str:
        """Return the line with control characters escaped."""
        line = super().formatMessage(record)
        if line.isprintable():  # as nearly all are, and walking each costs as much as writing it
            return line
        return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in line)


def configure(target: str, level: str) -> None:
    """Send the log to `stderr`, `syslog` or the file of that path; replaces what was configured before.

    Raises ConfigError where the target cannot be opened.
    """
    logging.raiseExceptions = False  # a full disk must not fill stderr with tracebacks
    # Looked up for every line, and never shown (Optimization, in the manual of logging).
    logging.logThreads = logging.logProcesses = logging.logMultiprocessing = False
    logging._srcfile = None
    try:
        handler = _handler(target)
    except OSError as error:
        raise ConfigError(f"log: {target} cannot be written: {error.strerror}; name another file, or stderr") from None
    logging.basicConfig(handlers=[handler], level=level.upper(), force=True)
    for name, floor in QUIETER.items():
        logging.getLogger(name).setLevel(floor)


def _handler(target: str) -> logging.Handler:
    handler: logging.Handler
    if target == "syslog":
        # The handler itself would stay silent without a daemon: every line lost, and nobody would know.
        if not os.path.exists(SYSLOG_SOCKET):
            raise ConfigError(f"log: syslog needs {SYSLOG_SOCKET}; start a syslog daemon, or log to stderr or a file")
        handler = syslog = logging.handlers.SysLogHandler(SYSLOG_SOCKET, logging.handlers.SysLogHandler.LOG_DAEMON)
        syslog.ident = f"mcpboard[{os.getpid()}]: "
        handler.setFormatter(OneLine("%(levelname)s %(name)s: %(message)s"))  # the daemon writes the time
        return handler
    if target == "stderr":
        handler = logging.StreamHandler(sys.stderr)
    else:
        handler = logging.handlers.RotatingFileHandler(
            target, maxBytes=LARGEST_LOG, backupCount=1, encoding="utf-8", errors="backslashreplace"
        )
    handler.setFormatter(OneLine("%(asctime)s %(levelname)s %(name)s: %(message)s"))
    return handler
