"""A client that costs next to nothing: requests written once, answers read by their framing."""

from __future__ import annotations

import json
import re
import socket
import statistics
import threading
import time
from collections.abc import Iterable, Mapping
from types import TracebackType
from typing import Any

VERSION = "2026-07-28"
META = {
    "io.modelcontextprotocol/protocolVersion": VERSION,
    "io.modelcontextprotocol/clientInfo": {"name": "bench", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {},
}
CROWDS = 9  # one crowd may take twice as long as the next: threads fall into step, or do not
LIMIT_S = 60.0  # for one answer; a server under valgrind is fifty times slower
_LENGTH = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)

Buffers = Mapping[str, int]


def post(method: str, token: str | None = None, **params: Any) -> bytes:
    """One modern request with every header and the whole envelope, so that each check has something to check."""
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": {**params, "_meta": META}}).encode()
    more = [f"Mcp-Name: {params['name']}"] if "name" in params else []
    more += [] if token is None else [f"Authorization: Bearer {token}"]
    return request(
        "POST /mcp",
        body,
        "Content-Type: application/json",
        "Accept: application/json, text/event-stream",
        f"MCP-Protocol-Version: {VERSION}",
        f"Mcp-Method: {method}",
        *more,
    )


def request(line: str, body: bytes = b"", *headers: str) -> bytes:
    """An HTTP/1.1 request on a connection that stays open."""
    lines = [f"{line} HTTP/1.1", "Host: 127.0.0.1:8080", *headers, f"Content-Length: {len(body)}", "", ""]
    return "\r\n".join(lines).encode() + body


LIST = post("tools/list")
SMALL = post("tools/call", name="phone_bridge_status", arguments={})
TAP = post("tools/call", name="touch_gesture", arguments={"type": "tap", "point": {"x": 500, "y": 500}})
SHOT = post("tools/call", name="screenshot", arguments={})
KEY = post("tools/call", name="keyboard_tap", arguments={"keys": ["enter"]})
BUNDLE = post("tools/call", name="support_bundle", arguments={})


class Caller:
    """One connection that asks again and again."""

    def __init__(self, port: int, receive_buffer: int | None = None) -> None:
        self.sock = socket.socket()
        self.sock.settimeout(LIMIT_S)
        if receive_buffer is not None:  # before connecting, when the window is agreed on
            self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.sock.connect(("127.0.0.1", port))

    def __enter__(self) -> Caller:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.sock.close()

    def ask(self, sent: bytes) -> bytes:
        """The body of the answer, which must be 200; chunks are left as they are."""
        self.sock.sendall(sent)
        head, body = self._head()
        assert head.startswith(b"HTTP/1.1 200"), head + body
        length = _LENGTH.search(head)
        pieces, have = [body], len(body)
        while have < int(length[1]) if length else not pieces[-1].endswith(b"0\r\n\r\n"):
            pieces.append(self._more())
            have += len(pieces[-1])
        return b"".join(pieces)

    def drain(self, sent: bytes, piece: int = 1 << 18) -> int:
        """Bytes of a body with a length, read in runs of at most `piece` and thrown away."""
        self.sock.sendall(sent)
        head, body = self._head()
        length = _LENGTH.search(head)
        assert length, head + body
        have, buffer = len(body), bytearray(piece)
        while have < int(length[1]):
            read = self.sock.recv_into(buffer)
            assert read, f"cut short after {have} bytes"
            have += read
        return have

    def _head(self) -> tuple[bytes, bytes]:
        got = b""
        while b"\r\n\r\n" not in got:
            got += self._more()
        head, _, body = got.partition(b"\r\n\r\n")
        return head, body

    def _more(self) -> bytes:
        got = self.sock.recv(1 << 18)
        assert got, "the server hung up"
        return got


def learned(port: int, token: str | None = None) -> tuple[int, int]:
    """Bytes of the answer to tools/list, and of the instructions: what every client reads into its context."""
    with Caller(port) as caller:
        listed = caller.ask(post("tools/list", token))
        discovered = json.loads(caller.ask(post("server/discover", token)))
    return len(listed), len(discovered["result"]["instructions"].encode())


def medians(asked: Mapping[str, tuple[int, bytes]], rounds: int) -> dict[str, float]:
    """Microseconds of each (port, request), asked in turns so that a busy moment hits all alike."""
    times: dict[str, list[float]] = {name: [] for name in asked}
    callers = {name: Caller(port) for name, (port, _) in asked.items()}
    try:
        for _ in range(rounds):
            for name, (_, sent) in asked.items():
                times[name].append(_timed(callers[name], sent))
    finally:
        for caller in callers.values():
            caller.sock.close()
    return {name: statistics.median(found) for name, found in times.items()}


def crowds(ports: Mapping[str, int], sent: bytes, callers: int, rounds: int) -> dict[str, float]:
    """Microseconds while that many connections ask at once, of each port: medians of CROWDS crowds, let in in turns."""
    times: dict[str, list[float]] = {name: [] for name in ports}
    for _ in range(CROWDS):
        for name, port in ports.items():
            times[name].append(crowd(port, sent, callers, rounds))
    return {name: statistics.median(found) for name, found in times.items()}


def crowd(port: int, sent: bytes, callers: int, rounds: int) -> float:
    """Median microseconds while that many connections ask at once."""
    times: list[float] = []

    def run() -> None:
        with Caller(port) as caller:
            times.extend([_timed(caller, sent) for _ in range(rounds)])

    join(threading.Thread(target=run, name="crowd") for _ in range(callers))
    return statistics.median(times)


def join(threads: Iterable[threading.Thread]) -> None:
    """Run them all to their end."""
    begun = list(threads)
    for thread in begun:
        thread.start()
    for thread in begun:
        thread.join()


def _timed(caller: Caller, sent: bytes) -> float:
    begun = time.perf_counter()
    caller.ask(sent)
    return (time.perf_counter() - begun) * 1e6
