"""`mcpboard relay`: what it lets pass and what not, in front of the real board role and of servers made of bytes."""

from __future__ import annotations

import http.client
import json
import os
import plistlib
import shlex
import socket
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from mcpboard.cli import main
from mcpboard.laptop.relay import CALLS, OTHERS, THREADS, Relay
from mcpboard.serving.undelivered import UndeliveredOutcome
from mcpboard.transport.http import HttpClient
from tests.support import served
from tests.support.peer import Hanging, Raw
from tests.support.piped import ENVELOPE, ENVIRONMENT, LIMIT_S, free_port
from tests.support.processes import MCPBOARD, started
from tests.support.served import Board

BUNDLE_BYTES = 16 << 20
FLAT_KIB = 12 << 10  # KiB that a bundle of 16 MiB, 22 in base64, may add to what the process holds
MODERN = {"MCP-Protocol-Version": "2026-07-28", "Content-Type": "application/json"}


@contextmanager
def relaying(url: str) -> Iterator[str]:
    """The URL of a relay in this process."""
    with Relay(HttpClient(url)) as app, served.thread(app, threads=THREADS) as near:
        yield near


@pytest.fixture(scope="module")
def relay(board: Board) -> Iterator[str]:
    with relaying(board.url) as url:
        yield url


def connected(url: str) -> closing[http.client.HTTPConnection]:
    return closing(http.client.HTTPConnection(urlsplit(url).netloc, timeout=LIMIT_S))


def fetch(
    url: str, method: str = "POST", path: str = "/mcp", body: bytes | None = None, **headers: str
) -> tuple[int, Mapping[str, str], bytes]:
    with connected(url) as connection:
        connection.request(method, path, body, {name.replace("_", "-"): value for name, value in headers.items()})
        answer = connection.getresponse()
        return answer.status, dict(answer.getheaders()), answer.read()


def post(url: str, method: str, params: Mapping[str, Any] | None = None, **headers: str) -> tuple[int, Any]:
    message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": {**(params or {}), "_meta": ENVELOPE}}
    sent = {**MODERN, "Mcp-Method": method, **headers}
    if params is not None and "name" in params:
        sent["Mcp-Name"] = params["name"]
    status, _, body = fetch(url, body=json.dumps(message).encode(), **sent)
    return status, json.loads(body)


def test_a_modern_client_works_through_it(relay: str) -> None:
    assert post(relay, "server/discover")[0] == 200
    status, answer = post(relay, "tools/call", {"name": "screenshot", "arguments": {}})
    assert status == 200
    assert answer["result"]["content"][0]["type"] == "image"


@pytest.mark.parametrize(("method", "path", "status"), [
    pytest.param("GET", "/mcp", 405, id="GET of the endpoint"),
    pytest.param("HEAD", "/mcp", 405, id="HEAD of the endpoint"),
    pytest.param("DELETE", "/mcp", 405, id="DELETE of the endpoint"),
    pytest.param("OPTIONS", "/mcp", 405, id="OPTIONS"),
    pytest.param("GET", "/health", 200, id="health"),
    pytest.param("GET", "/.well-known/oauth-protected-resource", 404, id="a look for a sign-in"),
    pytest.param("GET", "/api/tools", 404, id="the Agent's own API"),
    pytest.param("GET", "/mcp/../api", 404, id="dots"),
])  # fmt: skip
def test_paths_and_methods(relay: str, method: str, path: str, status: int) -> None:
    found, headers, body = fetch(relay, method, path)
    assert found == status
    assert headers["Content-Type"] == "application/json"
    assert (body == b"") is (method == "HEAD")
    assert headers.get("Allow", "POST") == "POST"


# --- Origin and Host -----------------------------------------------------------------------------


@pytest.mark.parametrize(("origin", "host"), [
    pytest.param("http://evil.example", None, id="a foreign page"),
    pytest.param("null", None, id="a sandboxed page"),
    pytest.param("http://evil.example:80", "evil.example:80", id="a name that was rebound to loopback"),
    pytest.param("http://127.0.0.1:1", None, id="a page on another port"),
    pytest.param("{board}", None, id="a page of the board itself"),
])  # fmt: skip
def test_a_foreign_page_is_refused_before_the_board_hears_of_it(
    board: Board, relay: str, origin: str, host: str | None
) -> None:
    before = len(board.simulator.requests)
    headers = {"Origin": origin.format(board=board.url.removesuffix("/mcp")), "Host": host or urlsplit(relay).netloc}
    status, answer = post(relay, "tools/list", None, **headers)
    assert status == 403
    assert "cross-origin" in answer["error"]
    assert len(board.simulator.requests) == before


def test_a_page_of_the_relay_itself_passes_the_boards_rule_too(relay: str) -> None:
    status, _ = post(relay, "server/discover", Origin=relay.removesuffix("/mcp"))
    assert status == 200


def test_the_board_sees_its_own_address_and_nothing_of_this_machine() -> None:
    with Raw(lambda sock, over: sock.sendall(OK)) as raw, relaying(raw.url) as url:
        status, headers, body = fetch(
            url, body=b"{}", Origin=url.removesuffix("/mcp"), Cookie="a=b", Authorization="Bearer x", Mcp_Name="n",
            Forwarded="for=1", Accept_Encoding="gzip",
        )  # fmt: skip
        address = urlsplit(raw.url).netloc
    head = raw.requests[0].decode().lower()
    assert f"host: {address}\r\n" in head
    assert f"origin: http://{address}\r\n" in head
    assert "authorization: bearer x\r\n" in head
    assert "mcp-name: n\r\n" in head
    assert not [word for word in ("cookie", "forwarded", "gzip", urlsplit(url).netloc) if word in head]
    assert (status, body) == (200, b"{}")
    assert not [name for name in headers if name.lower() in ("set-cookie", "access-control-allow-origin")]


OK = (
    b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nSet-Cookie: a=b\r\nAccess-Control-Allow-Origin: *\r\n"
    b"Content-Length: 2\r\n\r\n{}"
)


# --- streams -------------------------------------------------------------------------------------


def test_as_a_process_it_passes_a_large_bundle_in_flat_memory_and_ends_at_a_signal(board: Board) -> None:
    with started(*MCPBOARD, "relay", board.url, "--listen", "127.0.0.1:0", env=ENVIRONMENT) as relay:
        words = relay.line.split()
        assert words[-1] == board.url
        post(words[2], "tools/list")
        before = _peak_kib(relay.process.pid)
        board.simulator.faults.set("bundle", "support_bundle", times=1, bytes=BUNDLE_BYTES)
        _, answer = post(words[2], "tools/call", {"name": "support_bundle", "arguments": {}})
        assert len(answer["result"]["content"][-1]["resource"]["blob"]) > BUNDLE_BYTES
        assert _peak_kib(relay.process.pid) - before < FLAT_KIB
        assert relay.end() == 0


def _peak_kib(pid: int) -> int:
    """The most memory that a process ever held, as the kernel counts it."""
    return int(Path(f"/proc/{pid}/status").read_text().partition("VmHWM:")[2].split()[0])


@pytest.mark.parametrize(("framing", "first", "last"), [
    pytest.param(b"Transfer-Encoding: chunked\r\n", b"5\r\nfirst\r\n", b"4\r\nlast\r\n0\r\n\r\n", id="in chunks"),
    pytest.param(b"Content-Length: 9\r\n", b"first", b"last", id="of a known length"),
    pytest.param(b"", b"first", b"last", id="until it closes"),
])  # fmt: skip
def test_what_is_there_passes_before_the_rest_comes(framing: bytes, first: bytes, last: bytes) -> None:
    first_read = threading.Event()

    def behave(sock: socket.socket, over: threading.Event) -> None:
        sock.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n" + framing + b"\r\n")
        sock.sendall(first)
        assert first_read.wait(LIMIT_S)
        sock.sendall(last)

    with Raw(behave) as raw, relaying(raw.url) as url, connected(url) as connection:
        connection.request("POST", "/mcp", b"{}")
        answer = connection.getresponse()
        assert answer.read1(100) == b"first"
        first_read.set()
        assert answer.read() == b"last"


@pytest.mark.parametrize("head", [
    pytest.param(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\nhalf", id="by its length"),
    pytest.param(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n", id="by its chunks"),
])  # fmt: skip
def test_an_answer_that_breaks_off_arrives_as_one_that_broke_off(head: bytes) -> None:
    with Raw(lambda sock, over: sock.sendall(head)) as raw, relaying(raw.url) as url, connected(url) as connection:
        connection.request("POST", "/mcp", b"{}")
        answer = connection.getresponse()
        with pytest.raises(http.client.IncompleteRead):
            answer.read()


def test_a_client_that_leaves_takes_its_connection_to_the_board_along() -> None:
    arrived, left = threading.Event(), threading.Event()

    def behave(sock: socket.socket, over: threading.Event) -> None:
        arrived.set()
        if sock.recv(1) == b"":
            left.set()

    with Raw(behave) as raw, relaying(raw.url) as url:
        with connected(url) as connection:
            connection.request("POST", "/mcp", b"{}")
            assert arrived.wait(LIMIT_S)
        assert left.wait(LIMIT_S)


# --- no board ------------------------------------------------------------------------------------


def test_without_a_board_a_handshake_fails_and_a_call_is_an_error_inside_the_session() -> None:
    with relaying(f"http://127.0.0.1:{free_port()}/mcp") as url:
        assert post(url, "server/discover")[0] == 502
        assert fetch(url, "GET", "/health")[0] == 502
        status, answer = post(url, "tools/call", {"name": "screenshot", "arguments": {}})
    assert status == 200
    assert answer["id"] == 1
    assert answer["error"]["data"] == {"delivery": "not_sent"}
    assert "nothing listens there" in answer["error"]["message"]


@pytest.mark.parametrize("head", [
    pytest.param(b"", id="before the head"),
    pytest.param(b"HTTP/1.1 200 OK\r\nContent-Ty", id="within a name"),
    pytest.param(b"HTTP/1.1 200 OK\r\nContent-Length: 2", id="within the length"),
    pytest.param(b"HTTP/1.1 200 OK\r\nContent-Length: 20\r\n\r\n", id="before the body"),
    pytest.param(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", id="before the first chunk"),
])  # fmt: skip
def test_an_answer_that_is_cut_before_its_body_leaves_the_fate_open(head: bytes) -> None:
    """Nothing has gone out to the caller by then, so it can be told."""
    with Raw(lambda sock, over: sock.sendall(head)) as raw, relaying(raw.url) as url:
        _, answer = post(url, "tools/call", {"name": "touch_gesture", "arguments": {}})
    assert answer["error"]["data"] == {"delivery": "unknown"}


@contextmanager
def waiting(url: str, count: int, method: str) -> Iterator[None]:
    """So many requests under way through the relay, each on a connection of its own."""
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": {"name": "tap"}})
    with ExitStack() as stack:
        for _ in range(count):
            stack.enter_context(connected(url)).request("POST", "/mcp", body.encode())
        yield


def assert_refusals(url: str) -> None:
    """The relay answers by itself, at once."""
    assert fetch(url, "GET", "/health", Origin="http://evil.example")[0] == 403
    assert fetch(url, "GET", "/elsewhere")[0] == 404
    assert fetch(url, "POST", "/mcp", b"{}", Origin="http://evil.example")[0] == 403


def test_waiting_calls_hold_up_neither_refusals_nor_pings_nor_health() -> None:
    with Hanging(OK) as server, relaying(server.url) as url, waiting(url, CALLS, "tools/call"):
        server.wait_for(CALLS)
        assert_refusals(url)
        assert post(url, "ping")[0] == 200
        assert fetch(url, "GET", "/health")[0] == 200
        _, answer = post(url, "tools/call", {"name": "tap"})
        assert answer["error"]["data"] == {"delivery": "not_sent"}
        assert "call again in a moment" in answer["error"]["message"]


def test_a_server_that_answers_nothing_at_all_holds_up_no_refusal() -> None:
    with (
        Hanging() as server,
        relaying(server.url) as url,
        waiting(url, CALLS, "tools/call"),
        waiting(url, OTHERS, "ping"),
    ):
        server.wait_for(CALLS + OTHERS)
        assert_refusals(url)
        assert "under way" in post(url, "ping")[1]["error"]["message"]
        status, headers, _ = fetch(url, "GET", "/health")
        assert (status, headers["Retry-After"]) == (503, "1")
        assert post(url, "server/discover")[0] == 503


# --- callers that leave too late to be noticed ---------------------------------------------------


def test_an_answer_whose_caller_has_just_left_is_told_with_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    """The board has seen its answer arrive, so nobody else will tell."""
    monkeypatch.setattr("mcpboard.laptop.relay.WATCH_SECONDS", LIMIT_S)
    arrived, left = threading.Event(), threading.Event()
    result = b'{"jsonrpc":"2.0","id":1,"result":{"content":[%s]}}'

    def behave(sock: socket.socket, over: threading.Event) -> None:
        arrived.set()
        assert left.wait(LIMIT_S)
        sock.sendall(plain(result % b""))

    following = [lambda sock, over: sock.sendall(plain(result % b'{"type":"text","text":"done"}'))] * 20
    with Raw(behave, *following) as raw, relaying(raw.url) as url:
        with connected(url) as connection:
            connection.request(
                "POST", "/mcp", b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"tap"}}'
            )
            assert arrived.wait(LIMIT_S)
        left.set()
        for _ in following:
            texts = [block["text"] for block in post(url, "tools/call", {"name": "look"})[1]["result"]["content"]]
            if len(texts) > 1:
                break
            threading.Event().wait(0.1)  # until it is sure that nobody has acknowledged it
        assert texts[0].startswith("The earlier tap was answered")
        assert texts[1:] == ["done"]
        again = post(url, "tools/call", {"name": "look"})[1]
    assert len(again["result"]["content"]) == 1


def plain(body: bytes) -> bytes:
    return b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body)


@pytest.mark.parametrize("content", [b"[]", b"[ ]", b'[{"type":"text","text":"done"}]'])
def test_a_notice_keeps_the_result_whole(content: bytes) -> None:
    answer = plain(b'{"jsonrpc":"2.0","id":1,"result":{"content":%s,"isError":false}}' % content)
    with Raw(lambda sock, over: sock.sendall(answer)) as raw, Relay(HttpClient(raw.url)) as app:
        app._undelivered.keep([UndeliveredOutcome("tap", "was answered", time.monotonic())])
        with served.thread(app) as url:
            blocks = post(url, "tools/call", {"name": "look"})[1]["result"]["content"]
    assert blocks[0]["text"].startswith("The earlier tap")
    assert blocks[1:] == json.loads(content)


def test_a_notice_that_fits_nowhere_waits_for_the_next_result() -> None:
    odd = plain(b'{"result":{"isError":false,"content":[]},"id":1,"jsonrpc":"2.0"}')
    good = plain(b'{"jsonrpc":"2.0","id":1,"result":{"content":[]}}')
    behaviours = [lambda sock, over, answer=answer: sock.sendall(answer) for answer in (odd, good)]
    with Raw(*behaviours) as raw, Relay(HttpClient(raw.url)) as app:
        app._undelivered.keep([UndeliveredOutcome("tap", "was answered", time.monotonic())])
        with served.thread(app) as url:
            first, second = (post(url, "tools/call", {"name": "look"})[1]["result"]["content"] for _ in range(2))
    assert (first, len(second)) == ([], 1)


def test_a_failure_of_the_relay_itself_leaves_the_fate_open(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def no_memory(*_: object) -> None:
        raise MemoryError

    with Raw(lambda sock, over: sock.sendall(OK)) as raw, relaying(raw.url) as url:
        monkeypatch.setattr("mcpboard.transport.http.StreamedResponse.__init__", no_memory)
        _, answer = post(url, "tools/call", {"name": "tap"})
    assert answer["error"]["data"] == {"delivery": "unknown"}
    assert "may have been executed" in answer["error"]["message"]
    assert "could not be relayed" in caplog.text


# --- the verb ------------------------------------------------------------------------------------


BUSY = "127.0.0.1:BUSY"
UNFIT = {
    "0.0.0.0:8080": "is not loopback", "*:8080": "is not loopback", "192.168.42.2:8080": "is not loopback",
    "[::]:8080": "is not loopback", "example:8080": "is not loopback", "8080": "--listen",
    "127.0.0.1:9": "forward to itself", BUSY: "--listen",
}  # fmt: skip


@pytest.mark.parametrize(("listen", "words"), UNFIT.items())
def test_what_it_cannot_listen_on_is_one_line(listen: str, words: str, capsys: pytest.CaptureFixture[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        where = listen.replace("BUSY", str(other.getsockname()[1]))
        assert main(["relay", "http://127.0.0.1:9/mcp", "--listen", where]) == 2
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert words in err


LAUNCHD = ("http://192.168.42.1:8080", "--listen", "127.0.0.1:8090", "--print-service", "launchd")


def test_the_launchd_daemon_runs_this_relay_as_this_user(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pwd = pytest.importorskip("pwd")
    user = pwd.struct_passwd(("anna", "x", 501, 20, "", "/Users/anna", "/bin/zsh"))
    monkeypatch.setattr(os, "geteuid", lambda: 501)
    monkeypatch.setattr(pwd, "getpwuid", {501: user}.__getitem__)
    assert main(["relay", *LAUNCHD]) == 0
    out, err = capsys.readouterr()
    daemon = plistlib.loads(out.encode())
    assert daemon["ProgramArguments"] == [
        sys.executable, "-m", "mcpboard", "relay", "http://192.168.42.1:8080/mcp", "--listen", "127.0.0.1:8090",
    ]  # fmt: skip
    assert daemon["UserName"] == "anna"
    assert daemon["StandardErrorPath"].startswith("/Users/anna/Library/Logs/")
    assert daemon["RunAtLoad"] is daemon["KeepAlive"] is True
    assert f"/Library/LaunchDaemons/{daemon['Label']}.plist" in err
    assert "ssh -N -L 8090:127.0.0.1:8080" in err


@pytest.mark.parametrize(("place", "value", "words"), [
    pytest.param("os.geteuid", lambda: 0, "without sudo", id="root"),
    pytest.param("mcpboard.config.files.pwd", None, "on the Mac", id="a system without users"),
])  # fmt: skip
def test_no_launchd_daemon_is_printed_that_would_run_as_root(
    place: str, value: object, words: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(place, value, raising=False)
    assert main(["relay", *LAUNCHD]) == 2
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert words in err


def test_the_systemd_unit_runs_this_relay(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["relay", "http://192.168.42.1:8080/m%20cp", "--print-service", "systemd"]) == 0
    out, err = capsys.readouterr()
    (start,) = [line for line in out.splitlines() if line.startswith("ExecStart=")]
    assert shlex.split(start.removeprefix("ExecStart=")) == [
        sys.executable, "-m", "mcpboard", "relay", "http://192.168.42.1:8080/m%%20cp", "--listen", "127.0.0.1:8080",
    ]  # fmt: skip
    assert "systemctl --user enable --now" in err


@pytest.mark.parametrize(("platform", "shown"), [("darwin", "<plist"), ("linux", "[Service]")])
def test_the_service_of_this_system_is_the_one_printed(
    platform: str, shown: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "platform", platform)
    monkeypatch.setattr(os, "geteuid", lambda: 65534)
    assert main(["relay", "http://192.168.42.1:8080", "--print-service"]) == 0
    assert shown in capsys.readouterr().out
