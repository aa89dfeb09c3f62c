"""Strangers who take all that a server has, and the honest client who is answered all the same.

`docs/hostile-traffic.md` has the table; the real programs are under the same traffic in `test_hostile_programs.py`.
"""

from __future__ import annotations

import contextlib
import errno
import math
import threading
import time
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from unittest.mock import Mock

import pytest

from mcpboard.serving import connection, server
from mcpboard.serving.connection import SLOW, STALLED
from tests.serving.conftest import Lines
from tests.serving.served import Served, soon
from tests.support import hogs
from tests.support.clock import Clock
from tests.support.hogs import ANSWER_S, FRAME, PING, UNFINISHED, UNREAD, Crowd, Hog, waits
from tests.support.hogs import IDLE as SILENT
from tests.support.http import LIMIT_S, Connection, call, message, request

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
        with served.clients(server.CONNECTIONS) as kept:
            assert served.pings()
            assert kept[0].ended()
            assert all(client.post(message("ping")).status == 200 for client in kept[1:])

    def test_nobody_at_work_makes_room(self, served: Served, settled: None) -> None:
        """Calls under way, in more connections than idle ones are left."""
        with served.clients(server.TOOL_CALLS) as working:
            for client in working:
                client.send(request(call("block")))
            served.limit.wait_for(server.TOOL_CALLS)
            with served.clients(server.CONNECTIONS - server.TOOL_CALLS) as idle:
                with contextlib.ExitStack() as newcomers:
                    for _ in range(2 * server.CONNECTIONS):
                        assert newcomers.enter_context(served.client()).post(message("ping")).status == 200
                served.role.release.set()
                assert [client.response().status for client in working] == [200] * len(working)
                assert all(client.ended() for client in idle)

    def test_an_unfinished_request_makes_room_when_nobody_is_idle(self, served: Served, settled: None) -> None:
        with served.clients(server.CONNECTIONS) as asking:
            for client in asking:
                client.send(request(message("ping"))[:-1])
                let_in(served, client)
            assert served.pings()
            assert asking[0].ended(), "the one longest without finishing"
            asking[1].send(request(message("ping"))[-1:])
            assert asking[1].response().status == 200

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
    with served.clients(most // (320 * 1024) + 2) as asking:
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
        none_left = Mock(side_effect=OSError(errno.EMFILE, "Too many open files"))
        with served.client(), monkeypatch.context() as patch:
            patch.setattr(listener, "accept", none_left)
            with served.client() as newcomer:
                newcomer.send(request(message("ping")))
                threading.Event().wait(0.5)
                patch.undo()
                assert newcomer.response().status == 200
            assert 2 <= none_left.call_count <= 10

    def test_an_idle_connection_gives_its_descriptor(self, served: Served, settled: None, monkeypatch: pytest.MonkeyPatch) -> None:  # fmt: skip
        (listener,) = served.server._listeners

        def accepts(accept: Callable[[], object] = listener.accept) -> Iterator[object]:
            yield OSError(errno.EMFILE, "Too many open files")
            while True:
                yield accept()

        with served.client() as idle:
            assert idle.post(message("ping")).status == 200
            monkeypatch.setattr(listener, "accept", Mock(side_effect=accepts()))
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
        with served.clients(server.TOOL_CALLS, SMALL) as slow:
            for number, client in enumerate(slow, 1):
                client.send(request(call("picture", size=4 * MEGABYTE)))
                served.limit.wait_for(number)
                stuck(served, number)
                clock.now += 1
            assert served.post(call("echo")).text == "done"
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
        with served.client(SMALL) as slow, pytest.raises(ConnectionResetError):  # which says that it is not the whole
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

    def waiting() -> list[connection.Channel]:
        return [channel for channel in served.server._channels() if channel.total_outbufs_len and channel.requests]

    assert soon(lambda: len(waiting()) == count)
    return waiting()


def let_in(served: Served, client: Connection) -> None:
    """Return once the server has read all that this client sent: it has begun a request."""
    name = client.sock.getsockname()
    assert soon(lambda: any(channel.addr == name and channel.request for channel in served.server._channels()))


@pytest.fixture
def settled(monkeypatch: pytest.MonkeyPatch) -> None:
    """Connections may be ended for newcomers at any age."""
    monkeypatch.setattr(connection, "SETTLED_SECONDS", 0.0)
