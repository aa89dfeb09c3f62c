"""The path of a request: what is answered, what is borrowed and given back, what the log says."""

from __future__ import annotations

import io
import logging
import re
import threading
import tracemalloc
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any
from unittest.mock import Mock

import pytest
from waitress.channel import ClientDisconnected
from werkzeug.test import run_wsgi_app

from mcpboard.errors import (
    BackendBroken,
    BackendTimeout,
    BackendUnreachable,
    Busy,
    DeviceBusy,
    InvalidParams,
    ToolFailed,
    ToolRefused,
)
from mcpboard.protocol import jsonrpc
from mcpboard.protocol.limits import BODY_LIMIT, LARGE_BODY
from mcpboard.protocol.messages import Outcome, ToolCall
from mcpboard.protocol.tools import Content
from mcpboard.serving import app as edge
from mcpboard.serving.app import Application
from mcpboard.serving.concurrency import ConcurrencyLimit
from tests.serving.conftest import Lines
from tests.serving.role import SECRET, CountedLimit, FakeRole
from tests.serving.served import Served, serving
from tests.support.http import LIMIT_S, call, message, request

Posts = Callable[[Application, bytes], "Future[Any]"]

FOREIGN = "Origin: http://evil.example"

ODD_CONDITIONS = [
    "Mon, 01 Jan 99999999999999999999 00:00:00 GMT", "Mon, 99999999999999999999 Jan 2024 00:00:00 GMT",
    "Mon, 01 Jan 2024 99999999999999999999:00:00 GMT", "Mon, 01 Jan 2024 00:00:00 +99999999999999999999",
    "Thu, 31 Feb 2024 00:00:00 GMT", "Mon, 01 Jan 0000 00:00:00 GMT", "Mon, 01 Jan -1 00:00:00 GMT",
    "bytes=99999999999999999999999-", "bytes=-0,-,5-1", "=", '"',
]  # fmt: skip


class TestAnswers:
    @pytest.mark.parametrize(("sent", "status", "allow", "kept"), [
        *(pytest.param(request(method=method), 405, "POST", False, id=method) for method in ("GET", "DELETE", "PUT", "PATCH", "OPTIONS")),
        pytest.param(request(b"", "Accept: text/event-stream", method="GET", path="/mcp/"), 405, "POST", False, id="GET for a stream"),
        pytest.param(request(b"", FOREIGN, method="OPTIONS"), 403, None, False, id="preflight"),
        pytest.param(request(message("ping"), FOREIGN), 403, None, False, id="a foreign page"),
        pytest.param(request(message("ping"), "Origin: http://10.0.0.9", "X-Forwarded-Host: 10.0.0.9", "Forwarded: host=10.0.0.9"), 403, None, False, id="forwarded headers are not believed"),
        pytest.param(request(method="GET", path="/.well-known/oauth-protected-resource"), 404, None, False, id="login hunting"),
        pytest.param(request(method="POST", path="/register"), 404, None, False, id="registration"),
        pytest.param(request(method="GET", path="/"), 404, None, False, id="no such page"),
        pytest.param(request(message("ping"), path="/MCP"), 404, None, False, id="another path"),
        pytest.param(request(method="DELETE", path="/health"), 405, "GET, HEAD", False, id="a page's own refusal"),
        pytest.param(request(method="GET", path="/health//"), 404, None, False, id="a page with two slashes behind it"),
        pytest.param(request(method="GET", path="/health"), 200, None, False, id="a page"),
        pytest.param(request(method="GET", path="/health", version="1.0"), 200, None, False, id="a page by HTTP/1.0"),
        pytest.param(request(b"", "Connection: keep-alive", method="GET", path="/health", version="1.0"), 200, None, False, id="a page by HTTP/1.0 kept alive"),
        *(pytest.param(request(message("ping"), path=path), 200, None, True, id=path) for path in ("/mcp", "/mcp/", "//mcp", "/mcp?x=1")),
        pytest.param(request(message("ping"), path="/mcp//"), 404, None, False, id="doubled slash at the end"),
        pytest.param(request(message("ping"), "Accept: text/html"), 200, None, True, id="any Accept"),
        pytest.param(request(message("nothing")), 404, None, True, id="an unknown method"),
        pytest.param(request(b"{"), 400, None, True, id="no JSON"),
    ])  # fmt: skip
    def test_json_whole_and_plain_and_only_clients_of_mcp_keep_their_connection(self, served: Served, sent: bytes, status: int, allow: str | None, kept: bool) -> None:  # fmt: skip
        """A browser opens six for each name of a server, and keeps them as long as it may."""
        with served.client() as client:
            client.send(sent)
            response = client.response()
            assert response.status == status
            assert isinstance(response.json, dict)
            assert response.headers.get("allow") == allow
            if status in (404, 405) and not sent.split()[1].startswith(b"/mcp"):
                assert "MCP is served at /mcp" in response.json["error"]
            assert not [name for name in response.headers if name.startswith("access-control-")]
            assert response.headers.keys().isdisjoint({"server", "via", "location", "www-authenticate"})
            assert (response.headers.get("connection") != "close") == kept
            assert client.post(message("ping")).status == 200 if kept else client.ended()

    @pytest.mark.parametrize(("error", "level"), [
        *((each("gone"), logging.WARNING) for each in (BackendUnreachable, BackendTimeout, BackendBroken, ToolFailed)),
        *((each("no"), logging.INFO) for each in (Busy, ToolRefused, InvalidParams)),
        (DeviceBusy("no", "somebody", 5), logging.INFO),
    ])  # fmt: skip
    def test_a_backend_or_device_that_fails_is_a_warning(self, served: Served, lines: Lines, monkeypatch: pytest.MonkeyPatch, error: Exception, level: int) -> None:  # fmt: skip
        def fail(call: ToolCall) -> Outcome:
            raise error

        monkeypatch.setattr(served.role, "run", fail)
        served.post(call("echo"))
        line = lines.next()
        assert (line.levelno, line.getMessage().partition(",")[0]) == (level, f"echo: {type(error).__name__}")

    def test_a_wrong_token_ends_the_connection(self) -> None:
        with serving(FakeRole(authorize=lambda header: None)) as served, served.client() as client:
            response = client.post(message("ping"))
            assert (response.status, response.headers["connection"]) == (401, "close")
            assert client.ended()

    @pytest.mark.parametrize("path", ["/mcp", "/health", "/nowhere"])
    def test_head_has_the_head_of_get_and_no_body(self, served: Served, path: str) -> None:
        got, head = (served.ask(request(method=method, path=path)) for method in ("GET", "HEAD"))
        assert (head.status, head.body) == (got.status, b"")
        assert abs(int(head.headers["content-length"]) - len(got.body)) <= 1  # some bodies name the method

    @pytest.mark.parametrize("path", ["/mcp", "/mcp/", "/health", "/", "/favicon.ico", "/MCP"])
    @pytest.mark.parametrize("method", ["GET", "HEAD", "POST", "DELETE", "OPTIONS"])
    def test_a_foreign_page_is_refused_at_every_address(self, served: Served, path: str, method: str) -> None:
        """It does not even learn which addresses there are."""
        body = b"" if method != "POST" else message("ping")
        response = served.ask(request(body, FOREIGN, method=method, path=path))
        assert response.status == 403
        assert method == "HEAD" or "id" not in response.json

    def test_only_mcp_is_switched_off(self) -> None:
        with serving(FakeRole(disabled="it is off")) as served:
            foreign = served.ask(request(message("ping"), FOREIGN, path="/mcp/"))  # before Origin is looked at
            assert (foreign.status, served.ask(request(method="GET", path="/health")).status) == (404, 200)

    @pytest.mark.parametrize("condition", ["If-Modified-Since", "If-Unmodified-Since", "If-Range", "Range"])
    @pytest.mark.parametrize("value", ODD_CONDITIONS)
    def test_a_condition_that_makes_no_sense_is_none(self, served: Served, condition: str, value: str) -> None:
        odd = f"{condition}: {value}"
        response = served.ask(request(b"", "Range: bytes=0-1", odd, method="GET", path="/health"))
        assert (response.status, response.json) == (200, {"name": "pretend"})

    def test_an_odd_date_does_not_spoil_the_etag_beside_it(self, served: Served) -> None:
        etag = f"If-None-Match: {served.ask(request(method='GET', path='/health')).headers['etag']}"
        odd = f"If-Modified-Since: {ODD_CONDITIONS[0]}"
        response = served.ask(request(b"", odd, etag, method="GET", path="/health"))
        assert (response.status, response.body) == (304, b"")

    def test_a_notification_is_202_without_a_byte(self, served: Served) -> None:
        response = served.post(b'{"jsonrpc":"2.0","method":"notifications/initialized"}')
        assert (response.status, response.headers["content-length"], response.body) == (202, "0", b"")
        assert "content-type" not in response.headers

    def test_the_end_of_a_session_is_204_without_a_length(self) -> None:
        with serving(FakeRole(knows_session=lambda session, principal: True)) as served:
            response = served.ask(request(b"", "Mcp-Session-Id: s", method="DELETE"))
        assert response.status == 204
        assert response.headers.keys().isdisjoint({"content-length", "content-type", "transfer-encoding"})

    def test_a_picture_of_400_kb_comes_whole(self, served: Served) -> None:
        response = served.post(call("picture", size=400_000))
        assert len(response.body) == int(response.headers["content-length"])
        assert response.result["content"][0]["data"] == "A" * 400_000

    @pytest.mark.parametrize(("size", "status"), [
        pytest.param(BODY_LIMIT, 200, id="as much as is allowed"),
        pytest.param(BODY_LIMIT + 1, 413, id="a byte more"),
        pytest.param(BODY_LIMIT + 16 * 1024 - 1, 413, id="the most that waitress lets through"),
    ])  # fmt: skip
    def test_the_limit_on_bodies_answers_in_json(self, served: Served, size: int, status: int) -> None:
        response = served.post(message("ping").ljust(size))
        assert response.status == status
        if status == 413:
            assert response.error["code"] == -32600
            assert "id" not in response.json
        assert served.pings()


class TestBorrowed:
    @pytest.mark.parametrize(("tool", "words", "line"), [
        pytest.param("echo", "done", "ok", id="a result"),
        pytest.param("refuse", "the phone said no", "ToolRefused", id="a tool error"),
        pytest.param("protocol", "no such device", "InvalidParams", id="a protocol error"),
        pytest.param("crash", "internal error", None, id="a crash"),
        pytest.param("unwritable", "internal error", None, id="a result that cannot be written"),
        pytest.param("file", "pretend://file", "ok", id="a file"),
    ])  # fmt: skip
    def test_the_slot_is_released_once_and_sources_closed_once_and_one_line_is_logged(
        self, served: Served, lines: Lines, tool: str, words: str, line: str | None
    ) -> None:
        """Nothing of arguments, tokens or what a crash says gets out or into that line."""
        response = served.post(call(tool, 7, size=100_000, **{SECRET: 1}), "Authorization: Bearer " + SECRET)
        assert (response.status, response.json["id"]) == (200, 7)
        assert words in response.body.decode()
        assert SECRET not in response.body.decode()
        served.limit.wait_for(0)
        assert (served.limit.acquired, served.limit.released) == (1, 1)
        assert [source.closed for source in served.role.sources] in ([], [1])
        if line is None:
            assert lines.next().levelno == logging.ERROR
        record = lines.next()
        assert record.levelno == logging.INFO
        assert re.match(f"{tool}: {line or '[A-Za-z]+'}, {len(response.body)} bytes, ", record.getMessage())
        assert SECRET not in record.getMessage()
        assert lines.none_left()

    def test_a_crash_in_a_tool_is_32603_with_the_id_and_its_traceback_in_the_log(self, served: Served, lines: Lines) -> None:  # fmt: skip
        assert served.post(call("look", "x")).error["code"] == -32603
        crash = lines.next()
        assert crash.levelno == logging.ERROR
        assert crash.exc_info and SECRET in str(crash.exc_info[1])
        assert lines.next().getMessage().startswith("look: InternalError, ")

    @pytest.mark.parametrize("tool", ["crash", "exhaust", "recurse", "unwritable"])
    @pytest.mark.parametrize("role", ["board", "host"])
    def test_a_crash_in_an_action_says_that_it_may_have_been_executed(self, tool: str, role: str) -> None:
        """As the role words its errors; and the server goes on."""
        with serving(FakeRole(faults_as_results=role == "board")) as served:
            document = served.post(call(tool, "x")).json
            assert served.pings()
        if role == "board":
            (block,) = document["result"]["content"]
            told, data, is_error = block["text"], document["result"]["structuredContent"], document["result"]["isError"]
        else:
            told, data, is_error = document["error"]["message"], document["error"]["data"], True
        assert (data, is_error) == ({"delivery": "unknown"}, True)
        assert "look at the screen before you repeat it" in told
        assert SECRET not in told

    def test_an_outcome_that_cannot_be_written_is_told_to_the_next_once(self, served: Served) -> None:
        assert served.post(call("unwritable")).result["isError"]
        assert served.role.lost.get(timeout=LIMIT_S) == "unwritable"
        served.limit.wait_for(0)
        assert served.role.lost.empty()

    @pytest.mark.parametrize(("sent", "error"), [
        pytest.param(request(message("tools/list", 5)), -32603, id="while listing"),
        pytest.param(request(message("initialize", 5, protocolVersion="2025-11-25")), -32603, id="while opening a session"),
        pytest.param(request(b"", "Mcp-Session-Id: s", method="DELETE"), None, id="while closing a session"),
        pytest.param(request(method="GET", path="/health"), None, id="in a page"),
    ])  # fmt: skip
    def test_a_crash_elsewhere_is_json_with_the_id_where_there_is_one(self, lines: Lines, sent: bytes, error: int | None) -> None:  # fmt: skip
        role = FakeRole(knows_session=lambda session, principal: True)
        role.broken = RuntimeError(SECRET)
        with serving(role) as served:
            response = served.ask(sent)
            if error == -32603:
                assert (response.status, response.json["id"], response.error["code"]) == (200, 5, error)
            else:
                assert (response.status, "internal error" in response.error) == (500, True)
            assert SECRET not in response.body.decode()
            assert SECRET in str(lines.next().exc_info[1])  # type: ignore[index]
            role.broken = InvalidParams("too many sessions")
            assert served.post(message("initialize", 5, protocolVersion="2025-11-25")).error["code"] == -32602

    def test_no_line_for_what_calls_no_tool(self, served: Served, lines: Lines) -> None:
        served.post(message("tools/list"))
        served.post(message("tools/call", name="unknown"))
        assert served.pings()
        assert lines.none_left()


def environ_of(body: bytes) -> dict[str, Any]:
    """Return the environ that the server passes for a POST of `body`."""
    environ = {"REQUEST_METHOD": "POST", "PATH_INFO": "/mcp", "CONTENT_LENGTH": str(len(body))}
    own = bytes(bytearray(body))  # a copy, as the server's is
    return environ | {"wsgi.input": io.BytesIO(own), "wsgi.input_terminated": True}


class TestUnfinished:
    """The edge as waitress calls it, where no socket can be timed well enough."""

    def edge(self, role: FakeRole, body: bytes, start: Any = lambda *_: None, **environ: Any) -> Any:
        self.limit = CountedLimit(1)
        return Application(lambda: role, self.limit)(environ_of(body) | environ, start)

    def test_a_head_that_cannot_be_sent_keeps_the_outcome_and_no_slot(self) -> None:
        """As when memory is short at the very end."""
        role = FakeRole()
        with pytest.raises(MemoryError):
            self.edge(role, call("echo"), Mock(side_effect=MemoryError))
        assert role.lost.get_nowait() == "echo"
        assert self.limit.in_use == 0

    @pytest.mark.parametrize("pieces", [0, 1], ids=["never looked at", "broken off in the middle"])
    def test_a_reply_that_is_not_read_is_lost_and_gives_all_back(self, pieces: int) -> None:
        role = FakeRole()
        reply = self.edge(role, call("file", size=10))
        assert self.limit.in_use == 1
        for _ in range(pieces):
            next(reply)
        reply.close()
        reply.close()
        assert self.limit.in_use == 0
        assert role.sources[0].closed == 1
        assert (role.lost.get_nowait(), role.lost.empty()) == ("file", True)

    def test_a_source_that_cannot_be_closed_keeps_no_slot(self) -> None:
        role = FakeRole()
        reply = self.edge(role, call("file", size=10))
        role.sources[0].closes_with = OSError("cannot close")
        with pytest.raises(OSError, match="cannot close"):
            reply.close()
        assert self.limit.in_use == 0
        assert role.lost.get_nowait() == "file"

    def test_a_caller_gone_before_the_slot_is_taken_gets_no_call(self, lines: Lines) -> None:
        role = FakeRole()
        with pytest.raises(ClientDisconnected):
            self.edge(role, call("echo"), **{"waitress.client_disconnected": lambda: True})
        assert role.ran == []
        assert self.limit.acquired == 0
        assert lines.next().getMessage() == "echo: never made, its caller had gone"


@pytest.fixture
def posts() -> Iterator[Posts]:
    """Post a body in a thread of its own: (pieces, status, headers) once it has ended."""
    with ThreadPoolExecutor() as pool:
        yield lambda app, body: pool.submit(run_wsgi_app, app, environ_of(body), True)


class Unasking(FakeRole):
    """As a board, it never looks at arguments."""

    def run(self, call: ToolCall) -> Outcome:
        self.begun.put(call.name)
        assert self.release.wait(LIMIT_S)
        return Outcome(Content(()))


LARGE = message("ping", 1, x="x" * LARGE_BODY)


class TestLargeBodies:
    def test_they_are_parsed_one_at_a_time_and_none_waits_for_ever(self, posts: Posts, monkeypatch: pytest.MonkeyPatch) -> None:  # fmt: skip
        """Small ones go past them; who waited too long is told to come again, and that nothing was done."""
        monkeypatch.setattr(edge, "PARSING_SECONDS", 0.05)
        begun, release = threading.Event(), threading.Event()
        load = jsonrpc.load

        def slow(body: bytes) -> Any:
            if len(body) > LARGE_BODY:
                begun.set()
                assert release.wait(LIMIT_S)
            return load(body)

        monkeypatch.setattr(jsonrpc, "load", slow)
        app = Application(FakeRole, ConcurrencyLimit(1))
        first = posts(app, LARGE)
        assert begun.wait(LIMIT_S)
        pieces, status, headers = posts(app, LARGE).result(LIMIT_S)
        assert (status[:3], headers["Retry-After"]) == ("429", "1")
        assert b"nothing was done" in b"".join(pieces)
        assert posts(app, message("ping", 1)).result(LIMIT_S)[1] == "200 OK"
        release.set()
        assert [each.result(LIMIT_S)[1] for each in (first, posts(app, LARGE))] == ["200 OK"] * 2

    def test_one_that_is_refused_lets_the_next_in(self, posts: Posts) -> None:
        app = Application(FakeRole, ConcurrencyLimit(1))
        bodies = (b"[" * 50_000, LARGE + b"}", b"\xff" * 50_000, LARGE)
        assert [posts(app, body).result(LIMIT_S)[1][:3] for body in bodies] == ["400", "400", "400", "200"]

    @pytest.mark.parametrize("value", [
        pytest.param([{str(number): 0} for number in range(9_000)], id="objects"),
        pytest.param([str(number) for number in range(25_000)], id="strings"),
        pytest.param({str(number): 0 for number in range(20_000)}, id="members"),
        pytest.param("\U0001f600" + "a" * 200_000, id="wide characters"),
    ])  # fmt: skip
    def test_a_call_that_runs_keeps_the_bytes_of_its_arguments_alone(self, posts: Posts, value: Any) -> None:
        """Not the body, not what the server received, not what was parsed."""
        role = Unasking()
        app = Application(lambda: role, ConcurrencyLimit(1))
        body = message("tools/call", 1, name="block", arguments={"value": value})
        posts(app, message("ping", 1)).result(LIMIT_S)
        tracemalloc.start()
        try:
            posted = posts(app, body)
            assert role.begun.get(timeout=LIMIT_S) == "block"
            held = tracemalloc.get_traced_memory()[0]
        finally:
            tracemalloc.stop()
            role.release.set()
        assert posted.result(LIMIT_S)[1] == "200 OK"
        assert held < len(body) * 1.1 + 100_000
