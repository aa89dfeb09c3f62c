"""Outcomes of actions whose client disconnected before the reply arrived, told once to the next.

An action goes on when its caller hangs up, and a caller that only saw a broken connection would
do it again. So the outcome waits here for the next action's result.
"""

from __future__ import annotations

import functools
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from mcpboard.errors import DONE, NOT_SENT, ToolError, ToolFailed
from mcpboard.protocol.messages import Outcome
from mcpboard.protocol.tools import Content, Text

KEPT_SECONDS = 600.0  # later than that, the screen says more than the notice
KEPT_OUTCOMES = 16  # the newest; input runs one at a time, so more means that nobody reads them
ARRIVAL_SECONDS = 0.5  # that TCP may take to acknowledge what has arrived (RFC 1122, 4.2.3.2)

NOTICE_OPENING = "The earlier "  # of every notice
# What is told of an undelivered error, by its delivery; nothing of a call that did nothing.
SUMMARIES = {NOT_SENT: "", DONE: "took place, although something after it failed"}
CALLER_GONE = "after its caller had gone"
UNACKNOWLEDGED = "but its answer may never have arrived"


@dataclass(frozen=True)
class UndeliveredOutcome:
    """One undelivered outcome: the tool, words such as "finished OK", when, on the clock, and why."""

    tool: str
    outcome: str
    finished_at: float
    reason: str = CALLER_GONE


class Notice(NamedTuple):
    """A text to begin the next action's result with, and the outcomes it tells; empty when there are none."""

    text: str
    outcomes: tuple[UndeliveredOutcome, ...]


class Unacknowledged(NamedTuple):
    """Outcomes in a reply that the kernel has, and perhaps nobody else; `arrived` tells."""

    outcomes: Sequence[UndeliveredOutcome]
    arrived: Callable[[], bool]
    since: float


class UndeliveredOutcomes:
    """Each outcome is told once at most, within ten minutes, newest sixteen only; safe among threads."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._kept: list[UndeliveredOutcome] = []
        self._unacknowledged: deque[Unacknowledged] = deque(maxlen=KEPT_OUTCOMES)

    def keep(self, outcomes: Sequence[UndeliveredOutcome], arrived: Callable[[], bool] | None = None) -> None:
        """Keep outcomes that reached nobody, or may not if their reply has not `arrived` in good time.

        Their words are ours, never an argument or a foreign text.
        """
        with self._lock:
            if arrived is None:
                self._keep(outcomes)
            else:
                self._unacknowledged.append(Unacknowledged(outcomes, arrived, self._clock()))

    def outcome_of(self, tool: str, result: Content | ToolError | ToolFailed) -> Outcome:
        """Return the outcome of an action that has just ended.

        It begins with the undelivered ones, and is kept among them if it gets lost. The result
        is not changed where there is nothing to tell.
        """
        summary = "finished OK"
        if not isinstance(result, Content):
            summary = SUMMARIES.get(result.delivery or "", "ended with an error")
        finished_at = self._clock()  # a reader may stall for long before it is given up
        notice = self.take()
        own = (UndeliveredOutcome(tool, summary, finished_at),) if summary else ()
        on_delivered = functools.partial(self.keep, (*notice.outcomes, *own))
        if not notice.text:
            return Outcome(result, on_delivered)
        if isinstance(result, Content):
            return Outcome(replace(result, blocks=(Text(notice.text), *result.blocks)), on_delivered)
        if isinstance(result, ToolError):
            result.text = f"{notice.text}\n{result.text}"
        else:
            result.message = f"{notice.text}\n{result.message}"
        return Outcome(result, on_delivered)

    def take(self) -> Notice:
        """Return all that is worth telling, oldest first; it is forgotten here, so tell it or keep it again."""
        now = self._clock()
        with self._lock:
            for reply in [self._unacknowledged.popleft() for _ in range(len(self._unacknowledged))]:
                if reply.arrived():
                    continue
                if now - reply.since < ARRIVAL_SECONDS:  # too young to be sure
                    self._unacknowledged.append(reply)
                else:
                    self._keep([replace(each, reason=UNACKNOWLEDGED) for each in reply.outcomes])
            kept = [each for each in self._kept if now - each.finished_at <= KEPT_SECONDS]
            self._kept.clear()
        sentences = (
            f"{NOTICE_OPENING}{each.tool} {each.outcome} {max(0.0, now - each.finished_at):.0f} s ago, {each.reason}; "
            "look at the screen before repeating it."
            for each in kept
        )
        return Notice(" ".join(sentences), tuple(kept))

    def _keep(self, outcomes: Sequence[UndeliveredOutcome]) -> None:
        self._kept = sorted([*self._kept, *outcomes], key=lambda each: each.finished_at)[-KEPT_OUTCOMES:]
