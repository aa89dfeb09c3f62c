"""Carrying one assignment out: hold, start, step after step, finish; every way it can end is here."""

from __future__ import annotations

import logging

from mcpboard.errors import (
    NOT_SENT,
    ClientError,
    DeviceBusy,
    InvalidParams,
    McpboardError,
    PeerRefused,
    ProtocolError,
    ToolFailed,
    UnknownDevice,
)
from mcpboard.host.cloud.api import LOST, CloudApi, short
from mcpboard.host.cloud.assignment import (
    CUT_SHORT,
    FAILED,
    RUNNING,
    SUCCEEDED,
    Assignment,
    AssignmentOutcome,
    AssignmentRun,
    AssignmentStep,
    order,
    turned_away,
)
from mcpboard.host.cloud.backoff import WorkerClock
from mcpboard.host.cloud.outbox import Outbox, OutboxEntry
from mcpboard.host.devices.manager import DeviceManager
from mcpboard.host.drivers.base import Driver
from mcpboard.host.tools.arguments import Arguments
from mcpboard.host.vision.service import VisionService
from mcpboard.protocol.tools import Content

log = logging.getLogger(__name__)

LEASE_LOST = "the lease is lost: the cloud has taken the assignment away"


class Runner:
    """Carries assignments out on the manager's devices; one `carry_out` a thread, any number of threads."""

    def __init__(
        self,
        manager: DeviceManager,
        eyes: VisionService,
        cloud: CloudApi,
        outbox: Outbox,
        pace: WorkerClock,
        host_id: str,
        lease_s: float,
    ) -> None:
        self._manager = manager
        self._eyes = eyes
        self._cloud = cloud
        self._outbox = outbox
        self._pace = pace
        self._host_id = host_id
        self._lease_s = lease_s
        self._reachable = True  # whether telling progress is worth the wait

    def carry_out(self, run: AssignmentRun) -> None:
        """Run it to its end, which is in the outbox afterwards; never raises."""
        try:
            ending = self._ending(run)
        except Exception:  # a bug of ours must not keep the device, or the cloud in the dark
            log.exception("assignment %s", run.id)
            ending = run.judged(FAILED, "internal error of the host agent; its log has the details", "internal_error")
        self.settle(run, ending)

    def settle(self, run: AssignmentRun, ending: AssignmentOutcome | None) -> None:
        """Put how it ended into the outbox, unless that was done; with None there is nothing to tell."""
        if not run.settle():
            return
        if ending is None:
            self._outbox.answered(run.lease)
            return
        log.info("assignment %s on %s: %s", run.id, run.device, ending.code or ending.status)
        self._outbox.post(self._letter(run, ending))

    def _letter(self, run: AssignmentRun, ending: AssignmentOutcome) -> OutboxEntry:
        return OutboxEntry(self._host_id, run.id, run.lease, run.finish(ending))

    def _ending(self, run: AssignmentRun) -> AssignmentOutcome | None:
        try:
            wanted = order(run.document, run.device)
            with self._manager.lease(run.device, run.owner, "its assignment ended"):
                return self._begin(run, wanted)
        except DeviceBusy as busy:
            return turned_away(busy)
        except UnknownDevice as error:
            return AssignmentOutcome(FAILED, error.message, "unknown_device")
        except InvalidParams as error:
            return AssignmentOutcome(FAILED, error.message, "bad_assignment")
        except ToolFailed as error:  # the manager closes
            return run.judged(FAILED, error.message, "shutting_down")

    def _begin(self, run: AssignmentRun, wanted: Assignment) -> AssignmentOutcome | None:
        """Start it at the cloud, with its end foreseen on the disk; None when it is not ours after all."""
        try:
            self._outbox.foresee(self._letter(run, CUT_SHORT))
            self._cloud.start(run.id, run.lease)
        except OSError as error:
            return AssignmentOutcome(
                FAILED, f"the host agent cannot write its outbox: {error.strerror}", "outbox_failed", True
            )
        except ClientError as error:
            if isinstance(error, PeerRefused) and error.status in LOST:
                log.warning("assignment %s was not started: %s", run.id, short(error))
                return None
            return AssignmentOutcome(FAILED, f"its start was not confirmed: {short(error)}", "start_failed", True)
        run.phase, run.heard_at = RUNNING, self._pace.now()
        return self._go_through(run, wanted)

    def _go_through(self, run: AssignmentRun, wanted: Assignment) -> AssignmentOutcome:
        over = self._pace.now() + wanted.timeout_s
        for step in wanted.steps:
            self._watch_time(run, over, wanted.timeout_s)
            if run.stopped is not None:
                return run.stopped
            failed = self._take(run, step)
            if failed is not None:
                return run.stopped or failed
            self._tell_progress(run, step)
        return AssignmentOutcome(SUCCEEDED)

    def _watch_time(self, run: AssignmentRun, over: float, timeout_s: float) -> None:
        now = self._pace.now()
        if now >= over:
            run.stop(FAILED, f"not done within {timeout_s:g} s", "timeout")
        if now - run.heard_at > self._lease_s:
            run.stop(FAILED, f"the lease is lost: no answer from the cloud for {self._lease_s:g} s", "lease_lost")

    def _take(self, run: AssignmentRun, step: AssignmentStep) -> AssignmentOutcome | None:
        """One step, made once; None when it went well."""
        arguments = Arguments(step.arguments)

        def command(driver: Driver) -> Content:
            run.touched |= step.acts
            return step.work(driver, arguments, run.device, self._eyes)

        touched = run.touched
        try:
            run.note(step, self._manager.run(run.device, run.owner, command, lambda: run.stopped is not None))
            return None
        except Exception as error:  # whatever a driver raises is told in its own words, as to MCP clients
            if isinstance(error, ProtocolError) and (error.data or {}).get("delivery") == NOT_SENT:
                run.touched = touched
            if not isinstance(error, (McpboardError, OSError)):
                log.warning("assignment %s, %s: %s", run.id, step.name, type(error).__name__)
            return run.judged(FAILED, str(error) or type(error).__name__, "step_failed")

    def _tell_progress(self, run: AssignmentRun, step: AssignmentStep) -> None:
        """A courtesy: heartbeats tell it as well, so where the cloud does not answer no step waits for it twice."""
        if not self._reachable:
            return
        try:
            self._cloud.progress(run.id, run.lease, run.steps_done, step.name)
            run.heard_at = self._pace.now()
        except PeerRefused as refused:
            if refused.status in LOST:
                self.lose(run)
        except ClientError:
            self._reachable = False

    def reached(self) -> None:
        """The cloud has answered: progress is worth telling again."""
        self._reachable = True

    def lose(self, run: AssignmentRun) -> None:
        """The cloud has taken the lease away: the run ends before its next step."""
        if run.stopped is None:
            log.warning("assignment %s on %s: %s", run.id, run.device, LEASE_LOST)
        run.stop(FAILED, LEASE_LOST, "lease_lost")
