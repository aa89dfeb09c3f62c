"""One connection of the server, with the limits that waitress leaves to others, on the monotonic clock.

waitress counts idle time by the wall clock, which jumps by decades when a board first learns the
time, and never ends a connection that sends or reads one byte now and then. Enough of those
would fill the connection limit or hold a thread for ever.
"""

from __future__ import annotations

import math
import socket
import time
from collections.abc import Iterable
from typing import Any

from waitress.channel import HTTPChannel
from waitress.parser import HTTPRequestParser, ParsingError
from waitress.task import WSGITask

from mcpboard.serving.receipt import RECEIPT, Receipt, unacknowledged

IDLE_SECONDS = 30.0  # between two requests; clients reconnect without a word

# State of a connection -> seconds that it may go on in it without getting anywhere.
WORKING, IDLE, RECEIVING, STALLED, HALF_CLOSED = (
    "working",
    "idle",
    "unfinished request",
    "stalled reader",
    "said goodbye",
)
LIMITS = {
    WORKING: math.inf,  # the role sees to its own deadlines
    IDLE: IDLE_SECONDS,
    RECEIVING: 30.0,  # from the first to the last byte of one request, 336 KiB at the most
    STALLED: 30.0,  # in which a reader has to take PROGRESS_BYTES, or all that is waiting
    HALF_CLOSED: 5.0,  # in which a client has to close its side, once we have closed ours
}
PROGRESS_BYTES = 64 * 1024  # 2 KiB/s: slower than any link that shows a phone's screen


class Parser(HTTPRequestParser):  # type: ignore[misc]
    """A request as it arrives; a head that the parent stumbles over is a bad request like any other."""

    path = ""  # the parent's log lines name it even where no path could be read

    def parse_header(self, header_plus: bytes) -> None:
        """As the parent does; raises ParsingError, and nothing else, for a head that makes no sense."""
        try:
            super().parse_header(header_plus)
        except ValueError as error:  # half an IPv6 address in the URL, a length of thousands of digits
            raise ParsingError("the request line or Content-Length cannot be read") from error


class Task(WSGITask):  # type: ignore[misc]
    """A request under way, whose application can ask for a receipt for what it has answered."""

    def get_environment(self) -> dict[str, Any]:
        """As the parent does, and with RECEIPT."""
        environ: dict[str, Any] = super().get_environment()
        environ[RECEIPT] = self.channel.receipt
        return environ


class Channel(HTTPChannel):  # type: ignore[misc]
    """An HTTPChannel that takes one request at a time, and knows how long its client has kept us waiting.

    What a client sends ahead waits unread until the reply before it has left. A worker may wait
    for the reader of a tool reply, which holds a slot, but never for one that holds none: else a
    few clients that pipeline and do not read would take the threads of `ping`.
    """

    request: Parser | None
    close_when_flushed: bool
    task_class = Task
    _acknowledged: int | None = None  # as `acknowledged`, once the connection is closed
    _half_closed = False  # our side is closed, the client's not yet

    def __init__(self, *args: object, **kwargs: object) -> None:
        self._pending_input = b""  # sent while the request before it is not answered
        self._taken = 0  # bytes that the reader's socket took
        self._enter(IDLE, time.monotonic())
        super().__init__(*args, **kwargs)

    # --- what the client sends ---

    def readable(self) -> bool:
        """Tell if the loop should look for more; that is also how it learns that the client has left."""
        if self._half_closed:
            return True
        if self._pending_input:
            if not self.has_unsent_reply:
                self.received(b"")
            if len(self._pending_input) >= self.adj.recv_bytes:
                return False
        return self.connected and bool(super().readable())  # to go on may have shown that nobody is there

    def received(self, data: bytes) -> bool:
        """Take `data` in, up to the end of one request; False when the connection is ending anyway."""
        with self.requests_lock:
            if self.will_close or self.close_when_flushed or self._half_closed:
                return False
            self._pending_input += data
            while self._pending_input and not self.has_unsent_reply:
                if self.request is None:
                    self.request = Parser(self.adj)
                request = self.request
                self._pending_input = self._pending_input[request.received(self._pending_input) :]
                if request.completed:
                    self.request = None
                    self._enter(IDLE, time.monotonic())
                    if not request.empty:
                        self.requests.append(request)
                        self.server.add_task(self)
                elif request.expect_continue and request.headers_finished:
                    self.send_continue()
        return True

    # --- what the client takes ---

    def send(self, data: bytes, do_close: bool = True) -> int:
        """As the parent does; counts what the reader's socket took, and raises nothing.

        Some of it is sent by `readable`, and what that raises would end the loop.
        """
        try:
            taken = int(super().send(data, do_close=do_close))
        except OSError:  # a cable pulled out, and not a connection that was reset
            self.will_close, taken = True, 0
        self._taken += taken
        return taken

    @property
    def has_unsent_reply(self) -> bool:
        """True while a request waits for its reply or bytes wait for the reader."""
        return bool(self.requests or self.total_outbufs_len)

    def handle_write(self) -> None:
        """As the parent does, but where it would close at once after the last reply, close only our side first.

        To close while the client still sends would make the kernel throw the reply away, and
        nobody could tell any more whether it has arrived. The lock is taken even when no worker is
        writing: another may be asking about an earlier reply.
        """
        self._flush_exception(self._flush_some_if_lockable)
        if self.will_close:
            self.handle_close()
        elif self.connected and self.close_when_flushed and not self.total_outbufs_len:
            self.close_when_flushed = False
            try:
                with self.outbuf_lock:
                    self.socket.shutdown(socket.SHUT_WR)
                    self._half_closed = True
            except OSError:  # it has left before us
                self.handle_close()

    # --- if it arrives ---

    def receipt(self) -> Receipt:
        """Return a receipt for all that has been answered so far."""
        with self.outbuf_lock:
            return Receipt(self, self._taken + self.total_outbufs_len)

    def acknowledged(self) -> int:
        """Return the bytes of our replies that the client's system holds; of a closed connection, that it held then."""
        with self.outbuf_lock:
            if self._acknowledged is not None:
                return self._acknowledged
            end = int(self._half_closed)  # which the kernel counts as a byte more
            return self._taken - max(0, unacknowledged(self.socket) - end)

    def handle_close(self) -> None:
        """As the parent does; what has not arrived by now never will.

        Whoever holds a receipt holds the channel, and need not hold what was sent to it.
        """
        with self.outbuf_lock:
            self._acknowledged = self.acknowledged()
        super().handle_close()
        self._pending_input = b""
        if self.request is not None:
            self.request.close()

    # --- how long it takes ---

    def overdue(self, now: float) -> str | None:
        """Return why this connection has to end, None while it need not."""
        if self._half_closed:
            state = HALF_CLOSED
        elif self.total_outbufs_len:
            state = STALLED
        elif self.requests:
            state = WORKING
        else:
            state = IDLE if self.request is None else RECEIVING
        if state != self._state or state == WORKING or self._taken - self._mark >= PROGRESS_BYTES:
            self._enter(state, now)
        return state if now - self._since > LIMITS[state] else None

    def _enter(self, state: str, now: float) -> None:
        self._state, self._since, self._mark = state, now, self._taken


def sweep(dispatchers: Iterable[object], now: float) -> list[str]:
    """End every overdue connection; return why, a few words each.

    The thread that writes to it wakes with an error and releases its lane and concurrency slot.
    Only the loop's own thread may call this.
    """
    reasons = []
    for channel in list(dispatchers):
        reason = channel.overdue(now) if isinstance(channel, Channel) else None
        if reason:
            channel.handle_close()  # type: ignore[attr-defined]
            reasons.append(reason)
    return reasons
