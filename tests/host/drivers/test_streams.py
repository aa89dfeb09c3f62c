"""Devices that send without end, and more text than a screen has: read up to a limit, and no longer."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from mcpboard.errors import UNKNOWN, ToolFailed
from mcpboard.host.drivers.android import AndroidDriver
from mcpboard.host.drivers.android.adb import TooMuchOutput
from mcpboard.host.drivers.base import Driver
from mcpboard.host.drivers.board import BoardDriver
from mcpboard.host.drivers.iphone import IPhoneDriver
from mcpboard.host.vision import describe, find, text_match
from mcpboard.host.vision.icons.synonyms import shapes_called
from mcpboard.host.vision.tree import UiNode, UnreadableTree
from mcpboard.host.vision.types import TextLine
from tests.host.drivers import memory_of
from tests.host.drivers.fake_adb import LIMIT_S, PHONE, Reply, fake_adb

PIECE = bytes(1 << 16)
MEMORY = 24 << 20  # bytes; what is read of a tree, held three times over at most


def endless(before: bytes, piece: bytes = PIECE) -> Reply:
    """Send until the other side hangs up."""

    def send(peer: socket.socket) -> None:
        peer.settimeout(LIMIT_S)
        with contextlib.suppress(OSError):
            peer.sendall(before)
            while True:
                peer.sendall(piece)

    return send


def packet(kind: int) -> bytes:
    return bytes([kind]) + len(PIECE).to_bytes(4, "little") + PIECE


@contextmanager
def server(answer: Reply) -> Iterator[int]:
    """A port that answers every connection so, whatever was asked."""
    listening = socket.create_server(("127.0.0.1", 0))
    threads: list[threading.Thread] = []

    def one(peer: socket.socket) -> None:
        with contextlib.closing(peer):
            peer.settimeout(LIMIT_S)
            peer.recv(1 << 16)
            answer(peer)

    def accept() -> None:
        while True:
            try:
                peer, _ = listening.accept()
            except OSError:
                return
            threads.append(threading.Thread(target=one, args=(peer,)))
            threads[-1].start()

    accepting = threading.Thread(target=accept)
    accepting.start()
    try:
        yield listening.getsockname()[1]
    finally:
        listening.shutdown(socket.SHUT_RDWR)
        accepting.join(LIMIT_S)
        listening.close()
        for thread in threads:
            thread.join(LIMIT_S)


def refused(work: Callable[[], object], error: type[ToolFailed]) -> None:
    with pytest.raises(error, match=r"sent more than|larger than the limit|over the limit"):
        work()


@pytest.mark.parametrize("kind", [1, 2, 9], ids=["output", "complaints", "packets of no kind"])
def test_a_phone_that_prints_for_ever_is_left(kind: int) -> None:
    with fake_adb({"shell": endless(b"OKAY", packet(kind))}) as adb:
        phone: Driver = AndroidDriver(PHONE, adb.adb)
        assert memory_of(lambda: refused(lambda: phone.app_info(), TooMuchOutput)) < MEMORY
        assert memory_of(lambda: refused(phone.ui_tree, UnreadableTree)) < MEMORY
        with pytest.raises(ToolFailed, match="sent more than") as failed:
            phone.launch_app("org.example/.Main")
        assert failed.value.delivery == UNKNOWN


HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n"
CHUNKED = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"


@pytest.mark.parametrize(
    "answer",
    [endless(HEAD + b'{"value":"', b"x" * (1 << 16)), endless(CHUNKED, b"10000\r\n" + b" " * (1 << 16) + b"\r\n")],
    ids=["without a length", "in chunks"],
)
def test_a_webdriveragent_that_sends_for_ever_is_left(answer: Reply) -> None:
    with server(answer) as port:
        phone: Driver = IPhoneDriver(f"http://127.0.0.1:{port}")
        assert memory_of(lambda: refused(phone.app_info, ToolFailed)) < MEMORY
        assert (
            memory_of(lambda: refused(phone.ui_tree, UnreadableTree)) < 2 * MEMORY
        )  # of which four times as much is read
        assert phone.probe().state == "offline"


def test_a_board_that_sends_for_ever_is_left() -> None:
    with server(endless(HEAD + b'{"jsonrpc":"2.0","x":"', b"x" * (1 << 16))) as port:
        board = BoardDriver(f"http://127.0.0.1:{port}/mcp")
        refused(lambda: board.launch_app("Notes"), ToolFailed)


def test_more_text_than_a_screen_has_is_not_compared_letter_by_letter(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each word of it takes its time, and a device could keep the processor for minutes."""
    compared: list[int] = []

    def similarity(ours: str, theirs: str) -> float:
        compared.append(len(ours))
        return 0.0

    monkeypatch.setattr(text_match, "_similarity", similarity)
    box = (0, 0, 99, 99)
    texts = [f"{number} " + "words of no end " * 25 for number in range(300)]
    tree = UiNode(
        "screen", box, children=tuple(UiNode("button", box, text) for text in (*texts, "Save changes", "x" * 10**5))
    )
    assert [match["text"] for match in find.text_in_tree(tree, "save changes")] == ["Save changes"]
    assert sum(compared) <= find.MOST_WITH_SLIPS + 1000
    compared.clear()
    assert [match["name"] for match in find.icon_in_tree(tree, "save changes")] == ["Save changes"]
    assert sum(compared) <= (find.MOST_WITH_SLIPS + 1000) * (1 + len(shapes_called("save changes")))
    compared.clear()
    lines = tuple(TextLine(f"line {number}", 0.9, (0, 0, 99, 99)) for number in range(100))
    describe.describe(tree, 99, 99, lines)
    assert len(compared) <= 100 * describe.MOST_AROUND
