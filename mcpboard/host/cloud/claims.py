"""Asking the cloud for work, as long as a device is free for it."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from mcpboard.host.cloud.api import LIMIT_SECONDS, CloudApi
from mcpboard.host.cloud.assignment import FAILED, AssignmentRun
from mcpboard.host.cloud.backoff import SHORTEST_PAUSE, WorkerClock, WorkerEvents
from mcpboard.host.cloud.enrollment import HEARTBEAT_SECONDS
from mcpboard.host.cloud.outbox import MOST_OWED, Outbox
from mcpboard.host.cloud.pool import AssignmentPool
from mcpboard.host.cloud.retry import Retry
from mcpboard.host.cloud.runner import Runner
from mcpboard.host.devices.manager import DeviceManager

log = logging.getLogger(__name__)

PARTIAL_SECONDS = 5.0  # a claim waits no longer while devices are taken: they are offered with the next one


class Claims:
    """One thread's work, `claim_forever`; a claim may stay unanswered for `wait_s` seconds."""

    def __init__(
        self, manager: DeviceManager, cloud: CloudApi, crew: AssignmentPool, runner: Runner, outbox: Outbox,
        bells: WorkerEvents, pace: WorkerClock, wait_s: float,
    ) -> None:  # fmt: skip
        self.attempts = Retry("claim", bells.stopping)
        self._manager = manager
        self._cloud = cloud
        self._crew = crew
        self._runner = runner
        self._outbox = outbox
        self._bells = bells
        self._pace = pace
        self._wait_s = wait_s
        self._begun = False  # whether the last claim brought something new

    def claim_forever(self) -> None:
        """Until `stopping` rings."""
        while not self._bells.stopping.is_set():
            self._bells.room.clear()
            free = self._free()
            if free:
                self._ask(free)
            elif not self._bells.stopping.is_set():  # it rings the room as well, perhaps before it was cleared
                self._pace.wait(self._bells.room, HEARTBEAT_SECONDS)

    def _ask(self, free: Sequence[str]) -> None:
        began, self._begun = self._pace.now(), False
        pause = self.attempts.make(lambda: self._claim(free))
        if pause is None and not self._begun:  # an answer that came at once is not asked for again at once
            pause = began + SHORTEST_PAUSE - self._pace.now()
        if pause is not None:
            self._pace.wait(self._bells.stopping, pause)

    def _free(self) -> list[str]:
        """The devices that an assignment may have; none while there should be no further assignment."""
        if self._bells.draining.is_set() or self._crew.full or len(self._outbox.owed()) >= MOST_OWED:
            return []
        taken = {run.device for run in self._crew.runs()} | set(self._manager.leases())
        return sorted(set(self._manager.ids()) - taken)

    def _claim(self, free: Sequence[str]) -> None:
        all_free = len(free) == len(self._manager.ids())
        wait_s = self._wait_s if all_free else min(self._wait_s, PARTIAL_SECONDS)
        answer = self._cloud.claim(wait_s, free, wait_s + LIMIT_SECONDS)
        if answer is not None:
            self._take(AssignmentRun(answer.get("assignment"), self._pace.now()))

    def _take(self, run: AssignmentRun) -> None:
        if self._outbox.owes(run.lease):
            self._bells.mail.set()
        elif self._bells.stopping.is_set():
            self._runner.settle(run, run.judged(FAILED, "the host agent is shutting down", "shutting_down"))
        else:
            self._begun = self._crew.begin(run)
        if not self._begun:
            log.info("assignment %s is not carried out: it was given out before, or we are about to end", run.id)
