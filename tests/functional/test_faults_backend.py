"""A backend that answers badly, late or not at all: what the caller sees, how soon, and how often it was asked."""

from __future__ import annotations

import gzip
import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
import responses

from mcpboard.errors import NOT_SENT, UNKNOWN
from tests.support import rig
from tests.support.gohttp import CHUNKED, Exchange, GoServer, Unread, head, tool_answer

pytestmark = pytest.mark.slow  # waits for real limits, links or processes

DEADLINE_S = 0.4  # seconds, in place of the rows' own; every fault is over by then
SOON_S = 5.0  # seconds in which a caller must have heard of any fault, on a busy machine

URL = "http://127.0.0.1:8081"
GOOD = tool_answer(json.dumps({"ok": True, "action_output": "ok"}))
PICTURE = tool_answer(json.dumps({"width": 1, "height": 1, "data": "/9j/4AAQSkZJRgABAQAAAQABAAD/2wBDAAMC"}))
WELL = {  # what a board in order answers, by path; GOOD everywhere else
    "/api/logs/support": gzip.compress(b"logs"),
    "/api/device/status": b'{"ok":true}',
    "/api/tools/screenshot": PICTURE,
}


@dataclass(frozen=True)
class Fault:
    """A fault of the backend, and what the caller of an action must then be told."""

    script: Callable[[Exchange], object]
    says: str
    delivery: str = UNKNOWN


# One of each way in which an answer may fail; the others are asked of the backend and of the readers by themselves.
FAULTS = [
    pytest.param(Fault(Exchange.reset, "broke off"), id="reset after reading"),
    pytest.param(Fault(Exchange.hang, "within 0.4 s"), id="a hang"),
    pytest.param(Fault(lambda went: went.raw(head(CHUNKED)).drip(b"1\r\n \r\n"), "within 0.4 s"), id="chunks that drip"),
    pytest.param(Fault(lambda went: went.raw(head("Content-Length: 999"), GOOD), "of 999 bytes"), id="shorter than announced"),
    pytest.param(Fault(lambda went: went.raw(head(f"Content-Length: {10 << 20}")).hang(), "limit of 4194304 bytes"), id="10 MB announced"),
    pytest.param(Fault(lambda went: went.raw(head(), GOOD[:20]), "no sense"), id="no length, closed midway"),
    pytest.param(Fault(lambda went: went.error("500 Oops", "boom"), "boom"), id="500"),
    pytest.param(Fault(lambda went: went.error("503 Busy", "Server is shutting down"), "try again", NOT_SENT), id="503 at the end"),
    pytest.param(Fault(lambda went: went.error("307 Moved", "Location: http://127.0.0.1:9/"), "HTTP 307"), id="a redirect"),
]  # fmt: skip

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
    exchange.reply(WELL.get(exchange.path, GOOD))


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
    """The result is readable and comes in time, the backend was asked once, and the next call works."""
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


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16-le", "utf-16"])
def test_a_charset_label_is_not_believed(encoding: str) -> None:
    """JSON says itself how it is written."""
    body = tool_answer("très bien").decode().encode(encoding)
    with responses.mock, rig.in_front_of(URL) as client:
        responses.post(f"{URL}/api/tools/open_url", body=body, content_type="application/json; charset=koi8-r")
        result = client.call("open_url", url="http://x/")
    assert not result.is_error
    assert "très bien" in result.text


def test_a_picture_that_is_just_as_large_as_an_answer_may_be() -> None:
    """4 MiB pass, whole and unchanged."""
    data = "/9j/" + "A" * ((4 << 20) - 400)
    with (
        GoServer(lambda went: went.reply(tool_answer(json.dumps({"data": data})))) as agent,
        rig.in_front_of(agent.url) as client,
    ):
        result = client.call("screenshot")
    assert result.result["content"][0] == {"type": "image", "data": data, "mimeType": "image/jpeg"}
