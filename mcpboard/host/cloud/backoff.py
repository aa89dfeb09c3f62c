"""Time for the cloud worker: a clock, the events that wake its threads, and growing pauses between attempts."""

from __future__ import annotations

import logging
import random
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from mcpboard.errors import ClientError, PeerRefused
from mcpboard.host.cloud.api import short

log = logging.getLogger(__name__)

SHORTEST_PAUSE = 1.0  # seconds; also between two posts of a kind when nothing came of the first
LONGEST_PAUSE = 60.0  # seconds; a cloud that is back hears from us within a minute

UNKNOWN_HOST = frozenset({401, 403})  # statuses
BUG = "internal error of the host agent; its log has the details"


class WorkerClock:
    """Monotonic seconds and waits in them; with a `speed` above 1 they pass faster than real ones."""

    def __init__(self, speed: float = 1.0) -> None:
        self._speed = speed

    def now(self) -> float:
        """Return the seconds of a clock that never jumps."""
        return time.monotonic() * self._speed

    def wait(self, event: threading.Event, seconds: float) -> None:
        """Wait for `event`, that long at most."""
        event.wait(max(0.0, seconds) / self._speed)


@dataclass(frozen=True)
class WorkerEvents:
    """The states that the worker goes through, and the events that wake its threads."""

    draining: threading.Event = field(default_factory=threading.Event)  # nothing new is to be claimed
    stopping: threading.Event = field(default_factory=threading.Event)  # the worker is being closed
    closing: threading.Event = field(default_factory=threading.Event)  # nothing runs any more: report the rest, end
    wake_heartbeat: threading.Event = field(default_factory=threading.Event)  # who holds which device has changed
    wake_claims: threading.Event = field(default_factory=threading.Event)  # a device may be free now
    wake_delivery: threading.Event = field(default_factory=threading.Event)  # an outcome is in the outbox

    def lease_changed(self) -> None:
        """Wake who follows the devices' leases: one has begun or ended."""
        self.wake_heartbeat.set()
        self.wake_claims.set()

    def run_ended(self) -> None:
        """Wake who follows assignments: one is over, its outcome in the outbox."""
        self.wake_delivery.set()
        self.wake_claims.set()

    def stop(self) -> None:
        """Begin the end."""
        self.draining.set()
        self.stopping.set()
        self.wake_claims.set()

    def close(self) -> None:
        """Have every thread do what is left, and end."""
        self.closing.set()
        self.wake_heartbeat.set()
        self.wake_delivery.set()


class Backoff:
    """Pauses that double up to `most` seconds with each failure, and start again after a success.

    Each is shortened by up to half at random, so that hosts do not come back all at once.
    """

    def __init__(self, most: float = LONGEST_PAUSE) -> None:
        self._most = most
        self._next = self._first = min(2 * SHORTEST_PAUSE, most)

    def failed(self) -> float:
        """Return the seconds to wait now, never less than SHORTEST_PAUSE."""
        pause, self._next = self._next, min(self._most, 2 * self._next)
        return max(SHORTEST_PAUSE, pause * random.uniform(0.5, 1.0))

    def succeeded(self) -> None:
        """Start again with the first pause."""
        self._next = self._first


class Retry:
    """Attempts at one class of request; `problem` is why the last one failed, empty when it did not.

    Once `stopping` is set connections are cut on purpose, and nothing is logged any more.
    """

    def __init__(self, what: str, stopping: threading.Event, most: float = LONGEST_PAUSE) -> None:
        self.problem = ""
        self._what = what
        self._stopping = stopping
        self._backoff = Backoff(most)

    def attempt(self, request: Callable[[], None]) -> float | None:
        """Return the seconds to pause before the next attempt, None when this one succeeded; never raises."""
        try:
            request()
        except ClientError as error:
            problem = short(error)
            if isinstance(error, PeerRefused) and error.status in UNKNOWN_HOST:
                problem = f"the cloud does not know this host any more (HTTP {error.status}): enrol again"
        except Exception:  # a bug of ours: the thread lives on, slowly
            log.exception("cloud %s", self._what)
            problem = BUG
        else:
            if self.problem:
                log.info("cloud %s: works again", self._what)
            self.problem = ""
            self._backoff.succeeded()
            return None
        if not self.problem and not self._stopping.is_set():  # one line for an outage, none for each attempt
            log.warning("cloud %s: %s; it is tried again, and outcomes are kept until then", self._what, problem)
        self.problem = problem
        return self._backoff.failed()
