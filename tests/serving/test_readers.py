"""Readers that stall, drip, leave or were never there: what a call borrowed always comes back, once."""

from __future__ import annotations

import os
import threading
import time
from types import SimpleNamespace

import pytest

from mcpboard.serving import connection, server
from mcpboard.serving.connection import LIMITS, STALLED
from tests.serving.conftest import Lines
from tests.serving.served import Served, soon
from tests.support.http import LIMIT_S, call, message, request

MEGABYTE = 1 << 20
PAUSE = threading.Event()
SMALL = 4096  # bytes of receive buffer: loopback would otherwise swallow a whole reply


class TestStalled:
    @pytest.mark.parametrize("reads", [False, True], ids=["nothing", "a byte now and then"])
    def test_a_stalled_reader_gives_thread_slot_and_lane_back(self, served: Served, quick: None, reads: bool) -> None:
        with served.client(SMALL) as client:
            client.send(request(call("file", size=8 * MEGABYTE)))
            served.limit.wait_for(1)
            while reads and served.limit.in_use:
                client.sock.recv(1)
                PAUSE.wait(0.05)
            served.limit.wait_for(0)
        (source,) = served.role.sources
        assert source.closed == 1
        assert served.limit.released == 1
        assert served.role.lost.get(timeout=LIMIT_S) == "file"
        assert served.role.lost.empty()

    def test_a_slow_reader_that_gets_on_is_served_to_the_end(self, served: Served, quick: None, monkeypatch: pytest.MonkeyPatch) -> None:  # fmt: skip
        """The limit is on standing still, not on the whole: the reply takes more than twice as long."""
        monkeypatch.setattr(connection, "PROGRESS_BYTES", 1024)
        began = time.monotonic()
        with served.client(SMALL) as client:
            client.send(request(call("picture", size=MEGABYTE)))
            left = MEGABYTE
            while left > 0:
                PAUSE.wait(0.005)
                left -= len(client.sock.recv(4096))
        assert time.monotonic() - began > 2 * LIMITS[STALLED]
        served.limit.wait_for(0)
        assert served.role.lost.empty()

    def test_all_slots_stuck_leave_ping_list_and_health(self, served: Served) -> None:
        with served.clients(server.TOOL_CALLS, SMALL) as clients:
            for client in clients:
                client.send(request(call("picture", size=8 * MEGABYTE)))
            served.limit.wait_for(server.TOOL_CALLS)
            assert served.pings()
            assert len(served.post(message("tools/list")).result["tools"]) > 1
            assert served.ask(request(method="GET", path="/health")).status == 200
            busy = served.post(call("echo"))
            assert busy.is_error
            assert "under way" in busy.text
        served.limit.wait_for(0)
        assert "echo" not in served.role.ran

    @pytest.mark.parametrize("ahead", [
        pytest.param(request(message("ping")), id="one ping behind a large reply"),
        pytest.param(request(message("tools/list")) * 25, id="many lists, more than the server holds in memory"),
    ])  # fmt: skip
    def test_stalled_readers_that_pipeline_hold_no_thread(self, served: Served, ahead: bytes) -> None:
        """A thread that waits for such a reader must hold a slot: a thread without one would be lost to `ping`."""
        with served.clients(server.THREADS, SMALL) as clients:
            for client in clients:
                client.send(request(call("picture", size=300_000)) + ahead)
            assert all(served.pings() for _ in clients)


class TestGone:
    @pytest.mark.parametrize("reset", [pytest.param(True, id="reset"), pytest.param(False, id="closed")])
    def test_a_call_queued_is_never_made_when_its_caller_leaves(self, served: Served, reset: bool) -> None:
        hold = threading.Event()
        for _ in range(server.THREADS):
            served.server._tasks.add_task(SimpleNamespace(service=lambda: hold.wait(LIMIT_S)))
        with served.client() as stayer:
            leaver = served.client()
            leaver.send(request(call("echo")))
            stayer.send(request(call("refuse")))
            let_the_loop_turn(served)
            leaver.leave(reset=reset)
            let_the_loop_turn(served)
            hold.set()
            assert stayer.response().status == 200
        assert served.pings()
        assert served.role.ran == ["refuse"]
        assert served.limit.acquired == 1

    @pytest.mark.parametrize("reset", [pytest.param(True, id="reset"), pytest.param(False, id="closed")])
    @pytest.mark.parametrize("ahead", [b"", request(call("echo"))], ids=["", "and one sent ahead"])
    def test_a_call_under_way_is_finished_and_its_loss_told_once(self, served: Served, ahead: bytes, reset: bool, lines: Lines) -> None:  # fmt: skip
        """What was sent ahead is never made."""
        leaver = served.client()
        leaver.send(request(call("block")) + ahead)
        served.role.begun.get(timeout=LIMIT_S)
        leaver.leave(reset=reset)
        let_the_loop_turn(served)
        served.role.release.set()
        assert served.role.lost.get(timeout=LIMIT_S) == "block"
        served.limit.wait_for(0)
        assert served.pings()
        assert (served.role.ran, served.limit.released, served.role.lost.empty()) == (["block"], 1, True)
        assert lines.next().getMessage().endswith("not handed over whole")
        assert lines.none_left()

    def test_a_reply_handed_over_is_not_lost(self, served: Served) -> None:
        served.post(call("echo"))
        served.limit.wait_for(0)
        assert served.role.lost.empty()

    def test_a_thousand_aborted_calls_leave_nothing_behind(self, served: Served) -> None:
        served.pings()
        before = things(served)
        for number in range(1000):
            client = served.client()
            client.send(request(call(("echo", "picture", "file", "crash")[number % 4], size=200_000)))
            client.leave(reset=True)
            if number % 20 == 0:  # else the kernel's queue of connections overflows, and TCP waits a second
                let_the_loop_turn(served)
        served.limit.wait_for(0)
        assert served.pings()
        assert soon(lambda: all(now <= then for now, then in zip(things(served), before, strict=True)))
        assert all(source.closed == 1 for source in served.role.sources)
        assert served.limit.acquired == served.limit.released


def things(served: Served) -> tuple[int, ...]:
    """Return the numbers of connections, threads, open files and slots."""
    files = len(os.listdir("/proc/self/fd"))
    return len(served.server._map), threading.active_count(), files, served.limit.in_use


def let_the_loop_turn(served: Served) -> None:
    """Return after the loop has seen all that clients did before; the loop itself answers `Expect`, no thread does."""
    with served.client() as client:
        client.send(request(b"", "Expect: 100-continue", "Content-Length: 9", sized=False))
        assert client.sock.recv(100).startswith(b"HTTP/1.1 100 ")
