"""Orphans: outcomes of actions whose caller never heard of them, told once to the next (decision 9).

An action goes on when its caller hangs up, and a caller that only saw a broken connection would
do it again. So the outcome waits here for the next action's result.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from mcpboard.transport.deadline import Clock

KEPT_SECONDS = 600.0  # decision 9; later than that, the screen says more than the note
KEPT_OUTCOMES = 16  # the newest; input runs one at a time, so more means that nobody reads them
ARRIVAL_SECONDS = 0.5  # that TCP may take to acknowledge what has arrived (RFC 1122, 4.2.3.2)

GONE = "after its caller had gone"
UNHEARD = "but its answer may never have arrived"


@dataclass(frozen=True)
class UndeliveredOutcome:
    """One outcome nobody heard of: the tool, words such as "finished OK", and when, on the clock."""

    tool: str
    outcome: str
    finished_at: float
    fate: str = GONE


@dataclass(frozen=True)
class Notice:
    """What to say before the next action's result; empty text when there is nothing to tell."""

    text: str
    orphans: tuple[UndeliveredOutcome, ...]


@dataclass(frozen=True)
class Unacknowledged:
    """Outcomes in a reply that the kernel has, and perhaps nobody else; `arrived` asks."""

    orphans: Sequence[UndeliveredOutcome]
    arrived: Callable[[], bool]
    since: float


class UndeliveredOutcomes:
    """Each outcome is told once at most, within ten minutes, newest sixteen only; safe among threads."""

    def __init__(self, clock: Clock = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._kept: list[UndeliveredOutcome] = []
        self._underway: deque[Unacknowledged] = deque(maxlen=KEPT_OUTCOMES)

    def keep(self, orphans: Sequence[UndeliveredOutcome], arrived: Callable[[], bool] | None = None) -> None:
        """Keep outcomes that nobody heard of, or nobody will should their reply not have `arrived` in good time.

        Their words are ours, never an argument or a foreign text.
        """
        with self._lock:
            if arrived is None:
                self._keep(orphans)
            else:
                self._underway.append(Unacknowledged(orphans, arrived, self._clock()))

    def take(self) -> Notice:
        """All that is worth telling, oldest first; it is forgotten here, so tell it or keep it again."""
        now = self._clock()
        with self._lock:
            self._look_after(now)
            kept = [orphan for orphan in self._kept if now - orphan.finished_at <= KEPT_SECONDS]
            self._kept.clear()
        return Notice(" ".join(_sentence(orphan, now) for orphan in kept), tuple(kept))

    def _look_after(self, now: float) -> None:
        """Keep what has not arrived in good time, forget what has."""
        for reply in [self._underway.popleft() for _ in range(len(self._underway))]:
            if reply.arrived():
                continue
            if now - reply.since < ARRIVAL_SECONDS:
                self._underway.append(reply)
            else:
                self._keep([replace(orphan, fate=UNHEARD) for orphan in reply.orphans])

    def _keep(self, orphans: Sequence[UndeliveredOutcome]) -> None:
        self._kept = sorted([*self._kept, *orphans], key=lambda orphan: orphan.finished_at)[-KEPT_OUTCOMES:]


def _sentence(orphan: UndeliveredOutcome, now: float) -> str:
    ago = f"{max(0.0, now - orphan.finished_at):.0f} s ago"
    return f"The earlier {orphan.tool} {orphan.outcome} {ago}, {orphan.fate}; look at the screen before repeating it."
