"""The I/O lock of a device: one command at a time, in the order of arrival, few waiting and none for long."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager

from mcpboard.errors import NOT_SENT, ToolFailed

MOST_WAITING = 4  # more than that means that nobody looks at the screen in between
WAIT_SECONDS = 30.0  # below the minute after which common clients hang up


class CommandQueue:
    """At most one caller inside, MOST_WAITING behind it for `wait_seconds`; the next is turned away."""

    def __init__(self, device: str, wait_seconds: float = WAIT_SECONDS) -> None:
        self._device = device
        self._wait_seconds = wait_seconds
        self._lock = threading.Lock()
        self._queue: deque[threading.Event] = deque()  # the first is inside
        self._guest: threading.Event | None = None

    @property
    def waiting(self) -> int:
        """Callers that wait at this moment."""
        with self._lock:
            return max(0, len(self._queue) - 1)

    @contextmanager
    def inside(self) -> Iterator[None]:
        """Alone with the device until the block ends; ToolFailed when there is no room or time to wait."""
        turn = self._line_up()
        try:
            if not turn.wait(self._wait_seconds):
                raise self._refusal()
            yield
        finally:
            self._leave(turn)

    @contextmanager
    def guest(self) -> Iterator[bool]:
        """Alone with the device if nobody is there, else False at once; takes nobody's place in the line."""
        turn = threading.Event()
        with self._lock:
            vacant = not self._queue
            if vacant:
                self._guest = turn
                self._queue.append(turn)
        try:
            yield vacant
        finally:
            if vacant:
                self._leave(turn)

    def _line_up(self) -> threading.Event:
        turn = threading.Event()
        with self._lock:
            callers = len(self._queue) - (self._guest is not None)
            if callers > MOST_WAITING:
                raise self._refusal()
            self._queue.append(turn)
            self._queue[0].set()
        return turn

    def _leave(self, turn: threading.Event) -> None:
        with self._lock:
            self._queue.remove(turn)
            if turn is self._guest:
                self._guest = None
            if self._queue:
                self._queue[0].set()

    def _refusal(self) -> ToolFailed:
        return ToolFailed(f"too many calls for {self._device}: wait for the earlier ones to end", delivery=NOT_SENT)
