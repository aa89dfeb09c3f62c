"""`responses` sees what every sender of the product sends, and no socket is opened under it."""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import closing, suppress
from http.client import RemoteDisconnected
from typing import Any

import pytest
import responses
from requests.exceptions import ConnectionError, ConnectTimeout, ReadTimeout
from responses import matchers
from urllib3.exceptions import ProtocolError

from mcpboard.board.backend import Backend
from mcpboard.client import Client
from mcpboard.errors import (
    NOT_SENT,
    UNKNOWN,
    BackendBroken,
    BackendTimeout,
    BackendUnreachable,
    ClientError,
    McpboardError,
    PeerBroken,
    PeerTimeout,
    PeerUnreachable,
    ToolError,
    ToolFailed,
)
from mcpboard.host.cloud.api import CloudHttp
from mcpboard.host.drivers.iphone.wda import WdaClient, WdaUnreachable, WdaUnreadable
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


def call(url: str) -> object:
    with Client(url, timeout=5) as client:
        return client.call("tap")


# A sender, and its errors where no connection was made, where time ran out, and where the connection broke.
Failure = ClientError | ToolError | ToolFailed
Failures = tuple[type[Failure], type[Failure], type[Failure]]
BOARD: Failures = (BackendUnreachable, BackendTimeout, BackendBroken)
PEER: Failures = (PeerUnreachable, PeerTimeout, PeerBroken)
WDA: Failures = (WdaUnreachable, WdaUnreachable, WdaUnreadable)
SENDERS = [
    pytest.param(lambda url: Backend("agent", url).call("POST", "/x", b"{}", 5.0).body, BOARD, id="a tool call"),
    pytest.param(stream, BOARD, id="a bundle"),
    pytest.param(exchange, PEER, id="bridge, relay and doctor"),
    pytest.param(call, PEER, id="the client"),
    pytest.param(lambda url: WdaClient(url).get("/status"), WDA, id="WebDriverAgent"),
    pytest.param(lambda url: CloudHttp(url).post("/x", {}), PEER, id="the cloud"),
]
HANDSHAKE = {"method": "server/discover"}
DISCOVERED = {"jsonrpc": "2.0", "id": 1, "result": {"supportedVersions": ["2026-07-28"], "capabilities": {}}}


@pytest.fixture(autouse=True)
def no_sockets(monkeypatch: pytest.MonkeyPatch) -> None:
    def opened(*_: object) -> None:
        pytest.fail("a socket was opened")

    monkeypatch.setattr(DeadlineSocket, "connect", opened)
    monkeypatch.setattr("socket.create_connection", opened)


@responses.activate
@pytest.mark.parametrize(("send", "failures"), SENDERS)
def test_its_traffic_is_seen(send: Callable[[str], Any], failures: Failures) -> None:
    for method in ("GET", "POST"):
        responses.add(method, re.compile(URL), json={"value": {"ready": True}, "result": {}})
    with suppress(McpboardError):  # it may have hoped for another answer
        send(URL)
    assert responses.calls


@responses.activate
@pytest.mark.parametrize(("send", "failures"), SENDERS)
@pytest.mark.parametrize(("failure", "kind", "delivery"), [
    pytest.param(ConnectTimeout(), 0, NOT_SENT, id="no connection"),
    pytest.param(ReadTimeout(), 1, UNKNOWN, id="nothing in time"),
    pytest.param(ConnectionError(), 2, UNKNOWN, id="a broken connection"),
    pytest.param(ConnectionError(ProtocolError("Aborted", RemoteDisconnected("gone"))), 2, UNKNOWN, id="a server gone"),
    pytest.param(None, 2, UNKNOWN, id="an address that is not registered"),
])  # fmt: skip
def test_a_failure_is_told_as_a_real_one_and_nothing_is_sent_twice(
    send: Callable[[str], Any], failures: Failures, failure: Exception | None, kind: int, delivery: str
) -> None:
    """Of the client it is the call that fails, after a handshake that did not."""
    match = [matchers.json_params_matcher(HANDSHAKE, strict_match=False)]
    handshake = responses.post(re.compile(URL), json=DISCOVERED, match=match)  # the first that matches counts
    for method in ("GET", "POST") if failure else ():
        responses.add(method, re.compile(URL), body=failure)
    with pytest.raises(failures[kind]) as failed:
        send(URL)
    assert type(failed.value) is failures[kind]
    assert failed.value.delivery == delivery
    assert len(responses.calls) - handshake.call_count == 1
