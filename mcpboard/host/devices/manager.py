"""The DeviceManager: the one way to a device, for MCP clients and for the cloud alike.

It owns the lock around the leases, and is the only caller of drivers. Two locks a device, never
mixed: the lease (whose device it is, for minutes) and the command queue (whose command it is, for
moments). A call gets the lease, waits in the queue, and looks again before it touches anything:
its lease may have been ended while it waited.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TypeVar

from mcpboard.errors import NOT_SENT, ConfigError, ToolFailed, UnknownDevice
from mcpboard.host.devices.leases import DeviceLeases, EndedLease, Owner
from mcpboard.host.devices.queue import WAIT_SECONDS, CommandQueue, shared_places
from mcpboard.host.devices.spec import DeviceSpec, same_phone
from mcpboard.host.drivers.base import Driver, Screenshot

SHUTTING_DOWN = "the host agent is shutting down"
LEAVE_SECONDS = 0.2  # for the driver of a device that was removed to close; it goes on behind our back
CLOSE_SECONDS = 3.0  # for all drivers together at the end; one alone may take two

log = logging.getLogger(__name__)

T = TypeVar("T")


class PhoneTaken(ConfigError):
    """The phone is a device under another id."""


@dataclass(frozen=True)
class DeviceState:
    """One device and the owner of its lease; `idle_s` counts from the end of the owner's last call."""

    id: str
    kind: str
    driver: Driver = field(repr=False)
    owner: Owner | None = None
    idle_s: float | None = None
    free_in_s: int | None = None


@dataclass(eq=False)
class _Device:
    id: str
    kind: str
    driver: Driver
    queue: CommandQueue
    ways: Sequence[DeviceSpec] = ()  # that lead to its phone
    found: bool = False  # plugged in, and named by nobody
    last_number: int = 0  # of the lease that used the driver last


class DeviceManager:
    """Devices, their leases, and one command at a time on each; safe to use from any thread.

    `clock` is monotonic, in seconds: a wall clock that jumps ends no lease. Nothing survives a
    restart, so nothing is ever done twice because of one.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic, wait_seconds: float = WAIT_SECONDS) -> None:
        self._clock = clock
        self._wait_seconds = wait_seconds
        self._lock = threading.Lock()
        self._leases = DeviceLeases()
        self._devices: dict[str, _Device] = {}
        self._leaving: list[_Device] = []  # removed while a call was inside
        self._watched: list[Driver] = []  # somebody peeks, or is about to
        self._closed = False
        self._places = shared_places()

    def watch(self, on_change: Callable[[], None]) -> None:
        """Have `on_change` called whenever a lease begins or ends; under the lock, so it must not wait."""
        self._leases.on_change = on_change

    # --- the devices -------------------------------------------------------------------------

    def add(
        self, device_id: str, kind: str, driver: Driver, ways: Sequence[DeviceSpec] = (), *, found: bool = False
    ) -> None:
        """Take a device on; ConfigError for an id that is there already, PhoneTaken for a phone that has another id.

        `ways` are those that lead to its phone. A device that was only `found` gives way to one that
        somebody has named as soon as nobody leases it; until then the phone keeps its id.
        """
        with self._lock:
            in_use = self._leases.devices_in_use()
            leased = self._leases.current(self._clock())
            others = [*self._devices.values(), *(each for each in self._leaving if each.id in in_use)]
            same = [each for each in others if any(same_phone(one, two) for one in ways for two in each.ways)]
            for other in same:
                served = self._devices.get(other.id) is other
                if served and (found or not other.found):
                    raise PhoneTaken(f"{other.id} is that phone already; remove one of them")
                if other.id in leased or not served:
                    raise PhoneTaken(f"the phone is in use as {other.id}; it is served once that is over")
            if device_id in self._devices and device_id not in [each.id for each in same]:
                raise ConfigError(f"there is a device {device_id} already; choose another id")
            for other in same:
                self._withdraw(other)
            queue = CommandQueue(device_id, self._wait_seconds, self._places)
            self._devices[device_id] = _Device(device_id, kind, driver, queue, ways, found)
        self._close_leaving()

    def remove(self, device_id: str) -> None:
        """Let a device go: its lease ends, who waits for it learns that, a call inside finishes first."""
        with self._lock:
            self._withdraw(self._known(device_id))
        self._close_leaving()

    def withdraw_found(self, device_id: str) -> None:
        """Let a device go that was only found, unless somebody has it or it is not here."""
        with self._lock:
            device = self._devices.get(device_id)
            if device is not None and device.found and device_id not in self._leases.current(self._clock()):
                self._withdraw(device)
        self._close_leaving()

    def _withdraw(self, device: _Device) -> None:
        self._devices.pop(device.id, None)
        self._leaving.append(device)
        self._leases.withdraw(device.id, "the device was removed", self._clock())

    def ids(self) -> list[str]:
        """Return the ids of all devices, in the order of their arrival."""
        with self._lock:
            return list(self._devices)

    def states(self) -> list[DeviceState]:
        """Return every device with the owner of its lease. Needs no lease and waits for nothing."""
        states = []
        with self._lock:
            now = self._clock()
            leases = self._leases.current(now)
            for device in self._devices.values():
                lease = leases.get(device.id)
                usage = (None, None, None) if lease is None else (lease.owner, lease.idle(now), lease.free_in(now))
                states.append(DeviceState(device.id, device.kind, device.driver, *usage))
        return states

    def state(self, device_id: str) -> DeviceState:
        """Return the same of one device; UnknownDevice."""
        for state in self.states():
            if state.id == device_id:
                return state
        raise UnknownDevice(device_id)

    # --- using one -----------------------------------------------------------------------------

    def run(
        self, device_id: str, owner: Owner, command: Callable[[Driver], T], gone: Callable[[], bool] = lambda: False
    ) -> T:
        """Return what `command` makes of the device's driver; made once at most, with the lease taken or kept.

        Raises UnknownDevice, DeviceBusy, ToolFailed when its slot does not come, its lease ends
        while it waits, or its caller is `gone` by then; and whatever the command raises.
        """
        device, number = self._begin_call(device_id, owner)
        try:
            with device.queue.slot():
                # The second look, alone with the device: still the same lease, and somebody who listens.
                with self._lock:
                    why = SHUTTING_DOWN if self._closed else self._leases.why_over(device_id, number)
                    if why is not None:
                        message = f"the lease of {device_id} ended while the call waited: {why}"
                        raise ToolFailed(message, delivery=NOT_SENT)
                    if gone():
                        raise ToolFailed("the caller has gone", delivery=NOT_SENT)
                    new_owner, device.last_number = device.last_number != number, number
                if new_owner:
                    device.driver.new_owner()
                return command(device.driver)
        finally:
            self._end_call(device_id, number)

    @contextmanager
    def lease(self, device_id: str, owner: Owner, why: str) -> Iterator[None]:
        """Lease the device until the block ends, for an assignment of the cloud; `why` is the reason of that end.

        When the operator ends the lease in between, `run` raises ToolFailed and nobody else gets in
        before the block has ended: an owner that is not done must not get the device anew, behind
        somebody who had it meanwhile. Raises UnknownDevice and DeviceBusy, and waits for nothing.
        """
        _, number = self._begin_call(device_id, owner)
        try:
            yield
        finally:
            with self._lock:
                self._leases.end(device_id, why, self._clock())  # ours: it has had a call of ours all the time
            self._end_call(device_id, number)

    def _begin_call(self, device_id: str, owner: Owner) -> tuple[_Device, int]:
        with self._lock:
            device = self._open(device_id)
            return device, self._leases.begin_call(device_id, owner, self._clock())

    def _end_call(self, device_id: str, number: int) -> None:
        with self._lock:
            self._leases.end_call(device_id, number, self._clock())
        self._close_leaving()

    def peek(self, device_id: str) -> Screenshot | None:
        """Return a screenshot taken without a lease; None where somebody is at the device just now.

        For people who watch: no call is ever turned away for it, and it never waits for one.
        Raises UnknownDevice, ToolFailed at shutdown, and whatever the driver raises.
        """
        with self._lock:
            device = self._open(device_id)
            self._watched.append(device.driver)
        try:
            with device.queue.guest_slot() as acquired:
                return device.driver.peek() if acquired else None
        finally:
            with self._lock:
                self._watched.remove(device.driver)
            self._close_leaving()

    # --- waiting for one -------------------------------------------------------------------------

    def wait_until_usable(self, device_id: str, owner: Owner, timeout: float) -> bool:
        """Wait until `owner` has the lease, `timeout` seconds at most; whoever asked first gets it first.

        True: it has the lease now, and its idle time runs. False: the time is over, or the
        manager closes. Raises UnknownDevice, also when the device goes meanwhile, and ToolFailed
        where too many wait already.
        """
        with self._lock:
            device = self._open(device_id)
            waiter = self._leases.enqueue(device_id, owner, self._clock())
        waiter.answered.wait(timeout)
        with self._lock:
            self._leases.dequeue(waiter)
            if not waiter.granted and not self._closed and self._devices.get(device_id) is not device:
                raise UnknownDevice(device_id)
            return waiter.granted

    # --- leases ----------------------------------------------------------------------------------

    def leases(self) -> dict[str, Owner]:
        """Return the owner of each leased device, of those that are here."""
        with self._lock:
            leases = self._leases.current(self._clock())
            return {device: lease.owner for device, lease in leases.items() if device in self._devices}

    def leased_by(self, owner: Owner) -> list[str]:
        """Return the devices that `owner` has leased."""
        return [device for device, other in self.leases().items() if other == owner]

    def last_ended(self, device_id: str) -> EndedLease | None:
        """Return the last lease of the device that ended, and why it did."""
        with self._lock:
            return self._leases.last_ended.get(device_id)

    def release(self, device_id: str, why: str = "released by the operator", only: str | None = None) -> bool:
        """End the lease of a device, whoever has it; False when nobody has. A call inside finishes first.

        With `only`, the label of an owner, the lease of anybody else stays: who asked meant that one.
        """
        with self._lock:
            self._known(device_id)
            now = self._clock()
            lease = self._leases.current(now).get(device_id)
            if lease is None or only not in (None, lease.owner.label):
                return False
            self._leases.end(device_id, why, now)
            return True

    def end_owner(self, owner: Owner, why: str) -> None:
        """End every lease of `owner`."""
        with self._lock:
            self._leases.end_owner(owner, why, self._clock())

    def sweep(self) -> None:
        """End what has been idle for too long, and hand it to who waits."""
        with self._lock:
            self._leases.expire(self._clock())

    def close(self) -> None:
        """End every lease and every wait, let every device go."""
        with self._lock:
            self._closed = True
            self._leaving += self._devices.values()
            self._leases.close(SHUTTING_DOWN)
            self._devices.clear()
        self._close_leaving(CLOSE_SECONDS)

    def _close_leaving(self, seconds: float = LEAVE_SECONDS) -> None:
        """Close the drivers of devices that are gone and have nobody inside any more, all at the same time.

        They are waited for `seconds`: one whose device is silent must delay neither the answer of the
        caller nor the closing of the others.
        """
        with self._lock:
            in_use = self._leases.devices_in_use()
            kept = [each for each in self._leaving if each.id in in_use or each.driver in self._watched]
            ready = [each.driver for each in self._leaving if each not in kept]
            self._leaving = kept
        threads = [
            threading.Thread(target=_close, args=(driver,), name="device closing", daemon=True) for driver in ready
        ]
        for thread in threads:
            thread.start()
        end = time.monotonic() + seconds
        for thread in threads:
            thread.join(max(0.0, end - time.monotonic()))

    def _open(self, device_id: str) -> _Device:
        if self._closed:
            raise ToolFailed(SHUTTING_DOWN, delivery=NOT_SENT)
        return self._known(device_id)

    def _known(self, device_id: str) -> _Device:
        device = self._devices.get(device_id)
        if device is None:
            raise UnknownDevice(device_id)
        return device


def _close(driver: Driver) -> None:
    """Close a driver; what goes wrong there is nobody's answer."""
    try:
        driver.close()
    except Exception:
        log.exception("a device could not be let go")
