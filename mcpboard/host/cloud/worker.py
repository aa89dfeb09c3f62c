"""The cloud worker: its threads, and how they end.

One thread reports our state, one waits for work, one delivers outcomes, and one for each
assignment executes it. All wait for events and with a limit; what goes wrong on the way to the
cloud lengthens a pause and never ends a thread.
"""

from __future__ import annotations

import logging
import secrets
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mcpboard.errors import PeerRefused
from mcpboard.host.cloud.api import LIMIT_SECONDS, CloudApi
from mcpboard.host.cloud.assignment import CANCELLED, CUT_SHORT, FAILED, AssignmentRun
from mcpboard.host.cloud.enrollment import HEARTBEAT_SECONDS, Enrollment
from mcpboard.host.cloud.loop import AT_ONCE, SHORTEST_PAUSE, Due, Loop, WorkerClock, join
from mcpboard.host.cloud.outbox import MOST_PENDING, Outbox
from mcpboard.host.cloud.runner import MOST_RUNS, Runner
from mcpboard.host.devices.leases import MCP
from mcpboard.host.devices.manager import DeviceManager
from mcpboard.host.vision.service import VisionService

log = logging.getLogger(__name__)

# The parts of `close`, in seconds; before it the server may have drained for four and a half, and ten is the limit.
STEP_SECONDS = 2.5  # for the steps under way
REPORT_SECONDS = 2.0  # for the outcomes and a last heartbeat
LEAVE_SECONDS = 0.5  # for the threads to end

PARTIAL_SECONDS = 5.0  # a claim waits no longer while devices are taken: they are offered with the next one

NOT_ANSWERED = frozenset({401, 403, 408, 425, 429})  # statuses, besides 5xx, after which an outcome is sent again

IDLE = Due(HEARTBEAT_SECONDS, asked=False)

SHUTTING_DOWN = (FAILED, "the host agent is shutting down", "shutting_down")

DeviceReports = Callable[[], Sequence[Mapping[str, Any]]]  # id and state of every device, within a few seconds


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
    assignments: tuple[AssignmentRun, ...] = ()
    pending: int = 0
    draining: bool = False
    problem: str = ""


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
        self._manager, self._statuses, self._enrollment = manager, statuses, enrollment
        self._clock = clock = clock or WorkerClock()
        self._cloud = CloudApi(enrollment, proxy)
        self._outbox = Outbox(folder, enrollment.host_id)
        self._runner = Runner(
            manager, vision, self._cloud, self._outbox, clock, enrollment.host_id, enrollment.lease_s, self._run_ended
        )
        self._answered_at: float | None = None  # when the last heartbeat was
        self._busy_ids: tuple[str, ...] = ()  # that one said
        self._boot_id, self._seq = secrets.token_hex(8), 0
        self._states: dict[str, str] = {}  # of devices, as they were found last
        self._states_at = float("-inf")
        self._draining = threading.Event()  # nothing new is to be claimed
        self._stopping = stopping = threading.Event()  # `close` has begun
        self._closing = closing = threading.Event()  # nothing runs any more: report the rest, end
        self._heartbeat = Loop("heartbeat", self._beat, clock, stopping, closing, longest_s=enrollment.heartbeat_s)
        self._claims = Loop("claims", self._claim, clock, stopping, stopping, last=False)
        self._delivery = Loop("delivery", self._deliver, clock, stopping, closing)
        self._loops = (self._heartbeat, self._claims, self._delivery)
        manager.watch(self._lease_changed)
        for loop in self._loops:
            loop.thread.start()

    def _lease_changed(self) -> None:
        self._heartbeat.wake.set()
        self._claims.wake.set()

    def _run_ended(self) -> None:
        self._delivery.wake.set()
        self._claims.wake.set()

    def status(self) -> CloudStatus:
        """Return the state of this moment; waits for nothing."""
        return CloudStatus(
            url=self._enrollment.url,
            host_id=self._enrollment.host_id,
            heartbeat_s=None if self._answered_at is None else self._clock.now() - self._answered_at,
            busy_ids_sent=self._busy_ids,
            assignments=tuple(self._runner.runs()),
            pending=len(self._outbox.pending()),
            draining=self._draining.is_set(),
            problem=next((loop.problem for loop in self._loops if loop.problem), ""),
        )

    def close(self) -> None:
        """End in good order, five seconds at most: steps under way finish, outcomes are delivered or kept."""
        for event in (self._draining, self._stopping, self._claims.wake):
            event.set()
        self._cloud.stop_claiming()
        for run in self._runner.runs():
            run.stop(*SHUTTING_DOWN)
        threads = self._runner.threads()
        join(threads, STEP_SECONDS)
        for run in self._runner.runs():  # its step does not come back, and nobody knows what it did
            self._runner.settle(run, CUT_SHORT)
        for event in (self._closing, self._heartbeat.wake, self._delivery.wake):
            event.set()
        threads += [loop.thread for loop in self._loops]
        join(threads[-len(self._loops) :], REPORT_SECONDS)
        self._cloud.close()
        stuck = join(threads, LEAVE_SECONDS)
        if stuck:
            log.warning("left to the exit: %s", ", ".join(stuck))

    # --- heartbeat: our state, at once when a lease changes, and a last time at the end ---

    def _beat(self) -> Due:
        began = self._clock.now()
        runs, devices, sent_at = self._runner.runs(), self._devices(), self._clock.now()
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
                "draining": self._draining.is_set(),
            }
        )
        self._answered_at, self._busy_ids = self._clock.now(), tuple(busy)
        self._runner.reachable = True
        lost = response.get("lost")
        for run in runs:
            if isinstance(lost, list) and run.lease in lost:
                self._runner.lose(run)
            else:
                run.confirmed_at = sent_at
        commands = response.get("commands")
        for command in commands if isinstance(commands, list) else []:
            self._obey(command if isinstance(command, dict) else {})
        return Due(self._enrollment.heartbeat_s, began + SHORTEST_PAUSE - self._clock.now())

    def _devices(self) -> list[dict[str, str]]:
        """Return id, kind and state of every device; probed anew when the last states are half a heartbeat old."""
        now = self._clock.now()
        if now - self._states_at >= self._enrollment.heartbeat_s / 2 and not self._closing.is_set():
            self._states_at = now
            self._states = {str(each["id"]): str(each["state"]) for each in self._statuses()}
        devices = self._manager.states()
        return [{"id": each.id, "kind": each.kind, "state": self._states.get(each.id, "unknown")} for each in devices]

    def _obey(self, command: Mapping[str, Any]) -> None:
        name = command.get("command")
        if name == "cancel":
            for run in self._runner.runs():
                if run.lease == command.get("lease_id"):
                    run.stop(CANCELLED, "cancelled by the cloud", "cancelled")
        elif name == "drain":
            self._draining.set()
        elif name == "resume":
            if not self._stopping.is_set():
                self._draining.clear()
                self._claims.wake.set()
        else:
            log.warning("the cloud sent a command that this version does not know")

    # --- claims: new work, as long as a device is free ---

    def _claim(self) -> Due:
        """Claim once; a claim may stay unanswered for as long as the cloud asked for at the enrolment."""
        runs, ids = self._runner.runs(), self._manager.ids()
        full = len(runs) >= MOST_RUNS or len(self._outbox.pending()) >= MOST_PENDING
        free = sorted(set(ids) - {run.device for run in runs} - set(self._manager.leases()))
        if not free or full or self._draining.is_set():
            return IDLE
        began, wait_s = self._clock.now(), self._enrollment.claim_wait_s
        if len(free) < len(ids):
            wait_s = min(wait_s, PARTIAL_SECONDS)
        response = self._cloud.claim(wait_s, free, wait_s + LIMIT_SECONDS)
        if response is not None:
            run = AssignmentRun(response.get("assignment"), self._clock.now())
            if self._outbox.is_pending(run.lease):
                self._delivery.wake.set()
            elif self._stopping.is_set():
                self._runner.settle(run, run.outcome(*SHUTTING_DOWN))
            elif self._runner.begin(run):
                return AT_ONCE
            log.info("assignment %s is not executed: it was given out before, or we are about to end", run.id)
        # A claim that was answered at once, with nothing new, is not repeated at once.
        return Due(pause_s=began + SHORTEST_PAUSE - self._clock.now())

    # --- delivery: outcomes, each until it is answered, whatever the response ---

    def _deliver(self) -> Due:
        pending = self._outbox.pending()
        if not pending:
            return IDLE
        entry = pending[0]
        try:
            self._cloud.finish(entry.assignment, entry.finish)
        except Exception as error:
            status = error.status if isinstance(error, PeerRefused) else None
            if status is None or status in NOT_ANSWERED or not 400 <= status < 500:
                self._outbox.postpone(entry.lease)  # it must not hold up the others
                raise
            log.warning("the outcome of %s was not taken: HTTP %s", entry.assignment, status)
        self._outbox.remove(entry.lease)
        self._claims.wake.set()
        return AT_ONCE
