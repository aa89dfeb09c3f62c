"""The command queue of a device: one command at a time, in the order of arrival, few waiting and none for long."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager

from mcpboard.errors import NOT_SENT, ToolFailed

MOST_WAITING = 4  # for one device; more than that means that nobody looks at the screen in between
SHARED_PLACES = 16  # of all devices, for who waits behind the first: each is a thread, which silent devices would fill
WAIT_SECONDS = 30.0  # below the minute after which common clients hang up


class CommandQueue:
    """At most one caller has the slot, MOST_WAITING wait for it `wait_seconds`; the next is turned away.

    The first who waits has a place of this device's own; the others have one of `places`, which all queues share.
    """

    def __init__(
        self, device: str, wait_seconds: float = WAIT_SECONDS, places: threading.Semaphore | None = None
    ) -> None:
        self._device = device
        self._wait_seconds = wait_seconds
        self._places = places or shared_places()
        self._lock = threading.Lock()
        self._queue: deque[threading.Event] = deque()  # the first has the slot
        self._guest: threading.Event | None = None

    @contextmanager
    def slot(self) -> Iterator[None]:
        """Keep the device to the caller until the block ends; ToolFailed when there is no room or time to wait."""
        slot = threading.Event()
        with self._lock:
            callers = len(self._queue) - (self._guest is not None)
            shares = callers > 1
            if callers > MOST_WAITING:
                raise self._refusal(f"{MOST_WAITING} wait already; wait for the earlier ones to end")
            if shares and not self._places.acquire(blocking=False):
                raise self._refusal("one waits already, and too many for other devices; call again in a moment")
            self._queue.append(slot)
            self._queue[0].set()
        try:
            granted = slot.wait(self._wait_seconds)
            if shares:
                self._places.release()
            if not granted:
                raise self._refusal(f"the earlier ones did not end within {self._wait_seconds:g} s")
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

    def _refusal(self, reason: str) -> ToolFailed:
        return ToolFailed(f"too many calls for {self._device}: {reason}", delivery=NOT_SENT)

    def _release(self, slot: threading.Event) -> None:
        with self._lock:
            self._queue.remove(slot)
            if slot is self._guest:
                self._guest = None
            if self._queue:
                self._queue[0].set()


def shared_places() -> threading.Semaphore:
    """Return the places that the queues of one host share."""
    return threading.Semaphore(SHARED_PLACES)
