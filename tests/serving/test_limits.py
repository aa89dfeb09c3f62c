"""Limits of time and number of connections, whatever the wall clock says."""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any, cast

import pytest
import waitress.channel
import waitress.server
import waitress.task

from mcpboard.serving import server
from mcpboard.serving.connection import (
    IDLE,
    LIMITS,
    PROGRESS_BYTES,
    RECEIVING,
    SETTLED_SECONDS,
    STALLED,
    UNREAD_TIMES,
    WORKING,
    Channel,
    most_dispensable,
)
from tests.serving.conftest import Lines
from tests.serving.served import Served, soon
from tests.support.http import LIMIT_S, call, chunked, message, request

pytestmark = pytest.mark.slow  # waits for real limits, links or processes

PING = message("ping")
YEARS_56 = 56 * 365.25 * 86400  # seconds: from 1970 to when the board learns the time


class TestOverdue:
    """The sums alone, on a connection that is none."""

    @pytest.mark.parametrize(("doing", "state"), [
        pytest.param({}, IDLE, id="idle"),
        pytest.param({"request": object()}, RECEIVING, id="a request that does not end"),
        pytest.param({"total_outbufs_len": 1}, STALLED, id="a reader that takes nothing"),
        pytest.param({"total_outbufs_len": 1, "requests": [1]}, STALLED, id="the same in the middle of a reply"),
    ])  # fmt: skip
    def test_after_its_limit_and_not_before(self, doing: dict[str, object], state: str) -> None:
        channel = still(**doing)
        assert channel.overdue(1000) is None
        assert channel.overdue(1000 + LIMITS[state]) is None
        assert channel.overdue(1000.1 + LIMITS[state]) == state

    def test_a_call_may_last_as_long_as_it_likes_and_idle_time_begins_after_it(self) -> None:
        channel = still(requests=[1])
        assert not any(channel.overdue(now) for now in range(1000, 5000, 10))
        channel.requests = []
        assert channel.overdue(5000) is None
        assert channel.overdue(5001 + LIMITS[IDLE]) == IDLE

    def test_a_reader_of_the_slowest_speed_allowed_goes_on_and_what_was_taken_before_does_not_count(self) -> None:
        channel = still(total_outbufs_len=1)
        for now in range(1000, 5000, 10):
            channel._taken += PROGRESS_BYTES // 2
            assert channel.overdue(now) is None
        channel.total_outbufs_len = 0
        channel._taken *= 10
        assert channel.overdue(5000) is None
        channel.total_outbufs_len = 1
        assert channel.overdue(5001) is None
        assert channel.overdue(5002 + LIMITS[STALLED]) == STALLED

    def test_a_request_served_between_two_looks_counts(self, monkeypatch: pytest.MonkeyPatch) -> None:
        listener = SimpleNamespace(add_task=lambda channel: channel.requests.clear())
        channel = still(requests_lock=threading.Lock(), _pending_input=b"", server=listener)
        assert channel.overdue(1000) is None
        monkeypatch.setattr(time, "monotonic", lambda: 1000 + LIMITS[IDLE])
        channel.request = cast(Any, SimpleNamespace(received=len, completed=True))
        assert channel.received(b"GET /")
        assert channel.request is None
        assert channel.overdue(1001 + LIMITS[IDLE]) is None
        assert channel.overdue(1001 + 2 * LIMITS[IDLE]) == IDLE


Ends = tuple[socket.socket, socket.socket]


@pytest.fixture
def ends() -> Iterator[Ends]:
    """The server's end of a connection and the client's."""
    ours, theirs = socket.socketpair()
    ours.setblocking(False)
    with ours, theirs:
        yield ours, theirs


class TestDispensable:
    """The connection that is ended for a new one, calculated without a server."""

    @pytest.mark.parametrize(("doing", "age", "rank"), [
        pytest.param({"_half_closed": True}, 0, 4, id="said goodbye, and has all"),
        pytest.param({}, 1, 3, id="idle"),
        pytest.param({}, 0.9, None, id="idle, too young"),
        pytest.param({"request": object()}, 1, 2, id="a request that is not whole"),
        pytest.param({"request": object()}, 0.9, None, id="a request that has just begun"),
        pytest.param({"total_outbufs_len": 1}, UNREAD_TIMES, 1, id="a reply that is not read"),
        pytest.param({"total_outbufs_len": 1}, UNREAD_TIMES - 0.1, None, id="a reply on its way"),
        pytest.param({"requests": [1]}, 1000, None, id="a call under way"),
    ])  # fmt: skip
    def test_the_least_missed_first(self, ends: Ends, doing: dict[str, object], age: float, rank: int | None) -> None:
        channel = still(socket=ends[0], _pending_input=b"", **doing)
        channel.overdue(1000)
        assert channel.dispensable(1000 + age, 1.0) == (None if rank is None else (rank, age))

    @pytest.mark.parametrize("leaves", [True, False])
    def test_a_request_on_its_way_counts_and_an_end_does_not(self, ends: Ends, leaves: bool) -> None:  # fmt: skip
        channel = still(socket=ends[0], _pending_input=b"")
        if leaves:
            ends[1].close()
        else:
            ends[1].send(b"POST")
        channel.overdue(1000)
        assert (channel.dispensable(2000, 1.0) is None) == (not leaves)

    @pytest.mark.parametrize(("count", "settled"), [(24, SETTLED_SECONDS), (256, SETTLED_SECONDS), (4, 0.0625)])
    def test_a_full_queue_of_newcomers_is_through_in_two_seconds(self, ends: Ends, count: int, settled: float) -> None:
        channels = [still(socket=ends[0], _pending_input=b"") for _ in range(count)]
        for number, channel in enumerate(channels):
            channel.overdue(1000 - number / 1000)
        assert most_dispensable(channels, 1000 + settled - 1) is None
        assert most_dispensable(channels, 1000 + settled) is channels[-1]


def still(**doing: object) -> Channel:
    """A channel that never had a socket, idle since 1000 s."""
    channel = Channel.__new__(Channel)
    channel._taken = 0
    channel.requests = []
    channel._enter(WORKING, 0)
    channel.__dict__.update(doing)
    return channel


class TestEnded:
    @pytest.mark.parametrize("sent", [
        pytest.param(b"", id="nothing sent"),
        pytest.param(b"POST /mcp HT", id="half a request line"),
        pytest.param(request(PING)[:-20], id="half a body"),
        pytest.param(request(chunked(PING)[:-5], "Transfer-Encoding: chunked", sized=False), id="chunks without end"),
        pytest.param(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", id="a TLS hello"),
        pytest.param(request(PING, "Expect: 100-continue")[: -len(PING)], id="Expect and no body"),
        pytest.param(b"\r\n", id="a blank line"),
    ])  # fmt: skip
    def test_unanswered_after_its_limit(self, served: Served, quick: None, lines: Lines, sent: bytes) -> None:
        began = time.monotonic()
        with served.client() as client:
            client.send(sent)
            client.file.read()
            assert 0.4 < time.monotonic() - began < 5
        assert served.pings()
        assert lines.none_left()

    @pytest.mark.parametrize("sent", [
        pytest.param(request(PING, "X-Slow: " + "x" * 10_000), id="in the head"),
        pytest.param(request(PING.ljust(10_000)), id="in the body"),
        pytest.param(request(chunked(PING.ljust(10_000), 1), "Transfer-Encoding: chunked", sized=False), id="in chunks"),
        pytest.param(b" \t\r\n\r\n\n" * 1000, id="in blank lines"),
    ])  # fmt: skip
    def test_a_byte_now_and_then_does_not_help(self, served: Served, quick: None, sent: bytes) -> None:
        began, pause = time.monotonic(), threading.Event()
        with served.client() as client, contextlib.suppress(ConnectionError):
            assert client.post(PING).status == 200
            for byte in sent:
                client.send(bytes([byte]))
                pause.wait(0.02)
            pytest.fail("it was allowed to finish")
        assert 0.4 < time.monotonic() - began < 5
        assert served.role.ran == []

    def test_a_kept_connection_lives_from_request_to_request(self, served: Served, quick: None) -> None:
        pause = threading.Event()
        with served.client() as client:
            for _ in range(8):
                assert client.post(PING).status == 200
                pause.wait(0.15)
            assert client.ended()

    def test_a_request_begun_during_a_long_call_has_its_full_time_after_it(self, served: Served, quick: None) -> None:
        """Nor is the call idle; its client waits for the 100 that cannot come before the call's own answer."""
        with served.client() as client:
            client.send(request(call("block")) + request(PING, "Expect: 100-continue")[: -len(PING)])
            assert not served.role.release.wait(1.2)
            served.role.release.set()
            assert client.response().status == 200
            assert client._line() == b"HTTP/1.1 100 Continue"
            client.send(PING)
            assert client._line() == b""
            assert client.response().status == 200


def test_every_connection_has_the_options(served: Served) -> None:
    with served.client() as client:
        client.post(PING)
        (channel,) = served.server._channels()
        options = [channel.socket.getsockopt(level, name) for level, name, _ in server.SOCKET_OPTIONS]
        assert options == [2 * 96 * 1024, 1, 30_000]
        assert channel.socket.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


class TestClock:
    @pytest.fixture
    def step(self, monkeypatch: pytest.MonkeyPatch) -> Callable[[float], None]:
        """Step the wall clock of every waitress module that reads it."""
        shift = SimpleNamespace(seconds=0.0)
        clock = SimpleNamespace(time=lambda: time.time() + shift.seconds)
        for module in (waitress.channel, waitress.server, waitress.task):
            monkeypatch.setattr(module, "time", clock)
        return lambda seconds: setattr(shift, "seconds", seconds)

    @pytest.mark.parametrize("years", [pytest.param(1, id="forward"), pytest.param(-1, id="back")])
    def test_nothing_ends_early_when_it_steps(
        self, served: Served, step: Callable[[float], None], monkeypatch: pytest.MonkeyPatch, years: int
    ) -> None:
        monkeypatch.setattr(server, "SWEEP_SECONDS", 0.01)
        step(0 if years > 0 else YEARS_56 / 2)
        with served.client() as idle, served.client() as caller, served.client() as reader, served.client() as asking:
            assert idle.post(PING).status == 200
            caller.send(request(call("block")))
            served.role.begun.get(timeout=LIMIT_S)
            reader.send(request(call("file", size=3_000_000)))
            served.role.begun.get(timeout=LIMIT_S)
            asking.send(request(PING)[:-5])
            step(years * YEARS_56 / 2)
            assert served.pings()
            assert not served.role.release.wait(0.2)
            assert served.pings()
            asking.send(request(PING)[-5:])
            assert asking.response().status == 200
            served.role.release.set()
            assert caller.response().status == 200
            assert reader.response().status == 200
            assert idle.post(PING).status == 200

    def test_limits_strike_all_the_same(self, served: Served, quick: None, step: Callable[[float], None]) -> None:
        step(YEARS_56 / 2)
        with served.client() as client, served.client(4096) as reader:
            reader.send(request(call("picture", size=8_000_000)))
            served.limit.wait_for(1)
            step(-YEARS_56 / 2)
            assert client.ended()
            served.limit.wait_for(0)

    def test_the_end_does_not_wait_for_a_clock_that_went_back(
        self, served: Served, step: Callable[[float], None], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """waitress' own shutdown would wait 56 years for a thread that is stuck."""
        monkeypatch.setattr(server, "GRACE_SECONDS", 0.1)
        with served.client() as caller:
            caller.send(request(call("block")))
            served.role.begun.get(timeout=LIMIT_S)
            ticks = iter([0.0])
            monkeypatch.setattr(waitress.task, "time", SimpleNamespace(time=lambda: next(ticks, -YEARS_56)))
            began = time.monotonic()
            served.server.stop()
            assert caller.ended()
            assert soon(lambda: not served.server._map)
            assert time.monotonic() - began < 5
