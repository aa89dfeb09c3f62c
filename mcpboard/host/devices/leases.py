"""Leases: who has which device until when, and who is next. A calculation: times are passed in, nothing is locked.

A lease begins with the first call of its owner on a device. That of an MCP session is over 60 s
after the end of its last call, that of a cloud assignment when the assignment says so. None ends
under a call: when something else ends it (a DELETE, the operator), the calls inside finish first,
and until then the lease is `ending`: no further call gets in, its owner's included. Each lease has
a number of its own, so that whoever comes back from waiting can tell whether it is still the same.
"""

from __future__ import annotations

import logging
import math
import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from mcpboard.errors import NOT_SENT, DeviceBusy, ToolFailed

log = logging.getLogger(__name__)

IDLE_SECONDS = 60.0  # without a call, counted from the end of the last one
MOST_WAITERS = 16  # for one device; each is a thread

CLOUD = "cloud_assignment"
MCP = "mcp_session"


@dataclass(frozen=True)
class Owner:
    """The party that leases devices: a cloud assignment, or one MCP session of a principal.

    `key` tells owners apart and is a secret; `prefix` is what others may see of it.
    """

    kind: str
    key: str = field(repr=False)
    prefix: str = ""
    principal: str = field(default="", compare=False, repr=False)

    @property
    def label(self) -> str:
        """The name that others see: `cloud_assignment` or `mcp_session:<prefix>`."""
        return self.kind if self.kind == CLOUD else f"{self.kind}:{self.prefix}"


@dataclass
class Lease:
    """The right of one owner to use one device."""

    device: str
    owner: Owner
    number: int  # never given twice
    idle_since: float  # end of the last call
    calls: int = 0  # under way, waiting ones included
    ending: str | None = None  # why it is over once its calls have ended

    def idle(self, now: float) -> float:
        """Return the seconds without a call; none while one is under way."""
        return 0.0 if self.calls else max(0.0, now - self.idle_since)

    def free_in(self, now: float) -> int | None:
        """Return the whole seconds until it is free if left alone, at least one; None when that does not free it."""
        if self.owner.kind == CLOUD:
            return None
        if self.ending is not None:
            return 1  # with the call inside, which nobody can foresee
        return max(1, math.ceil(IDLE_SECONDS - self.idle(now)))


@dataclass(frozen=True)
class EndedLease:
    """A lease that is over, and why."""

    device: str
    owner: Owner
    why: str


@dataclass(eq=False)
class LeaseWaiter:
    """An owner that waits for a device: `answered` is set when that is over, `granted` when it has the device."""

    device: str
    owner: Owner
    answered: threading.Event = field(default_factory=threading.Event)
    granted: bool = False


class DeviceLeases:
    """The lease of each device, how the last one ended (`last_ended`), and who waits for it.

    Not locked: the DeviceManager, which owns it, owns the lock and the clock; only the waiting itself,
    for `LeaseWaiter.answered`, is done without the lock. `on_change` is called under it whenever
    a lease begins or ends, so it must not wait. What has been idle for too long ends in `expire`,
    which every look at a lease and every request for one begins with.
    """

    def __init__(self) -> None:
        self.on_change: Callable[[], None] = lambda: None
        self.last_ended: dict[str, EndedLease] = {}
        self._leases: dict[str, Lease] = {}
        self._last_number = 0
        self._waiters: list[LeaseWaiter] = []  # of all devices, in the order of asking

    # --- a call ----------------------------------------------------------------------------------

    def begin_call(self, device: str, owner: Owner, now: float) -> int:
        """Begin a call of `owner` and return the number of its lease, a new one or the one that it has.

        Raises DeviceBusy, and ToolFailed while the owner's own lease is ending.
        """
        self.expire(now)
        lease = self._acquire(device, owner, now)
        if lease is None:
            raise refusal(self._leases[device], owner, now)
        lease.calls += 1
        return lease.number

    def end_call(self, device: str, number: int, now: float) -> None:
        """End a call; the last one of a lease that is ending ends it. The number of a former lease changes nothing."""
        lease = self._leases.get(device)
        if lease is None or lease.number != number:
            return
        lease.calls -= 1
        lease.idle_since = now
        if lease.ending is not None:
            self._end([lease], lease.ending, now)

    def why_over(self, device: str, number: int) -> str | None:
        """Return why the lease of that number may not be used any more; None while it may."""
        lease = self._leases.get(device)
        if lease is None or lease.number != number:
            return "it is over"
        return lease.ending

    def _acquire(self, device: str, owner: Owner, now: float) -> Lease | None:
        """Return the owner's lease, begun where the device is free; None while it is not to be had."""
        lease = self._leases.get(device)
        if lease is None:
            self._last_number += 1
            lease = self._leases[device] = Lease(device, owner, self._last_number, now)
            self.on_change()
        elif lease.owner != owner or lease.ending is not None:
            return None
        lease.idle_since = now
        return lease

    # --- looking ---------------------------------------------------------------------------------

    def current(self, now: float) -> dict[str, Lease]:
        """Return the lease of each device that has one."""
        self.expire(now)
        return dict(self._leases)

    def devices_in_use(self) -> set[str]:
        """Return the devices that have a call under way."""
        return {lease.device for lease in self._leases.values() if lease.calls}

    # --- waiting ---------------------------------------------------------------------------------

    def enqueue(self, device: str, owner: Owner, now: float) -> LeaseWaiter:
        """Line up for a device, answered at once where it is to be had; ToolFailed behind MOST_WAITERS."""
        self.expire(now)
        acquired = self._acquire(device, owner, now) is not None
        if not acquired and sum(each.device == device for each in self._waiters) >= MOST_WAITERS:
            raise ToolFailed(f"too many wait for {device}: try again later", delivery=NOT_SENT)
        waiter = LeaseWaiter(device, owner)
        self._waiters.append(waiter)
        if acquired:
            self._answer([waiter], granted=True)
        return waiter

    def dequeue(self, waiter: LeaseWaiter) -> None:
        """Leave the line, where that has not been answered."""
        if waiter in self._waiters:
            self._waiters.remove(waiter)

    def _answer(self, waiters: Iterable[LeaseWaiter], granted: bool) -> None:
        for waiter in waiters:
            self._waiters.remove(waiter)
            waiter.granted = granted
            waiter.answered.set()

    # --- the end of leases -----------------------------------------------------------------------

    def end(self, device: str, why: str, now: float) -> None:
        """End the lease of a device, whoever has it: at once, or with the last call inside."""
        self._end([lease for lease in self._leases.values() if lease.device == device], why, now)

    def end_owner(self, owner: Owner, why: str, now: float) -> None:
        """End every lease of `owner`."""
        self._end([lease for lease in self._leases.values() if lease.owner == owner], why, now)

    def expire(self, now: float) -> None:
        """End the leases of MCP sessions that had no call for IDLE_SECONDS, and hand the devices to who waits."""
        idle = [lease for lease in self._leases.values() if not lease.calls and lease.owner.kind == MCP]
        self._end([lease for lease in idle if lease.idle(now) >= IDLE_SECONDS], "idle", now)

    def withdraw(self, device: str, why: str, now: float) -> None:
        """End the lease of a device that goes; nobody gets it, and who waits for it is sent away."""
        self._answer([each for each in self._waiters if each.device == device], granted=False)
        self.end(device, why, now)

    def close(self, why: str) -> None:
        """End every lease and send everybody away who waits; `on_change` is not called for it."""
        self._answer(list(self._waiters), granted=False)
        for lease in self._leases.values():
            lease.ending = lease.ending or why
        self._leases = {device: lease for device, lease in self._leases.items() if lease.calls}

    def _end(self, leases: Iterable[Lease], why: str, now: float) -> None:
        """End those without a call inside, and mark the others as ending; the first reason stays.

        The first who waits for the device gets it, and with it every other call of the same owner that waits.
        """
        for lease in leases:
            lease.ending = lease.ending or why
            if lease.calls:
                continue
            log.info("%s: the lease of %s ended: %s", lease.device, lease.owner.label, lease.ending)
            del self._leases[lease.device]
            self.last_ended[lease.device] = EndedLease(lease.device, lease.owner, lease.ending)
            self.on_change()
            queue = [each for each in self._waiters if each.device == lease.device]
            if queue:
                self._acquire(lease.device, queue[0].owner, now)
                self._answer([each for each in queue if each.owner == queue[0].owner], granted=True)


def refusal(lease: Lease, caller: Owner, now: float) -> ToolFailed:
    """Return the error for a call that `lease` keeps out: DeviceBusy, or a notice that the caller's own is ending."""
    owner, wait_s = lease.owner, lease.free_in(now)
    if owner == caller:
        message = f"your lease of {lease.device} is being ended ({lease.ending}): call again in a moment"
        return ToolFailed(message, delivery=NOT_SENT)
    if owner.kind == CLOUD:
        return DeviceBusy(f"device {lease.device} is busy (held by cloud assignment)", owner.label, wait_s)
    way_out = "wait, or end that session"
    if owner.principal and owner.principal == caller.principal:
        way_out = 'it is another session of your own token: end it, or set hold_scope = "token" in [host]'
    return DeviceBusy(
        f"device {lease.device} is busy (held by MCP session {owner.prefix}; free in {wait_s} s if idle; {way_out})",
        owner.label,
        wait_s,
    )
