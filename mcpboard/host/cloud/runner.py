"""Execute assignments: lease, start, step after step, finish. Every way that one can end is here."""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable

from mcpboard.errors import (
    NOT_SENT,
    ClientError,
    DeviceBusy,
    InvalidParams,
    PeerRefused,
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
    busy_outcome,
    parse_assignment,
)
from mcpboard.host.cloud.loop import BUG, WorkerClock, daemon
from mcpboard.host.cloud.outbox import Outbox, OutboxEntry
from mcpboard.host.devices.manager import DeviceManager
from mcpboard.host.drivers.base import Driver, failure_text
from mcpboard.host.tools import rows
from mcpboard.host.tools.arguments import Arguments
from mcpboard.host.vision.service import VisionService
from mcpboard.protocol.tools import Content

log = logging.getLogger(__name__)

LEASE_LOST = "the lease is lost: the cloud has taken the assignment away"

MOST_RUNS = 16  # at a time, each a thread
REMEMBERED = 256  # leases that have ended: one that is given out again is not executed again


class Runner:
    """Executes assignments on the manager's devices, each in a thread of its own; safe to share.

    `on_end` is called after each. `reachable` is False from a progress report that the cloud did not answer to its
    next response.
    """

    def __init__(
        self,
        manager: DeviceManager,
        vision: VisionService,
        cloud: CloudApi,
        outbox: Outbox,
        clock: WorkerClock,
        host_id: str,
        lease_s: float,
        on_end: Callable[[], None],
    ) -> None:
        self.reachable = True
        self._manager = manager
        self._vision = vision
        self._cloud = cloud
        self._outbox = outbox
        self._clock = clock
        self._host_id = host_id
        self._lease_s = lease_s
        self._on_end = on_end
        self._lock = threading.Lock()
        self._under_way: dict[str, tuple[AssignmentRun, threading.Thread]] = {}  # by lease
        self._ended: deque[str] = deque(maxlen=REMEMBERED)

    def begin(self, run: AssignmentRun) -> bool:
        """Start it in a thread; False for a lease that runs already, or did."""

        def work() -> None:
            self._execute(run)
            with self._lock:
                del self._under_way[run.lease]
                self._ended.append(run.lease)
            self._on_end()

        thread = daemon(work, f"assignment on {run.device}")
        with self._lock:
            if run.lease in self._under_way or run.lease in self._ended:
                return False
            self._under_way[run.lease] = run, thread
            thread.start()
        return True

    def runs(self) -> list[AssignmentRun]:
        """Return those under way."""
        with self._lock:
            return [run for run, _ in self._under_way.values()]

    def threads(self) -> list[threading.Thread]:
        """Return the threads of those under way."""
        with self._lock:
            return [thread for _, thread in self._under_way.values()]

    def _execute(self, run: AssignmentRun) -> None:
        """Run it to its end, which is in the outbox afterwards; never raises."""
        outcome: AssignmentOutcome | None
        try:
            assignment = parse_assignment(run.document, run.device)
            with self._manager.lease(run.device, run.owner, "its assignment ended"):
                outcome = self._run(run, assignment)
        except DeviceBusy as busy:
            outcome = busy_outcome(busy)
        except UnknownDevice as error:
            outcome = AssignmentOutcome(FAILED, error.message, "unknown_device")
        except InvalidParams as error:
            outcome = AssignmentOutcome(FAILED, error.message, "bad_assignment")
        except ToolFailed as error:  # the manager closes
            outcome = run.outcome(FAILED, error.message, "shutting_down")
        except Exception:  # a bug of ours must not keep the device, or the cloud in the dark
            log.exception("assignment %s", run.id)
            outcome = run.outcome(FAILED, BUG, "internal_error")
        self.settle(run, outcome)

    def settle(self, run: AssignmentRun, outcome: AssignmentOutcome | None) -> None:
        """Put the outcome into the outbox, unless that was done; with None there is nothing to report."""
        if not run.settle():
            return
        if outcome is None:
            self._outbox.remove(run.lease)
            return
        log.info("assignment %s on %s: %s", run.id, run.device, outcome.code or outcome.status)
        self._outbox.post(self._entry(run, outcome))

    def lose(self, run: AssignmentRun) -> None:
        """Have the run end before its next step: the cloud has taken the lease away."""
        if run.stopped is None:
            log.warning("assignment %s on %s: %s", run.id, run.device, LEASE_LOST)
        run.stop(FAILED, LEASE_LOST, "lease_lost")

    def _entry(self, run: AssignmentRun, outcome: AssignmentOutcome) -> OutboxEntry:
        return OutboxEntry(self._host_id, run.id, run.lease, run.finish(outcome))

    def _run(self, run: AssignmentRun, assignment: Assignment) -> AssignmentOutcome | None:
        """Start it at the cloud, with a reserve on the disk, and take its steps; None when it is not ours after all."""
        try:
            self._outbox.reserve(self._entry(run, CUT_SHORT))
            self._cloud.start(run.id, run.lease)
        except OSError as error:
            problem = f"the host agent cannot write its outbox: {error.strerror}"
            return AssignmentOutcome(FAILED, problem, "outbox_failed", True)
        except ClientError as error:
            if isinstance(error, PeerRefused) and error.status in LOST:
                log.warning("assignment %s was not started: %s", run.id, short(error))
                return None
            return AssignmentOutcome(FAILED, f"its start was not confirmed: {short(error)}", "start_failed", True)
        run.phase, run.confirmed_at = RUNNING, self._clock.now()
        end = self._clock.now() + assignment.timeout_s
        for step in assignment.steps:
            now = self._clock.now()
            if now >= end:
                run.stop(FAILED, f"not done within {assignment.timeout_s:g} s", "timeout")
            if now - run.confirmed_at > self._lease_s:
                run.stop(FAILED, f"the lease is lost: no answer from the cloud for {self._lease_s:g} s", "lease_lost")
            if run.stopped is not None:
                return run.stopped
            failed = self._take(run, step)
            if failed is not None:
                return run.stopped or failed
            self._report_progress(run, step)
        return AssignmentOutcome(SUCCEEDED)

    def _take(self, run: AssignmentRun, step: AssignmentStep) -> AssignmentOutcome | None:
        """Take one step, once; None when it went well."""
        arguments, touched = Arguments(step.arguments), run.touched

        def command(driver: Driver) -> Content:
            run.touched |= not step.row.tool.annotations.get("readOnlyHint", False)
            return rows.run(step.row, driver, arguments, run.device, self._vision)

        try:
            content = self._manager.run(run.device, run.owner, command, lambda: run.stopped is not None)
        except Exception as error:  # whatever a driver raises is reported in its own words, as to MCP clients
            if isinstance(error, ToolFailed) and error.delivery == NOT_SENT:
                run.touched = touched
            return run.outcome(FAILED, failure_text(error), "step_failed")
        try:
            run.record(step, content)
        except Exception as error:
            problem = f"step {run.steps_done + 1}, {step.name}, was executed, and its result cannot be reported"
            return run.outcome(FAILED, f"{problem}: {failure_text(error)}", "step_failed")
        return None

    def _report_progress(self, run: AssignmentRun, step: AssignmentStep) -> None:
        """Report a step as a courtesy: heartbeats do it, too, so no step waits twice for a silent cloud."""
        if not self.reachable:
            return
        try:
            self._cloud.progress(run.id, run.lease, run.steps_done, step.name)
            run.confirmed_at = self._clock.now()
        except PeerRefused as refused:
            if refused.status in LOST:
                self.lose(run)
        except ClientError:
            self.reachable = False
