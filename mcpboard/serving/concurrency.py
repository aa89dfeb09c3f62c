"""The limit of tool calls under way at once, so that `ping` always finds a thread."""

from __future__ import annotations

import threading

from mcpboard.errors import Busy


class ConcurrencySlot:
    """One slot of the limit; given back exactly once, however often it is released."""

    def __init__(self, limit: ConcurrencyLimit) -> None:
        self._limit: ConcurrencyLimit | None = limit

    def release(self) -> None:
        limit, self._limit = self._limit, None
        if limit is not None:
            limit.release()


class ConcurrencyLimit:
    """At most `capacity` tool calls between their start and the last byte of their reply.

    Slow readers keep their slot, so they can fill the limit but never the threads above it.
    A full limit turns the next call away at once.
    """

    def __init__(self, capacity: int) -> None:
        self._free = capacity
        self._capacity = capacity
        self._lock = threading.Lock()

    @property
    def in_use(self) -> int:
        """The slots that are taken at this moment."""
        with self._lock:
            return self._capacity - self._free

    def acquire(self) -> ConcurrencySlot:
        """Take a slot, or raise Busy at once."""
        with self._lock:
            if self._free == 0:
                raise Busy(f"{self._capacity} calls are under way already; nothing was sent, call again in a moment")
            self._free -= 1
        return ConcurrencySlot(self)

    def release(self) -> None:
        """Give a slot back; only ConcurrencySlot calls this, once each."""
        with self._lock:
            self._free += 1
