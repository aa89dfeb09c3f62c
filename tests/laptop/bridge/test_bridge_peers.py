"""The bridge in front of servers that are not boards: older, with sessions, gone, broken, or no MCP at all."""

from __future__ import annotations

import io
import json
import socket
import threading
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from mcpboard.laptop.bridge import Bridge
from mcpboard.laptop.bridge.stdio import LineWriter
from mcpboard.laptop.bridge.upstream import Upstream
from mcpboard.transport.http import HttpClient
from tests.support.peer import Peer, Raw, serving
from tests.support.piped import ENVELOPE, LIMIT_S

INITIALIZE = {"protocolVersion": "2024-11-05", "capabilities": {}, "clientInfo": {"name": "old", "version": "1"}}
STATUS = {"name": "status", "arguments": {}}


class Script:
    """Standard input and output of a client that sends its next line when the one before is answered."""

    def __init__(self, *lines: bytes, meanwhile: Mapping[int, Callable[[], None]] | None = None) -> None:
        self.written = io.BytesIO()
        self._lines = list(lines)
        self._meanwhile = meanwhile or {}
        self._owed = 0
        self._sent = 0
        self._news = threading.Condition()

    def write(self, data: bytes | memoryview, /) -> int:
        with self._news:
            self._news.notify_all()
            return self.written.write(data)

    def readline(self, limit: int = -1, /) -> bytes:
        with self._news:
            assert self._news.wait_for(lambda: self.written.getvalue().count(b"\n") >= self._owed, LIMIT_S)
        if self._sent == len(self._lines):
            return b""
        self._meanwhile.get(self._sent, lambda: None)()
        line = self._lines[self._sent]
        self._sent += 1
        self._owed += b'"id"' in line
        return line + b"\n"

    @property
    def answers(self) -> list[Any]:
        return [json.loads(line) for line in self.written.getvalue().splitlines()]


def request(number: Any, method: str, params: Mapping[str, Any] | None = None, *, modern: bool = False) -> bytes:
    message: dict[str, Any] = {"jsonrpc": "2.0", "id": number, "method": method}
    if modern:
        message["params"] = {**(params or {}), "_meta": ENVELOPE}
    elif params is not None:
        message["params"] = params
    return json.dumps(message).encode()


def through(
    url: str, *lines: bytes, wait: float = 0.0, meanwhile: Mapping[int, Callable[[], None]] | None = None, **link: Any
) -> list[Any]:
    """What comes back for `lines`, each sent when the one before was answered."""
    script = Script(*lines, meanwhile=meanwhile)
    source: Any = script
    Bridge(Upstream(HttpClient(url, **link), wait), LineWriter(script)).run(source)
    return script.answers


def test_an_old_client_meets_an_old_server() -> None:
    with serving(Peer(legacy=True)) as peer:
        hello, listed, status, pong = through(
            peer.url,
            request(0, "initialize", INITIALIZE),
            request(1, "tools/list"),
            request(2, "tools/call", STATUS),
            request(3, "ping"),
        )
    assert hello["result"]["protocolVersion"] == "2024-11-05"
    assert hello["result"]["serverInfo"] == {"name": "peer", "title": "Peer", "version": "7"}
    assert len(listed["result"]["tools"]) == 5
    assert status["result"]["content"][0]["text"] == "all is well"
    assert pong["result"] == {}
    assert peer.methods[:3] == ["server/discover", "initialize", "notifications/initialized"]


def test_a_modern_probe_of_an_old_server_is_answered_so_that_the_client_falls_back() -> None:
    with serving(Peer(legacy=True)) as peer:
        probe, hello = through(
            peer.url, request(0, "server/discover", modern=True), request(1, "initialize", INITIALIZE)
        )
    assert probe["error"]["code"] == -32601
    assert "initialize" in probe["error"]["message"]
    assert hello["result"]["protocolVersion"] == "2024-11-05"


def test_an_older_clients_call_reaches_a_modern_server_in_its_envelope() -> None:
    with serving(Peer()) as peer:
        link: dict[str, Any] = {"token": "0123456789abcdef", "headers": [("X-Room", "7")]}
        through(peer.url, request(0, "initialize", INITIALIZE), request(1, "tools/call", STATUS), **link)
    sent = peer.headers[-1]
    assert (sent["authorization"], sent["x-room"]) == ("Bearer 0123456789abcdef", "7")
    assert (sent["mcp-protocol-version"], sent["mcp-method"], sent["mcp-name"]) == (
        "2026-07-28", "tools/call", "status",
    )  # fmt: skip
    assert peer.methods == ["server/discover", "tools/call"]


def test_a_session_that_the_server_lost_is_opened_anew_and_the_call_done_once() -> None:
    losses: list[None] = []

    def known(session: str, principal: str) -> bool:
        return peer.methods.count("initialize") > len(losses)

    with serving(Peer(legacy=True, knows_session=known)) as peer:
        answers = through(
            peer.url,
            request(0, "initialize", INITIALIZE),
            request(1, "tools/call", STATUS),
            request(2, "tools/call", STATUS),
            meanwhile={2: lambda: losses.append(None)},
        )
    assert all("result" in answer for answer in answers)
    assert peer.methods.count("tools/call") == 3  # one of them was refused before it ran


def test_the_session_is_ended_with_the_bridge() -> None:
    with serving(Peer(legacy=True, knows_session=lambda session, principal: True)) as peer:
        through(peer.url, request(0, "initialize", INITIALIZE))
    assert peer.ended == ["s-1"]


# --- answers made of bytes -----------------------------------------------------------------------

RESULT = b'{"jsonrpc":"2.0","id":7,"result":{"content":[]}}'
LARGE = b'{"jsonrpc":"2.0","id":7,"result":\n{"content":["' + b"x" * (2 << 20) + b'"]}\r\n}\n'


def http(body: bytes, status: str = "200 OK", kind: str = "application/json", length: int | None = None) -> bytes:
    size = len(body) if length is None else length
    head = f"HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {size}\r\nConnection: close\r\n\r\n"
    return head.encode() + body


def says(answer: bytes) -> Callable[[socket.socket, threading.Event], None]:
    return lambda sock, over: sock.sendall(answer)


OPENED = http(
    b'{"jsonrpc":"2.0","id":2,"result":{"protocolVersion":"2025-11-25","capabilities":{},"serverInfo":{}}}'
).replace(b"\r\n", b"\r\nMcp-Session-Id: one\r\n", 1)


@pytest.mark.parametrize("told", [
    pytest.param(b'"result":{"content":[]}', id="a result"),
    pytest.param(b'"error":{"code":-32000,"message":"x","data":{"delivery":"done"}}', id="done"),
    pytest.param(b'"error":{"code":-32001,"message":"x","data":{"delivery":"unknown"}}', id="unknown"),
])  # fmt: skip
def test_a_404_that_tells_of_execution_does_not_repeat_the_call(told: bytes) -> None:
    """As a lost session does, whose 404 says that nothing was done."""
    handshake = [says(http(b"", "404 No")), says(OPENED), says(http(b"", "202 Accepted"))]
    answer = http(b'{"jsonrpc":"2.0","id":7,%s}' % told, "404 No")
    with Raw(*handshake, says(answer), says(http(b"", "204 Bye")), *handshake, says(answer)) as raw:
        (message,) = through(raw.url, request(7, "tools/call", STATUS))
    assert sum(b'"tools/call"' in each for each in raw.requests) == 1
    assert message["error"]["data"]["delivery"] in ("done", "unknown")


def called(*behaviours: Callable[[socket.socket, threading.Event], None], wait: float = 0.0) -> Any:
    """The answer to one modern tools/call by a server that behaves so."""
    with Raw(*behaviours) as raw:
        (answer,) = through(raw.url, request(7, "tools/call", STATUS, modern=True), wait=wait)
    assert answer["id"] == 7
    return answer


@pytest.mark.parametrize("answer", [
    pytest.param(http(RESULT), id="plain"),
    pytest.param(http(b'{\r\n "jsonrpc": "2.0",\n "id": 7,\n "result": {"content": []}\n}\n'), id="pretty-printed"),
    pytest.param(http(LARGE), id="larger than what is parsed"),
    pytest.param(http(b'data: {"method":"x"}\n\ndata: ' + RESULT + b"\n\n", kind="text/event-stream"), id="events"),
])  # fmt: skip
def test_an_answer_becomes_one_line(answer: bytes) -> None:
    assert "content" in called(says(answer))["result"]


@pytest.mark.parametrize(("answer", "code", "words"), [
    pytest.param(http(b"", "401 Unauthorized"), -32603, "--token-file", id="a token is wanted"),
    pytest.param(http(b'{"jsonrpc":"2.0","error":{"code":-32600,"message":"no"}}', "413 Too Large"), -32600, "no", id="an error without id"),
    pytest.param(http(b'{"jsonrpc":"2.0","id":7,"error":{"code":-32020,"message":"mismatch"}}', "400 Bad Request"), -32020, "mismatch", id="an error at 400"),
    pytest.param(http(LARGE.replace(b"xx", b"\xff\xff", 1)), -32603, "UTF-8", id="a large answer that is no text"),
    pytest.param(http(b"[" + LARGE + b"]"), -32603, "one JSON object", id="a large answer that is no object"),
    pytest.param(http(RESULT, length=99), -32603, "broke off", id="half an answer"),
    pytest.param(b"SSH-2.0-dropbear\r\n", -32603, "does not speak HTTP", id="another protocol"),
    pytest.param(b"", -32603, "hung up", id="nothing"),
])  # fmt: skip
def test_what_is_no_answer_becomes_an_error_with_the_requests_id(answer: bytes, code: int, words: str) -> None:
    error = called(says(answer))["error"]
    assert error["code"] == code
    assert words in error["message"]


def test_a_call_whose_answer_was_lost_is_never_made_again() -> None:
    error = called(says(b""), says(http(RESULT)), wait=5.0)["error"]
    assert error["data"] == {"delivery": "unknown"}


def test_a_list_whose_answer_was_lost_is_asked_for_again() -> None:
    with Raw(says(b""), says(http(RESULT))) as raw:
        (answer,) = through(raw.url, request(7, "tools/list", modern=True), wait=5.0)
    assert "result" in answer


def test_a_cancelled_call_ends_its_connection() -> None:
    arrived, left = threading.Event(), threading.Event()

    def behave(sock: socket.socket, over: threading.Event) -> None:
        arrived.set()
        if sock.recv(1) == b"":
            left.set()

    cancel = b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":7}}'
    with Raw(behave) as raw:
        lines = iter([request(7, "tools/call", STATUS, modern=True) + b"\n", cancel + b"\n", b""])

        class Client(Script):
            def readline(self, limit: int = -1, /) -> bytes:
                line = next(lines)
                if line == cancel + b"\n":
                    assert arrived.wait(LIMIT_S)
                if line == b"":
                    assert left.wait(LIMIT_S)
                return line

        client: Any = Client()
        Bridge(Upstream(HttpClient(raw.url), 0.0), LineWriter(client)).run(client)
    assert client.answers == []


# --- the fate is told, whatever happens ----------------------------------------------------------


def no_memory(*_: object) -> Any:
    raise MemoryError


@pytest.mark.parametrize(("place", "failing"), [
    pytest.param("mcpboard.laptop.bridge.Spool.line", no_memory, id="while the answer is read"),
    pytest.param("mcpboard.laptop.bridge.upstream.Spool.__init__", no_memory, id="while it arrives"),
    pytest.param("mcpboard.transport.http.StreamedResponse.__init__", no_memory, id="at its head"),
])  # fmt: skip
def test_a_failure_of_the_bridge_after_a_call_was_sent_leaves_its_fate_open(
    monkeypatch: pytest.MonkeyPatch, place: str, failing: Any
) -> None:
    monkeypatch.setattr(place.replace("bridge.Spool", "bridge.upstream.Spool"), failing)
    error = called(says(http(RESULT)))["error"]
    assert error["data"] == {"delivery": "unknown"}
    assert "MemoryError" in error["message"]
    assert "may have been executed" in error["message"]


def test_a_line_that_breaks_off_is_ended_and_answered_on_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    def half(*_: object) -> Any:
        yield b'{"jsonrpc":"2.0",'
        raise MemoryError

    monkeypatch.setattr("mcpboard.laptop.bridge.upstream.Spool.line", half)
    script = Script(request(7, "tools/call", STATUS, modern=True))
    source: Any = script
    with Raw(says(http(RESULT))) as raw:
        Bridge(Upstream(HttpClient(raw.url), 0.0), LineWriter(script)).run(source)
    torn, told = script.written.getvalue().splitlines()
    assert torn == b'{"jsonrpc":"2.0",'
    assert json.loads(told)["error"]["data"] == {"delivery": "unknown"}


def test_a_thread_that_cannot_start_is_an_answer_and_the_bridge_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    start = threading.Thread.start
    failures = [RuntimeError("can't start new thread")]

    def starting(thread: threading.Thread) -> None:
        if thread.name == "tools/call" and failures:
            raise failures.pop()
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", starting)
    with serving(Peer()) as peer:
        call = request(1, "tools/call", STATUS, modern=True)
        refused, answered = through(peer.url, call, call)
    assert refused["error"]["data"] == {"delivery": "not_sent"}
    assert "result" in answered
    assert peer.methods == ["tools/call"]


@pytest.mark.parametrize(
    "arguments",
    [pytest.param(b"[" * 65 + b"]" * 65, id="65 levels"), pytest.param(b"[" * 200_000, id="200,000 levels")],
)
def test_a_request_of_too_many_levels_is_refused_before_it_is_parsed(arguments: bytes) -> None:
    line = b'{"jsonrpc":"2.0","id":null,"method":"tools/call","params":{"name":"tap","arguments":{"a":%s}}}' % arguments
    with serving(Peer()) as peer:
        (answer,) = through(peer.url, line)
    assert answer["error"]["code"] == -32700
    assert "64 levels" in answer["error"]["message"]
    assert peer.methods == []
