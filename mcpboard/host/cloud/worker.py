"""The cloud worker: its threads, and how they end.

One thread reports our state, one waits for work, one delivers outcomes, and one for each
assignment executes it. All wait for events and with a limit; what goes wrong on the way to the
cloud lengthens a pause and never ends a thread.
"""

from __future__ import annotations

import logging
import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from mcpboard.host.cloud.api import LIMIT_SECONDS, CloudApi
from mcpboard.host.cloud.assignment import CANCELLED, CUT_SHORT, FAILED, AssignmentRun
from mcpboard.host.cloud.backoff import SHORTEST_PAUSE, Retry, WorkerClock, WorkerEvents
from mcpboard.host.cloud.enrollment import HEARTBEAT_SECONDS, Enrollment
from mcpboard.host.cloud.outbox import MOST_PENDING, Delivery, Outbox
from mcpboard.host.cloud.runner import MOST_RUNS, AssignmentPool, Runner, daemon, join
from mcpboard.host.devices.leases import MCP
from mcpboard.host.devices.manager import DeviceManager
from mcpboard.host.vision.service import VisionService

log = logging.getLogger(__name__)

# The parts of `close`, in seconds; before it the server may have drained for four and a half, and ten is the limit.
STEP_SECONDS = 2.5  # for the steps under way
REPORT_SECONDS = 2.0  # for the outcomes and a last heartbeat
LEAVE_SECONDS = 0.5  # for the threads to end

PARTIAL_SECONDS = 5.0  # a claim waits no longer while devices are taken: they are offered with the next one

SHUTTING_DOWN = (FAILED, "the host agent is shutting down", "shutting_down")

DeviceReports = Callable[[], Sequence[Mapping[str, Any]]]  # id and state of every device, within a few seconds


# --- as the console shows it ---------------------------------------------------------------------


@dataclass(frozen=True)
class RunningAssignment:
    """One assignment under way; `phase` is `claimed` or `running`."""

    id: str
    device: str
    phase: str
    steps_done: int


@dataclass(frozen=True)
class CloudStatus:
    """The state of our part in the cloud at a moment, without any secret.

    `heartbeat_s` is how many seconds ago the last heartbeat was answered, None before the first;
    `busy_ids_sent` is what that one said of devices held by MCP sessions. `pending` outcomes wait to
    be reported. `problem` is why the last request failed, empty when it did not.
    """

    url: str
    host_id: str = ""
    heartbeat_s: float | None = None
    busy_ids_sent: tuple[str, ...] = ()
    assignments: tuple[RunningAssignment, ...] = ()
    pending: int = 0
    draining: bool = False
    problem: str = ""


# --- one class a thread --------------------------------------------------------------------------


class Heartbeat:
    """Report our state every `seconds`, at once when a lease changes, and a last time at the end.

    `answered_at` is when the last heartbeat was answered, `busy_ids` what that one said.
    """

    def __init__(
        self, manager: DeviceManager, statuses: DeviceReports, cloud: CloudApi, pool: AssignmentPool, runner: Runner,
        events: WorkerEvents, clock: WorkerClock, seconds: float,
    ) -> None:  # fmt: skip
        self.retry = Retry("heartbeat", events.stopping, seconds)
        self.answered_at: float | None = None
        self.busy_ids: tuple[str, ...] = ()
        self._manager = manager
        self._statuses = statuses
        self._cloud = cloud
        self._pool = pool
        self._runner = runner
        self._events = events
        self._clock = clock
        self._seconds = seconds
        self._boot_id = secrets.token_hex(8)
        self._seq = 0
        self._states: dict[str, str] = {}  # of devices, as they were found last
        self._states_at = float("-inf")

    def beat_forever(self) -> None:
        """Send heartbeats until `closing` is set, and one more then."""
        events = self._events
        while True:
            last = events.closing.is_set()
            leases = self._manager.leases()
            pause = self.retry.attempt(self._beat)
            if last:
                return
            if pause is not None:
                self._clock.wait(events.closing, pause)
                continue
            due = self._clock.now() + self._seconds
            self._clock.wait(events.closing, SHORTEST_PAUSE)
            while not events.closing.is_set() and self._clock.now() < due:
                events.wake_heartbeat.clear()
                if self._manager.leases() != leases:
                    break
                if not events.closing.is_set():  # which sets `wake_heartbeat`, too, perhaps before it was cleared
                    self._clock.wait(events.wake_heartbeat, due - self._clock.now())

    def _beat(self) -> None:
        runs, devices, sent_at = self._pool.runs(), self._devices(), self._clock.now()
        self._seq += 1
        busy = sorted(device for device, owner in self._manager.leases().items() if owner.kind == MCP)  # as it is now
        response = self._cloud.heartbeat(
            {
                "seq": self._seq,
                "boot_id": self._boot_id,
                "devices": devices,
                "mcp_busy_device_ids": busy,
                "assignments": [
                    {"id": run.id, "lease_id": run.lease, "phase": run.phase, "progress": run.steps_done}
                    for run in runs
                ],
                "draining": self._events.draining.is_set(),
            }
        )
        self.answered_at, self.busy_ids = self._clock.now(), tuple(busy)
        self._runner.reachable = True
        lost = response.get("lost")
        for run in runs:
            if isinstance(lost, list) and run.lease in lost:
                self._runner.lose(run)
            else:
                run.confirmed_at = sent_at
        self._obey(response.get("commands"))

    def _devices(self) -> list[dict[str, str]]:
        """Return id, kind and state of every device; probed anew when the last states are half a heartbeat old."""
        now = self._clock.now()
        if now - self._states_at >= self._seconds / 2 and not self._events.closing.is_set():
            self._states_at = now
            self._states = {str(each["id"]): str(each["state"]) for each in self._statuses()}
        devices = self._manager.states()
        return [{"id": each.id, "kind": each.kind, "state": self._states.get(each.id, "unknown")} for each in devices]

    def _obey(self, commands: Any) -> None:
        for each in commands if isinstance(commands, list) else []:
            command = each if isinstance(each, dict) else {}
            name = command.get("command")
            if name == "cancel":
                for run in self._pool.runs():
                    if run.lease == command.get("lease_id"):
                        run.stop(CANCELLED, "cancelled by the cloud", "cancelled")
            elif name == "drain":
                self._events.draining.set()
            elif name == "resume":
                if not self._events.stopping.is_set():
                    self._events.draining.clear()
                    self._events.wake_claims.set()
            else:
                log.warning("the cloud sent a command that this version does not know")


class Claims:
    """Claim assignments as long as a device is free; a claim may stay unanswered for `wait_s` seconds."""

    def __init__(
        self, manager: DeviceManager, cloud: CloudApi, pool: AssignmentPool, runner: Runner, outbox: Outbox,
        events: WorkerEvents, clock: WorkerClock, wait_s: float,
    ) -> None:  # fmt: skip
        self.retry = Retry("claim", events.stopping)
        self._manager = manager
        self._cloud = cloud
        self._pool = pool
        self._runner = runner
        self._outbox = outbox
        self._events = events
        self._clock = clock
        self._wait_s = wait_s
        self._begun = False  # whether the last claim brought something new

    def claim_forever(self) -> None:
        """Claim until `stopping` is set."""
        events = self._events
        while not events.stopping.is_set():
            events.wake_claims.clear()
            runs = self._pool.runs()
            full = len(runs) >= MOST_RUNS or len(self._outbox.pending()) >= MOST_PENDING
            taken = {run.device for run in runs} | set(self._manager.leases())
            free = sorted(set(self._manager.ids()) - taken)
            if free and not full and not events.draining.is_set():
                began, self._begun = self._clock.now(), False
                pause = self.retry.attempt(partial(self._claim, free))
                if pause is None and not self._begun:  # a claim that was answered at once is not repeated at once
                    pause = began + SHORTEST_PAUSE - self._clock.now()
                if pause is not None:
                    self._clock.wait(events.stopping, pause)
            elif not events.stopping.is_set():  # which sets `wake_claims`, too, perhaps before it was cleared
                self._clock.wait(events.wake_claims, HEARTBEAT_SECONDS)

    def _claim(self, free: Sequence[str]) -> None:
        all_free = len(free) == len(self._manager.ids())
        wait_s = self._wait_s if all_free else min(self._wait_s, PARTIAL_SECONDS)
        response = self._cloud.claim(wait_s, free, wait_s + LIMIT_SECONDS)
        if response is None:
            return
        run = AssignmentRun(response.get("assignment"), self._clock.now())
        if self._outbox.is_pending(run.lease):
            self._events.wake_delivery.set()
        elif self._events.stopping.is_set():
            self._runner.settle(run, run.outcome(*SHUTTING_DOWN))
        else:
            self._begun = self._pool.begin(run)
        if not self._begun:
            log.info("assignment %s is not executed: it was given out before, or we are about to end", run.id)


# --- all of them ---------------------------------------------------------------------------------


class Worker:
    """The host's half of the cloud, for one enrolment; runs from its construction until `close`.

    `proxy` is the URL of an HTTP proxy. Raises ConfigError for an outbox that cannot be used.
    """

    def __init__(
        self,
        manager: DeviceManager,
        statuses: DeviceReports,
        vision: VisionService,
        enrollment: Enrollment,
        folder: Path,
        proxy: str | None = None,
        clock: WorkerClock | None = None,
    ) -> None:
        self._enrollment = enrollment
        self._clock = clock = clock or WorkerClock()
        self._events = events = WorkerEvents()
        self._cloud = cloud = CloudApi(enrollment, proxy)
        self._outbox = outbox = Outbox(folder, enrollment.host_id)
        self._runner = runner = Runner(manager, vision, cloud, outbox, clock, enrollment.host_id, enrollment.lease_s)
        self._pool = pool = AssignmentPool(runner.execute, events.run_ended)
        self._heartbeat = Heartbeat(manager, statuses, cloud, pool, runner, events, clock, enrollment.heartbeat_s)
        self._claims = Claims(manager, cloud, pool, runner, outbox, events, clock, enrollment.claim_wait_s)
        self._delivery = Delivery(cloud, outbox, events, clock)
        manager.watch(events.lease_changed)
        self._threads = [
            daemon(self._heartbeat.beat_forever, "heartbeat"),
            daemon(self._claims.claim_forever, "claims"),
            daemon(self._delivery.deliver_forever, "delivery"),
        ]
        for thread in self._threads:
            thread.start()

    def status(self) -> CloudStatus:
        """Return the state of this moment; waits for nothing."""
        answered_at = self._heartbeat.answered_at
        retries = (self._heartbeat.retry, self._claims.retry, self._delivery.retry)
        return CloudStatus(
            url=self._enrollment.url,
            host_id=self._enrollment.host_id,
            heartbeat_s=None if answered_at is None else self._clock.now() - answered_at,
            busy_ids_sent=self._heartbeat.busy_ids,
            assignments=tuple(
                RunningAssignment(run.id, run.device, run.phase, run.steps_done) for run in self._pool.runs()
            ),
            pending=len(self._outbox.pending()),
            draining=self._events.draining.is_set(),
            problem=next((each.problem for each in retries if each.problem), ""),
        )

    def close(self) -> None:
        """End in good order, five seconds at most: steps under way finish, outcomes are delivered or kept."""
        self._events.stop()
        self._cloud.stop_claiming()
        for run in self._pool.runs():
            run.stop(*SHUTTING_DOWN)
        threads = [*self._pool.threads(), *self._threads]
        join(self._pool.threads(), STEP_SECONDS)
        for run in self._pool.runs():  # its step does not come back, and nobody knows what it did
            self._runner.settle(run, CUT_SHORT)
        self._events.close()
        join(self._threads, REPORT_SECONDS)
        self._cloud.close()
        stuck = join(threads, LEAVE_SECONDS)
        if stuck:
            log.warning("left to the exit: %s", ", ".join(stuck))
