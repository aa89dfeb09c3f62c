"""Telling the cloud how we are: every half minute, at once when a hold changes, and a last time at the end."""

from __future__ import annotations

import logging
import secrets
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from mcpboard.host.cloud.api import CloudApi
from mcpboard.host.cloud.assignment import CANCELLED, AssignmentRun
from mcpboard.host.cloud.backoff import SHORTEST_PAUSE, WorkerClock, WorkerEvents
from mcpboard.host.cloud.pool import AssignmentPool
from mcpboard.host.cloud.retry import Retry
from mcpboard.host.cloud.runner import Runner
from mcpboard.host.devices.leases import MCP, Owner
from mcpboard.host.devices.manager import DeviceManager

log = logging.getLogger(__name__)

Survey = Callable[[], Sequence[Mapping[str, Any]]]  # id and state of every device, within a few seconds


class Heartbeat:
    """One thread's work, `beat_forever`; `seconds` between two heartbeats when nothing changes.

    `answered_at` is when the last one was answered, `busy_ids` what that one said.
    """

    def __init__(
        self, manager: DeviceManager, survey: Survey, cloud: CloudApi, crew: AssignmentPool, runner: Runner,
        bells: WorkerEvents, pace: WorkerClock, seconds: float,
    ) -> None:  # fmt: skip
        self.attempts = Retry("heartbeat", bells.stopping, seconds)
        self.answered_at: float | None = None
        self.busy_ids: tuple[str, ...] = ()
        self._manager = manager
        self._survey = survey
        self._cloud = cloud
        self._crew = crew
        self._runner = runner
        self._bells = bells
        self._pace = pace
        self._seconds = seconds
        self._boot_id = secrets.token_hex(8)
        self._seq = 0
        self._states: dict[str, str] = {}  # of devices, as the survey found them last
        self._looked_at = float("-inf")

    def beat_forever(self) -> None:
        """Until `closing` rings, and once more then."""
        while True:
            last = self._bells.closing.is_set()
            told = self._manager.leases()
            pause = self.attempts.make(self._beat)
            if last:
                return
            if pause is None:
                self._rest(told)
            else:
                self._pace.wait(self._bells.closing, pause)

    def _rest(self, told: Mapping[str, Owner]) -> None:
        """Until the next heartbeat is due, or who holds what is not what was told; a second at least."""
        over = self._pace.now() + self._seconds
        self._pace.wait(self._bells.closing, SHORTEST_PAUSE)
        while not self._bells.closing.is_set() and self._pace.now() < over:
            self._bells.news.clear()
            if self._manager.leases() != told:
                return
            if not self._bells.closing.is_set():  # it rings the news as well, perhaps before they were cleared
                self._pace.wait(self._bells.news, over - self._pace.now())

    def _beat(self) -> None:
        runs, devices, asked_at = self._crew.runs(), self._devices(), self._pace.now()
        self._seq += 1
        busy = sorted(device for device, owner in self._manager.leases().items() if owner.kind == MCP)  # as it is now
        answer = self._cloud.heartbeat(
            {
                "seq": self._seq,
                "boot_id": self._boot_id,
                "devices": devices,
                "mcp_busy_device_ids": busy,
                "assignments": [_reported(run) for run in runs],
                "draining": self._bells.draining.is_set(),
            }
        )
        self.answered_at, self.busy_ids = self._pace.now(), tuple(busy)
        self._runner.reached()
        self._confirm(runs, answer.get("lost"), asked_at)
        self._obey(answer.get("commands"))

    def _devices(self) -> list[dict[str, str]]:
        """Id, kind and state of every device; asked anew when the last look is half a heartbeat old."""
        now = self._pace.now()
        if now - self._looked_at >= self._seconds / 2 and not self._bells.closing.is_set():
            self._looked_at = now
            self._states = {str(each["id"]): str(each["state"]) for each in self._survey()}
        standings = self._manager.states()
        return [{"id": each.id, "kind": each.kind, "state": self._states.get(each.id, "unknown")} for each in standings]

    def _confirm(self, runs: Sequence[AssignmentRun], lost: Any, asked_at: float) -> None:
        gone = lost if isinstance(lost, list) else []
        for run in runs:
            if run.lease in gone:
                self._runner.lose(run)
            else:
                run.heard_at = asked_at

    def _obey(self, commands: Any) -> None:
        for command in commands if isinstance(commands, list) else []:
            told = command if isinstance(command, dict) else {}
            if told.get("command") == "cancel":
                self._cancel(told.get("lease_id"))
            elif told.get("command") == "drain":
                self._bells.draining.set()
            elif told.get("command") == "resume":
                self._resume()
            else:
                log.warning("the cloud sent a command that this version does not know")

    def _cancel(self, lease: Any) -> None:
        for run in self._crew.runs():
            if run.lease == lease:
                run.stop(CANCELLED, "cancelled by the cloud", "cancelled")

    def _resume(self) -> None:
        if not self._bells.stopping.is_set():
            self._bells.draining.clear()
            self._bells.room.set()


def _reported(run: AssignmentRun) -> dict[str, Any]:
    return {"id": run.id, "lease_id": run.lease, "phase": run.phase, "progress": run.steps_done}
