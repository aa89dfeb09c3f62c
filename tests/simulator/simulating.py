"""A simulated board whose time only moves when it sleeps, and the requests of these tests to it."""

from __future__ import annotations

import json
from typing import Any

from mcpboard.simulator import Simulator
from tests.support.clock import Clock
from tests.support.http import Caller, Response, request

NOON = 1_779_078_896.25  # 2026-05-18 12:34:56.25 in the board's zone
NOTES_FIELD = {"x": 450, "y": 105}


def new_board(**options: Any) -> Simulator:
    clock = Clock(NOON)
    return Simulator(clock=clock, sleep=clock.pass_by, **options)


def ask(base: str, method: str, path: str, body: bytes = b"") -> Response:
    """One request on a connection of its own."""
    return Caller(base).send(method, body, path)


def exchange(base: str, sent: bytes) -> bytes:
    """Everything the board sends for these bytes, until it closes."""
    with Caller(base).connect() as connection:
        connection.send(sent)
        return connection.file.read()


def raw(method: str, path: str, body: bytes = b"") -> bytes:
    """A request as bytes, after which the connection closes."""
    return request(body, "Connection: close", method=method, path=path)


def tool_post(name: str, **given: Any) -> bytes:
    return raw("POST", f"/api/tools/{name}", json.dumps({"input": given}).encode())


def run_tool(board: Simulator, tool: str, /, **given: Any) -> Any:
    """Call one tool, and return its response as an object."""
    response = ask(board.agent_url, "POST", f"/api/tools/{tool}", json.dumps({"input": given}).encode())
    assert response.status == 200
    return response.json


def output(response: Any) -> Any:
    """The object inside the response's `output` text."""
    return json.loads(response["output"])
