"""Orphans: outcomes of actions whose caller had gone, told once to the next (decision 9).

An action goes on when its caller hangs up, and a caller that only saw a broken connection would
do it again. So the outcome waits here for the next action's result.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from dataclasses import dataclass

from mcpboard.deadline import Clock

KEPT_SECONDS = 600.0  # decision 9; later than that, the screen says more than the note
KEPT_OUTCOMES = 16  # the newest; input runs one at a time, so more means that nobody reads them


@dataclass(frozen=True)
class Orphan:
    """One outcome nobody heard of: the tool, words such as "finished OK", and when, on the clock."""

    tool: str
    outcome: str
    finished_at: float


@dataclass(frozen=True)
class Telling:
    """What to say before the next action's result; empty text when there is nothing to tell."""

    text: str
    orphans: tuple[Orphan, ...]


class Orphans:
    """Each outcome is told once at most, within ten minutes, newest sixteen only; safe among threads."""

    def __init__(self, clock: Clock = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._kept: deque[Orphan] = deque(maxlen=KEPT_OUTCOMES)

    def record(self, tool: str, outcome: str, finished_at: float) -> None:
        """Keep one outcome; `outcome` is words of ours ("finished OK"), never an argument or a foreign text."""
        with self._lock:
            self._kept.append(Orphan(tool, outcome, finished_at))

    def take(self) -> Telling:
        """All that is worth telling, oldest first; it is forgotten here, so tell it or put it back."""
        now = self._clock()
        with self._lock:
            kept = [orphan for orphan in self._kept if now - orphan.finished_at <= KEPT_SECONDS]
            self._kept.clear()
        return Telling(" ".join(_sentence(orphan, now) for orphan in kept), tuple(kept))

    def put_back(self, telling: Telling) -> None:
        """Undo a `take` whose telling got lost as well; the outcomes keep their age."""
        with self._lock:
            newer = tuple(self._kept)
            self._kept.clear()
            self._kept.extend(telling.orphans + newer)


def _sentence(orphan: Orphan, now: float) -> str:
    ago = f"{max(0.0, now - orphan.finished_at):.0f} s ago"
    return (
        f"The earlier {orphan.tool} {orphan.outcome} {ago}, after its caller had gone; "
        "look at the screen before repeating it."
    )
