"""The state of every device at this moment: all are probed at the same time, none of them is waited for long."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import Any

from mcpboard.host.access.owners import SHARED_TOKEN
from mcpboard.host.devices.leases import Owner
from mcpboard.host.devices.manager import DeviceManager, DeviceState
from mcpboard.host.drivers.base import Driver, Probe

LIMIT_SECONDS = 2.5  # for all devices together; a driver's own limit is two
WORKERS = 64  # probes at a time, one for each device that a host may have: a silent one keeps its own for two seconds

SILENT = Probe("no answer")


class DeviceStatuses:
    """Probe devices without a lease; one probe a device at a time. `clients` names those that share an owner."""

    def __init__(self, manager: DeviceManager, clients: Callable[[Owner], list[str]] = lambda owner: []) -> None:
        self._manager = manager
        self._clients = clients
        self._lock = threading.Lock()
        self._pool = ThreadPoolExecutor(WORKERS, thread_name_prefix="probe")
        self._under_way: dict[Driver, Future[Probe]] = {}

    def devices(self) -> list[dict[str, Any]]:
        """Return id, kind, state and owner of every device."""
        states = self._manager.states()
        probes = self._probe(states)
        return [_summary(each, probes[each.id]) for each in states]

    def status(self, device_id: str) -> dict[str, Any]:
        """Return the same of one device, with what its driver says besides; UnknownDevice."""
        state = self._manager.state(device_id)
        probe = self._probe([state])[device_id]
        ended = self._manager.last_ended(device_id)
        status = {**probe.details, **_summary(state, probe), "free_in_s": state.free_in_s}
        clients = [] if state.owner is None else self._clients(state.owner)
        if len(clients) > 1:
            status |= {"clients_of_owner": clients, "hint": SHARED_TOKEN}
        if ended is not None:
            status["last_hold"] = {"held_by": ended.owner.label, "ended": ended.why}
        return status

    def close(self) -> None:
        """Wait for the probes under way, two seconds at most."""
        self._pool.shutdown(wait=True, cancel_futures=True)

    def _probe(self, states: Iterable[DeviceState]) -> dict[str, Probe]:
        """Return the probe of each device: of the one that is under way already, else of a new one."""
        futures = {}
        with self._lock:
            self._under_way = {driver: each for driver, each in self._under_way.items() if not each.done()}
            for each in states:
                if each.driver not in self._under_way:
                    self._under_way[each.driver] = self._pool.submit(each.driver.probe)
                futures[each.id] = self._under_way[each.driver]
        wait(futures.values(), LIMIT_SECONDS)
        probes = {}
        for device_id, future in futures.items():
            if not future.done():
                probes[device_id] = SILENT
            elif (error := future.exception()) is not None:
                probes[device_id] = Probe("failing", {"error": str(error)})
            else:
                probes[device_id] = future.result()
        return probes


def _summary(state: DeviceState, probe: Probe) -> dict[str, Any]:
    return {
        "id": state.id,
        "kind": state.kind,
        "state": probe.state,
        "held_by": None if state.owner is None else state.owner.label,
        "idle_s": None if state.idle_s is None else round(state.idle_s, 1),
    }
