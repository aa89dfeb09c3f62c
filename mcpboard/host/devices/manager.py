"""The DeviceManager: the one way to a device, for MCP clients and for the cloud alike.

It owns the lock around the holds, and is the only caller of drivers. Two locks a device, never
mixed: the hold (whose device it is, for minutes) and the turnstile (whose command it is, for
moments). A call enters the hold, waits at the turnstile, and looks again before it touches
anything: its hold may have been ended while it waited.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TypeVar

from mcpboard.errors import NOT_SENT, ConfigError, ToolFailed, UnknownDevice
from mcpboard.host.devices.holds import DeviceLeases
from mcpboard.host.devices.leases import Ended, Lease, Owner
from mcpboard.host.devices.queue import WAIT_SECONDS, CommandQueue
from mcpboard.host.drivers.base import Driver, Screenshot

SHUTTING_DOWN = "the host agent is shutting down"

T = TypeVar("T")


@dataclass(frozen=True)
class DeviceState:
    """One device and who holds it; `idle_s` counts from the end of the holder's last call."""

    id: str
    kind: str
    driver: Driver = field(repr=False)
    holder: Owner | None = None
    idle_s: float | None = None
    free_in_s: int | None = None


@dataclass(eq=False)
class _Device:
    id: str
    kind: str
    driver: Driver
    turnstile: CommandQueue
    last_number: int = 0  # of the hold that used the driver last


class DeviceManager:
    """Devices, who holds them, and one command at a time on each; safe to use from any thread.

    `clock` is monotonic, in seconds: a wall clock that jumps ends no hold. Nothing survives a
    restart, so nothing is ever done twice because of one.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic, wait_seconds: float = WAIT_SECONDS) -> None:
        self._clock = clock
        self._wait_seconds = wait_seconds
        self._lock = threading.Lock()
        self._holds = DeviceLeases(clock)
        self._devices: dict[str, _Device] = {}
        self._leaving: list[tuple[str, Driver]] = []  # removed while a call was inside
        self._watched: list[Driver] = []  # somebody peeks, or is about to
        self._closed = False

    def watch(self, tell: Callable[[], None]) -> None:
        """Have `tell` called whenever a hold begins or ends; under the lock, so it must not wait."""
        self._holds.tell = tell

    # --- the devices -------------------------------------------------------------------------

    def add(self, device_id: str, kind: str, driver: Driver) -> None:
        """Take a device on; ConfigError for an id that is there already."""
        with self._lock:
            if device_id in self._devices:
                raise ConfigError(f"there is a device {device_id} already; choose another id")
            turnstile = CommandQueue(device_id, self._wait_seconds)
            self._devices[device_id] = _Device(device_id, kind, driver, turnstile)

    def remove(self, device_id: str) -> None:
        """Let a device go: its hold ends, who waits for it is told, a call inside finishes first."""
        with self._lock:
            device = self._known(device_id)
            del self._devices[device_id]
            self._leaving.append((device_id, device.driver))
            self._holds.withdraw(device_id, "the device was removed")
        self._close_leaving()

    def ids(self) -> list[str]:
        """The ids of all devices, in the order of their arrival."""
        with self._lock:
            return list(self._devices)

    def state(self, device_id: str) -> DeviceState:
        """One device and its holder; UnknownDevice. Needs no hold and waits for nothing."""
        with self._lock:
            return self._state(self._known(device_id), self._holds.on(device_id))

    def states(self) -> list[DeviceState]:
        """The same of every device."""
        with self._lock:
            leases = {lease.device: lease for lease in self._holds.all()}
            return [self._state(device, leases.get(device.id)) for device in self._devices.values()]

    def _state(self, device: _Device, lease: Lease | None) -> DeviceState:
        if lease is None:
            return DeviceState(device.id, device.kind, device.driver)
        now = self._clock()
        return DeviceState(device.id, device.kind, device.driver, lease.owner, lease.idle(now), lease.free_in(now))

    # --- using one -----------------------------------------------------------------------------

    def run(
        self, device_id: str, owner: Owner, command: Callable[[Driver], T], gone: Callable[[], bool] = lambda: False
    ) -> T:
        """What `command` makes of the device's driver; made once at most, with the hold taken or kept.

        Raises UnknownDevice, DeviceBusy, ToolFailed when its turn does not come, its hold ends
        while it waits, or its caller is `gone` by then; and whatever the command raises.
        """
        device, number = self._enter(device_id, owner)
        try:
            with device.turnstile.inside():
                self._check(device, number, gone)
                return command(device.driver)
        finally:
            self._leave(device_id, number)

    @contextmanager
    def lease(self, device_id: str, owner: Owner, why: str) -> Iterator[None]:
        """Hold the device until the block ends, for an assignment of the cloud; `why` is told of its end.

        When the operator ends the hold in between, `run` raises ToolFailed and nobody else gets in
        before the block has ended: an owner that is not done must not get the device anew, behind
        somebody who had it meanwhile. Raises UnknownDevice and DeviceBusy, and waits for nothing.
        """
        _, number = self._enter(device_id, owner)
        try:
            yield
        finally:
            with self._lock:
                self._holds.end(device_id, why)  # ours, for it has had a call of ours all the time
            self._leave(device_id, number)

    def _enter(self, device_id: str, owner: Owner) -> tuple[_Device, int]:
        with self._lock:
            device = self._open(device_id)
            return device, self._holds.enter(device_id, owner)

    def _check(self, device: _Device, number: int, gone: Callable[[], bool]) -> None:
        """The second look, alone with the device: still the same hold, and somebody who listens."""
        with self._lock:
            why = SHUTTING_DOWN if self._closed else self._holds.why_not(device.id, number)
            if why is not None:
                raise ToolFailed(f"the hold on {device.id} ended while the call waited: {why}", delivery=NOT_SENT)
            if gone():
                raise ToolFailed("the caller has gone", delivery=NOT_SENT)
            fresh, device.last_number = device.last_number != number, number
        if fresh:
            device.driver.new_owner()

    def _leave(self, device_id: str, number: int) -> None:
        with self._lock:
            self._holds.leave(device_id, number)
        self._close_leaving()

    def peek(self, device_id: str) -> Screenshot | None:
        """A picture of the device without a hold; None where somebody is at the device just now.

        For people who watch: no call is ever turned away for it, and it never waits for one.
        Raises UnknownDevice, ToolFailed at shutdown, and whatever the driver raises.
        """
        with self._lock:
            device = self._open(device_id)
            self._watched.append(device.driver)
        try:
            with device.turnstile.guest() as alone:
                return device.driver.peek() if alone else None
        finally:
            with self._lock:
                self._watched.remove(device.driver)
            self._close_leaving()

    # --- waiting for one -------------------------------------------------------------------------

    def wait_until_usable(self, device_id: str, owner: Owner, timeout: float) -> bool:
        """Wait until `owner` holds the device, `timeout` seconds at most; whoever asked first gets it first.

        True: it holds the device now, and its idle time runs. False: the time is over, or the
        manager closes. Raises UnknownDevice, also when the device goes meanwhile, and ToolFailed
        where too many wait already.
        """
        with self._lock:
            device = self._open(device_id)
            waiter = self._holds.line_up(device_id, owner)
        waiter.answered.wait(timeout)
        with self._lock:
            self._holds.give_up(waiter)
            if not waiter.granted and not self._closed and self._devices.get(device_id) is not device:
                raise UnknownDevice(device_id)
            return waiter.granted

    # --- the end of holds ------------------------------------------------------------------------

    def release(self, device_id: str, why: str = "released by the operator", only: str | None = None) -> bool:
        """End the hold on a device, whoever has it; False when nobody has. A call inside finishes first.

        With `only`, the label of an owner, the hold of anybody else stays: who asked meant that one.
        """
        with self._lock:
            self._known(device_id)
            lease = self._holds.on(device_id)
            if lease is None or only not in (None, lease.owner.label):
                return False
            self._holds.end(device_id, why)
            return True

    def end_owner(self, owner: Owner, why: str) -> None:
        """End every hold of `owner`."""
        with self._lock:
            self._holds.end_owner(owner, why)

    def leases(self) -> dict[str, Owner]:
        """Who holds which device of those that are here."""
        with self._lock:
            return {lease.device: lease.owner for lease in self._holds.all() if lease.device in self._devices}

    def leased_by(self, owner: Owner) -> list[str]:
        """The devices that `owner` holds."""
        return [device for device, holder in self.leases().items() if holder == owner]

    def last_ended(self, device_id: str) -> Ended | None:
        """How the last hold on the device came to its end."""
        with self._lock:
            return self._holds.last_ended(device_id)

    def sweep(self) -> None:
        """End what has been idle for too long, and hand it to who waits."""
        with self._lock:
            self._holds.expire()

    def close(self) -> None:
        """End every hold and every wait, let every device go."""
        with self._lock:
            self._closed = True
            self._leaving += [(device.id, device.driver) for device in self._devices.values()]
            self._holds.close(SHUTTING_DOWN)
            self._devices.clear()
        self._close_leaving()

    def _close_leaving(self) -> None:
        """Close the drivers of devices that are gone and have nobody inside any more."""
        with self._lock:
            inside = self._holds.inside()
            used = [each for each in self._leaving if each[0] in inside or each[1] in self._watched]
            ready = [driver for device_id, driver in self._leaving if (device_id, driver) not in used]
            self._leaving = used
        for driver in ready:
            driver.close()

    # --- looking up ------------------------------------------------------------------------------

    def _open(self, device_id: str) -> _Device:
        if self._closed:
            raise ToolFailed(SHUTTING_DOWN, delivery=NOT_SENT)
        return self._known(device_id)

    def _known(self, device_id: str) -> _Device:
        device = self._devices.get(device_id)
        if device is None:
            raise UnknownDevice(device_id)
        return device
