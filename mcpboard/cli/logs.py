"""The one place that configures logging: where the lines go, how they look, who has to be quieter."""

from __future__ import annotations

import logging
import os
import stat
import sys
import time
from collections.abc import Sequence

from mcpboard.errors import ConfigError

SYSLOG_SOCKET = "/dev/log"
LARGEST_LOG = 1 << 20  # bytes, twice: the file and the one before it; a board has little room
PERIOD_SECONDS = 60.0  # after which lines of a kind are counted anew

# Lines of one kind in a period. Strangers can cause warnings at will, a thousand wrong tokens a second,
# and would write the log full of them; each call of a busy client has its line.
WARNINGS, OTHERS = 30, 600
KINDS = 1000  # that are remembered; all of the program's own are some hundred

QUIETER = {
    "urllib3": logging.WARNING,  # would log the URL of every request
    "waitress": logging.ERROR,  # warns of every request that waits a moment, and of every full house
}


def announce(program: str, urls: Sequence[str], target: str) -> None:
    """Say what is served: on standard output, where a program can wait for it, and in a log of its own.

    Standard error ends where standard output does, in a terminal or a journal, so there it is said already.
    """
    if target != "stderr":
        logging.getLogger("mcpboard").info("serving %s", ", ".join(urls))
    # In one write: a launcher may close its end after the first line.
    print("\n".join(f"{program}: serving {url}" for url in urls), flush=True)


class OneLine(logging.Formatter):
    """A message is one line, whatever a client has put into it; a traceback follows as it is."""

    _written = (0, "")  # the last second that was written, and how; a busy board logs many lines in one

    def formatTime(self, record: logging.LogRecord, datefmt: str | None = None) -> str:
        """Return the local time to the millisecond, as the class above does."""
        second, text = self._written
        if second != int(record.created):
            second, text = int(record.created), super().formatTime(record, self.default_time_format)
            self._written = second, text
        return f"{text},{int(record.msecs):03d}"

    def formatMessage(self, record: logging.LogRecord) -> str:
        """Return the line with control characters escaped."""
        line = super().formatMessage(record)
        if line.isprintable():  # as nearly all are, and walking each costs as much as writing it
            return line
        return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in line)


class Bounded(logging.Filter):
    """Let through so many lines of one kind in a period; the last one says that more are left out.

    A kind is a logger and what it logs before its arguments are filled in, so there are few.
    """

    def __init__(self) -> None:
        super().__init__()
        self._seen: dict[tuple[str, str], tuple[float, int]] = {}  # kind -> when its period began, lines since

    def filter(self, record: logging.LogRecord) -> bool:
        """Tell if the line is written; two threads may both write the last one."""
        kind, now = (record.name, str(record.msg)), time.monotonic()
        begun, count = self._seen.get(kind, (now, 0))
        begun, count = (begun, count + 1) if now - begun < PERIOD_SECONDS else (now, 1)
        if len(self._seen) >= KINDS:
            self._seen.clear()
        self._seen[kind] = begun, count
        most = WARNINGS if record.levelno >= logging.WARNING else OTHERS
        if count == most:
            record.msg = f"{record.msg} (more lines like this are left out for up to {PERIOD_SECONDS:.0f} s)"
        return count <= most


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
    handler.addFilter(Bounded())
    logging.basicConfig(handlers=[handler], level=level.upper(), force=True)
    for name, floor in QUIETER.items():
        logging.getLogger(name).setLevel(floor)


def _handler(target: str) -> logging.Handler:
    handler: logging.Handler
    plain = OneLine("%(asctime)s %(levelname)s %(name)s: %(message)s")
    if target == "stderr":
        handler = logging.StreamHandler(sys.stderr)
        handler.setFormatter(plain)
        return handler
    from logging.handlers import RotatingFileHandler, SysLogHandler  # half a MiB that stderr does without

    if target == "syslog":
        # The handler itself would stay silent without a daemon: every line lost, and nobody would know.
        if not os.path.exists(SYSLOG_SOCKET):
            raise ConfigError(f"log: syslog needs {SYSLOG_SOCKET}; start a syslog daemon, or log to stderr or a file")
        handler = syslog = SysLogHandler(SYSLOG_SOCKET, SysLogHandler.LOG_DAEMON)
        syslog.ident = f"mcpboard[{os.getpid()}]: "
        handler.setFormatter(OneLine("%(levelname)s %(name)s: %(message)s"))  # the daemon writes the time
        return handler
    if os.path.exists(target) and stat.S_ISFIFO(os.stat(target).st_mode):
        try:
            os.close(os.open(target, os.O_WRONLY | os.O_NONBLOCK))
        except OSError:  # to open it would wait for a reader
            raise ConfigError(f"log: {target} is a FIFO that nobody reads; start its reader, or name a file") from None
    handler = RotatingFileHandler(
        target, maxBytes=LARGEST_LOG, backupCount=1, encoding="utf-8", errors="backslashreplace"
    )
    handler.setFormatter(plain)
    return handler
