"""How time passes for the cloud worker: a clock, the bells that its threads wait for, and growing pauses."""

from __future__ import annotations

import random
import threading
import time
from dataclasses import dataclass, field

SHORTEST_PAUSE = 1.0  # seconds; also between two posts of a kind when nothing came of the first
LONGEST_PAUSE = 60.0  # seconds; a cloud that is back hears from us within a minute


class WorkerClock:
    """Monotonic seconds and waits in them; with a `speed` above 1 they pass faster than real ones."""

    def __init__(self, speed: float = 1.0) -> None:
        self._speed = speed

    def now(self) -> float:
        """Seconds on a clock that never jumps."""
        return time.monotonic() * self._speed

    def wait(self, bell: threading.Event, seconds: float) -> None:
        """Wait for `bell`, that long at most."""
        bell.wait(max(0.0, seconds) / self._speed)


@dataclass(frozen=True)
class WorkerEvents:
    """What the worker's threads are woken by."""

    draining: threading.Event = field(default_factory=threading.Event)  # nothing new is to be claimed
    stopping: threading.Event = field(default_factory=threading.Event)  # the worker is being closed
    closing: threading.Event = field(default_factory=threading.Event)  # nothing runs any more: tell what is left, go
    news: threading.Event = field(default_factory=threading.Event)  # for the heartbeat: a hold has changed
    room: threading.Event = field(default_factory=threading.Event)  # for the claims: something may be free now
    mail: threading.Event = field(default_factory=threading.Event)  # for the delivery: there is a letter

    def hold_changed(self) -> None:
        """A hold has begun or ended."""
        self.news.set()
        self.room.set()

    def run_ended(self) -> None:
        """An assignment is over, its outcome in the outbox."""
        self.mail.set()
        self.room.set()

    def stop(self) -> None:
        """Begin the end."""
        self.draining.set()
        self.stopping.set()
        self.room.set()

    def close(self) -> None:
        """Have every thread do what is left, and end."""
        self.closing.set()
        self.news.set()
        self.mail.set()


class Backoff:
    """Pauses that double up to `most` seconds with each failure, and start again after a success.

    Each is shortened by up to half at random, so that hosts do not come back all at once.
    """

    def __init__(self, most: float = LONGEST_PAUSE) -> None:
        self._most = most
        self._next = self._first = min(2 * SHORTEST_PAUSE, most)

    def failed(self) -> float:
        """Seconds to wait now, never less than SHORTEST_PAUSE."""
        pause, self._next = self._next, min(self._most, 2 * self._next)
        return max(SHORTEST_PAUSE, pause * random.uniform(0.5, 1.0))

    def succeeded(self) -> None:
        """Start again with the first pause."""
        self._next = self._first
