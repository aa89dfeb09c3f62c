"""The client over real sockets: both revisions, what comes back, and every way in which nothing does."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Callable, Iterator

import pytest

from mcpboard.client import Client
from mcpboard.errors import (
    NOT_SENT,
    UNKNOWN,
    ClientError,
    ConfigError,
    NotMcp,
    PeerBroken,
    PeerError,
    PeerRefused,
    PeerTimeout,
    PeerUnreachable,
)
from mcpboard.protocol.versions import LEGACY, MODERN
from tests.support.peer import BUNDLE, PICTURE, Peer, Raw, serving

TOKEN = "a-token-of-some-length"


@pytest.fixture(params=[False, True], ids=["modern", "legacy"])
def peer(request: pytest.FixtureRequest) -> Iterator[Peer]:
    with serving(Peer(legacy=request.param)) as peer:
        yield peer


def test_the_newest_common_version_is_settled_on(peer: Peer) -> None:
    with Client(peer.url) as client:
        client.open()
        assert client.version == (LEGACY if peer.legacy else MODERN)
        assert client.server["version"] == "7"


def test_tools_are_listed_and_called(peer: Peer) -> None:
    with Client(peer.url) as client:
        assert [tool["name"] for tool in client.list_tools()][:2] == ["status", "echo"]
        result = client.call("echo", {"text": "grüß 手机 🎉", "x": 1.5})
        client.ping()
        assert client.call("fail").is_error
        picture = client.call("screenshot")
    assert result.structured == {"text": "grüß 手机 🎉", "x": 1.5}
    assert json.loads(result.text) == result.structured
    assert [(image.content, image.mime) for image in picture.images] == [(PICTURE, "image/jpeg")]
    assert picture.text == "720 x 1280 px"
    assert peer.methods.count("tools/call") == 3


def test_a_bundle_is_decoded_on_the_way_and_its_progress_reported(peer: Peer) -> None:
    reported: list[tuple[int, int | None]] = []
    with Client(peer.url) as client:
        result = client.call("support_bundle", progress=lambda *now: reported.append(now))
    (bundle,) = result.blobs
    assert (bundle.content, bundle.mime) == (BUNDLE, "application/gzip")
    assert bundle.uri == "mcpboard://support-bundle/1.tar.gz"
    assert len(reported) > 2
    assert reported[-1][0] == reported[-1][1]
    assert len(str(result.raw)) < 1000


def test_threads_share_one_handshake() -> None:
    with serving(Peer(legacy=True)) as peer, Client(peer.url) as client:
        texts: list[str] = []
        threads = [threading.Thread(target=lambda: texts.append(client.call("status").text)) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(5)
        assert texts == ["all is well"] * 4
        assert peer.methods.count("initialize") == 1


def test_a_session_is_ended_with_the_client() -> None:
    with serving(Peer(legacy=True, knows_session=lambda session, _: session == "s-1")) as peer:
        with Client(peer.url) as client:
            client.call("status")
        assert peer.ended == ["s-1"]


def test_token_and_headers_go_with_every_request() -> None:
    with serving(Peer(authorize=lambda header: "me" if header == f"Bearer {TOKEN}" else None)) as peer:
        with Client(peer.url, TOKEN, [("X-Device", "left")]) as client:
            client.call("status")
        assert all(sent["x-device"] == "left" for sent in peer.headers)
        with Client(peer.url) as client, pytest.raises(PeerRefused, match="--token-file") as caught:
            client.call("status")
        assert (caught.value.status, caught.value.delivery) == (401, NOT_SENT)


@pytest.mark.parametrize(("path", "message"), [("/mcp", "mcp_enabled = false"), ("/other", "MCP is served at /mcp")])
def test_what_to_do_about_a_refusal_is_reported(path: str, message: str) -> None:
    with serving(Peer(disabled="MCP is disabled on this board (mcp_enabled = false)")) as peer:
        refused = pytest.raises((PeerError, PeerRefused), match=message)
        with Client(peer.url.replace("/mcp", path)) as client, refused:
            client.list_tools()


def test_no_proxy_variable_is_followed_and_the_path_may_be_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9/")
    with serving(Peer()) as peer, Client(peer.url.removesuffix("/mcp")) as client:
        client.ping()


# --- nothing comes back ------------------------------------------------------------------------


def test_nobody_listens() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    with Client(f"http://127.0.0.1:{port}/mcp") as client, pytest.raises(PeerUnreachable, match="nothing listens") as e:
        client.call("status")
    assert e.value.delivery == NOT_SENT


def test_a_name_that_is_no_name() -> None:
    with Client(f"http://{'a' * 64}/mcp") as client, pytest.raises(PeerUnreachable, match="use the IP address"):
        client.ping()


Behaviour = Callable[[socket.socket, threading.Event], None]


def http_answer(body: bytes, *headers: str, status: str = "200 OK") -> bytes:
    lines = [f"HTTP/1.1 {status}", "Content-Type: application/json", f"Content-Length: {len(body)}", *headers]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


def says(answer: bytes) -> Behaviour:
    return lambda sock, over: sock.sendall(answer)


def hangs(sock: socket.socket, over: threading.Event) -> None:
    over.wait(5)


def drips(answer: bytes) -> Behaviour:
    """The first half at once, the rest a byte at a time, each sooner than a timeout for one read."""

    def behave(sock: socket.socket, over: threading.Event) -> None:
        middle = len(answer) // 2
        sock.sendall(answer[:middle])
        for byte in answer[middle:]:
            if over.wait(0.05):
                return
            sock.sendall(bytes([byte]))

    return behave


def resets(sock: socket.socket, over: threading.Event) -> None:
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")


DISCOVERED = http_answer(
    b'{"jsonrpc":"2.0","id":1,"result":{"supportedVersions":["2026-07-28"],"capabilities":{},"resultType":"complete"}}'
)
RESULT = http_answer(b'{"jsonrpc":"2.0","id":2,"result":{"content":[],"resultType":"complete"}}')
LONG_HEAD = http_answer(b"{}", "X-Long: " + "x" * 500)

FAULTS = [
    pytest.param(hangs, PeerTimeout, "within 0.5 s", id="a server that hangs"),
    pytest.param(drips(LONG_HEAD), PeerTimeout, "within 0.5 s", id="a head that drips"),
    pytest.param(drips(http_answer(b" " * 500)), PeerTimeout, "within 0.5 s", id="a body that drips"),
    pytest.param(resets, PeerBroken, "the connection broke", id="a reset"),
    pytest.param(says(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n{"), PeerBroken, "broke", id="a chunk cut short"),
    pytest.param(says(b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 200), PeerBroken, "broke", id="headers without end"),
    pytest.param(says(http_answer(b"{}", "Content-Encoding: gzip")), PeerBroken, "compressed", id="gzip unasked"),
    pytest.param(says(b"SSH-2.0-OpenSSH_9.2\r\n"), NotMcp, "does not speak HTTP", id="another protocol"),
]  # fmt: skip


@pytest.mark.parametrize(("fault", "expected", "message"), FAULTS)
def test_a_call_is_made_once_and_its_delivery_reported(
    fault: Behaviour, expected: type[ClientError], message: str
) -> None:
    with Raw(says(DISCOVERED), fault, says(RESULT)) as raw, Client(raw.url) as client:
        started = time.monotonic()
        with pytest.raises(expected, match=message) as caught:
            client.call("tap", timeout=0.5)
        assert time.monotonic() - started < 3
        assert (caught.value.delivery, str(caught.value).isprintable()) == (UNKNOWN, True)
        assert sum(b'"tools/call"' in request for request in raw.requests) == 1


@pytest.mark.parametrize("fault", [hangs, says(b""), says(RESULT[:-5]), says(http_answer(b"", status="503 Busy"))])
def test_a_handshake_that_fails_never_says_that_the_call_may_have_run(fault: Behaviour) -> None:
    with Raw(fault) as raw, Client(raw.url, timeout=0.2) as client, pytest.raises(ClientError) as caught:
        client.call("tap")
    assert caught.value.delivery == NOT_SENT
    assert "nothing was executed" in str(caught.value)
    assert "may have been" not in str(caught.value)


@pytest.mark.parametrize("place", ["mcpboard.client.BlobStream.feed", "mcpboard.protocol.client_session.call_result"])
def test_a_failure_of_our_own_after_a_call_was_sent_leaves_its_fate_open(
    monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    def no_memory(*_: object) -> None:
        raise MemoryError

    with Raw(says(DISCOVERED), says(RESULT)) as raw, Client(raw.url) as client:
        client.open()
        monkeypatch.setattr(place, no_memory)
        with pytest.raises(PeerBroken, match="MemoryError.*may have been executed") as caught:
            client.call("tap")
    assert caught.value.delivery == UNKNOWN


def test_arguments_that_are_no_json_are_the_callers_own_error(peer: Peer) -> None:
    with Client(peer.url) as client, pytest.raises(TypeError):
        client.call("status", {"a": object()})
    assert "tools/call" not in peer.methods


def test_a_server_that_comes_back_is_found_again() -> None:
    discovered, result = DISCOVERED.replace(b'"id":1', b'"id":2'), RESULT.replace(b'"id":2', b'"id":3')
    with Raw(says(b""), says(discovered), says(result)) as raw, Client(raw.url) as client:
        with pytest.raises(PeerBroken):
            client.call("status")
        assert not client.call("status").is_error


# --- what the caller gives -----------------------------------------------------------------------


URLS = ("", "192.168.42.1:8080", "ftp://192.168.42.1/", "http:///mcp", "http://192.168.42.1:99999/", "http://[::1/mcp",
        "http://me:secret@192.168.42.1/", "http://192.168.42.1/a b", "http://192.168.42.1/\r\nX: y")  # fmt: skip


@pytest.mark.parametrize("url", URLS)
def test_a_url_that_cannot_be_used(url: str) -> None:
    with pytest.raises(ConfigError) as caught:
        Client(url)
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize("token", ["two\r\nlines", "schlüssel"])
def test_a_token_that_no_header_can_carry(token: str) -> None:
    with pytest.raises(ConfigError) as caught:
        Client("http://127.0.0.1/", token)
    assert token not in str(caught.value)
