"""One execution of a tool: its waits, the events that end it, and the ledger that a test watches."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any, TypeVar

SLICE_S = 0.02  # how often a wait looks for a caller that left, a deadline or the end of the simulator
HOLD_LIMIT_S = 60.0  # a test that forgets to release must not hang for ever
REMEMBERED = 10_000  # requests, calls and ends; a demonstration may run for days
HANG_LIMIT_S = 600.0  # the longest a hung reply is kept open

Item = TypeVar("Item")


class Dropped(Exception):
    """The connection is to be cut without a (further) byte; `reset` sends RST instead of FIN."""

    def __init__(self, *, reset: bool) -> None:
        super().__init__("reset" if reset else "closed")
        self.reset = reset


class ToolFailure(Exception):
    """A tool failed: HTTP 200 with `is_error`; category and code are of the Agent's registry."""

    def __init__(self, category: str, code: str, message: str, **details: Any) -> None:
        super().__init__(message)
        self.category, self.code, self.message, self.details = category, code, message, details


class ExecutionHold:
    """Keep one tool inside its execution from `entered` until `release()`."""

    def __init__(self) -> None:
        self.entered = threading.Event()
        self.released = threading.Event()

    def release(self) -> None:
        self.released.set()

    def __enter__(self) -> ExecutionHold:
        return self

    def __exit__(self, *_: object) -> None:
        self.release()


@dataclass(frozen=True)
class ReceivedRequest:
    """One HTTP request as it was read: port, request line, headers and body."""

    port: str  # "agent" or "config_web"
    method: str
    path: str
    headers: Mapping[str, str]  # names in lower case
    body: bytes


class Ledger:
    """The requests that came and the tools that ran, with waits that end at once when it happens."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._holds: dict[str, ExecutionHold] = {}
        self.requests: deque[ReceivedRequest] = deque(maxlen=REMEMBERED)
        self.calls: deque[tuple[str, dict[str, Any]]] = deque(maxlen=REMEMBERED)  # name and input
        self.finished: deque[tuple[str, str]] = deque(maxlen=REMEMBERED)  # name and outcome

    def note(self, record: deque[Item], item: Item) -> None:
        """Append to one of the three records."""
        with self._changed:
            record.append(item)
            self._changed.notify_all()

    def copy(self, record: deque[Item]) -> list[Item]:
        """Return one of the three records as it is now."""
        with self._changed:
            return list(record)

    def wait(self, reached: Callable[[], bool], timeout: float, what: str) -> None:
        """Return when `reached` holds; AssertionError naming `what` after `timeout` seconds."""
        with self._changed:
            if not self._changed.wait_for(reached, timeout):
                raise AssertionError(f"no {what} within {timeout:g} s")

    def hold(self, name: str) -> ExecutionHold:
        self.hold_on(name)  # one that was released is no hold any more
        with self._changed:
            return self._holds.setdefault(name.lower(), ExecutionHold())

    def hold_on(self, name: str) -> ExecutionHold | None:
        """Return the hold that the tool must stop at, None when it is free to go."""
        with self._changed:
            hold = self._holds.get(name.lower())
            if hold is not None and hold.released.is_set():
                del self._holds[name.lower()]
                return None
            return hold

    def release_all(self) -> None:
        with self._changed:
            holds, self._holds = list(self._holds.values()), {}
        for hold in holds:
            hold.release()


@dataclass(frozen=True)
class SimulatedClock:
    """Board time: the time in seconds since 1970, a sleep on it, and the event that ends everything."""

    now: Callable[[], float]
    sleep: Callable[[float], object]
    stop: threading.Event


class ToolRun:
    """One request under way. Every wait of a tool goes through here.

    `gone` says whether the caller's socket is closed; a detached run goes on regardless, the others are
    cancelled. `limit_s` (board seconds) ends a run with `deadline_exceeded`.
    """

    def __init__(
        self, clock: SimulatedClock, gone: Callable[[], bool], *, detached: bool = False, limit_s: float | None = None
    ) -> None:
        self._clock = clock
        self._gone = gone
        self._detached = detached
        self._deadline = None if limit_s is None else clock.now() + limit_s
        self.now = clock.now

    def check(self) -> None:
        """Raise what ends this run, if anything does."""
        if self._clock.stop.is_set():
            raise Dropped(reset=False)
        if not self._detached and self._gone():
            raise ToolFailure("transient", "canceled", "context canceled")
        if self._deadline is not None and self._clock.now() >= self._deadline:
            raise ToolFailure("transient", "deadline_exceeded", "context deadline exceeded")

    def pause(self, seconds: float) -> None:
        """Let board time pass."""
        self._wait(self._clock.now, self._clock.sleep, seconds)

    def stall(self, seconds: float) -> None:
        """Let real time pass: what a fault asks for is not sped up with the board."""
        self._wait(time.monotonic, self._clock.stop.wait, seconds)

    def stop_at(self, hold: ExecutionHold | None) -> None:
        """Wait at a hold until it is released, in real time and not beyond the limit."""
        if hold is not None:
            hold.entered.set()
            end = time.monotonic() + HOLD_LIMIT_S
            while not hold.released.wait(SLICE_S) and time.monotonic() < end:
                self.check()
            self.check()

    def hang(self) -> None:
        """Wait for the caller to leave or the simulator to stop, then cut the connection."""
        self._detached = False
        with suppress(ToolFailure):
            self.stall(HANG_LIMIT_S)
        raise Dropped(reset=False)

    @contextmanager
    def locked(self, lock: threading.Lock) -> Iterator[None]:
        """Stand in line for a lock as the Agent's callers do, for as long as the run may live."""
        while not lock.acquire(timeout=SLICE_S):
            self.check()
        try:
            yield
        finally:
            lock.release()

    def _wait(self, clock: Callable[[], float], sleep: Callable[[float], object], seconds: float) -> None:
        end = clock() + seconds
        self.check()
        while (left := end - clock()) > 1e-4:  # floats of today's epoch are no finer than a quarter of a microsecond
            sleep(min(left, SLICE_S))
            self.check()
