"""HTTP as strangers send it: every form of request has one known fate, and the server is as before."""

from __future__ import annotations

import contextlib
import socket

import pytest

from mcpboard.serving.connection import Channel, Parser
from tests.serving.conftest import Lines
from tests.serving.served import Served
from tests.support.http import LIMIT_S, call, chunked, message, request

PING = message("ping")
ECHO = call("echo")
CHUNKED, EXPECT = "Transfer-Encoding: chunked", "Expect: 100-continue"


@pytest.mark.parametrize("error", [MemoryError, RecursionError])
@pytest.mark.parametrize("ahead", [False, True], ids=["as it arrives", "what was sent ahead"])
def test_a_request_that_cannot_be_taken_in_ends_its_connection_alone(
    served: Served, monkeypatch: pytest.MonkeyPatch, ahead: bool, error: type[Exception]
) -> None:
    """The loop that serves all the others goes on."""
    received = Parser.received

    def failing(parser: Parser, data: bytes) -> int:
        if data.startswith(b"POST /boom"):
            raise error
        taken: int = received(parser, data)
        return taken

    monkeypatch.setattr(Parser, "received", failing)
    with served.client() as client:
        client.send((request(PING) if ahead else b"") + request(PING, path="/boom"))
        if ahead:
            assert client.response().status == 200
        assert client.ended()
    assert served.pings()


class TestServed:
    @pytest.mark.parametrize("sent", [
        pytest.param(request(chunked(PING), CHUNKED, sized=False), id="a chunked body"),
        pytest.param(request(b"5;x=y\r\n" + PING[:5] + b"\r\n" + chunked(PING[5:]), CHUNKED, sized=False), id="a chunk with an extension"),
        pytest.param(request(chunked(PING), CHUNKED, "Content-Length: 3", sized=False), id="Transfer-Encoding beside Content-Length: the first counts"),
        pytest.param(request(PING, EXPECT), id="Expect with the body at once"),
        pytest.param(request(PING, version="1.0"), id="HTTP/1.0"),
        pytest.param(request(PING, "Connection: keep-alive", version="1.0"), id="HTTP/1.0 kept alive"),
        pytest.param(request(PING, version="2.0"), id="a version to come"),
        pytest.param(request(PING, path="http://192.168.42.1:8080/mcp"), id="an absolute URL"),
        pytest.param(request(PING, "Via: 1.1 proxy", "Proxy-Connection: keep-alive", path="http://192.168.42.1:8080/mcp"), id="an absolute URL through a proxy"),
        pytest.param(request(PING, "X-Folded: one", "  two"), id="a folded header"),
        pytest.param(request(PING, "X-Empty:"), id="an empty header"),
        pytest.param(request(PING, "X-Twice: 1", "X-Twice: 2"), id="a header twice"),
        pytest.param(request(PING, "Host: again"), id="Host twice without Origin"),
        pytest.param(request(PING, "Mcp-Session-Id: \xff"), id="a session id of another script"),
        pytest.param(b"\r\n\r\n" + request(PING), id="blank lines first"),
        pytest.param(f"POST /mcp HTTP/1.1\r\nContent-Length: {len(PING)}\r\n\r\n".encode() + PING, id="no Host, no type"),
        pytest.param(request(PING, "X-Long: " + "x" * 15_000), id="a head almost too long"),
    ])  # fmt: skip
    def test_ping_is_answered(self, served: Served, sent: bytes) -> None:
        assert served.ask(sent).result == {"resultType": "complete"}

    def test_byte_by_byte(self, served: Served) -> None:
        with served.client() as client:
            client.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            for byte in request(chunked(PING, 3), CHUNKED, sized=False):
                client.send(bytes([byte]))
            assert client.response().status == 200

    def test_expect_is_answered_before_the_body(self, served: Served) -> None:
        with served.client() as client:
            client.send(request(PING, EXPECT)[: -len(PING)])
            assert client.sock.recv(1000) == b"HTTP/1.1 100 Continue\r\n\r\n"
            client.send(PING)
            assert client.response().status == 200

    @pytest.mark.parametrize(("sent", "status"), [
        pytest.param(request(b"", EXPECT, method="GET", path="/health"), 200, id="GET"),
        pytest.param(request(b"", EXPECT), 400, id="a POST without a body"),
        pytest.param(request(b"", EXPECT, f"Content-Length: {1 << 31}", sized=False), 413, id="2 GiB"),
    ])  # fmt: skip
    def test_expect_where_no_body_is_wanted_gets_its_answer(self, served: Served, sent: bytes, status: int) -> None:
        assert served.ask(sent).status == status

    @pytest.mark.parametrize("count", [2, 5, 300])
    def test_pipelined_requests_are_answered_in_order(self, served: Served, count: int) -> None:
        with served.client() as client:
            client.send(b"".join(request(call("echo", number)) for number in range(count)))
            assert [client.response().json["id"] for _ in range(count)] == list(range(count))
        served.limit.wait_for(0)
        assert served.limit.acquired == count

    def test_pipelined_requests_split_anywhere(self, served: Served) -> None:
        """Whatever of the next request comes with the one before, and while that is being answered."""
        first = request(call("block", 1))
        both = first + request(PING, EXPECT)
        for cut in range(len(first), len(both), 17):
            with served.client() as client:
                client.send(both[:cut])
                served.role.begun.get(timeout=LIMIT_S)
                client.send(both[cut:])
                served.role.release.set()
                assert [client.response().json["id"] for _ in range(2)] == [1, 1]
            served.role.release.clear()


SMUGGLED = request(call("echo", "smuggled"))
BOTH = CHUNKED, "Content-Length: 5", "Content-Type: application/json"


@pytest.mark.parametrize(("sent", "statuses"), [
    *(pytest.param(f"{line}\r\nHost: x\r\n{CHUNKED}\r\n\r\n0\r\n\r\n".encode() + SMUGGLED, [400], id=f"chunks need HTTP/1.1: {line}") for line in (
        "POST /mcp HTTP/1.0", "POST /mcp HTTP/1.0\r\nConnection: keep-alive", "POST /mcp HTTP/1.0\r\nContent-Length: 5",
        "GET /health HTTP/1.0\r\nConnection: keep-alive", "POST /mcp HTTP/2.0", "POST /mcp",
    )),
    pytest.param(b"POST /mcp HTTP/1.0\r\nTransfer-Encoding: identity\r\n\r\n0\r\n\r\n" + SMUGGLED, [400], id="another coding"),
    pytest.param(request(chunked(PING), *BOTH, sized=False) + SMUGGLED, [200], id="both framings: the chunks count"),
    *(pytest.param(request(PING) + junk, [200, status], id=f"junk: {junk[:9]!r}") for junk, status in (
        (b"\x00" * 100 + b"\r\n\r\n", 400), (b"}" + SMUGGLED, 400), (b"HTTP/1.1 200 OK\r\n\r\n", 400), (b"GET\r\n\r\n", 400), (b"A" * 20_000, 431),
    )),
    pytest.param(request(method="GET", path="/health") + SMUGGLED, [200], id="behind a page"),
    pytest.param(request(PING, "Connection: close") + SMUGGLED, [200], id="behind the last request of a connection"),
])  # fmt: skip
def test_what_follows_is_no_request_where_the_end_of_a_body_is_in_doubt(served: Served, sent: bytes, statuses: list[int]) -> None:  # fmt: skip
    with served.client() as client:
        client.send(sent)
        responses = [client.response("GET") for _ in statuses]
        assert [response.status for response in responses] == statuses
        assert responses[-1].headers["connection"] == "close"
        assert client.ended()
    assert served.pings()
    assert served.role.ran == []


class TestRefused:
    @pytest.mark.parametrize(("sent", "status"), [
        pytest.param(request(PING, "X-Long: " + "x" * 16_384), 431, id="a head too long"),
        pytest.param(request(PING, *(f"X-{n}: {n}" for n in range(30_000))), 431, id="300 KiB of headers"),
        pytest.param(request(b"", "Content-Length: 614400", sized=False), 413, id="600 KiB declared"),
        pytest.param(request(b"", f"Content-Length: {1 << 31}", sized=False), 413, id="2 GiB declared"),
        pytest.param(request(chunked(bytes(600_000), 10_000), CHUNKED, sized=False), 413, id="chunked over"),
        pytest.param(request(b"f" * 600_000, CHUNKED, sized=False), 413, id="a chunk size without end"),
        pytest.param(request(b"", "Content-Length: -1", sized=False), 400, id="a negative length"),
        pytest.param(request(b"", "Content-Length: 5", "Content-Length: 5", sized=False), 400, id="a length twice"),
        pytest.param(request(b"", "Content-Length:", sized=False), 400, id="an empty length"),
        pytest.param(request(b"", "Content-Length: " + "9" * 5000, sized=False), 400, id="a length of 5,000 digits"),
        pytest.param(request(PING, method="post"), 400, id="a method in lower case"),
        pytest.param(request(PING, path="http://[::1/mcp"), 400, id="half an IPv6 address in the URL"),
        pytest.param(request(PING, path="/m\xe4p"), 400, id="a path that is not ASCII"),
        pytest.param(request(PING, "X-Bad\x00: 1"), 400, id="NUL in a header name"),
        pytest.param(request(PING, "no colon"), 400, id="a header without a colon"),
        pytest.param(b"POST /mcp HTTP/1.1\r\n folded: first\r\n\r\n" + PING, 400, id="a fold with nothing before"),
        pytest.param(b"\x16\x03\x01\x02\x00\r\n\r\n", 400, id="TLS, with a blank line by chance"),
        pytest.param(request(b"zz\r\n", CHUNKED, sized=False), 400, id="a chunk size in letters"),
        pytest.param(request(PING, "Transfer-Encoding: gzip, chunked"), 501, id="a transfer coding we do not speak"),
    ])  # fmt: skip
    def test_by_waitress_in_plain_text(self, served: Served, lines: Lines, sent: bytes, status: int) -> None:
        with served.client() as client:
            with contextlib.suppress(ConnectionError):  # it may close before all is sent
                client.send(sent)
            response = client.response()
            assert response.status == status
            assert response.headers["connection"] == "close"
            assert "waitress" not in response.body.decode()
            assert "server" not in response.headers
            assert client.ended()
        assert served.pings()
        assert lines.none_left()

    def test_an_urgent_byte_does_not_keep_the_loop_busy(self, served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
        """It is a byte like others: read once, and judged with what follows."""
        woken: list[int] = []
        monkeypatch.setattr(Channel, "handle_expt", lambda channel: woken.append(1))
        with served.client() as client:
            client.sock.send(b"x", socket.MSG_OOB)
            assert all(served.pings() for _ in range(20))
            client.send(b"\r\n\r\n")
            assert client.response().status == 400
        assert len(woken) < 5

    def test_a_connection_that_cannot_be_set_up_leaves_the_listener(self, served: Served, monkeypatch: pytest.MonkeyPatch, lines: Lines) -> None:  # fmt: skip
        def fail(channel: object, listener: object, sock: socket.socket, *_: object, **__: object) -> None:
            sock.close()
            raise MemoryError

        with monkeypatch.context() as patch:
            patch.setattr(Channel, "__init__", fail)
            with served.client() as client:
                assert client.ended()
        assert lines.next().getMessage() == "a connection could not be accepted"
        assert served.pings()
