"""A backend that answers badly, late or not at all: what the caller sees, how soon, and how often it was asked."""

from __future__ import annotations

import gzip
import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from mcpboard.errors import NOT_SENT, UNKNOWN
from tests.functional import gohttp, rig
from tests.functional.gohttp import CHUNKED, Exchange, GoServer, Unread, chunked, head, tool_answer

pytestmark = pytest.mark.slow  # waits for real limits, links or processes

DEADLINE_S = 0.4  # seconds, in place of the rows' own; every fault is over by then
SOON_S = 5.0  # seconds in which a caller must have heard of any fault, on a busy machine

GOOD = tool_answer(json.dumps({"ok": True, "action_output": "ok"}))
GZIP = "Content-Encoding: gzip"
PICTURE = tool_answer(json.dumps({"width": 1, "height": 1, "data": "/9j/4AAQSkZJRgABAQAAAQABAAD/2wBDAAMC"}))


@dataclass(frozen=True)
class Fault:
    """A fault of the backend, and what the caller of an action must then be told."""

    script: Callable[[Exchange], object]
    says: str
    delivery: str = UNKNOWN


FAULTS = [
    pytest.param(Fault(Exchange.reset, "broke off"), id="reset after reading"),
    pytest.param(Fault(lambda went: went.sock.close(), "broke off"), id="closed after reading"),
    pytest.param(Fault(Exchange.hang, "within 0.4 s"), id="a hang"),
    pytest.param(Fault(Exchange.drip, "within 0.4 s"), id="a head that drips"),
    pytest.param(Fault(lambda went: went.raw(head()).drip(), "within 0.4 s"), id="a body that drips"),
    pytest.param(
        Fault(lambda went: went.raw(head(CHUNKED)).drip(b"1\r\n \r\n"), "within 0.4 s"), id="chunks that drip"
    ),
    pytest.param(
        Fault(lambda went: went.raw(head("Content-Length: 999"), GOOD[:9]).hang(), "within 0.4 s"),
        id="a body that stops, its connection open",
    ),
    pytest.param(Fault(lambda went: went.raw(head(CHUNKED), chunked(GOOD)), "broke off"), id="chunks without the last"),
    pytest.param(
        Fault(lambda went: went.raw(head(CHUNKED), chunked(GOOD)[:-20]), "broke off"), id="cut within a chunk"
    ),
    pytest.param(
        Fault(lambda went: went.raw(head("Content-Length: 999"), GOOD), "of 999 bytes"), id="shorter than announced"
    ),
    pytest.param(
        Fault(lambda went: went.raw(head(f"Content-Length: {len(GOOD) - 9}"), GOOD), "no sense"),
        id="longer than announced",
    ),
    pytest.param(
        Fault(lambda went: went.raw(head("Content-Length: -5"), GOOD[:9]), ""), id="an announced length below zero"
    ),
    pytest.param(Fault(lambda went: went.raw(head(), GOOD[:20]), "no sense"), id="no length, closed midway"),
    pytest.param(Fault(lambda went: went.reply(b""), "(nothing)"), id="200 with nothing"),
    pytest.param(Fault(lambda went: went.raw(head(status="204 No Content")), "HTTP 204"), id="204"),
    pytest.param(
        Fault(lambda went: went.reply(b"<html>It works</html>", "text/html"), "<html>It works</html>"),
        id="a page for JSON",
    ),
    pytest.param(Fault(lambda went: went.reply(b"[1]"), "[1]"), id="JSON, but no object"),
    pytest.param(Fault(lambda went: went.error("500 Internal Server Error", "boom"), "boom"), id="500"),
    pytest.param(
        Fault(lambda went: went.reply(b"<p>" * 350_000, "text/html", "500 Internal Server Error"), "HTTP 500"),
        id="500 with a page of 1 MB",
    ),
    pytest.param(Fault(lambda went: went.error("401 Unauthorized", "who"), "HTTP 401"), id="401"),
    pytest.param(
        Fault(lambda went: went.error("503 Service Unavailable", "Server is shutting down"), "try again", NOT_SENT),
        id="503 while shutting down",
    ),
    pytest.param(
        Fault(lambda went: went.error("404 Not Found", "Unknown tool: x"), "does not offer", NOT_SENT), id="404"
    ),
    pytest.param(
        Fault(lambda went: went.error("400 Bad Request", "Invalid request: EOF"), "arguments", NOT_SENT), id="400"
    ),
    pytest.param(
        Fault(lambda went: went.reply(gzip.compress(GOOD), gohttp.JSON, "200 OK", GZIP), "compressed"),
        id="gzip that was ruled out",
    ),
    pytest.param(
        Fault(lambda went: went.reply(GOOD, gohttp.JSON, "200 OK", GZIP), "compressed"),
        id="a gzip label on plain bytes",
    ),
    pytest.param(
        Fault(lambda went: went.reply(b'{"output":"caf\xe9"}', "application/json; charset=latin-1"), "no sense"),
        id="Latin-1 in JSON",
    ),
    pytest.param(
        Fault(lambda went: went.reply(b'{"output":"' + b"x" * (10 << 20) + b'"}'), "limit of 4194304 bytes"),
        id="10 MB",
    ),
    pytest.param(
        Fault(lambda went: went.raw(head(f"Content-Length: {10 << 20}")).hang(), "limit of 4194304 bytes"),
        id="10 MB announced",
    ),
    pytest.param(Fault(lambda went: went.raw(b"SSH-2.0-dropbear\r\n"), "broke off"), id="no HTTP at all"),
]

CALLS = [
    pytest.param("enter_text", {"text": "hello", "focus": {"x": 1, "y": 2}}, True, id="an action"),
    pytest.param("screenshot", {}, False, id="an observation"),
    pytest.param("device_status", {}, False, id="a status"),
    pytest.param("support_bundle", {}, False, id="a bundle"),
]


def once(fault: Callable[[Exchange], object]) -> Callable[[Exchange], None]:
    """The fault for the first request, good answers from then on."""
    left = [fault]

    def script(exchange: Exchange) -> None:
        left.pop()(exchange) if left else well(exchange)

    return script


def well(exchange: Exchange) -> None:
    """Answer as a board in order does."""
    if exchange.path == "/api/logs/support":
        exchange.reply(gzip.compress(b"logs"), "application/gzip")
    elif exchange.path == "/api/device/status":
        exchange.reply(b'{"ok":true}')
    else:
        exchange.reply(PICTURE if exchange.path.endswith("screenshot") else GOOD)


@pytest.fixture(autouse=True)
def hurried(monkeypatch: pytest.MonkeyPatch) -> None:
    rig.shrink_deadlines(
        monkeypatch, enter_text=DEADLINE_S, screenshot=DEADLINE_S, device_status=DEADLINE_S, support_bundle=DEADLINE_S
    )


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize(("tool", "arguments", "acts"), CALLS)
def test_a_fault_is_one_clear_error_and_one_request(
    tool: str, arguments: dict[str, Any], acts: bool, fault: Fault
) -> None:
    """Decisions 3, 7, 8, 11, 18, 19: a readable result in time, asked once, and the next call works."""
    with GoServer(once(fault.script)) as backend, rig.in_front_of(backend.url, backend.url) as client:
        began = time.monotonic()
        failed = client.call(tool, **arguments)
        took = time.monotonic() - began
        asked = len(backend.requests)
        after = client.call(tool, **arguments)
    assert failed.is_error
    assert took < SOON_S
    assert asked == 1
    assert not after.is_error, after.text
    assert failed.kinds == ["text"]
    assert len(failed.text) < 900
    assert failed.delivery == (fault.delivery if acts else None)
    assert ("look at the screen" in failed.text.lower()) is (acts and fault.delivery == UNKNOWN)
    if acts:
        assert fault.says in failed.text


@pytest.mark.parametrize(("tool", "arguments", "acts"), CALLS)
def test_nobody_listening(tool: str, arguments: dict[str, Any], acts: bool) -> None:
    """Refused at once; and the very next call works when the board has come up meanwhile."""
    with GoServer(well) as once_there:
        port = once_there.port
    with rig.in_front_of(once_there.url, once_there.url) as client:
        failed = client.call(tool, **arguments)
        with GoServer(well, port):
            after = client.call(tool, **arguments)
    assert failed.is_error
    assert "cannot be reached" in failed.text
    assert "_base_url" in failed.text
    assert failed.delivery == (NOT_SENT if acts else None)
    assert not after.is_error


def test_an_agent_that_dies_before_it_reads_a_tap() -> None:
    """The bytes had left, so nobody can know; the Agent saw them once."""
    with Unread(Exchange.reset) as agent, rig.in_front_of(agent.url) as client:
        failed = client.call("touch_gesture", type="tap", point={"x": 1, "y": 2})
        assert agent.connections == 1
    assert failed.is_error
    assert failed.delivery == UNKNOWN
    assert "Whether it took place is not known; look at the screen" in failed.text


def test_an_agent_that_dies_after_it_read_a_tap() -> None:
    """One request on one connection; the arguments arrived as they were sent."""
    with GoServer(Exchange.reset) as agent, rig.in_front_of(agent.url) as client:
        failed = client.call("touch_gesture", type="tap", point={"x": 1, "y": 2})
        assert agent.connections == 1
        assert [exchange.input for exchange in agent.requests] == [{"type": "tap", "point": {"x": 1, "y": 2}}]
    assert failed.delivery == UNKNOWN


@pytest.mark.parametrize("status", ["301 Moved", "302 Found", "307 Temporary Redirect", "308 Permanent Redirect"])
@pytest.mark.parametrize(("tool", "arguments", "acts"), CALLS)
def test_a_redirect_leads_nowhere(tool: str, arguments: dict[str, Any], acts: bool, status: str) -> None:
    """The server it points at is never contacted."""
    with GoServer(well) as elsewhere:
        location = f"Location: {elsewhere.url}/caught"
        with (
            GoServer(once(lambda went: went.reply(b"", gohttp.TEXT, status, location))) as backend,
            rig.in_front_of(backend.url, backend.url) as client,
        ):
            failed = client.call(tool, **arguments)
            after = client.call(tool, **arguments)
        assert elsewhere.connections == 0
        assert len(backend.requests) == 2
    assert failed.is_error
    assert f"HTTP {status[:3]}" in failed.text
    assert not after.is_error


@pytest.mark.parametrize(
    ("output", "is_error", "text"),
    [
        pytest.param("", False, "screenshot is missing", id="nothing put out"),
        pytest.param("plain words", False, "plain words", id="text in place of JSON"),
        pytest.param('{"ok":true,"action_output":"{\\"ok\\":true}"}', False, '{"ok":true}', id="JSON in JSON in JSON"),
        pytest.param('{"ok":false,"suggestion":"tap first"}', True, "tap first", id="not ok outside"),
        pytest.param('{"action_output":"{\\"ok\\":false}"}', True, "did not work", id="not ok inside"),
        pytest.param("Error: no model is configured", True, "no model is configured", id="an old error"),
    ],
)
def test_what_a_tool_put_out_is_read_for_what_it_means(output: str, is_error: bool, text: str) -> None:
    """HTTP 200 with `is_error` false is no proof of success."""
    with (
        GoServer(lambda went: went.reply(tool_answer(output))) as agent,
        rig.in_front_of(agent.url) as client,
    ):
        result = client.call("keyboard_tap", keys=["enter"])
        assert len(agent.requests) == 1
    assert result.is_error is is_error
    assert text in result.text
    assert result.delivery == (UNKNOWN if is_error else None)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16-le", "utf-16"])
def test_a_charset_label_is_not_believed(encoding: str) -> None:
    """JSON says itself how it is written."""
    body = tool_answer("très bien").decode().encode(encoding)
    with (
        GoServer(lambda went: went.reply(body, "application/json; charset=koi8-r")) as agent,
        rig.in_front_of(agent.url) as client,
    ):
        result = client.call("open_url", url="http://x/")
    assert not result.is_error
    assert "très bien" in result.text


def test_every_request_is_plain_direct_and_closes() -> None:
    """A fresh connection a request, and nothing that invites a retry, a cookie or compression."""
    with GoServer(well) as agent, rig.in_front_of(agent.url) as client:
        for _ in range(3):
            client.call("keyboard_tap", keys=["enter"])
        assert agent.connections == 3
    for exchange in agent.requests:
        assert (exchange.headers["connection"], exchange.headers["accept-encoding"]) == ("close", "identity")
        assert not {"cookie", "authorization", "proxy-connection", "transfer-encoding"} & exchange.headers.keys()


def test_a_picture_that_is_just_as_large_as_an_answer_may_be() -> None:
    """4 MiB pass, whole and unchanged."""
    data = "/9j/" + "A" * ((4 << 20) - 400)
    with (
        GoServer(lambda went: went.reply(tool_answer(json.dumps({"data": data})))) as agent,
        rig.in_front_of(agent.url) as client,
    ):
        result = client.call("screenshot")
    assert result.result["content"][0] == {"type": "image", "data": data, "mimeType": "image/jpeg"}
