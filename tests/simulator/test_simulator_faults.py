"""Switches as they are seen from the outside; those of tools and bundles are in tests/functional/test_faults_simulator.py."""

from __future__ import annotations

import contextlib
import gzip
import socket
from typing import Any

import pytest

from mcpboard.simulator import Simulator
from mcpboard.simulator.board.faults import KINDS
from tests.simulator.simulating import ask, exchange, output, raw, run_tool, tool_post
from tests.support.http import LIMIT_S, Caller, InvalidResponse

TAP = {"type": "tap", "point": {"x": 500, "y": 20}}


@pytest.mark.parametrize(("kind", "requests", "calls"), [("reset_before_read", 0, 0), ("reset_after_read", 1, 0), ("reset_after_execution", 1, 1)])  # fmt: skip
def test_a_connection_is_reset_once(sim: Simulator, kind: str, requests: int, calls: int) -> None:
    fault = sim.faults.set(kind, tool="touch_gesture", times=1)
    with pytest.raises(ConnectionResetError):
        exchange(sim.agent_url, tool_post("touch_gesture", **TAP))
    assert (fault.hits, len(sim.requests), len(sim.calls)) == (1, requests, calls)
    assert run_tool(sim, "touch_gesture", **TAP)["is_error"] is False


@pytest.mark.parametrize(("kind", "calls"), [("hang", []), ("hang_after_execution", [("shell", {"command": "pwd"})])])
def test_a_hung_reply_ends_with_its_caller_and_not_before(sim: Simulator, kind: str, calls: list[Any]) -> None:
    sim.faults.set(kind, tool="shell")
    with Caller(sim.agent_url).connect() as caller:
        caller.send(tool_post("shell", command="pwd"))
        sim.wait_for_request("/api/tools/shell")
        sim.wait_for_finish("shell", count=len(calls))
        caller.sock.settimeout(0.1)
        with pytest.raises(TimeoutError):
            caller.sock.recv(1)
        caller.sock.settimeout(LIMIT_S)
        caller.sock.shutdown(socket.SHUT_WR)
        assert caller.sock.recv(1) == b""
    assert sim.calls == calls


@pytest.mark.parametrize(
    ("kind", "settings", "status", "header", "value", "body"),
    [
        ("html", {}, 200, "content-type", "text/html; charset=utf-8", b"<!DOCTYPE html>"),
        ("redirect", {}, 302, "location", "/elsewhere", b""),
        ("redirect", {"status": 307, "location": "http://x/"}, 307, "location", "http://x/", b""),
        ("status", {}, 500, "x-content-type-options", "nosniff", b"Internal Server Error\n"),
        ("status", {"status": 599, "text": "odd"}, 599, "content-length", "4", b"odd\n"),
        ("shutting_down", {}, 503, "content-type", "text/plain; charset=utf-8", b"Server is shutting down\n"),
        ("missing_tool", {}, 404, "content-type", "text/plain; charset=utf-8", b"Unknown tool: shell\n"),
        ("charset", {}, 200, "content-type", "application/json; charset=utf-16", b'{"tool"'),
        ("gzip", {}, 200, "content-encoding", "gzip", b"\x1f\x8b"),
        ("gzip", {"honest": False}, 200, "content-encoding", "gzip", b'{"tool"'),
        ("oversized", {}, 200, "transfer-encoding", "chunked", b'{"tool"'),
        ("drip", {"bytes_per_second": 5000}, 200, "content-type", "application/json", b'{"tool"'),
    ],
)  # fmt: skip
def test_another_answer_comes(
    sim: Simulator, kind: str, settings: dict[str, Any], status: int, header: str, value: str, body: bytes
) -> None:
    sim.faults.set(kind, tool="shell", **settings)
    response = ask(sim.agent_url, "POST", "/api/tools/shell", b'{"input":{"command":"pwd"}}')
    assert (response.status, response.headers[header]) == (status, value)
    assert response.body.startswith(body)
    assert (len(response.body) > 10 << 20) is (kind == "oversized")
    assert body != b"\x1f\x8b" or gzip.decompress(response.body).startswith(b'{"tool"')


@pytest.mark.parametrize("framing", ["chunked", "length"])
def test_a_body_breaks_off(sim: Simulator, framing: str) -> None:
    sim.faults.set("truncated", framing=framing, keep=50)
    with pytest.raises(InvalidResponse):
        ask(sim.agent_url, "GET", "/api/tools")


def test_an_old_agent_has_no_schemas_no_tool_errors_and_no_pictures(sim: Simulator) -> None:
    for kind in ("old_catalogue", "no_tool_error", "unwrapped"):
        sim.faults.set(kind)
    assert not any("args_schema" in entry for entry in ask(sim.agent_url, "GET", "/api/tools").json["tools"])
    failed = run_tool(sim, "keyboard_tap")
    assert (failed["error"], "tool_error" in failed) == ("keys array is required", False)
    assert output(run_tool(sim, "open_url", url="https://a.b"))["method"] == "open_url"


def test_a_stale_frame_fails_a_picture_but_not_the_action_before_it(sim: Simulator) -> None:
    sim.faults.set("stale_frame")
    assert run_tool(sim, "screenshot")["error"] == "frame service: STALE_FRAME"
    assert run_tool(sim, "open_app", app="Maps")["tool_error"]["details"]["action_completed"] is True
    assert sim.phone.app == "Maps"


def test_a_bridge_that_is_down_is_told_by_status_and_tools(sim: Simulator) -> None:
    sim.faults.set("bridge_down")
    status = ask(sim.agent_url, "GET", "/api/phone-bridge/status").json
    assert status["connected"] is False and "environment" not in status
    error = run_tool(sim, "open_url", url="https://example.com")["tool_error"]
    assert error["code"] == "bridge_not_connected" and "fallback" in error["details"]


def test_faults_are_set_listed_and_cleared_over_http(sim: Simulator) -> None:
    body = b'{"kind": "status", "tool": "*", "times": 3, "status": 503}'
    ask(sim.agent_url, "POST", "/simulator/faults", body)
    assert ask(sim.agent_url, "GET", "/health").status == 503
    (listed,) = ask(sim.agent_url, "GET", "/simulator/faults").json["faults"]
    assert (listed["kind"], listed["times"], listed["hits"], listed["status"]) == ("status", 2, 1, 503)
    assert ask(sim.agent_url, "POST", "/simulator/faults", b'{"clear": true}').json == {"faults": []}
    run_tool(sim, "shell", command="pwd")
    assert ask(sim.agent_url, "GET", "/simulator/calls").json == {"calls": [{"name": "shell", "input": {"command": "pwd"}}]}  # fmt: skip


@pytest.mark.parametrize(
    ("body", "told"),
    [
        ('{"kind": "flood"}', "no fault is called 'flood'"), ('{"kind": "slow", "minutes": 1}', "it has: seconds"), ('{"kind": "slow", "seconds": "x"}', "cannot be 'x'"),
        ('{"kind": "slow", "times": 0}', "above 0"), ('{"kind": "bundle", "bytes": 9}', "at least"), ('{"kind": []}', "unhashable"), ('{"self": 1}', "self"), ("[]", "expected an object"), ("{", "Expecting"), ("", "Expecting"),
    ],
)  # fmt: skip
def test_a_fault_that_cannot_be_is_refused(sim: Simulator, body: str, told: str) -> None:
    response = ask(sim.agent_url, "POST", "/simulator/faults", body.encode())
    assert response.status == 400
    assert told in response.body.decode()


EVERYTHING = [
    ("agent", raw("GET", "/api/tools")), ("agent", tool_post("screenshot")), ("agent", tool_post("open_url", url="https://a.b")),
    ("agent", tool_post("keyboard_tap")), ("config_web", raw("GET", "/api/logs/support")),
]  # fmt: skip
BRIEF: dict[str, dict[str, Any]] = {
    "slow": {"seconds": 0}, "bundle": {"bytes": 20_000}, "drip": {"bytes_per_second": 1_000_000}, "oversized": {"bytes": 9000},
}  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
def test_every_fault_is_met_by_somebody(sim: Simulator, kind: str) -> None:
    """A kind that no code takes would be a switch without a wire."""
    fault = sim.faults.set(kind, **BRIEF.get(kind, {}))
    for port, request in EVERYTHING:
        with Caller(getattr(sim, port).url).connect() as connection:
            connection.send(request)
            if kind.startswith("hang"):
                connection.sock.shutdown(socket.SHUT_WR)
            with contextlib.suppress(ConnectionError):
                connection.file.read()
    assert fault.hits
