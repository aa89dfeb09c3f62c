"""A TCP proxy that passes bytes on faithfully, but for one connection at a time, to which a plan of ours happens.

A plan strikes when so many bytes of the request or of the reply have been passed on: it cuts (RST, FIN, half-close,
a stall), writes something else, or calls a function that kills a process. What one side does to its connection, the
proxy does to the other: a FIN is a FIN there, a reset a reset.
"""

from __future__ import annotations

import contextlib
import enum
import re
import select
import socket
import struct
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

PIECE = 1 << 16  # bytes read at once
WINDOW = 8192  # bytes that the kernel acknowledges to a server before we have passed them on
HEAD_LIMIT = 1 << 16
LIMIT_S = 60.0  # for one connection
STALL_S = 0.1  # without a byte, both connections open
_LENGTH = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)
_LINGER = struct.pack("ii", 1, 0)  # so that close() resets
EARLY_HINTS = b"HTTP/1.1 103 Early Hints\r\nLink: </style.css>; rel=preload\r\n\r\n"


class Way(enum.Enum):
    """A direction."""

    REQUEST = "request"
    REPLY = "reply"


@dataclass(eq=False)
class Plan:
    """Something that happens to the first connection whose request's head holds `wanted`.

    `share` is how much of the whole has been passed on then, 0 to 1; with `head` of the first 400 bytes instead.
    `strike` gets the connection and returns True when that is its end.
    """

    wanted: bytes
    way: Way
    share: float
    strike: Callable[[Connection], bool]
    head: bool = False
    struck: threading.Event = field(default_factory=threading.Event)

    def offset(self, total: int) -> int:
        return round(self.share * (min(total, 400) if self.head else total))


class Cutter:
    """Listens on one port for good; `aim` says where it leads to, and while that is None it refuses connections."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._reserved = _bound(0)  # never listens: keeps the port while nobody does
        self.port: int = self._reserved.getsockname()[1]
        self._listener: socket.socket | None = None
        self._threads: list[threading.Thread] = []
        self._plan: Plan | None = None
        self._target: int | None = None
        self.latest: Connection | None = None  # that called a tool

    def aim(self, target: int | None) -> None:
        """Lead to that port from now on; None refuses, as the port of a program that is gone does."""
        with self._lock:
            self._target = target
            if target is None and self._listener is not None:
                self._listener.shutdown(socket.SHUT_RDWR)  # wakes the thread in accept()
                self._listener.close()
                self._listener = None
            elif target is not None and self._listener is None:
                self._listener = _bound(self.port)
                self._listener.listen(64)
                threading.Thread(target=self._accept, args=(self._listener,), name="cutter", daemon=True).start()

    def arm(self, plan: Plan | None) -> None:
        """Have the plan happen to the next connection that it fits; None takes one back."""
        self._plan = plan

    def plan_for(self, connection: Connection) -> Plan | None:
        """The plan for a connection whose request's head is known."""
        head = bytes(connection.halves[Way.REQUEST].held).lower()
        with self._lock:
            if b"tools/call" in head or b"/api/tools/" in head:
                self.latest = connection
            plan = self._plan
            if plan is None or plan.wanted.lower() not in head:
                return None
            self._plan = None
            return plan

    def close(self) -> None:
        """Refuse, and wait for what is open."""
        self.aim(None)
        self._reserved.close()
        for thread in self._threads:
            thread.join(LIMIT_S)

    def _accept(self, listener: socket.socket) -> None:
        with contextlib.suppress(OSError):  # closed
            while True:
                near, _ = listener.accept()
                thread = threading.Thread(target=self._serve, args=(near,), name="cutter connection", daemon=True)
                self._threads = [each for each in self._threads if each.is_alive()] + [thread]
                thread.start()

    def _serve(self, near: socket.socket) -> None:
        far = socket.socket()
        far.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, WINDOW)  # before connecting, when the window is agreed on
        connection = Connection(self, near, far)
        try:
            if self._target is None:
                raise ConnectionRefusedError
            far.connect(("127.0.0.1", self._target))
            connection.run()
        except OSError:  # one side was reset: so is the other
            connection.reset()
        finally:
            connection.close()


def _bound(port: int) -> socket.socket:
    sock = socket.socket()
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    sock.bind(("127.0.0.1", port))
    return sock


class Half:
    """One direction: bytes read and not yet passed on, and how many there were of each."""

    def __init__(self, source: socket.socket, sink: socket.socket) -> None:
        self.source, self.sink = source, sink
        self.held = bytearray()
        self.read = self.passed = 0
        self.total: int | None = None  # bytes, head included, once the head is here
        self.ended = self.shut = False  # the source said FIN; so did we to the sink

    def take(self, most: int) -> None:
        """Read once; raises ConnectionError where the source was reset."""
        piece = self.source.recv(most)
        self.ended = not piece
        self.read += len(piece)
        self.held += piece
        if self.total is None:
            head, separator, _ = bytes(self.held).partition(b"\r\n\r\n")
            if separator:
                length = _LENGTH.search(head + b"\r\n")
                self.total = len(head) + len(separator) + (int(length[1]) if length else 0)

    def give(self, most: int) -> None:
        """Pass on at most so many bytes."""
        piece = bytes(self.held[:most])
        self.sink.sendall(piece)
        del self.held[: len(piece)]
        self.passed += len(piece)


class Connection:
    """One connection through the proxy: `near` is who called, `far` the server behind."""

    def __init__(self, cutter: Cutter, near: socket.socket, far: socket.socket) -> None:
        self.cutter, self.near, self.far = cutter, near, far
        for sock in (near, far):
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            sock.settimeout(LIMIT_S)
        self.halves = {Way.REQUEST: Half(near, far), Way.REPLY: Half(far, near)}
        self.plan: Plan | None = None
        self._known = False  # its plan has been asked for
        self._left = False  # its caller is to be gone
        self.asked = False  # the server was sent the whole request
        self.acknowledged = False  # its kernel may know that we have the whole reply
        self.over = threading.Event()

    def run(self) -> None:
        """Pass on until both sides have ended or the plan ends it."""
        end = time.monotonic() + LIMIT_S
        while not all(half.shut for half in self.halves.values()) and time.monotonic() < end:
            hungry = [half for half in self.halves.values() if not half.ended and len(half.held) <= HEAD_LIMIT]
            sources = {half.source: half for half in hungry}
            readable, _, _ = select.select(list(sources), [], [], 0.5)
            if self._left:
                self.reset()
                return
            for sock in readable:
                sources[sock].take(PIECE if sock is self.near else WINDOW)
            if any(self._pass_on(way, half) for way, half in self.halves.items()):
                return

    def _pass_on(self, way: Way, half: Half) -> bool:
        """Pass on what may be; True when the plan has ended the connection."""
        if half.total is None and not half.ended:  # where a plan strikes depends on the length
            return False
        if way is Way.REQUEST and not self._known and half.total is not None:
            self._known = True
            self.plan = self.cutter.plan_for(self)
        plan = self.plan
        if plan is not None and plan.way is way and not plan.struck.is_set() and half.total is not None:
            offset = plan.offset(half.total)
            half.give(max(0, offset - half.passed))
            if half.passed < offset:
                return False
            plan.struck.set()
            if plan.strike(self):
                return True
        half.give(len(half.held))
        if half.ended and not half.shut:
            half.shut = True
            with contextlib.suppress(OSError):  # it has left by itself
                half.sink.shutdown(socket.SHUT_WR)
        return False

    def leave(self) -> None:
        """Reset it from another thread, as a caller that gives up."""
        self._left = True
        with contextlib.suppress(OSError):
            self.near.shutdown(socket.SHUT_RD)  # wakes the thread

    # --- strikes ---

    def reset(self) -> bool:
        for sock in (self.near, self.far):
            with contextlib.suppress(OSError):
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _LINGER)
        return True

    def half_close(self, way: Way) -> bool:
        """FIN to whom the bytes of that direction go; the other direction goes on for a moment, then both end."""
        half = self.halves[way]
        half.sink.shutdown(socket.SHUT_WR)
        other = self.halves[Way.REPLY if way is Way.REQUEST else Way.REQUEST]
        end = time.monotonic() + 2 * STALL_S
        while not other.ended and (left := end - time.monotonic()) > 0:
            if select.select([other.source], [], [], left)[0]:
                other.take(WINDOW)
                other.give(len(other.held))
        return True

    def stall(self, then: Callable[[Connection], bool] | None) -> bool:
        """Nothing for a while; then that, or go on as if nothing had been."""
        time.sleep(STALL_S)
        return then is not None and then(self)

    def interim(self, then: Callable[[Connection], bool] | None, count: int) -> bool:
        """So many interim answers before the real one; then that, or go on."""
        self.near.sendall(EARLY_HINTS * count)
        return then is not None and then(self)

    def replace(self, answer: bytes) -> bool:
        """Another answer than the server's, which is read to its end."""
        half = self.halves[Way.REPLY]
        while not half.ended:
            half.take(WINDOW)
            half.held.clear()
        self.near.sendall(answer)
        return True

    def close(self) -> None:
        """Close both; note how far request and reply got."""
        asked, half = self.halves[Way.REQUEST], self.halves[Way.REPLY]
        self.far.setblocking(False)
        with contextlib.suppress(OSError):
            if half.total is None:
                half.take(WINDOW)
        # Until the close the kernel goes on taking, and acknowledging, what there is room for: twice what we asked for.
        self.acknowledged = half.total is not None and half.read + 2 * WINDOW >= half.total
        self.near.close()
        self.far.close()
        self.asked = asked.total is not None and asked.passed >= asked.total
        self.over.set()
