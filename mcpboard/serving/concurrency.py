"""The limit of tool calls under way at once, so that `ping` always finds a thread."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Protocol

from mcpboard.errors import Busy

RESERVED = 6  # one slot in so many, rounded up, is for tools that act
# Bytes of replies that are made or read at once, by what each tool has answered before: one screenshot of the
# largest size, or twenty of a phone. One of 4 MiB takes three times as much for a moment.
HELD_BYTES = 6 << 20
READING_SECONDS = 1.0  # that a reply may be read for before a call may take its slot; 1 MiB at 8 Mbit/s


class ReplyConnection(Protocol):
    """The connection that a reply goes out to."""

    total_outbufs_len: int  # bytes that wait for the reader

    def break_off(self) -> None: ...


class ConcurrencySlot:
    """One slot of the limit; given back once, however often it is released."""

    def __init__(self, limit: ConcurrencyLimit, acts: bool, tool: str, size: int) -> None:
        self._limit = limit
        self.acts = acts
        self.tool = tool
        self.reader: ReplyConnection | None = None
        self.since = 0.0  # when its reply began to be read
        self.size = size  # bytes that are held for it, or will be if it is like an earlier one

    def read_by(self, reader: ReplyConnection, now: float, size: int = 0) -> None:
        """Note that the tool is done: only `reader` keeps the slot from now on, and `size` bytes of a reply."""
        self.reader, self.since, self.size = reader, now, size
        self._limit.sizes[self.tool] = size

    def is_read_slowly(self, now: float) -> bool:
        """Tell if its reply has been read for long and still waits for the reader."""
        return self.reader is not None and self.reader.total_outbufs_len > 0 and now - self.since >= READING_SECONDS

    def release(self) -> None:
        """Give the slot back, unless that is done, or another call has it; from any thread."""
        with self._limit.lock:
            if self in self._limit.held:
                self._limit.held.remove(self)


class ConcurrencyLimit:
    """At most `capacity` tool calls between their start and the last byte of their reply."""

    # Slow readers keep their slot, so they can fill the limit but never the threads above it. A full
    # limit turns the next call away at once, unless a reply has been read for long: then the one
    # that was read for longest is broken off, and the call takes its slot. So nobody who reads slowly
    # keeps others from the phone, and no reading of others keeps a tool that acts from it, for which some
    # slots are reserved.

    def __init__(
        self, capacity: int, held_bytes: int = HELD_BYTES, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.sizes: dict[str, int] = {}  # tool -> bytes of its latest reply
        self._capacity = capacity
        self._held_bytes = held_bytes
        self._reserved = min(-(-capacity // RESERVED), capacity - 1)
        self._clock = clock
        self.lock = threading.Lock()  # of the slots that are held
        self.held: list[ConcurrencySlot] = []

    def acquire(self, acts: bool = True, tool: str = "") -> ConcurrencySlot:
        """Take a slot for a tool that `acts`, or for one that only looks; Busy at once when there is none."""
        slot = ConcurrencySlot(self, acts, tool, self.sizes.get(tool, 0))
        with self.lock:
            is_full = len(self.held) >= self._capacity
            if not acts:
                is_full |= sum(not each.acts for each in self.held) >= self._capacity - self._reserved
                held = sum(each.size for each in self.held)
                is_full |= bool(slot.size) and held + slot.size > self._held_bytes
            if is_full:
                self.held.remove(self._break_off_slowest(acts))
            self.held.append(slot)
        return slot

    def _break_off_slowest(self, acts: bool) -> ConcurrencySlot:
        """Break off the reply that has been read for longest, and return its slot; Busy where none has for long.

        Only a tool that `acts` takes the place of another one: its caller wants to know what it did.
        """
        now = self._clock()
        slow = [each for each in self.held if (acts or not each.acts) and each.is_read_slowly(now)]
        if not slow:
            raise Busy(f"{len(self.held)} calls are under way already; nothing was sent, call again in a moment")
        slot = min(slow, key=lambda each: each.since)
        assert slot.reader is not None
        # While we hold the lock the reply cannot end, and so the connection not be in another one.
        slot.reader.break_off()
        return slot
