"""The one way in which the cloud worker's threads work, wait and fail; and the clock that they wait by."""

from __future__ import annotations

import logging
import random
import threading
import time
from collections.abc import Callable, Iterable
from typing import NamedTuple

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


class Due(NamedTuple):
    """When the next step is due: `pause_s` seconds from now, which only the end cuts short, and `wait_s` more.

    `asked` is False after a step that had nothing to ask of the cloud, and so tells nothing of it.
    """

    wait_s: float = 0.0
    pause_s: float = 0.0
    asked: bool = True


AT_ONCE = Due()


class Loop:
    """One thread that takes a step whenever one is due, until `end` is set, and then what is due where it has a `last`.

    `step` returns when the next is due; `wake` brings it forward. Whatever a step raises, it is tried again after a
    pause that doubles with each failure up to `longest_s` seconds; `problem` is why the last one failed, empty when
    it did not. Once `stopping` is set connections are cut on purpose, and failures are not logged any more.
    """

    def __init__(
        self, name: str, step: Callable[[], Due], clock: WorkerClock, stopping: threading.Event, end: threading.Event,
        *, longest_s: float = LONGEST_PAUSE, last: bool = True,
    ) -> None:  # fmt: skip
        self.wake = threading.Event()
        self.problem = ""
        self.thread = daemon(self._run, name)
        self._name, self._step, self._clock, self._stopping, self._end = name, step, clock, stopping, end
        self._longest_s, self._last = longest_s, last
        self._failures = 0  # in a row

    def _run(self) -> None:
        while not (ended := self._end.is_set()) or self._last:
            self.wake.clear()
            due = self._attempt() or Due(pause_s=pause(self._failures, self._longest_s))
            if ended and due != AT_ONCE:
                return
            self._clock.wait(self._end, due.pause_s)
            if not self._end.is_set():  # whoever sets it sets `wake` after it, perhaps before that was cleared
                self._clock.wait(self.wake, due.wait_s)

    def _attempt(self) -> Due | None:
        """Return when the next step is due, None when this one failed; never raises."""
        try:
            due = self._step()
        except ClientError as error:
            problem = short(error)
            if isinstance(error, PeerRefused) and error.status in UNKNOWN_HOST:
                problem = f"the cloud does not know this host any more (HTTP {error.status}): enrol again"
        except Exception:  # a bug of ours: the thread lives on, slowly
            log.exception("cloud %s", self._name)
            problem = BUG
        else:
            if due.asked:
                if self.problem:
                    log.info("cloud %s: works again", self._name)
                self.problem, self._failures = "", 0
            return due
        if not self.problem and not self._stopping.is_set():  # one line for an outage, none for each attempt
            log.warning("cloud %s: %s; it is tried again, and outcomes are kept until then", self._name, problem)
        self.problem = problem
        self._failures += 1
        return None


def pause(failures: int, longest_s: float) -> float:
    """Return the seconds to wait after so many failures in a row, never less than SHORTEST_PAUSE.

    Shortened by up to half at random, so that hosts do not come back all at once.
    """
    full = min(longest_s, SHORTEST_PAUSE * 2.0 ** min(failures, 10))  # far beyond any longest_s
    return max(SHORTEST_PAUSE, full * random.uniform(0.5, 1.0))


def daemon(work: Callable[[], None], name: str) -> threading.Thread:
    """Return a thread that does not keep the process: a device or a name server may never answer."""
    return threading.Thread(target=work, name=f"cloud {name}", daemon=True)


def join(threads: Iterable[threading.Thread], seconds: float) -> list[str]:
    """Wait for all of them, that long at most; return the names of those that still run."""
    end, left = time.monotonic() + seconds, list(threads)
    for thread in left:
        thread.join(max(0.0, end - time.monotonic()))
    return [thread.name for thread in left if thread.is_alive()]
