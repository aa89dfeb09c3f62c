"""Who holds which device until when, as a book: times are passed in, nothing is measured or locked here.

A hold is taken by the first call. That of an MCP session is over 60 s after the end of its last
call, that of a cloud assignment when the assignment says so. None ends under a call: when something
else ends it (a DELETE, the operator), the calls inside finish first, and until then the hold is
`ending`: nobody new gets in, its owner included. Each hold has a number of its own, so that whoever
comes back from waiting can tell whether it is still the same one.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field

from mcpboard.errors import DeviceBusy

IDLE_SECONDS = 60.0  # without a call, counted from the end of the last one (mission, Concurrency model)

CLOUD = "cloud_assignment"
MCP = "mcp_session"


@dataclass(frozen=True)
class Owner:
    """Who may hold devices: a cloud assignment, or one MCP session of a principal.

    `key` tells owners apart and is a secret; `prefix` is what others may see of it.
    """

    kind: str
    key: str = field(repr=False)
    prefix: str = ""
    principal: str = field(default="", compare=False, repr=False)

    @property
    def label(self) -> str:
        """As it is told to others: `cloud_assignment` or `mcp_session:<prefix>`."""
        return self.kind if self.kind == CLOUD else f"{self.kind}:{self.prefix}"


@dataclass
class Lease:
    """One hold on one device."""

    device: str
    owner: Owner
    number: int  # never given twice
    idle_since: float  # end of the last call
    calls: int = 0  # under way, waiting ones included
    ending: str | None = None  # why it is over once its calls have ended

    def idle(self, now: float) -> float:
        """Seconds without a call; none while one is under way."""
        return 0.0 if self.calls else max(0.0, now - self.idle_since)

    def free_in(self, now: float) -> int | None:
        """Whole seconds until it is free if left alone, at least one; None when that does not free it."""
        if self.owner.kind == CLOUD:
            return None
        if self.ending is not None:
            return 1  # with the call inside, which nobody can foresee
        return max(1, math.ceil(IDLE_SECONDS - self.idle(now)))


@dataclass(frozen=True)
class Ended:
    """A hold that is over, and why."""

    device: str
    owner: Owner
    why: str


class Held(Exception):
    """The device is held by somebody else, or the caller's own hold is just ending."""

    def __init__(self, lease: Lease) -> None:
        super().__init__(lease.device)
        self.lease = lease


class LeaseBook:
    """Every hold of the moment. Not locked, and without a clock: `holds` has that, and its owner the lock.

    What is over for lack of calls leaves the book in `expire` alone, which is therefore to be
    asked before anything else.
    """

    def __init__(self) -> None:
        self._leases: dict[str, Lease] = {}
        self._last_number = 0

    def enter(self, device: str, owner: Owner, now: float) -> int:
        """Begin a call of `owner` and give the number of its hold, a new one or its own; raises Held."""
        lease = self._leases.get(device)
        if lease is None:
            self._last_number += 1
            lease = self._leases[device] = Lease(device, owner, self._last_number, now)
        elif lease.owner != owner or lease.ending is not None:
            raise Held(lease)
        lease.calls += 1
        return lease.number

    def leave(self, device: str, number: int, now: float) -> list[Ended]:
        """End a call; the last one of a hold that is ending ends it. Late numbers change nothing."""
        lease = self._leases.get(device)
        if lease is None or lease.number != number:
            return []
        lease.calls -= 1
        lease.idle_since = now
        return self._strike([lease]) if lease.ending is not None and not lease.calls else []

    def why_not(self, device: str, number: int) -> str | None:
        """Why the hold of that number may not be used any more; None while it may."""
        lease = self._leases.get(device)
        if lease is None or lease.number != number:
            return "it is over"
        return lease.ending

    def end(self, device: str, why: str) -> list[Ended]:
        """End the hold on a device, whoever has it: at once, or with the last call inside."""
        return self._end([lease for lease in self._leases.values() if lease.device == device], why)

    def end_owner(self, owner: Owner, why: str) -> list[Ended]:
        """End every hold of `owner`."""
        return self._end(self.of(owner), why)

    def expire(self, now: float) -> list[Ended]:
        """End the holds of MCP sessions that had no call for IDLE_SECONDS."""
        idle = [lease for lease in self._leases.values() if not lease.calls and lease.owner.kind == MCP]
        return self._end([lease for lease in idle if lease.idle(now) >= IDLE_SECONDS], "idle")

    def on(self, device: str) -> Lease | None:
        """The hold on that device."""
        return self._leases.get(device)

    def of(self, owner: Owner) -> list[Lease]:
        """The holds of that owner."""
        return [lease for lease in self._leases.values() if lease.owner == owner]

    def all(self) -> list[Lease]:
        """Every hold."""
        return list(self._leases.values())

    def _end(self, leases: Iterable[Lease], why: str) -> list[Ended]:
        over = []
        for lease in leases:
            lease.ending = lease.ending or why
            if not lease.calls:
                over.append(lease)
        return self._strike(over)

    def _strike(self, leases: Iterable[Lease]) -> list[Ended]:
        return [Ended(lease.device, self._leases.pop(lease.device).owner, lease.ending or "") for lease in leases]


def busy(lease: Lease, asking: Owner, now: float) -> DeviceBusy:
    """What `asking` is told of a device that somebody else holds."""
    holder, wait_s = lease.owner, lease.free_in(now)
    if holder.kind == CLOUD:
        return DeviceBusy(f"device {lease.device} is busy (held by cloud assignment)", holder.label, wait_s)
    way_out = "wait, or end that session"
    if holder.principal and holder.principal == asking.principal:
        way_out = 'it is another session of your own token: end it, or set hold_scope = "token" in [host]'
    return DeviceBusy(
        f"device {lease.device} is busy (held by MCP session {holder.prefix}; free in {wait_s} s if idle; {way_out})",
        holder.label,
        wait_s,
    )
