"""One connection of the server, with the limits that waitress leaves to others, on the monotonic clock."""

# waitress counts idle time by the wall clock, which jumps by decades when a board first learns the
# time, and never ends a connection that sends or reads one byte now and then. Enough of those
# would fill the connection limit or hold a thread for ever. `docs/hostile-traffic.md` says who is ended when.

from __future__ import annotations

import contextlib
import math
import socket
import struct
import sys
import time
from collections.abc import Iterable
from typing import Any

from waitress.channel import HTTPChannel
from waitress.parser import HTTPRequestParser, ParsingError
from waitress.task import ErrorTask, WSGITask

from mcpboard.protocol.access import MCP_PATHS
from mcpboard.protocol.limits import LARGE_BODY
from mcpboard.serving.receipt import Receipt, unacknowledged

CONNECTION = "mcpboard.connection"  # in the environ: the Channel, for receipts and to break a reply off
REPLY_LIMIT = "mcpboard.reply_seconds"  # set in the environ by an application that streams for longer

IDLE_SECONDS = 30.0  # between two requests; clients reconnect without a word
REPLY_SECONDS = 120.0  # for one whole reply: 4 MiB at 36 KiB/s
STREAM_SECONDS = 600.0  # for one that is streamed, as a support bundle is

# State of a connection -> seconds that it may go on in it without getting anywhere.
WORKING, IDLE, RECEIVING = "working", "idle", "unfinished request"
STALLED, HALF_CLOSED, SLOW = "stalled reader", "said goodbye", "reply not read in time"
LIMITS = {
    WORKING: math.inf,  # the role sees to its own deadlines
    IDLE: IDLE_SECONDS,
    RECEIVING: 30.0,  # from the first to the last byte of one request, 336 KiB at the most
    STALLED: 30.0,  # in which a reader has to take PROGRESS_BYTES, or all that is waiting
    HALF_CLOSED: 5.0,  # in which a client has to close its side, once we have closed ours
}
PROGRESS_BYTES = 64 * 1024  # 2 KiB/s: slower than any link that shows a phone's screen

# Seconds without any request before a connection may be ended for a newcomer. Less, and connections that
# come back at once would end each other before a client on a slow link has sent its request.
SETTLED_SECONDS = 0.1
# New connections in a second, however few there may be at once: the 128 of a full queue are accepted in two seconds.
NEWCOMERS = 64
# A client that does not read its reply may lose its connection to a newcomer after so many times SETTLED_SECONDS,
# a second, without PROGRESS_BYTES, and only when no other connection may be ended.
UNREAD_TIMES = 10

# Bytes for each connection that there may be, of requests that are not whole: 4 MiB on a board.
BODY_SHARE = 160 * 1024

_STRANGERS = ("401", "403")  # how the status lines of their refusals begin

_RESET = struct.pack("hh" if sys.platform == "win32" else "ii", 1, 0)  # a linger of C, of no seconds


class Parser(HTTPRequestParser):  # type: ignore[misc]
    """A request as it arrives; a head that the parent stumbles over is a bad request like any other."""

    path = ""  # the parent's log lines name it even where no path could be read

    def parse_header(self, header_plus: bytes) -> None:
        """As the parent does; raises ParsingError, and nothing else, for a head that makes no sense.

        Where a body ends must not be in doubt (RFC 9112, 6.1): what one side takes for its rest, the other
        would take for the next request.
        """
        try:
            super().parse_header(header_plus)
        except ValueError as error:  # half an IPv6 address in the URL, a length of thousands of digits
            raise ParsingError("the request line or Content-Length cannot be read") from error
        # The parent has taken the header out where it counts: only in HTTP/1.1.
        if "TRANSFER_ENCODING" in self.headers:
            raise ParsingError("Transfer-Encoding needs HTTP/1.1")
        if self.chunked and "CONTENT_LENGTH" in self.headers:
            self.headers["CONNECTION"] = "close"


class Task(WSGITask):  # type: ignore[misc]
    """A request under way, whose application knows the connection."""

    def get_environment(self) -> dict[str, Any]:
        """As the parent does, and with CONNECTION."""
        environ: dict[str, Any] = super().get_environment()
        environ[CONNECTION] = self.channel
        return environ

    def build_response_header(self) -> bytes:
        """As the parent does, when the reply begins.

        Only a client of MCP keeps its connection, and while others wait for one not even that: browsers
        open six for each name of a server, and keep them as long as they may.
        """
        environ, channel = self.environ, self.channel
        channel.reply_until = time.monotonic() + environ.get(REPLY_LIMIT, REPLY_SECONDS)
        is_mcp = environ["PATH_INFO"] in MCP_PATHS and environ["REQUEST_METHOD"] == "POST"
        if not is_mcp or channel.server.crowded or self.status.startswith(_STRANGERS):
            self.request.headers["CONNECTION"] = "close"
        header: bytes = super().build_response_header()
        return header


class RefusalTask(ErrorTask):  # type: ignore[misc]
    """The answer to a request that is none; it ends the connection, whatever the request asked for."""

    def build_response_header(self) -> bytes:
        """As the parent does, without promising to HTTP/1.0 that the connection is kept."""
        self.request.headers["CONNECTION"] = "close"
        header: bytes = super().build_response_header()
        return header


class Channel(HTTPChannel):  # type: ignore[misc]
    """An HTTPChannel that takes one request at a time, and knows how long its client has kept us waiting.

    What a client sends ahead waits unread until the reply before it has left. A worker may wait
    for the reader of a tool reply, which holds a slot, but never for one that holds none: else a
    few clients that pipeline and do not read would take the threads of `ping`.
    """

    request: Parser | None
    close_when_flushed: bool
    task_class = Task
    error_task_class = RefusalTask
    grew_at = 0.0  # on the monotonic clock: when the request under way became a large one, 0 until then
    reply_until = math.inf  # on the monotonic clock: when the reply under way must be with its reader
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
                try:
                    self.received(b"")
                except Exception:  # for lack of memory, for one; raised from here it would end the loop
                    self.handle_error()  # ends this connection, as it does for what arrives
            if len(self._pending_input) >= self.adj.recv_bytes:
                return False
        # Reading on may have shown that the client has left.
        return self.connected and HTTPChannel.readable(self)  # type: ignore[no-any-return]

    def received(self, data: bytes) -> bool:
        """Take `data` in, up to the end of one request; False when the connection is ending anyway."""
        with self.requests_lock:
            if self.will_close or self.close_when_flushed or self._half_closed:
                return False
            self._pending_input += data
            while not (self.requests or self.total_outbufs_len):
                if self.request is None:
                    # Blank lines between requests (RFC 9112, 2.2) are none: they set no clock back.
                    self._pending_input = self._pending_input.lstrip()
                if not self._pending_input:
                    break
                if self.request is None:
                    self.request = Parser(self.adj)
                request = self.request
                self._pending_input = self._pending_input[request.received(self._pending_input) :]
                if request.completed:
                    self.request = None
                    self._enter(IDLE, time.monotonic())
                    self.reply_until, self.grew_at = math.inf, 0.0
                    self.requests.append(request)
                    self.server.add_task(self)
                elif request.expect_continue and request.headers_finished:
                    self.send_continue()
                elif request.body_bytes_received > LARGE_BODY:
                    self.grew_at = self.grew_at or time.monotonic()
                    self._bound_bodies()
        return True

    def _bound_bodies(self) -> None:
        """Break off the oldest large request that is not whole where all of them together hold too much."""
        asking = [each for each in self.server.active_channels.values() if each.grew_at]
        held = sum(each.request.body_bytes_received for each in asking)
        if held > self.adj.connection_limit * BODY_SHARE:
            min(asking, key=lambda each: each.grew_at).break_off()

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
            return Receipt(self.acknowledged, self._taken + self.total_outbufs_len)

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

    def cut_off(self) -> None:
        """End the connection now; only the loop's own thread may call this.

        Where the reply is not whole, a reset says so, and the kernel keeps none of it for a reader
        who may never come.
        """
        if self.total_outbufs_len:
            with contextlib.suppress(OSError):
                self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
        self.handle_close()

    def break_off(self) -> None:
        """Read no other request, and have the loop end the connection in the middle of its reply; from any thread."""
        self.will_close = True
        self.server.broken_off.append(self)
        self.server.restless.add(self.server)
        self.server.pull_trigger()

    # --- how long it takes ---

    def overdue(self, now: float) -> str | None:
        """Return why this connection has to end, None while it need not."""
        state = self._look(now)
        if now > self.reply_until and self.has_unsent_reply:
            return SLOW
        return state if now - self._since > LIMITS[state] else None

    def dispensable(self, now: float, settled: float) -> tuple[int, float] | None:
        """Return how well the server can do without this connection, the larger the better; None if not at all.

        First those that have nothing to get any more, then those without a request, then requests that
        are not whole, and last the replies that are not read; of each kind the oldest. `settled` is the least age.
        """
        state, age = self._look(now), now - self._since
        if state == HALF_CLOSED and unacknowledged(self.socket) <= 1:  # our end counts as a byte
            return 4, age
        if state == IDLE:
            return (3, age) if age >= settled and not self._has_sent() else None
        if state == RECEIVING:
            return (2, age) if age >= settled else None
        if state in (STALLED, HALF_CLOSED):
            return (1, age) if age >= UNREAD_TIMES * settled else None
        return None

    def _has_sent(self) -> bool:
        """Tell if bytes of the client wait to be read: its next request, when it was thought to be idle."""
        try:
            return bool(self._pending_input or self.socket.recv(1, socket.MSG_PEEK))
        except OSError:  # nothing is there, or nobody any more
            return False

    def _look(self, now: float) -> str:
        """Return the state, entered now if it is a new one."""
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
        return state

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
            channel.cut_off()  # type: ignore[attr-defined]
            reasons.append(reason)
    return reasons


def most_dispensable(dispatchers: Iterable[object], now: float) -> Channel | None:
    """Return the connection to end for a newcomer; None while each is young, at work or owed a reply.

    Only the loop's own thread may call this.
    """
    channels = [each for each in dispatchers if isinstance(each, Channel)]
    settled = min(SETTLED_SECONDS, len(channels) / NEWCOMERS)
    ranked = [(rank, each) for each in channels if (rank := each.dispensable(now, settled))]
    return max(ranked, key=lambda pair: pair[0])[1] if ranked else None
