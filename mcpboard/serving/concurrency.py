"""The budget of turns: how many tool calls may be under way, so that `ping` always finds a thread."""

from __future__ import annotations

import threading

from mcpboard.errors import Busy


class ConcurrencySlot:
    """One place in the budget; given back exactly once, however often `done` is called."""

    def __init__(self, turns: ConcurrencyLimit) -> None:
        self._turns: ConcurrencyLimit | None = turns

    def done(self) -> None:
        turns, self._turns = self._turns, None
        if turns is not None:
            turns.give_back()


class ConcurrencyLimit:
    """At most `most` tool calls between their start and the last byte of their reply.

    Slow readers keep their turn, so they can fill the budget but never the threads above it
    (decision 10). A full budget turns the next call away at once.
    """

    def __init__(self, most: int) -> None:
        self._free = most
        self._most = most
        self._lock = threading.Lock()

    @property
    def under_way(self) -> int:
        """How many turns are out at this moment."""
        with self._lock:
            return self._most - self._free

    def take(self) -> ConcurrencySlot:
        """A turn, or Busy at once."""
        with self._lock:
            if self._free == 0:
                raise Busy(f"{self._most} calls are under way already; nothing was sent, call again in a moment")
            self._free -= 1
        return ConcurrencySlot(self)

    def give_back(self) -> None:
        with self._lock:
            self._free += 1
