"""One connection of the server, with the limits that waitress leaves to others, on the monotonic clock.

waitress counts idle time by the wall clock, which jumps by decades when a board first learns the
time, and never ends a connection that sends or reads one byte now and then. Enough of those
would fill the connection limit or hold a thread for ever.
"""

from __future__ import annotations

import time
from collections.abc import Iterable

from waitress.channel import HTTPChannel

IDLE_SECONDS = 30.0  # between two requests; clients reconnect without a word
REQUEST_SECONDS = 30.0  # from the first to the last byte of one request, 400 KiB at the most
STALL_SECONDS = 30.0  # time in which a reader has to take PROGRESS_BYTES, or all that is waiting
PROGRESS_BYTES = 64 * 1024  # 2 KiB/s: slower than any link that shows a phone's screen


class Channel(HTTPChannel):  # type: ignore[misc]
    """An HTTPChannel that knows by the monotonic clock how long it has kept us waiting."""

    def __init__(self, *args: object, **kwargs: object) -> None:
        now = time.monotonic()
        self._quiet_since = now  # nothing asked, nothing owed
        self._asking_since: float | None = None  # a request has begun to arrive
        self._marked_at = now  # when the reader last made progress
        self._taken = 0  # bytes that the reader's socket took
        self._mark = 0  # `_taken` at that time
        super().__init__(*args, **kwargs)

    def received(self, data: bytes) -> bool:
        """As the parent does; remembers when the unfinished request began."""
        answer = bool(super().received(data))
        if self.request is None:
            self._asking_since = None
        elif self._asking_since is None:
            self._asking_since = time.monotonic()
        return answer

    def send(self, data: bytes, do_close: bool = True) -> int:
        """As the parent does; counts what the reader's socket took."""
        taken = int(super().send(data, do_close=do_close))
        self._taken += taken
        return taken

    @property
    def owes(self) -> bool:
        """True while a request waits for its answer or bytes wait for the reader."""
        return bool(self.requests or self.total_outbufs_len)

    def overdue(self, now: float) -> str | None:
        """Why this connection has to end, None while it need not."""
        if self.total_outbufs_len:
            return self._stalled(now)
        self._mark, self._marked_at = self._taken, now
        if self.requests:
            self._quiet_since = now
            return None
        if self._asking_since is not None:
            self._quiet_since = now
            return "unfinished request" if now - self._asking_since > REQUEST_SECONDS else None
        return "idle" if now - self._quiet_since > IDLE_SECONDS else None

    def _stalled(self, now: float) -> str | None:
        self._quiet_since = now
        if self._taken - self._mark >= PROGRESS_BYTES:
            self._mark, self._marked_at = self._taken, now
        return "stalled reader" if now - self._marked_at > STALL_SECONDS else None


def sweep(dispatchers: Iterable[object], now: float) -> list[str]:
    """End every overdue connection; returns why, one word each.

    The thread that writes to it wakes with an error and gives its lane and turn back. Only the
    loop's own thread may call this.
    """
    reasons = []
    for channel in list(dispatchers):
        reason = channel.overdue(now) if isinstance(channel, Channel) else None
        if reason:
            channel.handle_close()  # type: ignore[attr-defined]
            reasons.append(reason)
    return reasons
