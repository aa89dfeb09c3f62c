"""Lanes: how many calls of one kind may run at once; a full lane turns the next caller away.

The Agent has no queue and no busy answer, its callers simply block (decision 10). So the waiting
is refused here, where the refusal can say what is running and what to do meanwhile.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from contextlib import AbstractContextManager
from types import TracebackType

from mcpboard.errors import Busy
from mcpboard.transport.deadline import Clock

# What a caller who is turned away should do, by lane; every other lane takes ADVICE.
ADVICE = "call again when it is over"
LANE_ADVICE = {
    "input": "it may have changed the screen already: look at the screen first (screenshot), "
    "then decide whether this is still needed",
}


class Slot(AbstractContextManager["Slot"]):
    """One place in a lane, held from `Lanes.enter` until the first `leave`; also a context manager."""

    def __init__(self, lanes: Lanes, lane: str, tool: str, since: float) -> None:
        self.lane = lane
        self.tool = tool
        self.since = since
        self._lanes = lanes

    def leave(self) -> None:
        """Free the place; more than once, and from any thread, is fine."""
        self._lanes._free(self)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.leave()


class Lanes:
    """Never more calls in a lane than it has places; nobody ever waits for one."""

    def __init__(self, places: Mapping[str, int], clock: Clock = time.monotonic) -> None:
        self._places = dict(places)
        self._running: dict[str, list[Slot]] = {lane: [] for lane in places}
        self._clock = clock
        self._lock = threading.Lock()

    def enter(self, lane: str, tool: str) -> Slot:
        """Take a place for `tool` at once, or raise Busy naming what runs and for how long."""
        place = Slot(self, lane, tool, self._clock())
        with self._lock:
            running = self._running[lane]
            if len(running) >= self._places[lane]:
                raise Busy(self._refusal(place, running))
            running.append(place)
        return place

    def state(self) -> dict[str, list[tuple[str, float]]]:
        """Every lane with the tools now in it, oldest first, each with its seconds so far."""
        now = self._clock()
        with self._lock:
            return {
                lane: [(place.tool, now - place.since) for place in running] for lane, running in self._running.items()
            }

    def _free(self, place: Slot) -> None:
        with self._lock:
            if place in self._running[place.lane]:
                self._running[place.lane].remove(place)

    @staticmethod
    def _refusal(turned_away: Slot, running: list[Slot]) -> str:
        runs = " and ".join(
            f"{place.tool} has been running for {max(0.0, turned_away.since - place.since):.0f} s" for place in running
        )
        advice = LANE_ADVICE.get(turned_away.lane, ADVICE)
        return f"{turned_away.tool} was not started: {runs}. Nothing was sent; {advice}."
