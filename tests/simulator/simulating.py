"""A simulated board whose time only moves when it sleeps, and the requests of these tests to it."""

from __future__ import annotations

import contextlib
import http.client
import json
import socket
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from mcpboard.simulator import Simulator

LIMIT_S = 10.0  # the longest any socket of these tests waits


class Clock:
    """Board time that passes only in `sleep`, so that every run is the same and none waits."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._now = 1_779_078_896.25  # 2026-05-18 12:34:56.25 in the board's zone

    def __call__(self) -> float:
        return self._now

    def sleep(self, seconds: float) -> None:
        with self._lock:
            self._now += seconds


@dataclass(frozen=True)
class Response:
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def text(self) -> str:
        return self.body.decode()


def new_board(**options: Any) -> Simulator:
    clock = Clock()
    return Simulator(clock=clock, sleep=clock.sleep, **options)


def http_request(base: str, method: str, path: str, body: bytes | None = None) -> Response:
    """One request on a connection of its own."""
    where = urlsplit(base)
    connection = http.client.HTTPConnection(where.hostname or "", where.port, timeout=LIMIT_S)
    with contextlib.closing(connection):
        connection.request(method, path, body)
        reply = connection.getresponse()
        return Response(reply.status, dict(reply.getheaders()), reply.read())


def open_socket(base: str) -> socket.socket:
    where = urlsplit(base)
    return socket.create_connection((where.hostname or "", where.port or 80), timeout=LIMIT_S)


def head(method: str, path: str, body: bytes = b"", *more: str) -> bytes:
    """A request as bytes, closed after its response."""
    lines = [f"{method} {path} HTTP/1.1", "Host: board", "Connection: close", f"Content-Length: {len(body)}", *more]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


def exchange(base: str, request: bytes) -> bytes:
    """Everything the board sends for these bytes, until it closes."""
    with open_socket(base) as connection:
        connection.sendall(request)
        return b"".join(iter(lambda: connection.recv(65536), b""))


def tool_post(name: str, given: Any) -> bytes:
    return head("POST", f"/api/tools/{name}", json.dumps({"input": given}).encode())


def run_tool(board: Simulator, tool: str, /, **given: Any) -> Any:
    """Call one tool, and return its response as an object."""
    response = http_request(board.agent_url, "POST", f"/api/tools/{tool}", json.dumps({"input": given}).encode())
    assert response.status == 200
    return response.json


def output(response: Any) -> Any:
    """The object inside the response's `output` text."""
    return json.loads(response["output"])


class Caller(threading.Thread):
    """A call under way in a thread of its own; `result()` returns the response within the limit."""

    def __init__(self, work: Callable[[], Any]) -> None:
        super().__init__(daemon=True)
        self._work = work
        self._result: Any = None
        self.start()

    def run(self) -> None:
        self._result = self._work()

    def result(self) -> Any:
        self.join(LIMIT_S)
        assert not self.is_alive(), "the call did not end"
        return self._result
