"""SIGTERM in a real process: newcomers refused at once, what is owed handed over, exit 0; a second signal ends it.

SIGHUP does the same where there is a terminal, and nothing where there is none.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence

import pytest

from mcpboard.serving.server import GRACE_SECONDS, THREADS
from tests.support import ROOT
from tests.support.http import LIMIT_S, Connection, InvalidResponse, call, message, request

pytestmark = pytest.mark.slow  # waits for real limits, links or processes


# Makes the terminal of that descriptor the one that controls the process, and goes on as the command behind it.
TAKE_TERMINAL = (
    "import fcntl, os, sys, termios; fcntl.ioctl(int(sys.argv[1]), termios.TIOCSCTTY, 0); "
    "os.close(int(sys.argv[1])); os.execv(sys.argv[2], sys.argv[2:])"
)


class Process:
    """The stand, running; `ports` are those of its hosts."""

    def __init__(self, running: subprocess.Popen[str], ports: list[int]) -> None:
        self.ports = ports
        self._running = running
        self.signalled = 0.0

    @contextlib.contextmanager
    def begun(self, body: bytes, receive_buffer: int | None = None) -> Iterator[Connection]:
        """A call that has begun."""
        with Connection(self.ports[0], receive_buffer) as caller:
            caller.send(request(body))
            self.line()
            yield caller

    def line(self) -> None:
        """Wait for another call to begin."""
        assert self._running.stderr
        assert self._running.stderr.readline().startswith("begun ")

    def signal(self, number: int = signal.SIGTERM) -> None:
        self.signalled = time.monotonic()
        self._running.send_signal(number)

    def refuses(self) -> bool:
        """Tell if new connections are refused within half a second of the signal."""
        while True:
            try:
                with Connection(self.ports[0]) as early:
                    assert early.ended()  # as every connection that is owed nothing, once the listener is closed
            except ConnectionRefusedError:
                return time.monotonic() - self.signalled < 0.5

    def exits(self, code: int, least: float, most: float) -> bool:
        """Tell if it ends with that code, so many seconds after the signal."""
        return self._running.wait(LIMIT_S) == code and least <= time.monotonic() - self.signalled < most


@contextlib.contextmanager
def running(*hosts: str, terminal: int | None = None, before: Sequence[str] = ()) -> Iterator[Process]:
    hosts = hosts or ("127.0.0.1",)
    environment = {"PATH": os.defpath, "PYTHONWARNINGS": "error", "PYTHONDONTWRITEBYTECODE": "1"}
    inherited: tuple[int, ...] = ()
    if terminal is not None:
        before, inherited = (sys.executable, "-c", TAKE_TERMINAL, str(terminal)), (terminal,)
    with subprocess.Popen(
        [*before, sys.executable, "-m", "tests.serving.stand", *hosts],
        cwd=ROOT, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        start_new_session=True, pass_fds=inherited,
    ) as process:  # fmt: skip
        assert process.stdout
        try:
            yield Process(process, [int(process.stdout.readline()) for _ in hosts])
        finally:
            process.kill()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_an_idle_server_wakes_and_ends_at_once(number: int) -> None:
    """The loop sleeps in select for a second; the signal must not wait for that."""
    with running() as process, Connection(process.ports[0]) as idle:
        assert idle.post(message("ping")).status == 200
        process.signal(number)
        assert process.exits(0, 0, 0.9)
        assert idle.ended()


def test_newcomers_are_refused_while_the_call_under_way_is_handed_over() -> None:
    with running() as process, process.begun(call("block", 5, seconds=1.5)) as caller:
        process.signal()
        assert process.refuses()
        response = caller.response()
        assert (response.json["id"], response.is_error) == (5, False)
        assert process.exits(0, 1, GRACE_SECONDS)


def test_what_is_queued_is_handed_over_too() -> None:
    """Six calls fill the slots, and slow lists the threads: a queued ping is still answered."""
    with running() as process, contextlib.ExitStack() as clients:
        callers = [clients.enter_context(Connection(process.ports[0])) for _ in range(THREADS + 4)]
        for number, caller in enumerate(callers):
            caller.send(request(call("block", number, seconds=1)))
        for _ in range(THREADS - 2):
            process.line()
        process.signal()
        assert [caller.response().json["id"] for caller in callers] == list(range(len(callers)))
        assert process.exits(0, 0, GRACE_SECONDS)


@pytest.mark.parametrize("sent", [
    pytest.param(call("block", seconds=60), id="a call that goes on"),
    pytest.param(call("file", size=20_000_000), id="a reply that nobody reads"),
])  # fmt: skip
def test_what_outlasts_the_grace_is_cut_short_and_says_so(sent: bytes) -> None:
    with running() as process, process.begun(sent, 4096) as caller:
        process.signal()
        assert process.exits(0, GRACE_SECONDS - 0.5, GRACE_SECONDS + 2)
        with pytest.raises(InvalidResponse):
            caller.response()


def test_a_kept_connection_gets_no_more_calls_in_and_half_a_request_holds_nothing_up() -> None:
    """A client that goes on asking, or stops in the middle, must not hold the server up to the end of the grace."""
    with running() as process, Connection(process.ports[0]) as busy, Connection(process.ports[0]) as half:
        assert busy.post(message("ping")).status == 200
        half.send(request(message("ping"))[:-5])
        with process.begun(call("block", seconds=1)) as caller:
            process.signal()
            assert busy.ended()
            assert caller.response().status == 200
        assert process.exits(0, 0, GRACE_SECONDS - 1)


def test_a_second_signal_ends_it_at_once() -> None:
    with running() as process, process.begun(call("block", seconds=60)):
        process.signal()
        assert process.refuses()
        process.signal()
        assert process.exits(1, 0, 1)


def test_several_listeners_serve_and_close_alike() -> None:
    with running("127.0.0.1", "127.0.0.2", "::1") as process:
        others = [("127.0.0.2", process.ports[1]), ("::1", process.ports[2])]
        for host, port in others:
            with Connection(port, host=host) as other:
                assert other.post(message("ping")).status == 200
        with process.begun(call("block", seconds=1)) as caller:
            process.signal()
            assert process.refuses()
            for host, port in others:
                with pytest.raises(ConnectionRefusedError):
                    Connection(port, host=host)
            assert caller.response().status == 200
        assert process.exits(0, 0, GRACE_SECONDS)


class TestHangup:
    @pytest.fixture
    def terminal(self) -> Iterator[tuple[int, int]]:
        """Our side of a terminal, and the side that a program has."""
        pty = pytest.importorskip("pty")
        ours, theirs = pty.openpty()
        yield ours, theirs
        for number in (ours, theirs):
            with contextlib.suppress(OSError):
                os.close(number)

    def test_a_terminal_that_goes_drains(self, terminal: tuple[int, int]) -> None:
        ours, theirs = terminal
        with running(terminal=theirs) as process, process.begun(call("block", 5, seconds=1.5)) as caller:
            os.close(theirs)
            process.signalled = time.monotonic()
            os.close(ours)  # the kernel sends SIGHUP, as when a window is closed or a login over SSH ends
            assert process.refuses()
            assert caller.response().json["id"] == 5
            assert process.exits(0, 1, GRACE_SECONDS)

    def test_told_twice_it_is_not_cut_short(self, terminal: tuple[int, int]) -> None:
        """By the kernel and by the shell; and a service manager may add SIGTERM."""
        with running(terminal=terminal[1]) as process, process.begun(call("block", 5, seconds=1)) as caller:
            for number in (signal.SIGHUP, signal.SIGHUP, signal.SIGTERM, signal.SIGHUP):
                process.signal(number)
            assert caller.response().json["id"] == 5
            assert process.exits(0, 0, GRACE_SECONDS)

    @pytest.mark.parametrize("before", [(), ("sh", "-c", "trap '' HUP; exec \"$@\"", "sh")], ids=["a service", "under nohup"])  # fmt: skip
    def test_it_changes_nothing_without_a_terminal(self, before: Sequence[str]) -> None:
        with running(before=before) as process, process.begun(call("block", 5, seconds=1)) as caller:
            process.signal(signal.SIGHUP)
            assert caller.response().json["id"] == 5
            with Connection(process.ports[0]) as newcomer:
                assert newcomer.post(message("ping")).status == 200
            process.signal()
            assert process.exits(0, 0, GRACE_SECONDS)
