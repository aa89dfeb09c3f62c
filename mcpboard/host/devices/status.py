"""How the devices are at this moment: every one asked at the same time, none of them waited for long."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import Any

from mcpboard.host.devices.manager import DeviceManager, DeviceState
from mcpboard.host.drivers.base import Driver, Probe

LIMIT_SECONDS = 2.5  # for all devices together; a driver's own limit is two
WORKERS = 16  # probes at a time; a silent device keeps one of them for two seconds

SILENT = Probe("no answer")


class StatusSurvey:
    """Asks devices how they are, without holding them; one probe a device at a time."""

    def __init__(self, manager: DeviceManager) -> None:
        self._manager = manager
        self._lock = threading.Lock()
        self._pool = ThreadPoolExecutor(WORKERS, thread_name_prefix="probe")
        self._under_way: dict[Driver, Future[Probe]] = {}

    def devices(self) -> list[dict[str, Any]]:
        """Id, kind, state and holder of every device."""
        standings = self._manager.states()
        probes = self._probes(standings)
        return [_summary(each, probes[each.id]) for each in standings]

    def status(self, device_id: str) -> dict[str, Any]:
        """The same of one device, with what its driver says besides; UnknownDevice."""
        standing = self._manager.state(device_id)
        probe = self._probes([standing])[device_id]
        ended = self._manager.last_ended(device_id)
        told = {**probe.details, **_summary(standing, probe), "free_in_s": standing.free_in_s}
        if ended is not None:
            told["last_hold"] = {"held_by": ended.owner.label, "ended": ended.why}
        return told

    def close(self) -> None:
        """Wait for the probes under way, two seconds at most."""
        self._pool.shutdown(wait=True, cancel_futures=True)

    def _probes(self, standings: Iterable[DeviceState]) -> dict[str, Probe]:
        with self._lock:
            self._under_way = {driver: each for driver, each in self._under_way.items() if not each.done()}
            asked = {each.id: self._ask(each.driver) for each in standings}
        wait(asked.values(), LIMIT_SECONDS)
        return {device_id: _found(future) for device_id, future in asked.items()}

    def _ask(self, driver: Driver) -> Future[Probe]:
        """The probe of that device that is under way, else a new one."""
        if driver not in self._under_way:
            self._under_way[driver] = self._pool.submit(driver.probe)
        return self._under_way[driver]


def _found(future: Future[Probe]) -> Probe:
    if not future.done():
        return SILENT
    error = future.exception()
    return future.result() if error is None else Probe("failing", {"error": str(error)})


def _summary(standing: DeviceState, probe: Probe) -> dict[str, Any]:
    return {
        "id": standing.id,
        "kind": standing.kind,
        "state": probe.state,
        "held_by": None if standing.holder is None else standing.holder.label,
        "idle_s": None if standing.idle_s is None else round(standing.idle_s, 1),
    }
