"""Requests written once, and how long a server takes for them."""

from __future__ import annotations

import contextlib
import itertools
import json
import socket
import statistics
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from tests.support.http import MODERN, Connection, message, request

META = {
    "io.modelcontextprotocol/protocolVersion": MODERN,
    "io.modelcontextprotocol/clientInfo": {"name": "bench", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {},
}
CROWDS = 9  # one crowd may take twice as long as the next: threads fall into step, or do not
LIMIT_S = 60.0  # for one answer; a server under valgrind is fifty times slower


def post(method: str, token: str | None = None, *headers: str, **params: Any) -> bytes:
    """One modern request with every header and the whole envelope, so that each check has something to check."""
    named = [f"Mcp-Name: {params['name']}"] if "name" in params else []
    known = [] if token is None else [f"Authorization: Bearer {token}"]
    return request(
        message(method, **params, _meta=META), "Accept: application/json, text/event-stream",
        f"MCP-Protocol-Version: {MODERN}", f"Mcp-Method: {method}", *named, *known, *headers, host="127.0.0.1:8080",
    )  # fmt: skip


LIST = post("tools/list")
SMALL = post("tools/call", name="phone_bridge_status", arguments={})
TAP = post("tools/call", name="touch_gesture", arguments={"type": "tap", "point": {"x": 500, "y": 500}})
SHOT = post("tools/call", name="screenshot", arguments={})
KEY = post("tools/call", name="keyboard_tap", arguments={"keys": ["enter"]})
BUNDLE = post("tools/call", name="support_bundle", arguments={})


class Caller(Connection):
    """One connection that asks again and again."""

    def __init__(self, port: int, receive_buffer: int | None = None) -> None:
        super().__init__(port, receive_buffer)
        self.sock.settimeout(LIMIT_S)
        self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def __enter__(self) -> Caller:
        return self

    def ask(self, sent: bytes) -> bytes:
        """The body of the answer, which must be 200."""
        self.send(sent)
        response = self.response()
        assert response.status == 200, (response, response.body[:300])
        return response.body

    def drain(self, sent: bytes, piece: int = 1 << 18) -> int:
        """Bytes of the answer's body, read in runs of at most `piece` and thrown away."""
        self.send(sent)
        return sum(map(len, self.pieces(self.head()[1], piece)))

    def timed(self, sent: bytes) -> float:
        """Microseconds until the answer is here."""
        begun = time.perf_counter()
        self.ask(sent)
        return (time.perf_counter() - begun) * 1e6


def learned(port: int, token: str | None = None) -> tuple[int, int]:
    """Bytes of the answer to tools/list, and of the instructions: what every client reads into its context."""
    with Caller(port) as caller:
        listed = caller.ask(post("tools/list", token))
        discovered = json.loads(caller.ask(post("server/discover", token)))
    return len(listed), len(discovered["result"]["instructions"].encode())


def medians(asked: Mapping[str, tuple[int, bytes]], rounds: int) -> dict[str, float]:
    """Microseconds of each (port, request), asked in turns so that a busy moment hits all alike."""
    times: dict[str, list[float]] = {name: [] for name in asked}
    with contextlib.ExitStack() as stack:
        callers = {name: stack.enter_context(Caller(port)) for name, (port, _) in asked.items()}
        for _, (name, (_, sent)) in itertools.product(range(rounds), asked.items()):
            times[name].append(callers[name].timed(sent))
    return {name: statistics.median(found) for name, found in times.items()}


def crowds(ports: Mapping[str, int], sent: bytes, callers: int, rounds: int) -> dict[str, float]:
    """Microseconds while that many connections ask at once, of each port: medians of CROWDS crowds, let in in turns."""
    times: dict[str, list[float]] = {name: [] for name in ports}

    def ask(port: int) -> list[float]:
        with Caller(port) as caller:
            return [caller.timed(sent) for _ in range(rounds)]

    with ThreadPoolExecutor(callers) as pool:
        for _, (name, port) in itertools.product(range(CROWDS), ports.items()):
            times[name].append(statistics.median(itertools.chain(*pool.map(ask, [port] * callers))))
    return {name: statistics.median(found) for name, found in times.items()}
