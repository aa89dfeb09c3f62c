"""Strangers who take all that a server has, and the honest client who is answered all the same.

`docs/hostile-traffic.md` has the table; the real programs are under the same traffic in `test_hostile_programs.py`.
"""

from __future__ import annotations

import contextlib
import errno
import math
import threading
import time
from collections.abc import Callable
from types import SimpleNamespace

import pytest

from mcpboard.serving import connection, server
from mcpboard.serving.connection import SLOW, STALLED
from tests.serving.conftest import Lines
from tests.serving.served import Served
from tests.support import hogs
from tests.support.clock import Clock
from tests.support.hogs import ANSWER_S, FRAME, PING, UNFINISHED, UNREAD, Crowd, Hog, waits
from tests.support.hogs import IDLE as SILENT
from tests.support.http import LIMIT_S, Connection, call, chunked, message, request

MEGABYTE = 1 << 20
SMALL = 4096  # bytes of receive buffer
SECONDS = 0.6  # of asking, in each of the crowds

BIG = hogs.call("picture", size=4 * MEGABYTE)
ACTION = hogs.call("echo")


class TestConnections:
    @pytest.mark.parametrize(("hog", "count"), [
        pytest.param(SILENT, 100, id="100 idle ones that come back at once"),
        pytest.param(hogs.blank(0.1), 100, id="100 that send blank lines"),
        pytest.param(hogs.asking(PING, 0.1), 30, id="30 that ask now and then"),
        pytest.param(hogs.asking(PING * 20, 0.01), 30, id="30 that ask all the time"),
        pytest.param(FRAME, 36, id="a page of 36 frames"),
        pytest.param(UNFINISHED, 30, id="30 requests that are never whole"),
        pytest.param(UNREAD, 30, id="30 that read no answer"),
    ])  # fmt: skip
    def test_a_newcomer_always_gets_in(self, served: Served, hog: Hog, count: int) -> None:
        with Crowd(served.port, {hog: count}):
            found = waits(served.port, SECONDS, {"ping": PING, "an action": ACTION})
        assert found.worst_s <= ANSWER_S
        assert found.answers >= 2

    def test_the_one_idle_for_longest_makes_room(self, served: Served, settled: None) -> None:
        with contextlib.ExitStack() as clients:
            kept = [clients.enter_context(served.client()) for _ in range(server.CONNECTIONS)]
            assert served.pings()
            assert kept[0].ended()
            assert all(client.post(message("ping")).status == 200 for client in kept[1:])

    def test_nobody_at_work_makes_room(self, served: Served, settled: None) -> None:
        """Calls under way, in more connections than idle ones are left."""
        with contextlib.ExitStack() as clients:
            working = [clients.enter_context(served.client()) for _ in range(server.TOOL_CALLS)]
            for client in working:
                client.send(request(call("block")))
            served.limit.wait_for(server.TOOL_CALLS)
            idle = [clients.enter_context(served.client()) for _ in range(server.CONNECTIONS - server.TOOL_CALLS)]
            for _ in range(2 * server.CONNECTIONS):
                assert clients.enter_context(served.client()).post(message("ping")).status == 200
            served.role.release.set()
            assert [client.response().status for client in working] == [200] * len(working)
            assert all(client.ended() for client in idle)

    def test_an_unfinished_request_makes_room_when_nobody_is_idle(self, served: Served, settled: None) -> None:
        half = request(message("ping"))[:-1]
        with contextlib.ExitStack() as clients:
            asking = [clients.enter_context(served.client()) for _ in range(server.CONNECTIONS)]
            for client in asking:
                client.send(half)
                let_in(served, client)
            assert served.pings()
            assert asking[0].ended(), "the one longest without finishing"
            asking[1].send(request(message("ping"))[-1:])
            assert asking[1].response().status == 200

    @pytest.mark.parametrize("sent", [b"\r\n", b" \t\r\n\r\n", b"\r"])
    def test_blank_lines_set_no_clock_back(self, served: Served, quick: None, sent: bytes) -> None:
        pause, began = threading.Event(), time.monotonic()
        with served.client() as client, contextlib.suppress(ConnectionError):
            assert client.post(message("ping")).status == 200
            while time.monotonic() - began < 5:
                client.send(sent)
                pause.wait(0.05)
        assert 0.4 < time.monotonic() - began < 3

    def test_blank_lines_between_requests_are_passed_over(self, served: Served) -> None:
        with served.client() as client:
            for between in (b"", b"\r\n", b"\r\n\r\n", b"\n \r\n" * 20_000):
                client.send(between + request(message("ping")))
                assert client.response().status == 200


def test_unfinished_bodies_share_half_of_what_they_could_take(served: Served) -> None:
    """The oldest goes, and one that comes whole is answered."""
    large = request(message("ping").ljust(320 * 1024))
    (listener,) = served.server._listeners
    most = listener.adj.connection_limit * connection.BODY_SHARE
    with contextlib.ExitStack() as clients:
        asking = [clients.enter_context(served.client()) for _ in range(most // (320 * 1024) + 2)]
        for client in asking:
            with contextlib.suppress(ConnectionError):
                client.send(large[:-1])
            let_in(served, client)
        assert asking[0].ended()
        asking[-1].send(large[-1:])
        assert asking[-1].response().status == 200
        held = [channel.request for channel in served.server._channels() if channel.request is not None]
        assert sum(each.body_bytes_received for each in held) <= most
    assert served.pings()


class TestDescriptors:
    def test_an_accept_that_fails_does_not_keep_the_loop_busy(self, served: Served, monkeypatch: pytest.MonkeyPatch, lines: Lines) -> None:  # fmt: skip
        (listener,) = served.server._listeners
        tried: list[float] = []

        def none_left() -> None:
            tried.append(time.monotonic())
            raise OSError(errno.EMFILE, "Too many open files")

        with served.client() as waiting, monkeypatch.context() as patch:
            patch.setattr(listener, "accept", none_left)
            begun = time.monotonic()
            with served.client() as newcomer:
                newcomer.send(request(message("ping")))
                while time.monotonic() - begun < 0.5:
                    threading.Event().wait(0.05)
                patch.undo()
                assert newcomer.response().status == 200
            assert len(tried) <= 10
            assert waiting is not None

    def test_an_idle_connection_gives_its_descriptor(self, served: Served, settled: None, monkeypatch: pytest.MonkeyPatch) -> None:  # fmt: skip
        (listener,) = served.server._listeners
        accept: Callable[[], object] = listener.accept
        with served.client() as idle:
            assert idle.post(message("ping")).status == 200

            def once() -> object:
                monkeypatch.setattr(listener, "accept", accept)
                raise OSError(errno.EMFILE, "Too many open files")

            monkeypatch.setattr(listener, "accept", once)
            assert served.pings()
            assert idle.ended()

    def test_a_descriptor_beyond_1023_is_served(self, served: Served) -> None:
        """As on a host with many devices: select() would end the loop for everybody."""
        resource = pytest.importorskip("resource")
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        if hard != resource.RLIM_INFINITY and hard < 1200:
            pytest.skip("no 1,200 descriptors here")
        resource.setrlimit(resource.RLIMIT_NOFILE, (1200, hard))
        try:
            with contextlib.ExitStack() as files:
                for _ in range(1024):
                    files.enter_context(open("/dev/null", "rb"))
                assert served.pings()
            assert served.pings()
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


class TestSlowReaders:
    def test_the_one_that_has_read_for_longest_is_broken_off_and_told_as_lost(self, served: Served, monkeypatch: pytest.MonkeyPatch) -> None:  # fmt: skip
        clock = Clock()
        monkeypatch.setattr(served.limit, "_clock", clock)
        monkeypatch.setattr("mcpboard.serving.app.time", SimpleNamespace(monotonic=clock))
        with contextlib.ExitStack() as clients:
            for number in range(server.TOOL_CALLS):
                slow = clients.enter_context(served.client(SMALL))
                slow.send(request(call("picture", size=4 * MEGABYTE)))
                served.limit.wait_for(number + 1)
                stuck(served, number + 1)
                clock.now += 1
            assert served.post(call("echo")).json["result"]["content"][0]["text"] == "done"
            assert served.role.lost.get(timeout=LIMIT_S) == "picture"
            served.limit.wait_for(server.TOOL_CALLS - 1)
            assert served.role.lost.empty()

    @pytest.mark.parametrize(("tool", "limit"), [("picture", connection.REPLY_SECONDS), ("file", connection.STREAM_SECONDS)])  # fmt: skip
    def test_a_reply_has_so_long_in_all(self, served: Served, tool: str, limit: float) -> None:
        with served.client(SMALL) as slow:
            slow.send(request(call(tool, size=4 * MEGABYTE)))
            served.limit.wait_for(1)
            (channel,) = stuck(served, 1)
            now = time.monotonic()
            assert limit - 5 < channel.reply_until - now <= limit
            channel._enter(STALLED, now + limit)  # it has just taken something
            assert channel.overdue(now + limit - 5) is None
            assert channel.overdue(now + limit + 1) == SLOW

    def test_a_reader_that_gets_on_but_takes_too_long_is_cut_off(self, served: Served, quick: None, monkeypatch: pytest.MonkeyPatch) -> None:  # fmt: skip
        monkeypatch.setattr(connection, "PROGRESS_BYTES", 256)
        monkeypatch.setattr(connection, "REPLY_SECONDS", 1.0)
        begun, pause = time.monotonic(), threading.Event()
        with served.client(SMALL) as slow, contextlib.suppress(ConnectionError):
            slow.send(request(call("picture", size=8 * MEGABYTE)))
            while slow.sock.recv(4096) and time.monotonic() - begun < LIMIT_S:
                pause.wait(0.01)
        assert 0.8 < time.monotonic() - begun < 5
        assert served.role.lost.get(timeout=LIMIT_S) == "picture"
        served.limit.wait_for(0)

    def test_the_next_reply_of_a_kept_connection_has_its_own_time(self, served: Served) -> None:
        with served.client() as client:
            assert client.post(call("echo")).status == 200
            client.send(request(call("block")))
            assert [served.role.begun.get(timeout=LIMIT_S) for _ in range(2)] == ["echo", "block"]
            (channel,) = served.server._channels()
            assert channel.reply_until == math.inf, "none has begun"
            served.role.release.set()
            assert client.response().status == 200


def stuck(served: Served, count: int) -> list[connection.Channel]:
    """The connections that wait for their readers, once they are so many."""
    end = time.monotonic() + LIMIT_S
    while True:
        found = [channel for channel in served.server._channels() if channel.total_outbufs_len and channel.requests]
        if len(found) == count:
            return found
        assert time.monotonic() < end, f"{len(found)} wait"
        threading.Event().wait(0.005)


def let_in(served: Served, client: Connection) -> None:
    """Return once the server has read all that this client sent: it has begun a request."""
    end = time.monotonic() + LIMIT_S
    name = client.sock.getsockname()
    while not any(channel.addr == name and channel.request for channel in served.server._channels()):
        assert time.monotonic() < end
        threading.Event().wait(0.002)


@pytest.fixture
def settled(monkeypatch: pytest.MonkeyPatch) -> None:
    """Connections may be ended for newcomers at any age."""
    monkeypatch.setattr(connection, "SETTLED_SECONDS", 0.0)


class TestFraming:
    """The end of a body is never in doubt: what follows would be taken for a request, or for none."""

    SMUGGLED = request(call("echo", "smuggled"))

    @pytest.mark.parametrize("head", [
        pytest.param("POST /mcp HTTP/1.0\r\nTransfer-Encoding: chunked", id="HTTP/1.0"),
        pytest.param("POST /mcp HTTP/1.0\r\nConnection: keep-alive\r\nTransfer-Encoding: chunked", id="kept alive"),
        pytest.param("POST /mcp HTTP/1.0\r\nTransfer-Encoding: chunked\r\nContent-Length: 5", id="with a length"),
        pytest.param("POST /mcp HTTP/1.0\r\nTransfer-Encoding: identity", id="another coding"),
        pytest.param("GET /health HTTP/1.0\r\nConnection: keep-alive\r\nTransfer-Encoding: chunked", id="a page"),
        pytest.param("POST /mcp HTTP/2.0\r\nTransfer-Encoding: chunked", id="a version to come"),
        pytest.param("POST /mcp\r\nTransfer-Encoding: chunked", id="no version"),
    ])  # fmt: skip
    def test_transfer_encoding_needs_http_1_1(self, served: Served, head: str) -> None:
        with served.client() as client:
            client.send(f"{head}\r\nHost: x\r\n\r\n0\r\n\r\n".encode() + self.SMUGGLED)
            response = client.response()
            assert (response.status, response.headers["connection"]) == (400, "close")
            assert client.ended()
        assert served.pings()
        assert served.role.ran == []

    def test_both_framings_are_answered_by_the_chunks_and_nothing_after_it_is(self, served: Served) -> None:
        headers = "Transfer-Encoding: chunked", "Content-Length: 5", "Content-Type: application/json"
        with served.client() as client:
            client.send(request(chunked(message("ping")), *headers, sized=False) + self.SMUGGLED)
            response = client.response()
            assert (response.status, response.headers["connection"]) == (200, "close")
            assert client.ended()
        assert served.role.ran == []

    @pytest.mark.parametrize("junk", [
        pytest.param(b"\x00" * 100 + b"\r\n\r\n", id="zeros"),
        pytest.param(b"}" + request(call("echo")), id="a rest of a body"),
        pytest.param(b"HTTP/1.1 200 OK\r\n\r\n", id="an answer"),
        pytest.param(b"GET\r\n\r\n", id="half a request line"),
        pytest.param(b"A" * 20_000, id="a line without end"),
    ])  # fmt: skip
    def test_junk_after_a_request_is_refused_and_ends_the_connection(self, served: Served, junk: bytes) -> None:
        with served.client() as client:
            client.send(request(message("ping")) + junk)
            assert client.response().status == 200
            refused = client.response()
            assert (refused.status // 100, refused.headers["connection"]) == (4, "close")
            assert client.ended()
        assert served.pings()
        assert served.role.ran == []

    @pytest.mark.parametrize("last", [request(method="GET", path="/health"), request(message("ping"), "Connection: close")])  # fmt: skip
    def test_nothing_behind_the_last_request_of_a_connection_is_read(self, served: Served, last: bytes) -> None:
        with served.client() as client:
            client.send(last + self.SMUGGLED)
            assert client.response("GET").status == 200
            assert client.ended()
        assert served.pings()
        assert served.role.ran == []
