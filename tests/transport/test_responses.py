"""`responses` sees what every sender of the product sends, and no socket is opened under it."""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import closing, suppress
from typing import Any

import pytest
import responses

from mcpboard.board.backend import Backend
from mcpboard.client import Client
from mcpboard.errors import UNKNOWN, BackendBroken, McpboardError, PeerBroken, ToolFailed
from mcpboard.host.cloud.api import CloudHttp
from mcpboard.host.drivers.iphone.wda import WdaClient
from mcpboard.protocol.client_session import HttpRequest
from mcpboard.transport.deadline import Deadline, DeadlineSocket
from mcpboard.transport.http import HttpClient

URL = "http://127.0.0.1:9"


def exchange(url: str) -> bytes:
    with HttpClient(url).exchange(HttpRequest({}, b"{}"), Deadline(5)) as response:
        return response.body(100)


def stream(url: str) -> bytes:
    with closing(Backend("config_web", url).stream("/x", 5.0, 5.0, 100)) as found:
        return b"".join(found)


def negotiate(url: str) -> object:
    with Client(url, timeout=5) as client:
        return client.list_tools()


SENDERS = [
    pytest.param(
        lambda url: Backend("agent", url).call("POST", "/x", b"{}", 5.0).body, BackendBroken, id="a tool call"
    ),
    pytest.param(stream, BackendBroken, id="a bundle"),
    pytest.param(exchange, PeerBroken, id="bridge, relay and doctor"),
    pytest.param(negotiate, PeerBroken, id="the client"),
    pytest.param(lambda url: WdaClient(url).get("/status"), ToolFailed, id="WebDriverAgent"),
    pytest.param(lambda url: CloudHttp(url).post("/x", {}), PeerBroken, id="the cloud"),
]


@pytest.fixture(autouse=True)
def no_sockets(monkeypatch: pytest.MonkeyPatch) -> None:
    def opened(*_: object) -> None:
        pytest.fail("a socket was opened")

    monkeypatch.setattr(DeadlineSocket, "connect", opened)
    monkeypatch.setattr("socket.create_connection", opened)


@responses.activate
@pytest.mark.parametrize(("send", "error"), SENDERS)
def test_its_traffic_is_seen(send: Callable[[str], Any], error: type[Exception]) -> None:
    for method in ("GET", "POST"):
        responses.add(method, re.compile(URL), json={"value": {"ready": True}, "result": {}})
    with suppress(McpboardError):  # it may have hoped for another answer
        send(URL)
    assert responses.calls


@responses.activate
def test_no_cookie_of_one_answer_goes_out_with_the_next_request() -> None:
    responses.add("POST", re.compile(URL), body=b"{}", headers={"Set-Cookie": "session=1; Path=/"})
    agent = Backend("agent", URL)
    for path in ("/first", "/second"):
        agent.call("POST", path, b"{}", 5.0)
    assert [call.request.headers.get("Cookie") for call in responses.calls] == [None, None]


@responses.activate
@pytest.mark.parametrize(("send", "error"), [each for each in SENDERS if each.id != "the client"])
def test_an_address_that_answers_nobody_leaves_the_fate_open(
    send: Callable[[str], Any], error: type[Exception]
) -> None:
    """The client's handshake is such a request, and the call after it is then never sent."""
    with pytest.raises(error) as failed:
        send(URL)
    assert (getattr(failed.value, "data", None) or vars(failed.value)).get("delivery", UNKNOWN) == UNKNOWN
