"""Hostile clients of one server, all on one thread, and the honest one whose waiting is measured.

Every kind comes back when the server ends its connection: at once, or after a pause of its own.
"""

from __future__ import annotations

import contextlib
import itertools
import math
import re
import select
import socket
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass

from tests.support import http
from tests.support.http import HOST, Connection, request

TICK_S = 0.02  # how late a hog reads, sends or comes back
ANSWER_S = 5.0  # the most that an honest client may wait, whatever goes on
BODY = 320 * 1024  # bytes announced by a request that never ends
_GONE = getattr(select, "POLLRDHUP", 0) | select.POLLHUP | select.POLLERR
_BUSY = re.compile(rb"under way already|was not started")


@dataclass(frozen=True)
class Hog:
    """One kind of connection, as it behaves."""

    opening: bytes = b""  # sent once it is connected
    again: bytes = b""  # sent every `every_s`
    every_s: float = math.inf
    takes: int = 0  # bytes read in a second; with 0 it never reads
    receive_buffer: int | None = None
    back_s: float = 0.0  # until it connects again
    others: tuple[bytes, ...] = ()  # what the next connections send instead, in turn
    leaves: bool = False  # with the first bytes of an answer


def message(method: str, token: str | None = None, **params: object) -> bytes:
    """A JSON-RPC request as HTTP."""
    headers = () if token is None else (f"Authorization: Bearer {token}",)
    return request(http.message(method, **params), *headers)


def call(tool: str, token: str | None = None, **arguments: object) -> bytes:
    """A tool call."""
    return message("tools/call", token, name=tool, arguments=arguments)


PING = message("ping")
IDLE = Hog()
UNFINISHED = Hog(opening=request(b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"x":"'.ljust(BODY, b"["))[:-100])
# An iframe of a foreign page, as a browser asks for it.
FRAME = Hog(
    opening=request(
        b"", "Connection: keep-alive", "User-Agent: Mozilla/5.0", "Accept: text/html,*/*;q=0.8",
        "Sec-Fetch-Dest: iframe", "Sec-Fetch-Site: cross-site", method="GET", path="/health",
    ),
    takes=1 << 20,
    back_s=1.0,
)  # fmt: skip
# Asks for one list after the other and reads none.
UNREAD = Hog(opening=message("tools/list") * 2000, receive_buffer=4096)


def blank(every_s: float) -> Hog:
    """Blank lines, which are no requests."""
    return Hog(again=b"\r\n\r\n", every_s=every_s)


def asking(sent: bytes, every_s: float) -> Hog:
    """A request now and then, so that the connection is never idle for long."""
    return Hog(sent, sent, every_s, takes=1 << 20)


def reader(sent: bytes, takes: int = 4500) -> Hog:
    """Asks for a long reply and reads it slowly."""
    return Hog(opening=sent, takes=takes, receive_buffer=4096)


class _Connection:
    def __init__(self, hog: Hog, port: int) -> None:
        self.hog = hog
        self._port = port
        self.sock: socket.socket | None = None
        self.back_at = 0.0
        self._openings = itertools.cycle((hog.opening, *hog.others))

    def connect(self, now: float) -> None:
        self.sock = socket.socket()
        if self.hog.receive_buffer is not None:
            self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, self.hog.receive_buffer)
        self.sock.setblocking(False)
        self.sock.connect_ex((HOST, self._port))
        self._unsent, self.answered = next(self._openings), False
        self._again_at, self._read_at = now + self.hog.every_s, now

    def end(self, now: float) -> None:
        if self.sock is not None:
            self.sock.close()
        self.sock, self.back_at = None, now + self.hog.back_s

    def work(self, now: float) -> None:
        """Send and read what is due; raises OSError when the server has ended the connection."""
        assert self.sock is not None
        if now >= self._again_at:
            self._unsent += self.hog.again
            self._again_at = now + self.hog.every_s
        with contextlib.suppress(BlockingIOError):
            while self._unsent:
                self._unsent = self._unsent[self.sock.send(self._unsent[: 1 << 16]) :]
        due = int((now - self._read_at) * self.hog.takes)
        if due:
            self._read_at = now
            with contextlib.suppress(BlockingIOError):
                if not self.sock.recv(due):
                    raise ConnectionResetError
                self.answered = self.hog.leaves


class Crowd:
    """The hogs of one server."""

    def __init__(self, port: int, hogs: Mapping[Hog, int]) -> None:
        self._connections = [_Connection(hog, port) for hog, count in hogs.items() for _ in range(count)]
        self.ended = 0  # connections that the server has ended so far
        self.answered = 0  # connections that left with an answer
        self._over = threading.Event()
        self._begun = threading.Event()
        self._thread = threading.Thread(target=self._run, name="hogs")

    def __enter__(self) -> Crowd:
        self._thread.start()
        assert self._begun.wait(30), "the hogs did not get to work"
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def wait_for(self, answered: int, seconds: float) -> None:
        """Return once so many connections have left with an answer."""
        over = time.monotonic() + seconds
        while self.answered < answered:
            assert time.monotonic() < over, f"{self.answered} were answered"
            self._over.wait(TICK_S)

    def _run(self) -> None:
        while not self._over.is_set():
            now = time.monotonic()
            for each in self._connections:
                if each.sock is None and now >= each.back_at:
                    each.connect(now)
            self._work()
            self._begun.set()
        for each in self._connections:
            each.end(0)

    def _work(self) -> None:
        poll = select.poll()
        there = {each.sock.fileno(): each for each in self._connections if each.sock is not None}
        for number in there:
            poll.register(number, _GONE)
        gone = {number for number, _ in poll.poll(int(TICK_S * 1000))}
        self._over.wait(TICK_S if gone else 0)  # a crowd must not take the processor from the server
        now = time.monotonic()
        for number, each in there.items():
            try:
                each.work(now)  # what was answered before the end is read all the same
                lost = number in gone or each.answered
            except OSError as error:
                lost = not isinstance(error, BlockingIOError)
            if lost:
                self.answered += each.answered
                self.ended += not each.answered
                each.end(now)


# --- the honest client -----------------------------------------------------------------------


@dataclass
class Waits:
    """The waits and failures of one honest client."""

    worst_s: float = 0.0
    answers: int = 0


def waits(port: int, seconds: float, asked: Mapping[str, bytes]) -> Waits:
    """Ask one after the other for so long; an action that finds its lane or slot taken is asked again, as told."""
    found, over = Waits(), time.monotonic() + seconds
    while time.monotonic() < over:
        for name, sent in asked.items():
            found.worst_s = max(found.worst_s, answered(port, sent, name))
            found.answers += 1
    return found


def answered(port: int, sent: bytes, name: str = "the request") -> float:
    """Seconds until `sent` is answered with what it asks for; AssertionError once ANSWER_S are over."""
    begun, pause = time.monotonic(), threading.Event()
    while True:
        left = begun + ANSWER_S - time.monotonic()
        assert left > 0, f"{name} was not answered within {ANSWER_S:g} s"
        with contextlib.suppress(OSError), Connection(port) as connection:
            connection.sock.settimeout(left)
            connection.send(sent)
            response = connection.response()
            assert response.status == 200, (name, response, response.body[:300])
            if not _BUSY.search(response.body[:2000]):
                return time.monotonic() - begun
        pause.wait(TICK_S)
