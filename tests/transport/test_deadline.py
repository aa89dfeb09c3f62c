"""The deadline, and the socket that cannot outlive it."""

from __future__ import annotations

import contextlib
import errno
import socket
import threading
import time
from collections.abc import Iterator

import pytest

from mcpboard.errors import ConfigError, PeerBroken
from mcpboard.protocol.client_session import HttpRequest
from mcpboard.transport import deadline as module
from mcpboard.transport.deadline import Deadline, DeadlineSocket, connect
from mcpboard.transport.http import HttpClient
from tests.support.clock import Clock


def test_remaining_falls_with_the_clock_and_raises_at_the_end() -> None:
    clock = Clock()
    deadline = Deadline(10, clock)
    clock.now += 4
    assert (deadline.remaining(), deadline.waited()) == (6, 4)
    clock.now += 6
    with pytest.raises(TimeoutError, match="10 s"):
        deadline.remaining()
    assert deadline.waited() == 10


def test_the_wall_clock_is_never_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    """A board has no battery: its wall clock jumps by years when it first hears the time."""
    monkeypatch.delattr(time, "time")
    assert 0 < Deadline(5).remaining() <= 5


@pytest.fixture
def listener() -> Iterator[socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server


@contextlib.contextmanager
def pair(listener: socket.socket, deadline: Deadline) -> Iterator[tuple[DeadlineSocket, socket.socket]]:
    with connect(["127.0.0.1"], listener.getsockname()[1], deadline) as ours:
        theirs, _ = listener.accept()
        with theirs:
            yield ours, theirs


def test_a_drip_cannot_outlive_the_deadline(listener: socket.socket) -> None:
    """Each byte comes well within any timeout per read; the sum does not."""
    stop = threading.Event()

    def drip(theirs: socket.socket) -> None:
        while not stop.wait(0.02):
            theirs.sendall(b"x")

    with pair(listener, Deadline(0.3)) as (ours, theirs):
        dripping = threading.Thread(target=drip, args=(theirs,))
        dripping.start()
        began = time.monotonic()
        with pytest.raises(TimeoutError), ours.makefile("rb") as reader:
            reader.read(10_000)
        stop.set()
        dripping.join(5)
    assert 0.25 < time.monotonic() - began < 3


def test_a_new_deadline_counts_from_the_next_read_and_overrules_a_timeout(listener: socket.socket) -> None:
    with pair(listener, Deadline(60)) as (ours, _):
        for _ in range(2):
            ours.deadline = Deadline(0.1)
            with pytest.raises(TimeoutError):
                ours.recv_into(bytearray(1))
            ours.settimeout(None)


def test_a_peer_that_does_not_read_ends_a_write_which_then_counts_as_not_handed_over(listener: socket.socket) -> None:
    with pair(listener, Deadline(0.3)) as (ours, _):
        ours.sendall(b"head")
        assert ours.handed_over
        with pytest.raises(TimeoutError):
            ours.sendall(bytes(32 << 20))
        assert not ours.handed_over


def test_no_byte_is_written_when_the_deadline_is_over(listener: socket.socket) -> None:
    clock = Clock()
    with pair(listener, Deadline(1, clock)) as (ours, theirs):
        clock.now += 1
        with pytest.raises(TimeoutError):
            ours.sendall(b"late")
        ours.close()
        assert theirs.recv(10) == b""


# --- connecting ----------------------------------------------------------------------------


@contextlib.contextmanager
def dropping(address: str, port: int) -> Iterator[None]:
    """A listener whose queue is full, so that the kernel drops who knocks instead of refusing."""
    with contextlib.ExitStack() as stack:
        server = stack.enter_context(socket.socket())
        server.bind((address, port))
        server.listen(0)
        for _ in range(4):
            knocking = stack.enter_context(socket.socket())
            knocking.setblocking(False)
            knocking.connect_ex((address, port))
        yield


def test_an_address_that_refuses_is_passed_over_at_once(listener: socket.socket) -> None:
    port = listener.getsockname()[1]
    with connect(["127.0.0.2", "127.0.0.1"], port, Deadline(5)) as ours:
        assert ours.getpeername() == ("127.0.0.1", port)


def test_an_address_that_drops_is_passed_over_after_the_connect_limit(
    listener: socket.socket, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "CONNECT_SECONDS", 0.2)
    port = listener.getsockname()[1]
    with dropping("127.0.0.2", port), connect(["127.0.0.2", "127.0.0.1"], port, Deadline(5)) as ours:
        assert ours.getpeername() == ("127.0.0.1", port)


def test_a_deadline_shorter_than_the_connect_limit_wins(listener: socket.socket) -> None:
    port = listener.getsockname()[1]
    began = time.monotonic()
    with dropping("127.0.0.2", port), pytest.raises(TimeoutError):
        connect(["127.0.0.2"], port, Deadline(0.1))
    assert time.monotonic() - began < 0.9


def test_when_nobody_listens_the_last_refusal_is_raised() -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        with pytest.raises(ConnectionRefusedError):
            connect(["127.0.0.2", "127.0.0.1"], unused.getsockname()[1], Deadline(5))


# --- a link that is dead -------------------------------------------------------------------------


def test_a_watched_connection_is_given_up_when_its_peer_is_silent(listener: socket.socket) -> None:
    with pair(listener, Deadline(5)) as (ours, _):
        ours.watch_link()
        assert ours.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)
        options = {"TCP_KEEPIDLE": 10, "TCP_KEEPALIVE": 10, "TCP_KEEPINTVL": 5, "TCP_KEEPCNT": 3}
        if hasattr(socket, "TCP_USER_TIMEOUT"):
            options["TCP_USER_TIMEOUT"] = 25_000
        present = {name: value for name, value in options.items() if hasattr(socket, name)}
        assert {name: ours.getsockopt(socket.IPPROTO_TCP, getattr(socket, name)) for name in present} == present
        assert "TCP_KEEPINTVL" in present


def test_a_system_without_those_options_is_no_obstacle(
    listener: socket.socket, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another system lacks the names, an old kernel the options behind them."""
    options = ((socket.IPPROTO_TCP, "TCP_NO_SUCH_OPTION", 1), (socket.IPPROTO_TCP, "TCP_KEEPCNT", -1))
    monkeypatch.setattr(module, "LIVENESS", options)
    with pair(listener, Deadline(5)) as (ours, _):
        ours.watch_link()


def test_every_connection_of_a_client_is_watched(listener: socket.socket) -> None:
    client = HttpClient(f"http://127.0.0.1:{listener.getsockname()[1]}/mcp")
    with client._connected(*client.address, Deadline(5)) as sock:  # type: ignore[attr-defined]
        assert sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL) == 5


@pytest.mark.parametrize("number", [errno.ETIMEDOUT, errno.EHOSTUNREACH, errno.ENETDOWN])
def test_a_connection_that_the_kernel_gave_up_is_no_timeout_of_ours(
    listener: socket.socket, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    def dead(*_: object) -> int:
        raise OSError(number, "given up")

    client = HttpClient(f"http://127.0.0.1:{listener.getsockname()[1]}/mcp")
    monkeypatch.setattr(DeadlineSocket, "recv_into", dead)
    sending = client.exchange(HttpRequest({}, b"{}"), Deadline(5))
    with pytest.raises(PeerBroken, match="its cable in") as caught, sending:
        pass
    assert caught.value.delivery == "unknown"


# --- the interface that a connection leaves by ---------------------------------------------------


NAMES = ("usb0", "en5", "enx0250b6c0ffee", "br-lan", "eth0.2", "wlan0")
NO_NAMES = ("", " ", "usb 0", "usb0\n", "192.168.42.2", "192.168.42.2/24", "fe80::1", "/dev/usb0", ".", "..", "a" * 16, "usb\x00", "üsb0")  # fmt: skip


@pytest.mark.parametrize(("name", "is_one"), [*((name, True) for name in NAMES), *((name, False) for name in NO_NAMES)])
def test_only_what_may_be_an_interface_is_taken(name: str, is_one: bool) -> None:
    with contextlib.nullcontext() if is_one else pytest.raises(ConfigError, match="such as usb0"):
        HttpClient("http://127.0.0.1/mcp", interface=name)
