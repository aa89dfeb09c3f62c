"""Receipts: the server knows of a reply that it has let go of if it has arrived."""

from __future__ import annotations

import contextlib
import errno
import logging
import socket
import threading
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import pytest

from mcpboard.protocol.messages import Arrived
from mcpboard.serving import connection, receipt, server
from mcpboard.serving.connection import HALF_CLOSED, LIMITS, Channel
from tests.serving.conftest import Lines
from tests.serving.served import Served, soon
from tests.support.http import LIMIT_S, Connection, call, message, request

PICTURE = 100 * 1024  # characters: more than a small window, less than the kernel takes for a slow reader
WINDOW = 4096  # bytes
LONG = 800 * 1024  # characters: more than the kernel takes, less than goes to a file
UNREADABLE = b"x" * (4 << 20)  # a body that is far over the limit: no socket buffers hold it


def fate(served: Served) -> Arrived:
    """How to ask whether the next reply has arrived, once it was handed over."""
    return served.role.receipts.get(timeout=LIMIT_S)


each_ending = pytest.mark.parametrize("headers", [(), ("Connection: close",)], ids=["kept open", "closed"])


@each_ending
@pytest.mark.parametrize(
    ("tool", "waits"), [("echo", False), ("picture", True)], ids=["read", "that waits in the kernel"]
)
def test_an_answer_has_arrived_once_it_is_read(served: Served, tool: str, waits: bool, headers: tuple[str, ...]) -> None:  # fmt: skip
    with served.client(receive_buffer=WINDOW) as client:
        client.send(request(call(tool, size=PICTURE), *headers))
        arrived = fate(served)
        assert not (waits and arrived())
        assert client.response().status == 200
        assert soon(arrived)
    assert arrived(), "also when the connection is over"


def left_to_the_loop(served: Served, client: Connection, *headers: str) -> Channel:
    """The client's connection, with a long answer that its worker is done with and the loop has to send."""
    assert client.post(message("ping")).status == 200
    (kept,) = served.server._channels()
    kept.adj.outbuf_high_watermark = 2 * LONG  # bytes: the worker waits for no reader
    client.send(request(call("picture", size=LONG), *headers))
    assert soon(lambda: bool(kept.total_outbufs_len and not kept.requests))
    return kept


@each_ending
def test_an_answer_whose_end_the_loop_sends_has_arrived(served: Served, headers: tuple[str, ...]) -> None:  # fmt: skip
    with served.client(receive_buffer=WINDOW) as client:
        left_to_the_loop(served, client, *headers)
        arrived = fate(served)
        assert not arrived()
        assert client.response().status == 200
        assert soon(arrived)


def test_a_client_that_is_quicker_than_the_news_of_our_end_has_it_all(monkeypatch: pytest.MonkeyPatch, served: Served) -> None:  # fmt: skip
    """It closes on the last byte of the answer, when the kernel still waits for one more to be acknowledged: our end."""
    monkeypatch.setattr(connection, "unacknowledged", lambda sock: 1)
    with served.client() as client:
        assert client.post(call("echo"), "Connection: close").status == 200
        arrived = fate(served)
        assert client.ended()
    assert soon(lambda: not served.server._channels())
    assert arrived()


def test_a_receipt_does_not_hold_what_a_client_sent(served: Served) -> None:
    """Sixteen of them are kept for minutes, with their connections."""
    with served.client() as client:
        assert client.post(call("echo")).status == 200
        arrived = fate(served)
        (kept,) = served.server._channels()
        client.send(request(bytes(200_000))[:-1])
        assert soon(lambda: kept.request is not None and len(kept.request.body_rcv) == 199_999)
        assert kept.request is not None
        begun = kept.request.body_rcv.getbuf()
    assert soon(lambda: not served.server._channels())
    assert arrived()
    assert soon(lambda: bool(begun.getfile().closed))


class Overheard:
    """A socket in the server's hands; something is asked in the middle of each send, by another thread."""

    def __init__(self, sock: socket.socket, post: Callable[[], object]) -> None:
        self._socket, self._ask = sock, post

    def __getattr__(self, name: str) -> Any:
        return getattr(self._socket, name)

    def send(self, data: bytes) -> int:
        taken = self._socket.send(data)
        asking = threading.Thread(target=self._ask)
        asking.start()
        asking.join(0.1)  # seconds in which an answer comes, unless it waits for the end of this
        return taken


def test_an_answer_asked_about_while_the_next_one_leaves_has_arrived(served: Served) -> None:
    """Bytes that the kernel has taken and nobody has counted yet may not count against what was taken before."""
    heard: list[bool] = []
    with served.client(receive_buffer=WINDOW) as client:
        assert client.post(call("echo")).status == 200
        first = fate(served)
        kept = left_to_the_loop(served, client)
        assert not fate(served)(), "a later answer on the same connection counts for itself"
        kept.socket = Overheard(kept.socket, lambda: heard.append(first()))
        assert client.response().status == 200
        assert soon(lambda: bool(heard))
    assert False not in heard


def test_what_nobody_can_tell_counts_as_arrived(monkeypatch: pytest.MonkeyPatch) -> None:
    """On systems whose kernel does not say, an answer that was handed over is taken for heard."""
    monkeypatch.setattr(receipt, "fcntl", None)
    assert receipt.unacknowledged(None) == 0  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "gone",
    [pytest.param(None, id="a reset"), pytest.param(OSError(errno.ETIMEDOUT, "timed out"), id="a cable pulled out")],
)
def test_a_client_gone_before_the_next_request_is_looked_at(monkeypatch: pytest.MonkeyPatch, served: Served, gone: OSError | None) -> None:  # fmt: skip
    """So much was sent ahead that nothing more is read; the word to continue is the first thing that finds no one."""
    ahead = request(b"{}", "Expect: 100-continue", "X-Pad: " + "x" * 12_000)[:-2]
    with served.client() as client:
        client.send(request(call("block")) + ahead)
        served.role.begun.get(timeout=LIMIT_S)
        (kept,) = served.server._channels()
        assert soon(lambda: len(kept._pending_input) == len(ahead))
        answered = kept.requests[0]
        monkeypatch.setattr(answered, "close", lambda: _lose(client, kept, gone))
        served.role.release.set()
        assert soon(lambda: kept not in served.server._channels())
    assert served.pings()


def _lose(client: Connection, kept: Channel, gone: OSError | None) -> None:
    """The client goes when its first answer has left, as the kernel would tell it at the next send."""
    if gone is None:
        client.leave(reset=True)
    else:
        kept.socket = SimpleNamespace(send=Mock(side_effect=gone), close=kept.socket.close, fileno=kept.socket.fileno)


# --- taking leave ----------------------------------------------------------------------------


def test_a_refusal_reaches_a_client_that_is_still_sending(served: Served) -> None:
    """A connection closed at once would be reset by what comes in, and the refusal thrown away."""
    with served.client() as client:
        client.send(request(UNREADABLE))
        assert client.response().status == 413


def test_a_client_that_breaks_off_before_the_end_is_no_error_of_ours(served: Served, lines: Lines) -> None:  # fmt: skip
    """Its reset is met by the loop, which has the last bytes to send and then would take leave."""
    with served.client(receive_buffer=WINDOW) as client:
        left_to_the_loop(served, client, "Connection: close")
        client.leave(reset=True)
    assert soon(lambda: not served.server._channels())
    assert lines.next().levelno == logging.INFO, "the call's own line"
    assert lines.none_left()
    arrived = fate(served)
    assert not arrived()


@pytest.mark.parametrize("sends", [b"", b"x" * WINDOW], ids=["in silence", "sending for ever"])
def test_a_client_that_never_closes_its_side_is_left_in_time(monkeypatch: pytest.MonkeyPatch, served: Served, sends: bytes) -> None:  # fmt: skip
    monkeypatch.setattr(server, "SWEEP_SECONDS", 0.05)
    monkeypatch.setitem(LIMITS, HALF_CLOSED, 0.2)

    def left() -> bool:
        with contextlib.suppress(ConnectionError):
            client.send(sends)
        return not served.server._channels()

    with served.client() as client:
        assert client.post(message("ping"), "Connection: close").status == 200
        assert soon(left)
