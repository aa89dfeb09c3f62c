"""Backends over real sockets: what framing and content of an answer become; cuts and resets are in tests/functional."""

from __future__ import annotations

import contextlib
import inspect
import logging
import queue
import socket
import subprocess
import sys
import threading
import tracemalloc
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

import pytest
import requests.exceptions
import urllib3.exceptions

from mcpboard.board.backend import BLOCK, Backend, BackendResponse, BodyStream
from mcpboard.errors import NOT_SENT, UNKNOWN, BackendBroken, BackendTimeout, BackendUnreachable, ToolError
from mcpboard.transport import FailureKind, failure_of
from mcpboard.transport.deadline import DeadlineSocket
from tests.support.gohttp import CHUNKED, Exchange, GoServer, Script, Unread, chunked, head

BIG = b"}" + bytes(64 << 20)  # more than the buffers of both sides hold, so that sending it must wait for the reader
SECRET = b'{"input":{"text":"my-pass-phrase"}}'
Start = Callable[..., GoServer]


@pytest.fixture
def start() -> Iterator[Start]:
    """A server that sends these bytes for every request and closes, or runs the script that is given instead."""
    with contextlib.ExitStack() as stack:

        def started(answer: bytes | Script, kind: type[GoServer] = GoServer) -> GoServer:
            return stack.enter_context(kind((lambda went: went.raw(answer)) if isinstance(answer, bytes) else answer))

        yield started


def ok(body: bytes, *lines: str, status: str = "200 OK") -> bytes:
    return head(*lines, f"Content-Length: {len(body)}", status=status) + body


# --- requests and answers --------------------------------------------------------------------


@pytest.mark.parametrize(("sent", "status", "body"), [
    pytest.param(ok(b'{"a":1}'), 200, b'{"a":1}', id="length"),
    pytest.param(head(CHUNKED) + chunked(b"ab", b"c", b""), 200, b"abc", id="chunks"),
    pytest.param(head() + b'{"ok":', 200, b'{"ok":', id="no length: closing is the end"),
    pytest.param(ok(b""), 200, b"", id="200 with nothing"),
    pytest.param(head(status="204 No Content"), 204, b"", id="204"),
    pytest.param(ok(b"<p>" * 300_000, status="500 Oops"), 500, b"<p>" * 300_000, id="500 with 900 kB"),
    pytest.param(ok(b"there", "Location: http://127.0.0.1:9/", status="302 Found"), 302, b"there", id="a redirect"),
    pytest.param(head(status="100 Continue") + ok(b"x"), 200, b"x", id="100 before it"),
    pytest.param(ok(b"x", "Content-Encoding: identity"), 200, b"x", id="labelled as not compressed"),
    pytest.param(ok(b"x", "Content-Length: 1"), 200, b"x", id="the same length in two lines"),
    pytest.param(ok(b"x", "Transfer-Encoding: identity"), 200, b"x", id="a coding that is none"),
])  # fmt: skip
def test_an_answer_is_handed_on_as_it_is(start: Start, sent: bytes, status: int, body: bytes) -> None:
    fake = start(sent)
    assert Backend("agent", fake.url).call("POST", "/x", SECRET, 5) == BackendResponse(status, "", body)
    assert fake.connections == 1


@pytest.mark.parametrize(("method", "body", "length"), [
    pytest.param("GET", None, None, id="a request without a body"),
    pytest.param("GET", b"", None, id="a GET passed on with the body that it has not"),
    pytest.param("POST", b"", "0", id="a POST of nothing"),
    pytest.param("DELETE", None, "0", id="a DELETE"),
    pytest.param("POST", SECRET, str(len(SECRET)), id="a body"),
])  # fmt: skip
def test_a_request_is_plain_and_fresh_and_announces_its_length(start: Start, method: str, body: bytes | None, length: str | None) -> None:  # fmt: skip
    """Again and again; and `localhost` is found at its IPv4 address."""
    fake = start(ok(b"x", "Content-Type: text/plain"))
    backend = Backend("agent", f"http://localhost:{fake.port}/")
    for _ in range(2):
        assert backend.call(method, "/x", body, 5).content_type == "text/plain"
    for each in fake.requests:
        assert (each.method, each.path, each.body) == (method, "/x", body or b"")
        assert (each.headers["connection"], each.headers["accept-encoding"]) == ("close", "identity")
        assert each.headers.get("content-length") == length


def test_while_the_answer_is_awaited_the_body_is_not_held_twice(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    """A call may wait for five minutes, and more than one may wait at a time."""
    held: list[int] = []
    receive = DeadlineSocket.recv_into

    def measured(sock: DeadlineSocket, *args: Any) -> int:
        held.append(tracemalloc.get_traced_memory()[0])
        return receive(sock, *args)

    def swallow(went: Exchange) -> None:
        while not went.sock.recv(65536).endswith(b"!"):
            pass
        went.raw(ok(b"x"))

    monkeypatch.setattr(DeadlineSocket, "recv_into", measured)
    backend = Backend("agent", start(swallow, Unread).url)
    backend.call("POST", "/x", b"}!", 5)  # what is imported or kept for good is here now
    body = b"}" + bytes(4 << 20) + b"!"
    held.clear()
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        backend.call("POST", "/x", body, 5)
    finally:
        tracemalloc.stop()
    assert max(held) - before < len(body) / 2


def test_an_early_answer_to_a_request_still_being_sent_counts(start: Start) -> None:
    """The Agent says 503 while it shuts down, without reading what comes."""
    fake = start(ok(b"shutting down", status="503 Soon"), Unread)
    answer = Backend("agent", fake.url).call("POST", "/x", BIG, 5)
    assert answer == BackendResponse(503, "", b"shutting down")


@pytest.mark.parametrize(("script", "kind"), [(Exchange.reset, BackendBroken), (lambda went: went.over.wait(9), BackendTimeout)], ids=["cut", "time is up"])  # fmt: skip
def test_a_request_that_has_not_gone_out_whole_was_not_sent(
    start: Start, script: Script, kind: type[ToolError]
) -> None:
    with pytest.raises(kind, match="before the request had gone out whole") as failed:
        Backend("agent", start(script, Unread).url).call("POST", "/x", BIG, 0.5)
    assert failed.value.delivery == NOT_SENT


# --- failures ------------------------------------------------------------------------------

MOST = 4 << 20  # bytes of a body

BROKEN = [
    pytest.param(head("Content-Length: 100") + b"eleven byte", "after 11 of 100 bytes", id="shorter than announced"),
    pytest.param(head(CHUNKED) + chunked(b"half"), "broke off", id="no last chunk"),
    pytest.param(head(CHUNKED) + b"40\r\nhalf", "broke off", id="cut within a chunk"),
    pytest.param(head(CHUNKED) + b"zz\r\n", "broke off", id="a chunk size that is none"),
    pytest.param(head(CHUNKED) + b"-5\r\nshort", "broke off", id="a chunk of less than nothing"),
    pytest.param(head(CHUNKED) + b"-1\r\n" + bytes(MOST + 9), "broke off", id="a chunk of -1 bytes, with more than the limit behind it"),
    pytest.param(ok(b"plain", "Content-Encoding: gzip"), "compressed", id="gzip label"),
    pytest.param(ok(b"plain", "Content-Encoding: gzip", "Content-Encoding: identity"), "compressed", id="gzip label, and another that denies it"),
    pytest.param(head("Content-Length: 5", "Content-Length: 6") + b"which", "broke off", id="two lengths"),
    pytest.param(head("Content-Length: 9, 9") + b"short", "broke off", id="a length listed twice in one line, and not reached"),
    pytest.param(head("Content-Length: nine") + b"nine byte", "broke off", id="a length that is no number"),
    pytest.param(head("Transfer-Encoding: gzip, chunked") + chunked(b"zipped", b""), "broke off", id="a coding around the chunks"),
    pytest.param(head(CHUNKED, "Transfer-Encoding: gzip") + chunked(b"zipped", b""), "broke off", id="a coding in a second line"),
    pytest.param(b"SSH-2.0-dropbear\r\n", "broke off", id="not HTTP"),
    pytest.param(head(f"X: {'x' * 70_000}"), "broke off", id="a header line of 70 kB"),
    pytest.param(head(f"Content-Length: {MOST + 1}"), "limit of 4194304 bytes", id="announced over the limit"),
    pytest.param(head() + bytes(MOST + 1), "limit of 4194304 bytes", id="over the limit"),
]  # fmt: skip


@pytest.mark.parametrize(("sent", "words"), BROKEN)
def test_what_is_no_answer_is_one_error_that_names_the_backend(start: Start, caplog: pytest.LogCaptureFixture, sent: bytes, words: str) -> None:  # fmt: skip
    """Once asked, never twice; the request had gone out; no argument in the text or in any log."""
    caplog.set_level(logging.DEBUG)
    fake = start(sent)
    backend = Backend("agent", fake.url)
    with pytest.raises(BackendBroken, match=words) as failed:
        backend.call("POST", "/api/tools/enter_text", SECRET, 5)
    assert failed.value.delivery == UNKNOWN
    assert "the Agent (agent_base_url)" in failed.value.text
    assert "POST /api/tools/enter_text" in failed.value.text
    assert "pass-phrase" not in failed.value.text + caplog.text
    assert fake.connections == 1
    assert backend.state()["state"] == "failing"


@pytest.mark.parametrize("script", [
    pytest.param(lambda went: went.raw(head(CHUNKED)).drip(b"1\r\nx\r\n"), id="chunks"),
    pytest.param(lambda went: went.raw(head(CHUNKED), chunked(b"all", b"")[:-2]).drip(b"Trailer: x\r\n"), id="a trailer"),
])  # fmt: skip
def test_what_drips_is_over_in_time_and_names_the_seconds(start: Start, script: Script) -> None:
    with pytest.raises(BackendTimeout, match=r"did not finish GET /x within 0\.2 s") as failed:
        Backend("config_web", start(script).url).call("GET", "/x", None, 0.2)
    assert failed.value.delivery == UNKNOWN


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


def test_a_bug_of_ours_is_not_dressed_up_as_a_backend_failure(start: Start) -> None:
    with pytest.raises(TypeError):
        Backend("agent", start(b"").url).call("GET", 5, None, 5)  # type: ignore[arg-type]


def test_its_state_is_nothing_then_how_and_how_long_ago(start: Start) -> None:
    now = [100.0]
    backend = Backend("agent", start(ok(b"", status="503 Soon")).url, lambda: now[0])
    assert backend.state() == {"state": "not asked yet"}
    backend.call("GET", "/health", None, 5)
    now[0] += 7
    assert backend.state() == {"state": "ok", "seconds_ago": 7.0}


# --- streams -------------------------------------------------------------------------------


def stream(fake: GoServer, seconds: float = 5, total: float = 5, limit: int = 1 << 20) -> BodyStream:
    return Backend("config_web", fake.url).stream("/api/logs/support", seconds, total, limit)


@pytest.mark.parametrize(("sent", "length"), [
    pytest.param(ok(bytes(100_000)), 100_000, id="announced"),
    pytest.param(head(CHUNKED) + chunked(bytes(60_000), bytes(40_000), b""), None, id="chunked"),
    pytest.param(head() + bytes(100_000), None, id="until it closes"),
])  # fmt: skip
def test_a_stream_gives_all_bytes_in_blocks(start: Start, sent: bytes, length: int | None) -> None:
    with contextlib.closing(stream(start(sent))) as body:
        blocks = list(body)
        assert next(body, None) is None
    assert body.length == length
    assert b"".join(blocks) == bytes(100_000)
    assert max(map(len, blocks)) <= BLOCK


def test_the_first_block_is_here_before_the_stream_is_returned(start: Start) -> None:
    going_out = threading.Event()

    def script(went: Exchange) -> None:
        went.raw(head(f"Content-Length: {2 * BLOCK}"))
        went.over.wait(0.1)  # s; a stream that were given for its head alone would be here by now
        going_out.set()
        went.raw(bytes(BLOCK)).hang()

    with contextlib.closing(stream(start(script), total=0.3)) as body:
        assert going_out.is_set()
        assert len(next(body)) == BLOCK
        with pytest.raises(BackendTimeout, match=r"within 0\.3 s"):
            next(body)


@pytest.mark.parametrize(("sent", "begun"), [
    pytest.param(ok(b"", "Location: /x", status="302 Found"), BackendResponse(302, "", b""), id="a redirect"),
    pytest.param(ok(b"<p>" * 99_000, status="404 Gone"), BackendResponse(404, "", (b"<p>" * 99_000)[:BLOCK]), id="long"),
])  # fmt: skip
def test_another_answer_than_the_body_is_known_by_its_first_block(start: Start, sent: bytes, begun: BackendResponse) -> None:  # fmt: skip
    with contextlib.closing(stream(start(sent))) as body:
        assert body.begin() == body.begin() == begun


@pytest.mark.parametrize(("sent", "words"), [
    pytest.param(head(f"Content-Length: {(1 << 20) + 1}"), "support_bundle_max_bytes", id="too big"),
    pytest.param(head("Content-Length: 9") + b"short", "ended after 5 of 9 bytes", id="a short first block"),
    pytest.param(lambda went: went.raw(head()).drip(), r"within 0\.3 s", id="a first block that does not come"),
])  # fmt: skip
def test_an_early_failure_is_raised_before_any_byte_is_handed_out(start: Start, sent: bytes | Script, words: str) -> None:  # fmt: skip
    fake = start(sent)
    with pytest.raises((BackendBroken, BackendTimeout), match=words):
        stream(fake, seconds=0.3)
    assert fake.connections == 1


@pytest.mark.parametrize(("sent", "kind"), [
    pytest.param(head(f"Content-Length: {3 * BLOCK}") + bytes(BLOCK + 9), BackendBroken, id="shorter than announced"),
    pytest.param(head(CHUNKED) + chunked(bytes(BLOCK + 9)), BackendBroken, id="cut chunks"),
    pytest.param(head() + bytes((1 << 20) + 1), BackendBroken, id="over the limit"),
    pytest.param(lambda went: went.raw(head(), bytes(BLOCK + 9)).drip(), BackendTimeout, id="drips over the total time"),
])  # fmt: skip
def test_a_source_that_dies_midway_raises_instead_of_ending(start: Start, sent: bytes | Script, kind: type[ToolError]) -> None:  # fmt: skip
    with contextlib.closing(stream(start(sent), total=0.5)) as body:
        with pytest.raises(kind):
            list(body)
        with pytest.raises(ToolError):
            list(body)


def test_closing_early_lets_go_of_the_source_and_is_no_end(start: Start) -> None:
    left: queue.Queue[bool] = queue.Queue()
    body = stream(start(lambda went: left.put(went.raw(head(), bytes(BLOCK)).left(5))))
    next(body)
    body.close()
    body.close()
    assert left.get(timeout=5)
    with pytest.raises(BackendBroken):
        next(body)


# --- kinds ---------------------------------------------------------------------------------


def errors_of(module: ModuleType) -> list[type[Exception]]:
    kinds = [kind for _, kind in inspect.getmembers(module, inspect.isclass) if kind.__module__ == module.__name__]
    return [kind for kind in kinds if issubclass(kind, Exception) and not issubclass(kind, Warning)]


@pytest.mark.parametrize("error", errors_of(requests.exceptions) + errors_of(urllib3.exceptions))
def test_no_error_of_requests_or_urllib3_is_left_untranslated(error: type[Exception]) -> None:
    assert failure_of(error) is not None


@pytest.mark.parametrize(("error", "kind"), [
    (requests.exceptions.ConnectTimeout, FailureKind.UNREACHABLE), (urllib3.exceptions.NewConnectionError, FailureKind.UNREACHABLE),
    (requests.exceptions.ReadTimeout, FailureKind.TIMEOUT), (urllib3.exceptions.ReadTimeoutError, FailureKind.TIMEOUT),
    (requests.exceptions.ConnectionError, FailureKind.BROKEN), (urllib3.exceptions.ProtocolError, FailureKind.BROKEN),
    (ConnectionResetError, FailureKind.BROKEN), (KeyError, None),
])  # fmt: skip
def test_the_most_specific_kind_counts(error: type[Exception], kind: FailureKind | None) -> None:
    assert failure_of(error) is kind


def test_requests_is_not_imported_before_the_first_request() -> None:
    """An idle server does without its memory."""
    program = (
        "import sys; from mcpboard.board.backend import Backend; Backend('agent', 'http://127.0.0.1:1'); "
        "sys.exit(bool({'requests', 'urllib3'} & set(sys.modules)))"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False, timeout=30).returncode == 0
