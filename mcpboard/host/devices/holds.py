"""The lease book on the clock: a hold that is due ends by itself, and whoever asked first has the device next.

Not locked: who owns it owns the lock. Only the waiting itself, for `Waiter.answered`, is done without it.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from mcpboard.errors import NOT_SENT, ToolFailed
from mcpboard.host.devices.leases import Ended, Held, Lease, LeaseBook, Owner, busy

log = logging.getLogger(__name__)

MOST_WAITERS = 16  # for one device; each is a thread


@dataclass(eq=False)
class LeaseWaiter:
    """One who waits for a device: `answered` when that is over, `granted` when it has the device."""

    device: str
    owner: Owner
    answered: threading.Event = field(default_factory=threading.Event)
    granted: bool = False

    def answer(self, granted: bool) -> None:
        """End the waiting."""
        self.granted = granted
        self.answered.set()


class DeviceLeases:
    """Who holds each device now, how its last hold ended, and who waits for it.

    `enter`, `line_up`, `on` and `all` first end what has been idle for too long. `tell` is called
    whenever a hold begins or ends; under the owner's lock, so it must not wait.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self.tell: Callable[[], None] = lambda: None
        self._clock = clock
        self._book = LeaseBook()
        self._newest = 0  # number of the hold that began last
        self._endings: dict[str, Ended] = {}
        self._waiters: list[LeaseWaiter] = []  # of all devices, in the order of asking

    # --- a call ----------------------------------------------------------------------------------

    def enter(self, device: str, owner: Owner) -> int:
        """Begin a call of `owner` and give the number of its hold, taken or kept.

        Raises DeviceBusy, and ToolFailed while the owner's last hold is being ended.
        """
        self.expire()
        try:
            return self._take(device, owner)
        except Held as held:
            raise self._refusal(held.lease, owner) from None

    def leave(self, device: str, number: int) -> None:
        """End a call; the last one of a hold that is ending ends it."""
        self._note(self._book.leave(device, number, self._clock()))

    def why_not(self, device: str, number: int) -> str | None:
        """Why the hold of that number may not be used any more; None while it may."""
        return self._book.why_not(device, number)

    def inside(self) -> set[str]:
        """The devices that have a call under way."""
        return {lease.device for lease in self._book.all() if lease.calls}

    def _take(self, device: str, owner: Owner) -> int:
        number = self._book.enter(device, owner, self._clock())
        if number > self._newest:
            self._newest = number
            self.tell()
        return number

    def _refusal(self, lease: Lease, owner: Owner) -> ToolFailed:
        if lease.owner == owner:
            words = f"your hold on {lease.device} is being ended ({lease.ending}): call again in a moment"
            return ToolFailed(words, delivery=NOT_SENT)
        return busy(lease, owner, self._clock())

    # --- who has it, and who had it --------------------------------------------------------------

    def on(self, device: str) -> Lease | None:
        """The hold on that device."""
        self.expire()
        return self._book.on(device)

    def all(self) -> list[Lease]:
        """Every hold."""
        self.expire()
        return self._book.all()

    def last_ended(self, device: str) -> Ended | None:
        """How the last hold on the device came to its end."""
        return self._endings.get(device)

    # --- waiting for it --------------------------------------------------------------------------

    def line_up(self, device: str, owner: Owner) -> LeaseWaiter:
        """A place in the line, answered at once where the device is to be had; ToolFailed at MOST_WAITERS."""
        self.expire()
        waiter = LeaseWaiter(device, owner)
        if self._grant(device, owner):
            waiter.answer(True)
        elif len(self._line(device)) >= MOST_WAITERS:
            raise ToolFailed(f"too many wait for {device}: try again later", delivery=NOT_SENT)
        else:
            self._waiters.append(waiter)
        return waiter

    def give_up(self, waiter: LeaseWaiter) -> None:
        """Leave the line, where that has not been answered."""
        if waiter in self._waiters:
            self._waiters.remove(waiter)

    def _line(self, device: str) -> list[LeaseWaiter]:
        return [each for each in self._waiters if each.device == device]

    def _grant(self, device: str, owner: Owner) -> bool:
        """Give it to `owner`, whose idle time runs from now; False while somebody has it."""
        try:
            number = self._take(device, owner)
        except Held:
            return False
        self.leave(device, number)
        return True

    def _answer(self, waiters: Iterable[LeaseWaiter], granted: bool) -> None:
        for waiter in waiters:
            self._waiters.remove(waiter)
            waiter.answer(granted)

    # --- the end of holds ------------------------------------------------------------------------

    def end(self, device: str, why: str) -> None:
        """End the hold on a device, whoever has it: at once, or with the last call inside."""
        self._note(self._book.end(device, why))

    def end_owner(self, owner: Owner, why: str) -> None:
        """End every hold of `owner`."""
        self._note(self._book.end_owner(owner, why))

    def expire(self) -> None:
        """End what has been idle for too long, and hand it to who waits."""
        self._note(self._book.expire(self._clock()))

    def withdraw(self, device: str, why: str) -> None:
        """End the hold on a device that goes; nobody gets it, and who waits for it is sent away."""
        self._answer(self._line(device), granted=False)
        self.end(device, why)

    def close(self, why: str) -> None:
        """End every hold, send everybody away who waits, and tell nobody of it."""
        self._answer(list(self._waiters), granted=False)
        for lease in self._book.all():
            self._book.end(lease.device, why)

    def _note(self, ended: Iterable[Ended]) -> None:
        """Remember why each hold ended, and give the device to the first who waits for it."""
        for end in ended:
            log.info("%s: the hold of %s ended: %s", end.device, end.owner.label, end.why)
            self._endings[end.device] = end
            self.tell()
            self._hand_over(end.device)

    def _hand_over(self, device: str) -> None:
        """The first waiter gets it, and with it every other call of the same owner that waits."""
        line = self._line(device)
        if line and self._grant(device, line[0].owner):
            self._answer([each for each in line if each.owner == line[0].owner], granted=True)
