"""The one way out, in front of the board's own backend and of WebDriverAgent: interim answers before the real one."""

from __future__ import annotations

import logging
import socket
import threading
from collections.abc import Callable
from typing import Any

import pytest
import requests
import urllib3

from mcpboard.board.backend import Backend
from mcpboard.errors import NOT_SENT, UNKNOWN, BackendBroken, BackendTimeout, BackendUnreachable, PeerUnreachable
from mcpboard.host.drivers.iphone.wda import WdaClient, WdaUnreachable
from mcpboard.protocol.client_session import HttpRequest
from mcpboard.transport.deadline import Deadline, DeadlineSocket, connect
from mcpboard.transport.http import HttpClient
from tests.support.peer import Raw

INTERIM = b"HTTP/1.1 103 Early Hints\r\nLink: </x>\r\nX: y\r\n\r\n"


def backend(url: str) -> object:
    return Backend("agent", url.removesuffix("/mcp")).call("POST", "/api/tools/tap", b"{}", 5.0).body


def wda(url: str) -> object:
    return WdaClient(url.removesuffix("/mcp"))._send("POST", "/session/1/wda/tap", {}, 5.0)["value"]


@pytest.mark.parametrize(("ask", "expected"), [(backend, b'{"value":{"a":1}}'), (wda, {"a": 1})])
@pytest.mark.parametrize("count", [1, 64])
def test_interim_answers_are_read_past(ask: Callable[[str], object], expected: object, count: int) -> None:
    body = b'{"value":{"a":1}}'
    answer = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body)
    with Raw(lambda sock, over: sock.sendall(INTERIM * count + answer)) as raw:
        assert ask(raw.url) == expected


@pytest.mark.parametrize(("ask", "failure"), [(backend, BackendBroken), (wda, WdaUnreachable)])
def test_interim_answers_without_end_leave_the_fate_open(
    ask: Callable[[str], object], failure: type[Exception]
) -> None:
    with Raw(lambda sock, over: sock.sendall(INTERIM * 500)) as raw, pytest.raises(failure) as caught:
        ask(raw.url)
    assert (getattr(caught.value, "data", None) or vars(caught.value)).get("delivery", UNKNOWN) == UNKNOWN


# --- one connection, one try ---------------------------------------------------------------------


def kept(sock: socket.socket, over: threading.Event) -> None:
    """Answer with a cookie, and keep the connection until the client ends it."""
    sock.sendall(b"HTTP/1.1 200 OK\r\nSet-Cookie: a=b; Path=/\r\nContent-Length: 2\r\n\r\n{}")
    assert sock.recv(1) == b""


def test_a_server_that_keeps_connections_gets_one_for_each_request_and_no_cookie_back() -> None:
    """And nothing of the environment's: no netrc, no proxy."""
    with Raw(kept, kept, kept) as raw:
        agent = Backend("agent", raw.url.removesuffix("/mcp"))
        for _ in range(3):
            assert agent.call("POST", "/x", b"{}", 5.0).body == b"{}"
        assert len(raw.requests) == 3
    for request in raw.requests:
        assert b"Connection: close" in request
        assert b"Cookie" not in request


@pytest.mark.parametrize("method", ["GET", "POST"])
@pytest.mark.parametrize("answer", [b"", b"HTTP/1.1 2", b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{"])
def test_a_server_that_hangs_up_is_asked_once(method: str, answer: bytes) -> None:
    def hang_up(sock: socket.socket, over: threading.Event) -> None:
        sock.sendall(answer)

    with Raw(hang_up, hang_up) as raw:
        with pytest.raises(BackendBroken) as failed:
            Backend("agent", raw.url.removesuffix("/mcp")).call(method, "/x", b"{}" if method == "POST" else None, 5.0)
        assert len(raw.requests) == 1
    assert failed.value.delivery == UNKNOWN


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_redirect_is_an_answer_whose_body_is_not_read_past_the_limit(status: int) -> None:
    def redirect(sock: socket.socket, over: threading.Event) -> None:
        sock.sendall(b"HTTP/1.1 %d Moved\r\nLocation: /there\r\nContent-Length: 99999999999\r\n\r\n" % status)
        assert sock.recv(1) == b""

    with Raw(redirect) as raw:
        with pytest.raises(BackendBroken, match="over the limit"):
            Backend("agent", raw.url.removesuffix("/mcp")).call("POST", "/x", b"{}", 5.0)
        assert len(raw.requests) == 1


def test_nothing_of_a_damaged_head_gets_into_the_log(caplog: pytest.LogCaptureFixture) -> None:
    """Neither what is no header, nor a folded one; what is left of the head counts."""
    head = b"HTTP/1.1 200 OK\r\nX-Long: secret\r\n one\r\nContent-Length: 2\r\nsecret line\r\n\r\n{}"
    caplog.set_level(logging.INFO)
    with Raw(lambda sock, over: sock.sendall(head)) as raw:
        assert Backend("agent", raw.url.removesuffix("/mcp")).call("GET", "/x", None, 5.0).body == b"{}"
    assert "secret" not in caplog.text
    assert not caplog.records


# --- how far a request had gone ------------------------------------------------------------------


class CutBelow(socket.socket):
    """A connection that breaks when so many bytes have left."""

    cut = 0
    error: type[OSError] | None = None

    def sendall(self, data: Any, *_: Any) -> None:
        super().sendall(data[: self.cut])
        if self.cut < len(data) and self.error is not None:
            raise self.error


class CutSocket(DeadlineSocket, CutBelow):
    """The same within a deadline."""

    def __init__(self, sock: socket.socket, deadline: Deadline) -> None:
        CutBelow.__init__(self, fileno=sock.detach())
        self.deadline = deadline


@pytest.mark.parametrize("error", [BrokenPipeError, ConnectionResetError, ConnectionAbortedError, TimeoutError])
def test_a_request_that_is_cut_at_any_byte_but_the_last_was_not_sent(
    error: type[OSError], monkeypatch: pytest.MonkeyPatch
) -> None:
    """And one that left whole may have been executed, whoever hangs up then."""
    monkeypatch.setattr(CutBelow, "error", error)
    monkeypatch.setattr(CutBelow, "cut", 0)
    body, left = b"the body", b""
    peers = []

    def connected(addresses: object, port: int, deadline: Deadline) -> CutSocket:
        ours, peer = socket.socketpair()
        peer.shutdown(socket.SHUT_WR)
        peers.append(peer)
        return CutSocket(ours, deadline)

    monkeypatch.setattr("mcpboard.board.backend.connect", connected)
    while not left.endswith(body):
        with pytest.raises((BackendBroken, BackendTimeout)) as failed:
            Backend("agent", "http://127.0.0.1:9").call("POST", "/x", body, 5.0)
        with peers.pop() as peer:
            left = peer.recv(10_000)
        assert len(left) == CutBelow.cut
        assert failed.value.delivery == (UNKNOWN if left.endswith(body) else NOT_SENT)
        CutBelow.cut += 1
    assert CutBelow.cut > 100
    assert not peers


# --- where a request goes ------------------------------------------------------------------------


@pytest.mark.parametrize(("url", "address", "host"), [
    ("http://[::1]/mcp", ("::1", 80), b"[::1]"),
    ("http://[::1]:8080/mcp", ("::1", 8080), b"[::1]:8080"),
    ("http://[fe80::1%usb0]:8080/mcp", ("fe80::1%usb0", 8080), b"[fe80::1]:8080"),  # a board at the end of a cable
    ("http://[fe80::1%25usb0]:8080/mcp", ("fe80::1%usb0", 8080), b"[fe80::1]:8080"),
    ("http://[FE80::1%25Eth0]/mcp", ("fe80::1%Eth0", 80), b"[FE80::1]"),
    ("http://[fe80::1%253]/mcp", ("fe80::1%3", 80), b"[fe80::1]"),
    ("http://board/mcp", ("board", 80), b"board"),
    ("http://board.local.:80/mcp", ("board.local.", 80), None),
])  # fmt: skip
def test_the_address_of_a_url_is_connected_to(url: str, address: tuple[str, int], host: bytes | None) -> None:
    found = []

    with Raw(lambda sock, over: sock.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}")) as raw:

        def listening(host: str, port: int, deadline: Deadline) -> DeadlineSocket:
            found.append((host, port))
            return connect(["127.0.0.1"], HttpClient(raw.url).address[1], deadline)

        client = HttpClient(url, connect=listening)
        with client.exchange(HttpRequest({}, b"{}"), Deadline(5)) as response:
            assert response.body(9) == b"{}"
    assert found == [address]
    assert host is None or b"\r\nHost: %s\r\n" % host in raw.requests[0]


@pytest.mark.parametrize("seconds", [0.0, -1.0])
def test_a_deadline_that_is_over_sends_nothing(seconds: float) -> None:
    """Told as any other time that ran out while connecting."""
    with pytest.raises(BackendUnreachable) as refused:
        Backend("agent", "http://127.0.0.1:9").call("POST", "/x", b"{}", seconds)
    assert refused.value.delivery == NOT_SENT
    client = HttpClient("http://127.0.0.1:9")
    with pytest.raises(PeerUnreachable, match="is over"), client.exchange(HttpRequest({}, b"{}"), Deadline(seconds)):
        pass


def test_no_store_of_certificates_but_the_system_s_is_looked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """That of requests is missing where a distribution left it out; then every https request would fail."""
    monkeypatch.setattr(requests.adapters, "DEFAULT_CA_BUNDLE_PATH", "/nowhere.pem")

    def refuse(host: str, port: int, deadline: Deadline) -> DeadlineSocket:
        raise ConnectionRefusedError(f"nobody at port {port}")

    client = HttpClient("https://127.0.0.1", connect=refuse)
    with pytest.raises(PeerUnreachable, match="at port 443"), client.exchange(HttpRequest({}, b"{}"), Deadline(5)):
        pass


# --- pieces --------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", ["this urllib3", "one before 2.2"])
@pytest.mark.parametrize("head", [b"Content-Length: 8\r\n\r\n", b"Transfer-Encoding: chunked\r\n\r\n", b"\r\n"])
def test_a_body_is_given_piece_by_piece_as_it_comes(head: bytes, version: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if version != "this urllib3":
        for response_type in urllib3.HTTPResponse.__mro__[:2]:
            monkeypatch.delattr(response_type, "read1", raising=False)
    first_is_read = threading.Event()

    def trickle(sock: socket.socket, over: threading.Event) -> None:
        framed = b"4\r\n%s\r\n" if b"chunked" in head else b"%s"
        sock.sendall(b"HTTP/1.1 200 OK\r\n" + head + framed % b"one,")
        assert first_is_read.wait(5)
        sock.sendall(framed % b"two." + (b"0\r\n\r\n" if b"chunked" in head else b""))

    with Raw(trickle) as raw, HttpClient(raw.url).exchange(HttpRequest({}, b"{}"), Deadline(5)) as response:
        pieces = response.pieces()
        assert next(pieces) == b"one,"
        first_is_read.set()
        assert b"".join(pieces) == b"two."
