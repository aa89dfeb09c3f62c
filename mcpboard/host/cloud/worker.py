"""The cloud worker: its threads, and how they end.

One thread tells how we are, one waits for work, one hands outcomes over, and one for each
assignment carries it out. All wait for bells and with a limit; what goes wrong on the way to the
cloud lengthens a pause and never ends a thread.
"""

from __future__ import annotations

import logging
from pathlib import Path

from mcpboard.host.cloud.api import CloudApi
from mcpboard.host.cloud.assignment import CUT_SHORT, FAILED
from mcpboard.host.cloud.backoff import WorkerClock, WorkerEvents
from mcpboard.host.cloud.claims import Claims
from mcpboard.host.cloud.delivery import Delivery
from mcpboard.host.cloud.enrollment import Enrollment
from mcpboard.host.cloud.heartbeat import Heartbeat, Survey
from mcpboard.host.cloud.outbox import Outbox
from mcpboard.host.cloud.pool import AssignmentPool, daemon, join
from mcpboard.host.cloud.runner import Runner
from mcpboard.host.cloud.status import CloudStatus, RunningAssignment
from mcpboard.host.devices.manager import DeviceManager
from mcpboard.host.vision.service import VisionService

log = logging.getLogger(__name__)

# The parts of `close`, in seconds; before it the server may have drained for four and a half, and ten is the limit.
STEP_SECONDS = 2.5  # for the steps under way
TELL_SECONDS = 2.0  # for the outcomes and a last heartbeat
LEAVE_SECONDS = 0.5  # for the threads to end


class Worker:
    """The host's half of the cloud, for one enrolment; runs from its construction until `close`.

    `proxy` is the URL of an HTTP proxy. Raises ConfigError for an outbox that cannot be used.
    """

    def __init__(
        self,
        manager: DeviceManager,
        survey: Survey,
        eyes: VisionService,
        enrolment: Enrollment,
        folder: Path,
        proxy: str | None = None,
        pace: WorkerClock | None = None,
    ) -> None:
        self._enrolment = enrolment
        self._pace = pace = pace or WorkerClock()
        self._bells = bells = WorkerEvents()
        self._cloud = cloud = CloudApi(enrolment, proxy)
        self._outbox = outbox = Outbox(folder, enrolment.host_id)
        self._runner = runner = Runner(manager, eyes, cloud, outbox, pace, enrolment.host_id, enrolment.lease_s)
        self._crew = crew = AssignmentPool(runner.carry_out, bells.run_ended)
        self._heartbeat = Heartbeat(manager, survey, cloud, crew, runner, bells, pace, enrolment.heartbeat_s)
        self._claims = Claims(manager, cloud, crew, runner, outbox, bells, pace, enrolment.claim_wait_s)
        self._delivery = Delivery(cloud, outbox, bells, pace)
        manager.watch(bells.hold_changed)
        self._threads = [
            daemon(self._heartbeat.beat_forever, "heartbeat"),
            daemon(self._claims.claim_forever, "claims"),
            daemon(self._delivery.deliver_forever, "delivery"),
        ]
        for thread in self._threads:
            thread.start()

    def status(self) -> CloudStatus:
        """How it stands at this moment; waits for nothing."""
        answered_at = self._heartbeat.answered_at
        attempts = (self._heartbeat.attempts, self._claims.attempts, self._delivery.attempts)
        return CloudStatus(
            enrolled=True,
            url=self._enrolment.url,
            host_id=self._enrolment.host_id,
            heartbeat_s=None if answered_at is None else self._pace.now() - answered_at,
            busy_ids_sent=self._heartbeat.busy_ids,
            assignments=tuple(
                RunningAssignment(run.id, run.device, run.phase, run.steps_done) for run in self._crew.runs()
            ),
            owed=len(self._outbox.owed()),
            draining=self._bells.draining.is_set(),
            problem=next((each.problem for each in attempts if each.problem), ""),
        )

    def close(self) -> None:
        """End in good order, five seconds at most: steps under way finish, outcomes are handed over or kept."""
        self._bells.stop()
        self._cloud.stop_claiming()
        for run in self._crew.runs():
            run.stop(FAILED, "the host agent is shutting down", "shutting_down")
        threads = [*self._crew.threads(), *self._threads]
        join(self._crew.threads(), STEP_SECONDS)
        for run in self._crew.runs():  # its step does not come back, and nobody knows what it did
            self._runner.settle(run, CUT_SHORT)
        self._bells.close()
        join(self._threads, TELL_SECONDS)
        self._cloud.hang_up()
        stuck = join(threads, LEAVE_SECONDS)
        if stuck:
            log.warning("left to the exit: %s", ", ".join(stuck))
