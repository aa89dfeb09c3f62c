"""Backends over real sockets: every way in which a loopback API can answer badly, late or not at all."""

from __future__ import annotations

import contextlib
import inspect
import logging
import socket
import struct
import subprocess
import sys
import threading
import time
import tracemalloc
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import requests.exceptions
import urllib3.exceptions

from mcpboard.board.backend import BLOCK, Backend, BackendResponse, BodyStream
from mcpboard.errors import NOT_SENT, UNKNOWN, BackendBroken, BackendTimeout, BackendUnreachable, ToolError
from mcpboard.transport import FailureKind, failure_of
from mcpboard.transport.deadline import DeadlineSocket

Script = Callable[["FakeConnection"], object]
SECRET = b'{"input":{"text":"my-pass-phrase"}}'


class FakeConnection:
    """The fake backend's end of one connection."""

    def __init__(self, sock: socket.socket, over: threading.Event) -> None:
        self.sock = sock
        self.over = over
        self.request = b""

    def read(self) -> FakeConnection:
        while b"\r\n\r\n" not in self.request:
            self._more()
        head, _, _ = self.request.partition(b"\r\n\r\n")
        length = int(head.lower().partition(b"content-length: ")[2].split(b"\r\n")[0] or 0)
        while len(self.request) < len(head) + 4 + length:
            self._more()
        return self

    def _more(self) -> None:
        got = self.sock.recv(65536)
        if not got:
            raise ConnectionError("the caller left")
        self.request += got

    def send(self, *pieces: bytes) -> FakeConnection:
        for piece in pieces:
            self.sock.sendall(piece)
        return self

    def drip(self, piece: bytes = b"x") -> None:
        while not self.over.wait(0.03):
            self.sock.sendall(piece)

    def hang(self) -> None:
        self.over.wait(20)

    def reset(self) -> FakeConnection:
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.sock.close()
        return self


class FakeBackend:
    """A backend that plays one script on every connection and remembers what it was asked."""

    def __init__(self, script: Script) -> None:
        self.script = script
        self.connections: list[FakeConnection] = []
        self._over = threading.Event()
        self._server = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._server.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        self._thread = threading.Thread(target=self._serve)
        self._thread.start()

    def _serve(self) -> None:
        while not self._over.is_set():
            sock, _ = self._server.accept()
            with sock, contextlib.suppress(OSError):
                if self._over.is_set():
                    return
                sock.settimeout(20)
                self.connections.append(FakeConnection(sock, self._over))
                self.script(self.connections[-1])

    def stop(self) -> None:
        self._over.set()
        socket.create_connection(("127.0.0.1", self.port)).close()
        self._thread.join(10)
        self._server.close()
        assert not self._thread.is_alive()


Start = Callable[[Script], FakeBackend]


@pytest.fixture
def start() -> Iterator[Start]:
    with contextlib.ExitStack() as stack:

        def started(script: Script) -> FakeBackend:
            fake = FakeBackend(script)
            stack.callback(fake.stop)
            return fake

        yield started


def head(*lines: str, status: str = "200 OK") -> bytes:
    return "\r\n".join([f"HTTP/1.1 {status}", *lines, "", ""]).encode()


def ok(body: bytes, *lines: str, status: str = "200 OK") -> bytes:
    return head(*lines, f"Content-Length: {len(body)}", status=status) + body


def chunked(*chunks: bytes) -> bytes:
    return b"".join(b"%x\r\n%b\r\n" % (len(chunk), chunk) for chunk in chunks)


CHUNKED = "Transfer-Encoding: chunked"


# --- answers -------------------------------------------------------------------------------


@pytest.mark.parametrize(("sent", "answer"), [
    pytest.param(ok(b'{"a":1}', "Content-Type: application/json"), BackendResponse(200, "application/json", b'{"a":1}'), id="length"),
    pytest.param(head(CHUNKED) + chunked(b"ab", b"c", b""), BackendResponse(200, "", b"abc"), id="chunks"),
    pytest.param(head() + b'{"ok":', BackendResponse(200, "", b'{"ok":'), id="no length: closing is the end"),
    pytest.param(ok(b""), BackendResponse(200, "", b""), id="200 with nothing"),
    pytest.param(head(status="204 No Content"), BackendResponse(204, "", b""), id="204"),
    pytest.param(ok(b"gone", status="404 Not Found"), BackendResponse(404, "", b"gone"), id="404"),
    pytest.param(ok(b"<p>" * 300_000, status="500 Oops"), BackendResponse(500, "", b"<p>" * 300_000), id="500 with 900 kB"),
    pytest.param(head("", status="100 Continue")[:-2] + ok(b"x"), BackendResponse(200, "", b"x"), id="100 before it"),
    pytest.param(ok(b"x", "Content-Encoding: identity"), BackendResponse(200, "", b"x"), id="labelled as not compressed"),
    pytest.param(ok(b"x", "Content-Length: 1"), BackendResponse(200, "", b"x"), id="the same length in two lines"),
    pytest.param(ok(b"x", "Transfer-Encoding: identity"), BackendResponse(200, "", b"x"), id="a coding that is none"),
])  # fmt: skip
def test_an_answer_is_handed_on_as_it_is(start: Start, sent: bytes, answer: BackendResponse) -> None:
    fake = start(lambda connection: connection.read().send(sent))
    assert Backend("agent", fake.url).call("POST", "/api/tools/screenshot", SECRET, 5) == answer
    assert len(fake.connections) == 1


def test_the_request_is_plain_fresh_and_closes(start: Start) -> None:
    fake = start(lambda connection: connection.read().send(ok(b"x")))
    backend = Backend("agent", fake.url + "/")
    for _ in range(2):
        backend.call("POST", "/api/tools/x", SECRET, 5)
    first, second = (connection.request for connection in fake.connections)
    lines, _, body = first.partition(b"\r\n\r\n")
    assert lines.split(b"\r\n")[0] == b"POST /api/tools/x HTTP/1.1"
    assert {b"Connection: close", b"Accept-Encoding: identity", b"Host: 127.0.0.1:%d" % fake.port} <= set(
        lines.split(b"\r\n")
    )
    assert body == SECRET
    assert first == second


@pytest.mark.parametrize(("method", "body", "lengths"), [
    pytest.param("GET", None, [], id="a request without a body"),
    pytest.param("GET", b"", [], id="a GET passed on with the body that it has not"),
    pytest.param("POST", b"", [b"0"], id="a POST of nothing"),
    pytest.param("DELETE", None, [b"0"], id="a DELETE"),
    pytest.param("POST", SECRET, [b"%d" % len(SECRET)], id="a body"),
])  # fmt: skip
def test_a_request_announces_its_length_once(
    start: Start, method: str, body: bytes | None, lengths: list[bytes]
) -> None:
    fake = start(lambda connection: connection.read().send(ok(b"x")))
    Backend("agent", fake.url).call(method, "/x", body, 5)
    lines = fake.connections[0].request.split(b"\r\n")
    assert [line.split()[1] for line in lines if line.startswith(b"Content-Length:")] == lengths


def test_while_the_answer_is_awaited_the_body_is_not_held_twice(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    """A call may wait for five minutes, and more than one may wait at a time."""
    held: list[int] = []
    receive = DeadlineSocket.recv_into

    def measured(sock: DeadlineSocket, *args: Any) -> int:
        held.append(tracemalloc.get_traced_memory()[0])
        return receive(sock, *args)

    def swallowing(connection: FakeConnection) -> None:
        while not connection.sock.recv(65536).endswith(b"!"):
            pass
        connection.send(ok(b"x"))

    monkeypatch.setattr(DeadlineSocket, "recv_into", measured)
    backend = Backend("agent", start(swallowing).url)
    backend.call("POST", "/x", b"!", 5)  # what is imported or kept for good is here now
    body = bytes(4 << 20) + b"!"
    held.clear()
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        backend.call("POST", "/x", body, 5)
    finally:
        tracemalloc.stop()
    assert max(held) - before < len(body) / 2


def test_a_localhost_address_is_tried_by_ipv4_first(start: Start) -> None:
    fake = start(lambda connection: connection.read().send(ok(b"x")))
    assert Backend("agent", f"http://localhost:{fake.port}").call("GET", "/", None, 5).status == 200


def test_a_redirect_is_an_answer_and_never_followed(start: Start) -> None:
    target = start(lambda connection: connection.read().send(ok(b"caught")))
    location = f"Location: {target.url}/elsewhere"
    fake = start(lambda connection: connection.read().send(ok(b"over there", location, status="302 Found")))
    assert Backend("agent", fake.url).call("POST", "/x", SECRET, 5) == BackendResponse(302, "", b"over there")
    assert (len(fake.connections), len(target.connections)) == (1, 0)


def test_a_redirect_with_an_endless_body_is_held_to_the_limit(start: Start) -> None:
    def endless(connection: FakeConnection) -> None:
        connection.read().send(head("Location: /there", status="302 Found"))
        while not connection.over.is_set():
            connection.send(bytes(65536))

    fake = start(endless)
    with pytest.raises(BackendBroken, match="limit of 1000 bytes"):
        Backend("agent", fake.url).call("GET", "/x", None, 5, limit=1000)


def test_cookies_are_not_kept(start: Start) -> None:
    fake = start(lambda connection: connection.read().send(ok(b"x", "Set-Cookie: crumb=1; Path=/")))
    backend = Backend("agent", fake.url)
    for _ in range(2):
        backend.call("GET", "/x", None, 5)
    assert all(b"crumb" not in connection.request for connection in fake.connections)


def test_the_environment_changes_nothing(start: Start, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Proxy variables, a netrc entry and a certificate bundle that is missing: still direct, still anonymous."""
    proxy = start(lambda connection: connection.read().send(ok(b"proxied")))
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy", "HTTPS_PROXY"):
        monkeypatch.setenv(name, proxy.url)
    monkeypatch.setenv("NO_PROXY", "localhost")
    (tmp_path / "netrc").write_text("machine 127.0.0.1 login someone password something\n")
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(tmp_path / "missing.pem"))
    fake = start(lambda connection: connection.read().send(ok(b"direct")))
    assert Backend("agent", fake.url).call("GET", "/x", None, 5).body == b"direct"
    assert b"authorization" not in fake.connections[0].request.lower()
    assert (len(fake.connections), len(proxy.connections)) == (1, 0)


# --- failures ------------------------------------------------------------------------------

FAILURES = [
    pytest.param(lambda connection: connection.sock.close(), BackendBroken, None, id="accepts and closes"),
    pytest.param(lambda connection: connection.read().sock.close(), BackendBroken, UNKNOWN, id="reads and closes"),
    pytest.param(lambda connection: connection.read().reset(), BackendBroken, UNKNOWN, id="reads and resets"),
    pytest.param(lambda connection: connection.read().hang(), BackendTimeout, UNKNOWN, id="reads and hangs"),
    pytest.param(lambda connection: connection.read().drip(), BackendTimeout, UNKNOWN, id="a head that drips"),
    pytest.param(lambda connection: connection.read().send(head()).drip(), BackendTimeout, UNKNOWN, id="a body that drips"),
    pytest.param(lambda connection: connection.read().send(head(CHUNKED)).drip(b"1\r\nx\r\n"), BackendTimeout, UNKNOWN, id="dripping chunks"),
    pytest.param(lambda connection: connection.read().send(head(CHUNKED), chunked(b"all", b"")[:-2]).drip(b"Trailer: x\r\n"), BackendTimeout, UNKNOWN, id="a trailer that drips"),
    pytest.param(lambda connection: connection.read().send(head("Content-Length: 100"), b"eleven byte"), BackendBroken, UNKNOWN, id="shorter than announced"),
    pytest.param(lambda connection: connection.read().send(head(CHUNKED), chunked(b"half")), BackendBroken, UNKNOWN, id="no last chunk"),
    pytest.param(lambda connection: connection.read().send(head(CHUNKED), b"40\r\nhalf"), BackendBroken, UNKNOWN, id="cut within a chunk"),
    pytest.param(lambda connection: connection.read().send(head(CHUNKED), b"zz\r\n"), BackendBroken, UNKNOWN, id="a chunk size that is none"),
    pytest.param(lambda connection: connection.read().send(ok(b"plain", "Content-Encoding: gzip")), BackendBroken, UNKNOWN, id="gzip label"),
    pytest.param(lambda connection: connection.read().send(head("Content-Length: 5", "Content-Length: 6"), b"which"), BackendBroken, UNKNOWN, id="two lengths"),
    pytest.param(lambda connection: connection.read().send(head("Content-Length: 9, 9"), b"short"), BackendBroken, UNKNOWN, id="a length listed twice in one line, and not reached"),
    pytest.param(lambda connection: connection.read().send(head("Content-Length: nine"), b"nine byte"), BackendBroken, UNKNOWN, id="a length that is no number"),
    pytest.param(lambda connection: connection.read().send(head("Transfer-Encoding: gzip, chunked"), chunked(b"zipped", b"")), BackendBroken, UNKNOWN, id="a coding around the chunks"),
    pytest.param(lambda connection: connection.read().send(head(CHUNKED, "Transfer-Encoding: gzip"), chunked(b"zipped", b"")), BackendBroken, UNKNOWN, id="a coding in a second line"),
    pytest.param(lambda connection: connection.read().send(head(CHUNKED), b"-5\r\n", b"short"), BackendBroken, UNKNOWN, id="a chunk of less than nothing"),
    pytest.param(lambda connection: connection.read().send(head(CHUNKED), b"-1\r\n", bytes(5 << 20)).hang(), BackendBroken, UNKNOWN, id="a chunk of -1 bytes, with more than the limit behind it"),
    pytest.param(lambda connection: connection.read().send(ok(b"plain", "Content-Encoding: gzip", "Content-Encoding: identity")), BackendBroken, UNKNOWN, id="gzip label, and another that denies it"),
    pytest.param(lambda connection: connection.read().send(b"SSH-2.0-dropbear\r\n"), BackendBroken, UNKNOWN, id="not HTTP"),
    pytest.param(lambda connection: connection.read().send(head(f"X: {'x' * 70_000}")), BackendBroken, UNKNOWN, id="a header line of 70 kB"),
    pytest.param(lambda connection: connection.read().send(head(f"Content-Length: {4 << 20 | 1}")).hang(), BackendBroken, UNKNOWN, id="announced over the limit"),
    pytest.param(lambda connection: connection.read().send(head(), bytes((4 << 20) + 1)), BackendBroken, UNKNOWN, id="over the limit"),
]  # fmt: skip


@pytest.mark.parametrize(("script", "kind", "delivery"), FAILURES)
def test_a_failure_is_one_of_three_kinds_and_tells_what_became_of_it(
    start: Start, caplog: pytest.LogCaptureFixture, script: Script, kind: type[ToolError], delivery: str | None
) -> None:
    """Once asked, never twice; in time; naming backend and setting; no argument in the text or in any log."""
    caplog.set_level(logging.DEBUG)
    fake = start(script)
    backend = Backend("agent", fake.url)
    began = time.monotonic()
    with pytest.raises(kind) as failed:
        backend.call("POST", "/api/tools/enter_text", SECRET, 0.5)
    assert time.monotonic() - began < 3
    assert type(failed.value) is kind
    assert delivery in (None, failed.value.delivery)
    assert "the Agent (agent_base_url)" in failed.value.text
    assert "POST /api/tools/enter_text" in failed.value.text
    assert "pass-phrase" not in failed.value.text + caplog.text
    assert len(fake.connections) == 1
    assert backend.state()["state"] == "failing"


def test_a_timeout_names_the_seconds(start: Start) -> None:
    fake = start(FakeConnection.hang)
    with pytest.raises(BackendTimeout, match=r"did not finish GET /x within 0\.2 s"):
        Backend("config_web", fake.url).call("GET", "/x", None, 0.2)


@pytest.mark.parametrize("method", ["GET", "POST"])
def test_nobody_listening_is_unreachable_not_sent_and_tried_once(method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    tried, connect = [], DeadlineSocket.connect

    def counted(sock: DeadlineSocket, address: tuple[str, int]) -> None:
        tried.append(address)
        connect(sock, address)

    monkeypatch.setattr(DeadlineSocket, "connect", counted)
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{unused.getsockname()[1]}"
        with pytest.raises(BackendUnreachable) as failed:
            Backend("config_web", url).call(method, "/api/device/status", None, 5)
    assert len(tried) == 1
    assert failed.value.delivery == NOT_SENT
    assert f"Config Web cannot be reached at {url} (mcp_config_web_base_url)" in failed.value.text


BIG = bytes(64 << 20)  # more than the buffers of both sides hold, so that sending it must wait for the reader


def test_a_request_cut_while_it_is_sent_was_not_sent(start: Start) -> None:
    fake = start(lambda connection: (connection.sock.recv(1), connection.reset()))
    with pytest.raises(BackendBroken) as failed:
        Backend("agent", fake.url).call("POST", "/x", BIG, 5)
    assert failed.value.delivery == NOT_SENT
    assert "before the request had gone out whole" in failed.value.text


def test_a_request_still_being_sent_at_the_deadline_was_not_sent(start: Start) -> None:
    fake = start(FakeConnection.hang)
    with pytest.raises(BackendTimeout) as failed:
        Backend("agent", fake.url).call("POST", "/x", BIG, 0.3)
    assert failed.value.delivery == NOT_SENT


def test_an_early_answer_to_a_request_still_being_sent_counts(start: Start) -> None:
    """The Agent says 503 while it shuts down, without reading what comes."""
    fake = start(lambda connection: (connection.sock.recv(1), connection.send(ok(b"shutting down", status="503 Soon"))))
    assert Backend("agent", fake.url).call("POST", "/x", BIG, 5) == BackendResponse(503, "", b"shutting down")


def test_a_bug_of_ours_is_not_dressed_up_as_a_backend_failure(start: Start) -> None:
    fake = start(FakeConnection.hang)
    with pytest.raises(TypeError):
        Backend("agent", fake.url).call("GET", 5, None, 5)  # type: ignore[arg-type]


# --- streams -------------------------------------------------------------------------------


def stream(fake: FakeBackend, seconds: float = 5, total: float = 5, limit: int = 1 << 20) -> BodyStream:
    return Backend("config_web", fake.url).stream("/api/logs/support", seconds, total, limit)


@pytest.mark.parametrize(("sent", "length"), [
    pytest.param(ok(bytes(100_000)), 100_000, id="announced"),
    pytest.param(head(CHUNKED) + chunked(bytes(60_000), bytes(40_000), b""), None, id="chunked"),
    pytest.param(head() + bytes(100_000), None, id="until it closes"),
])  # fmt: skip
def test_a_stream_gives_all_bytes_in_blocks(start: Start, sent: bytes, length: int | None) -> None:
    fake = start(lambda connection: connection.read().send(sent))
    with contextlib.closing(stream(fake)) as body:
        blocks = list(body)
        assert next(body, None) is None
    assert body.length == length
    assert b"".join(blocks) == bytes(100_000)
    assert max(map(len, blocks)) <= BLOCK


def test_the_first_block_is_here_before_the_stream_is_returned(start: Start) -> None:
    going_out = threading.Event()

    def script(connection: FakeConnection) -> None:
        connection.read().send(head(f"Content-Length: {2 * BLOCK}"))
        connection.over.wait(0.1)  # s; a stream that were given for its head alone would be here by now
        going_out.set()
        connection.send(bytes(BLOCK)).hang()

    with contextlib.closing(stream(start(script), total=0.3)) as body:
        assert going_out.is_set()
        assert len(next(body)) == BLOCK
        with pytest.raises(BackendTimeout, match=r"within 0\.3 s"):
            next(body)


@pytest.mark.parametrize(("sent", "begun"), [
    pytest.param(ok(b"<h1>no</h1>", status="500 Oops"), BackendResponse(500, "", b"<h1>no</h1>"), id="500"),
    pytest.param(ok(b"", "Location: /x", status="302 Found"), BackendResponse(302, "", b""), id="a redirect"),
    pytest.param(ok(b"<p>" * 99_000, status="404 Gone"), BackendResponse(404, "", (b"<p>" * 99_000)[:BLOCK]), id="long"),
])  # fmt: skip
def test_another_answer_than_the_body_is_known_by_its_first_block(
    start: Start, sent: bytes, begun: BackendResponse
) -> None:
    fake = start(lambda connection: connection.read().send(sent))
    with contextlib.closing(stream(fake)) as body:
        assert body.begin() == body.begin() == begun


EARLY = [
    pytest.param(head(f"Content-Length: {(1 << 20) + 1}"), "support_bundle_max_bytes", id="too big"),
    pytest.param(head("Content-Length: 9") + b"short", "ended after 5 of 9 bytes", id="a short first block"),
    pytest.param(ok(b"x", "Content-Encoding: gzip"), "compressed", id="gzip label"),
]


@pytest.mark.parametrize(("sent", "words"), EARLY)
def test_an_early_failure_is_raised_before_any_byte_is_handed_out(start: Start, sent: bytes, words: str) -> None:
    fake = start(lambda connection: connection.read().send(sent))
    with pytest.raises(BackendBroken, match=words):
        stream(fake)
    assert len(fake.connections) == 1


def test_a_first_block_that_does_not_come_is_a_timeout(start: Start) -> None:
    fake = start(lambda connection: connection.read().send(head()).drip())
    with pytest.raises(BackendTimeout, match=r"within 0\.3 s"):
        stream(fake, seconds=0.3)


LATE = [
    pytest.param(lambda connection: connection.read().send(head(f"Content-Length: {3 * BLOCK}"), bytes(BLOCK + 9)), BackendBroken, id="shorter than announced"),
    pytest.param(lambda connection: connection.read().send(head(CHUNKED), chunked(bytes(BLOCK + 9))), BackendBroken, id="cut chunks"),
    pytest.param(lambda connection: connection.read().send(head(), bytes((1 << 20) + 1)), BackendBroken, id="over the limit"),
    pytest.param(lambda connection: connection.read().send(head(), bytes(BLOCK + 9)).drip(), BackendTimeout, id="drips over the total time"),
]  # fmt: skip


@pytest.mark.parametrize(("script", "kind"), LATE)
def test_a_source_that_dies_midway_raises_instead_of_ending(
    start: Start, script: Script, kind: type[ToolError]
) -> None:
    fake = start(script)
    with contextlib.closing(stream(fake, total=0.5)) as body:
        with pytest.raises(kind):
            list(body)
        with pytest.raises(ToolError):
            list(body)


def test_closing_early_lets_go_of_the_source_and_is_no_end(start: Start) -> None:
    left = threading.Event()

    def script(connection: FakeConnection) -> None:
        connection.read().send(head(), bytes(BLOCK))
        with contextlib.suppress(ConnectionError):
            connection.sock.recv(1)
        left.set()

    body = stream(start(script))
    next(body)
    body.close()
    body.close()
    assert left.wait(5)
    with pytest.raises(BackendBroken):
        next(body)


def test_a_stream_that_is_never_iterated_can_be_closed(start: Start) -> None:
    fake = start(lambda connection: connection.read().send(ok(b"x")))
    stream(fake).close()


# --- last seen -----------------------------------------------------------------------------


def test_last_seen_is_nothing_then_how_and_how_long_ago(start: Start) -> None:
    now = [100.0]
    fake = start(lambda connection: connection.read().send(ok(b"", status="503 Soon")))
    backend = Backend("agent", fake.url, lambda: now[0])
    before = backend.state()
    backend.call("GET", "/health", None, 5)
    now[0] += 7
    assert before == {"state": "not asked yet"}
    assert backend.state() == {"state": "ok", "seconds_ago": 7.0}


# --- words and tables ----------------------------------------------------------------------


def errors_of(module: ModuleType) -> list[type[Exception]]:
    kinds = [kind for _, kind in inspect.getmembers(module, inspect.isclass) if kind.__module__ == module.__name__]
    return [kind for kind in kinds if issubclass(kind, Exception) and not issubclass(kind, Warning)]


@pytest.mark.parametrize("error", errors_of(requests.exceptions) + errors_of(urllib3.exceptions))
def test_no_error_of_requests_or_urllib3_is_left_untranslated(error: type[Exception]) -> None:
    assert failure_of(error) is not None


@pytest.mark.parametrize(("error", "kind"), [
    pytest.param(requests.exceptions.ConnectTimeout, FailureKind.UNREACHABLE, id="a connect timeout is no timeout"),
    pytest.param(requests.exceptions.ReadTimeout, FailureKind.TIMEOUT, id="read timeout of requests"),
    pytest.param(requests.exceptions.ConnectionError, FailureKind.BROKEN, id="connection error of requests"),
    pytest.param(urllib3.exceptions.NewConnectionError, FailureKind.UNREACHABLE, id="no connection"),
    pytest.param(urllib3.exceptions.ReadTimeoutError, FailureKind.TIMEOUT, id="read timeout of urllib3"),
    pytest.param(urllib3.exceptions.ProtocolError, FailureKind.BROKEN, id="protocol error"),
    pytest.param(ConnectionResetError, FailureKind.BROKEN, id="reset"),
    pytest.param(KeyError, None, id="a bug"),
])  # fmt: skip
def test_the_most_specific_kind_counts(error: type[Exception], kind: FailureKind | None) -> None:
    assert failure_of(error) is kind


def test_requests_is_not_imported_before_the_first_request() -> None:
    """An idle server does without its memory."""
    program = (
        "import sys\n"
        "from mcpboard.board.backend import Backend\n"
        "Backend('agent', 'http://127.0.0.1:1')\n"
        "sys.exit(bool({'requests', 'urllib3'} & set(sys.modules)))\n"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False, timeout=30).returncode == 0
