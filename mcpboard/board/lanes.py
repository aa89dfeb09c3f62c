"""Lanes: how many calls of one sort may run at once; a full lane turns the next caller away.

The Agent has no queue and no busy answer, its callers simply block. So the waiting is refused here,
where the refusal can say what is running and what to do meanwhile.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from contextlib import AbstractContextManager
from types import TracebackType

from mcpboard.errors import Busy
from mcpboard.transport.deadline import Clock

# Advice to a caller who is turned away, by lane; every other lane takes ADVICE.
ADVICE = "call again when it is over"
LANE_ADVICE = {
    "input": "it may have changed the screen already: look at the screen first (screenshot), "
    "then decide whether this is still needed",
}


class Slot(AbstractContextManager["Slot"]):
    """One slot of a lane, held from `Lanes.acquire` until the first `release`; also a context manager."""

    def __init__(self, lanes: Lanes, lane: str, tool: str, since: float) -> None:
        self.lane = lane
        self.tool = tool
        self.since = since
        self._lanes = lanes

    def release(self) -> None:
        """Free the slot; more than once, and from any thread, is fine."""
        self._lanes.release(self)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()


class Lanes:
    """Never more calls in a lane than it has slots; nobody ever waits for one."""

    def __init__(self, capacity: Mapping[str, int], clock: Clock = time.monotonic) -> None:
        self._capacity = dict(capacity)
        self._running: dict[str, list[Slot]] = {lane: [] for lane in capacity}
        self._clock = clock
        self._lock = threading.Lock()

    def acquire(self, lane: str, tool: str) -> Slot:
        """Take a slot for `tool` at once, or raise Busy naming what runs and for how long."""
        now = self._clock()
        slot = Slot(self, lane, tool, now)
        with self._lock:
            running = self._running[lane]
            if len(running) >= self._capacity[lane]:
                runs = " and ".join(
                    f"{other.tool} has been running for {max(0.0, now - other.since):.0f} s" for other in running
                )
                advice = LANE_ADVICE.get(lane, ADVICE)
                raise Busy(f"{tool} was not started: {runs}. Nothing was sent; {advice}.")
            running.append(slot)
        return slot

    def release(self, slot: Slot) -> None:
        """Free the slot, if it is still held."""
        with self._lock:
            if slot in self._running[slot.lane]:
                self._running[slot.lane].remove(slot)

    def state(self) -> dict[str, list[tuple[str, float]]]:
        """Return every lane with the tools now in it, oldest first, each with its seconds so far."""
        now = self._clock()
        with self._lock:
            return {lane: [(slot.tool, now - slot.since) for slot in slots] for lane, slots in self._running.items()}
