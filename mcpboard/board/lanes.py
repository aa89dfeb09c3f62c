"""Lanes: how many calls of one sort may run at once; a full lane turns the next caller away.

The Agent has no queue and no busy answer, its callers simply block. So the waiting is refused here,
where the refusal can say what is running and what to do meanwhile.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass

from mcpboard.errors import Busy
from mcpboard.transport.deadline import Clock

# Advice to a caller who is turned away, by lane; every other lane takes ADVICE.
ADVICE = "call again when it is over"
LANE_ADVICE = {
    "input": "{running} may have changed the screen already: look at the screen first (screenshot), "
    "then decide whether {tool} is still needed"
}


@dataclass(eq=False)
class Slot:
    """One slot of a lane, held from `Lanes.acquire` until the first `release`; `since` is a time of the clock."""

    lanes: Lanes
    lane: str
    tool: str
    since: float

    def release(self) -> None:
        """Free the slot; more than once, and from any thread, is fine."""
        with self.lanes.lock:
            if self in self.lanes.running[self.lane]:
                self.lanes.running[self.lane].remove(self)


class Lanes:
    """Never more calls in a lane than it has slots; nobody ever waits for one."""

    def __init__(self, capacity: Mapping[str, int], clock: Clock = time.monotonic) -> None:
        self._capacity = dict(capacity)
        self._clock = clock
        self.lock = threading.Lock()  # of all that follows
        self.running: dict[str, list[Slot]] = {lane: [] for lane in capacity}  # oldest first

    def acquire(self, lane: str, tool: str) -> Slot:
        """Take a slot for `tool` at once, or raise Busy naming what runs and for how long."""
        now = self._clock()
        slot = Slot(self, lane, tool, now)
        with self.lock:
            running = self.running[lane]
            if len(running) >= self._capacity[lane]:
                runs = " and ".join(
                    f"{other.tool} has been running for {max(0.0, now - other.since):.0f} s" for other in running
                )
                names = " and ".join(other.tool for other in running)
                advice = LANE_ADVICE.get(lane, ADVICE).format(running=names, tool=tool)
                raise Busy(f"{tool} was not started: {runs}. Nothing was sent; {advice}.")
            running.append(slot)
        return slot
