"""What one thread tries at the cloud again and again: how it went last, and how long to pause after it."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

from mcpboard.errors import ClientError, PeerRefused
from mcpboard.host.cloud.api import short
from mcpboard.host.cloud.backoff import LONGEST_PAUSE, Backoff

log = logging.getLogger(__name__)

UNKNOWN_HOST = frozenset({401, 403})  # statuses
BUG = "internal error of the host agent; its log has the details"


class Retry:
    """Attempts at one kind of post; `problem` is why the last came to nothing, empty when it did not.

    Once `stopping` rings connections are cut on purpose, and nothing is logged any more.
    """

    def __init__(self, what: str, stopping: threading.Event, most: float = LONGEST_PAUSE) -> None:
        self.problem = ""
        self._what = what
        self._stopping = stopping
        self._backoff = Backoff(most)

    def make(self, attempt: Callable[[], None]) -> float | None:
        """Seconds to pause before the next attempt, None when this one came to something; never raises."""
        try:
            attempt()
        except ClientError as error:
            return self._failed(_words(error))
        except Exception:  # a bug of ours: the thread lives on, slowly
            log.exception("cloud %s", self._what)
            return self._failed(BUG)
        if self.problem:
            log.info("cloud %s: works again", self._what)
        self.problem = ""
        self._backoff.succeeded()
        return None

    def _failed(self, problem: str) -> float:
        if not self.problem and not self._stopping.is_set():  # one line for an outage, none for each attempt
            log.warning("cloud %s: %s; it is tried again, and outcomes are kept until then", self._what, problem)
        self.problem = problem
        return self._backoff.failed()


def _words(error: ClientError) -> str:
    if isinstance(error, PeerRefused) and error.status in UNKNOWN_HOST:
        return f"the cloud does not know this host any more (HTTP {error.status}): enrol again"
    return short(error)
