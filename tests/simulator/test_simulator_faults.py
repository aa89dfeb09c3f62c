"""Every switch, seen from the outside."""

from __future__ import annotations

import contextlib
import gzip
import http.client
import io
import json
import socket
import tarfile
from typing import Any

import pytest

from mcpboard.simulator import Simulator
from mcpboard.simulator.board.bundle import sized, smallest_sized
from mcpboard.simulator.board.faults import KINDS
from tests.simulator.simulating import exchange, head, http_request, open_socket, output, run_tool, tool_post

TAP = {"type": "tap", "point": {"x": 500, "y": 20}}


@pytest.mark.parametrize(
    ("kind", "requests", "calls"),
    [
        pytest.param("reset_before_read", 0, 0, id="before it is read"),
        pytest.param("reset_after_read", 1, 0, id="after it is read"),
        pytest.param("reset_after_execution", 1, 1, id="after it is executed"),
    ],
)
def test_a_connection_is_reset(sim: Simulator, kind: str, requests: int, calls: int) -> None:
    fault = sim.faults.set(kind, tool="touch_gesture", times=1)
    with pytest.raises(ConnectionResetError):
        exchange(sim.agent_url, tool_post("touch_gesture", TAP))
    assert (fault.hits, len(sim.requests), len(sim.calls)) == (1, requests, calls)
    assert run_tool(sim, "touch_gesture", **TAP)["is_error"] is False, "it hits once"


@pytest.mark.parametrize(
    ("kind", "calls"),
    [
        pytest.param("hang", [], id="before the tool runs"),
        pytest.param("hang_after_execution", [("shell", {"command": "pwd"})], id="after the tool ran"),
    ],
)
def test_a_hung_reply_ends_with_its_caller_and_not_before(sim: Simulator, kind: str, calls: list[Any]) -> None:
    sim.faults.set(kind, tool="shell")
    with open_socket(sim.agent_url) as caller:
        caller.sendall(tool_post("shell", {"command": "pwd"}))
        sim.wait_for_request("/api/tools/shell")
        sim.wait_for_finish("shell", count=len(calls))
        caller.settimeout(0.1)
        with pytest.raises(TimeoutError):
            caller.recv(1)
        caller.settimeout(5)
        caller.shutdown(socket.SHUT_WR)
        assert caller.recv(1) == b""
    assert sim.calls == calls


def test_a_drip_is_slow_but_whole(sim: Simulator) -> None:
    sim.faults.set("drip", tool="health", bytes_per_second=100)
    assert exchange(sim.agent_url, head("GET", "/health")).endswith(b'{"ok":true}\n')


def test_a_chunked_body_breaks_off(sim: Simulator) -> None:
    sim.faults.set("truncated", tool="tools", keep=50)
    with pytest.raises(http.client.IncompleteRead):
        http_request(sim.agent_url, "GET", "/api/tools")


def test_a_body_is_shorter_than_its_length(sim: Simulator) -> None:
    sim.faults.set("truncated", tool="tools", framing="length", keep=50)
    top, _, body = exchange(sim.agent_url, head("GET", "/api/tools")).partition(b"\r\n\r\n")
    assert b"Content-Length: 7" in top
    assert len(body) == 50


def test_a_body_is_far_too_big(sim: Simulator) -> None:
    sim.faults.set("oversized", tool="screenshot")
    response = http_request(sim.agent_url, "POST", "/api/tools/screenshot")
    assert len(response.body) > 10 << 20
    assert response.json["is_error"] is False


@pytest.mark.parametrize("honest", [True, False])
def test_a_body_is_labelled_gzip(sim: Simulator, honest: bool) -> None:
    sim.faults.set("gzip", tool="health", honest=honest)
    response = http_request(sim.agent_url, "GET", "/health")
    assert response.headers["Content-Encoding"] == "gzip"
    assert (gzip.decompress(response.body) if honest else response.body) == b'{"ok":true}\n'


@pytest.mark.parametrize(
    ("kind", "settings", "status", "header", "body"),
    [
        pytest.param("html", {}, 200, ("Content-Type", "text/html; charset=utf-8"), b"<!DOCTYPE", id="a page"),
        pytest.param("redirect", {}, 302, ("Location", "/elsewhere"), b"", id="a redirect"),
        pytest.param("redirect", {"status": 307, "location": "http://x/"}, 307, ("Location", "http://x/"), b"", id="a redirect that keeps the method"),
        pytest.param("status", {}, 500, ("X-Content-Type-Options", "nosniff"), b"Internal", id="a failure"),
        pytest.param("status", {"status": 599, "text": "odd"}, 599, ("Content-Length", "4"), b"odd\n", id="odd"),
        pytest.param("shutting_down", {}, 503, ("Content-Type", "text/plain; charset=utf-8"), b"Server is shutting down\n", id="shutting down"),
        pytest.param("missing_tool", {}, 404, ("Content-Type", "text/plain; charset=utf-8"), b"Unknown tool: shell\n", id="a tool that is missing"),
        pytest.param("charset", {}, 200, ("Content-Type", "application/json; charset=utf-16"), b'{"tool"', id="a label that lies"),
    ],
)  # fmt: skip
def test_another_answer_comes(
    sim: Simulator, kind: str, settings: dict[str, Any], status: int, header: tuple[str, str], body: bytes
) -> None:
    sim.faults.set(kind, tool="shell", **settings)
    response = http_request(sim.agent_url, "POST", "/api/tools/shell", b'{"input":{"command":"pwd"}}')
    assert response.status == status
    assert response.headers[header[0]] == header[1]
    assert response.body.startswith(body)


def test_a_missing_tool_is_not_listed(sim: Simulator) -> None:
    sim.faults.set("missing_tool", tool="enter_text")
    names = [entry["name"] for entry in http_request(sim.agent_url, "GET", "/api/tools").json["tools"]]
    assert "enter_text" not in names
    assert len(names) == 13


def test_an_old_catalogue_has_no_schemas(sim: Simulator) -> None:
    sim.faults.set("old_catalogue", times=1)
    assert not any("args_schema" in entry for entry in http_request(sim.agent_url, "GET", "/api/tools").json["tools"])
    assert all("args_schema" in entry for entry in http_request(sim.agent_url, "GET", "/api/tools").json["tools"])


@pytest.mark.parametrize(
    ("kind", "tool", "given", "is_error", "text"),
    [
        pytest.param("empty_output", "touch_gesture", TAP, False, "", id="no output"),
        pytest.param("legacy_error", "open_app", {"app": "Maps"}, False, "error: no model is configured", id="an error in the old form"),
        pytest.param("legacy_error", "screenshot", {}, False, "error: no model is configured", id="an error in the old form instead of a picture"),
        pytest.param("stale_frame", "screenshot", {}, True, "frame service: STALE_FRAME", id="a stale frame"),
        pytest.param("tool_error", "keyboard_tap", {"keys": ["a"]}, True, "the HID device went away", id="a failure"),
        pytest.param("bridge_down", "bridge_clipboard", {"action": "read"}, True, "phone bridge not connected", id="no bridge"),
    ],
)  # fmt: skip
def test_a_tool_answers_with_a_sentence(
    sim: Simulator, kind: str, tool: str, given: dict[str, Any], is_error: bool, text: str
) -> None:
    sim.faults.set(kind, tool=tool)
    response = run_tool(sim, tool, **given)
    assert (response["is_error"], response["output"]) == (is_error, text)
    assert ("tool_error" in response) is is_error


def test_a_soft_failure_moves_nothing(sim: Simulator) -> None:
    sim.faults.set("soft_failure", suggestion="try again")
    response = run_tool(sim, "open_app", app="Maps")
    assert response["is_error"] is False
    assert json.loads(output(response)["action_output"]) == {"ok": False, "suggestion": "try again"}
    assert sim.phone.app == "Home"


@pytest.mark.parametrize("kind", ["action_completed", "stale_frame"])
def test_an_action_is_done_although_its_picture_failed(sim: Simulator, kind: str) -> None:
    sim.faults.set(kind, tool="open_app")
    response = run_tool(sim, "open_app", app="Maps")
    assert sim.phone.app == "Maps"
    assert response["is_error"] is True
    assert response["tool_error"]["details"]["action_completed"] is True
    assert response["output"].startswith("open_app completed with output")


def test_a_failure_of_an_old_agent_has_no_tool_error(sim: Simulator) -> None:
    sim.faults.set("no_tool_error")
    response = run_tool(sim, "keyboard_tap")
    assert (response["is_error"], response["error"], "tool_error" in response) == (
        True,
        "keys array is required",
        False,
    )


def test_a_bridge_that_is_down_is_told_by_status_and_tools(sim: Simulator) -> None:
    sim.faults.set("bridge_down")
    assert http_request(sim.agent_url, "GET", "/api/phone-bridge/status").json["connected"] is False
    error = run_tool(sim, "open_url", url="https://example.com")["tool_error"]
    assert error["code"] == "bridge_not_connected"
    assert "fallback" in error["details"]


def test_a_picture_may_be_none(sim: Simulator) -> None:
    sim.faults.set("not_a_picture")
    assert output(run_tool(sim, "screenshot"))["data"] == "dGhpcyBpcyBubyBwaWN0dXJl"


def test_an_older_agent_does_not_wrap_open_url(sim: Simulator) -> None:
    sim.faults.set("unwrapped")
    assert output(run_tool(sim, "open_url", url="https://a.b"))["method"] == "open_url"


def test_a_slow_tool_still_answers(sim: Simulator) -> None:
    sim.faults.set("slow", tool="device_status", seconds=0.05)
    assert http_request(sim.config_web_url, "GET", "/api/device/status").status == 200


@pytest.mark.parametrize("size", [smallest_sized(), 65_559, 200_000, 3_000_001])
def test_a_bundle_has_the_size_that_was_asked_for(size: int) -> None:
    made = b"".join(sized(size, seed=3))
    assert len(made) == size
    with tarfile.open(fileobj=io.BytesIO(made), mode="r:gz") as archive:
        assert len(archive.getmembers()) == 3


@pytest.mark.parametrize("length", [True, False])
def test_a_big_bundle_comes_with_or_without_its_length(sim: Simulator, length: bool) -> None:
    sim.faults.set("bundle", bytes=300_000, length=length)
    response = http_request(sim.config_web_url, "GET", "/api/logs/support")
    assert len(gzip.decompress(response.body)) > 290_000
    assert response.headers.get("Content-Length") == ("300000" if length else None)


@pytest.mark.parametrize("length", [True, False])
def test_a_bundle_dies_midway(sim: Simulator, length: bool) -> None:
    sim.faults.set("bundle", bytes=300_000, length=length, dies_after=100_000)
    with pytest.raises(http.client.IncompleteRead) as broken:
        http_request(sim.config_web_url, "GET", "/api/logs/support")
    assert len(broken.value.partial) <= 100_000


def test_a_slow_bundle_arrives(sim: Simulator) -> None:
    sim.faults.set("bundle", bytes=50_000, bytes_per_second=500_000)
    assert len(http_request(sim.config_web_url, "GET", "/api/logs/support").body) == 50_000


def test_a_bundle_that_cannot_be_made_is_said_in_json(sim: Simulator) -> None:
    sim.faults.set("bundle_error", error="disk full")
    response = http_request(sim.config_web_url, "GET", "/api/logs/support")
    assert (response.status, response.json) == (500, {"ok": False, "error": "disk full"})
    assert response.headers["X-Aiden-API-Version"] == "1"


@pytest.mark.parametrize(
    ("kind", "settings", "told"),
    [
        pytest.param("flood", {}, "no fault is called 'flood'", id="an unknown kind"),
        pytest.param("slow", {"minutes": 1}, "it has: seconds", id="an unknown setting"),
        pytest.param("slow", {"seconds": "long"}, "cannot be 'long'", id="a setting of the wrong kind"),
        pytest.param("slow", {"times": 0}, "above 0", id="no times at all"),
        pytest.param("bundle", {"bytes": 9}, "at least", id="a bundle too small to be one"),
    ],
)
def test_a_fault_that_cannot_be_is_refused_when_set(
    sim: Simulator, kind: str, settings: dict[str, Any], told: str
) -> None:
    with pytest.raises(ValueError, match=told):
        sim.faults.set(kind, **settings)
    body = json.dumps({"kind": kind, **settings}).encode()
    response = http_request(sim.agent_url, "POST", "/simulator/faults", body)
    assert response.status == 400
    assert told in response.text


def test_faults_are_set_listed_and_cleared_over_http(sim: Simulator) -> None:
    body = b'{"kind": "status", "tool": "*", "times": 2, "status": 500}'
    listed = http_request(sim.agent_url, "POST", "/simulator/faults", body).json["faults"]
    assert [(fault["kind"], fault["times"], fault["hits"]) for fault in listed] == [("status", 2, 0)]
    assert http_request(sim.agent_url, "GET", "/api/tools").status == 500
    assert http_request(sim.config_web_url, "GET", "/api/device/status").status == 500
    assert http_request(sim.agent_url, "GET", "/api/tools").status == 200, "twice, then it is over"
    sim.faults.set("shutting_down")
    assert http_request(sim.agent_url, "POST", "/simulator/faults", b'{"clear": true}').json == {"faults": []}


@pytest.mark.parametrize("body", [b"", b"[]", b"{", b'{"kind": []}', b'{"self": 1}', b"\xff"])
def test_a_switch_that_makes_no_sense_is_refused(sim: Simulator, body: bytes) -> None:
    assert http_request(sim.agent_url, "POST", "/simulator/faults", body).status == 400


def test_clearing_leaves_other_faults(sim: Simulator) -> None:
    sim.faults.set("slow", tool="shell")
    sim.faults.set("html", tool="shell")
    sim.faults.set("html", tool="screenshot")
    sim.faults.clear("html", "shell")
    assert [(fault["kind"], fault["tool"]) for fault in sim.faults.as_json()] == [
        ("slow", "shell"), ("html", "screenshot"),
    ]  # fmt: skip


EVERYTHING = [
    ("agent", head("GET", "/api/tools")),
    ("agent", tool_post("screenshot", {})),
    ("agent", tool_post("open_url", {"url": "https://example.com"})),
    ("agent", tool_post("keyboard_tap", {})),
    ("config_web", head("GET", "/api/logs/support")),
]
BRIEFLY: dict[str, dict[str, Any]] = {
    "slow": {"seconds": 0}, "drip": {"bytes_per_second": 1_000_000},
    "bundle": {"bytes": 20_000}, "oversized": {"bytes": 9000},
}  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
def test_every_fault_is_met_by_somebody(sim: Simulator, kind: str) -> None:
    """A kind that no code takes would be a switch without a wire."""
    fault = sim.faults.set(kind, **BRIEFLY.get(kind, {}))
    for port, request in EVERYTHING:
        with open_socket(getattr(sim, port).url) as connection:
            connection.sendall(request)
            if kind.startswith("hang"):
                connection.shutdown(socket.SHUT_WR)
            with contextlib.suppress(ConnectionError):
                while connection.recv(65536):
                    pass
    assert fault.hits
