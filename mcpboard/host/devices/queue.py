"""The command queue of a device: one command at a time, in the order of arrival, few waiting and none for long."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager

from mcpboard.errors import NOT_SENT, ToolFailed

MOST_WAITING = 4  # more than that means that nobody looks at the screen in between
WAIT_SECONDS = 30.0  # below the minute after which common clients hang up


class CommandQueue:
    """At most one caller has the slot, MOST_WAITING wait for it `wait_seconds`; the next is turned away."""

    def __init__(self, device: str, wait_seconds: float = WAIT_SECONDS) -> None:
        self._refusal = f"too many calls for {device}: wait for the earlier ones to end"
        self._wait_seconds = wait_seconds
        self._lock = threading.Lock()
        self._queue: deque[threading.Event] = deque()  # the first has the slot
        self._guest: threading.Event | None = None

    @contextmanager
    def slot(self) -> Iterator[None]:
        """Keep the device to the caller until the block ends; ToolFailed when there is no room or time to wait."""
        slot = threading.Event()
        with self._lock:
            callers = len(self._queue) - (self._guest is not None)
            if callers > MOST_WAITING:
                raise ToolFailed(self._refusal, delivery=NOT_SENT)
            self._queue.append(slot)
            self._queue[0].set()
        try:
            if not slot.wait(self._wait_seconds):
                raise ToolFailed(self._refusal, delivery=NOT_SENT)
            yield
        finally:
            self._release(slot)

    @contextmanager
    def guest_slot(self) -> Iterator[bool]:
        """Keep the device to the caller if nobody is there, else yield False at once; takes no caller's slot."""
        slot = threading.Event()
        with self._lock:
            acquired = not self._queue
            if acquired:
                self._guest = slot
                self._queue.append(slot)
        try:
            yield acquired
        finally:
            if acquired:
                self._release(slot)

    def _release(self, slot: threading.Event) -> None:
        with self._lock:
            self._queue.remove(slot)
            if slot is self._guest:
                self._guest = None
            if self._queue:
                self._queue[0].set()
