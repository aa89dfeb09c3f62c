"""What the server knows of an answer after it has let go of it: whether it has arrived."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator

import pytest

from mcpboard.protocol.steps import Arrived, Outcome, ToolCall
from mcpboard.serving import receipt, server
from mcpboard.serving.channel import LEAVING, LIMITS
from tests.serving.role import PATIENCE, PretendRole
from tests.serving.wire import Served, call, message, request, serving

PICTURE = 100 * 1024  # characters: more than a small window, less than the kernel takes for a slow reader
WINDOW = 4096  # bytes
UNREADABLE = b"x" * (4 << 20)  # a body that is far over the limit: no socket buffers hold it


class CuriousRole(PretendRole):
    """Keeps how to ask whether each reply has arrived, None for one that was not handed over."""

    def __init__(self) -> None:
        super().__init__()
        self.fates: list[Arrived | None] = []
        self.told = threading.Semaphore(0)

    def run(self, call: ToolCall) -> Outcome:
        return Outcome(super().run(call).result, self._tell)

    def _tell(self, arrived: Arrived | None) -> None:
        self.fates.append(arrived)
        self.told.release()

    def fate(self) -> Arrived:
        assert self.told.acquire(timeout=PATIENCE)
        arrived = self.fates[-1]
        assert arrived is not None
        return arrived


@pytest.fixture
def role() -> CuriousRole:
    return CuriousRole()


@pytest.fixture
def served(role: CuriousRole) -> Iterator[Served]:
    with serving(role) as running:
        yield running


def soon(true: Callable[[], bool]) -> bool:
    """Whether it becomes true; the other side's system answers within milliseconds."""
    end = time.monotonic() + PATIENCE
    while not true() and time.monotonic() < end:
        threading.Event().wait(0.005)
    return true()


@pytest.mark.parametrize("headers", [(), ("Connection: close",)], ids=["kept open", "closed"])
def test_an_answer_that_was_read_has_arrived(served: Served, role: CuriousRole, headers: tuple[str, ...]) -> None:
    with served.client() as client:
        assert client.ask(call("echo"), *headers).status == 200
        assert soon(role.fate())
    assert role.fates[-1] is not None
    assert role.fates[-1](), "also when the connection is over"


@pytest.mark.parametrize("headers", [(), ("Connection: close",)], ids=["kept open", "closed"])
def test_an_answer_that_waits_in_the_kernel_has_not_arrived_until_it_is_read(
    served: Served, role: CuriousRole, headers: tuple[str, ...]
) -> None:
    with served.client(receive_buffer=WINDOW) as client:
        client.send(request(call("picture", size=PICTURE), *headers))
        arrived = role.fate()
        assert not arrived()
        assert client.answer().status == 200
        assert soon(arrived)


def test_a_client_that_leaves_without_reading_never_had_it(served: Served, role: CuriousRole) -> None:
    with served.client(receive_buffer=WINDOW) as client:
        client.send(request(call("picture", size=PICTURE)))
        arrived = role.fate()
        client.reset()
    assert soon(lambda: not served.server._channels())
    assert not arrived()


def test_a_later_answer_on_the_same_connection_counts_for_itself(served: Served, role: CuriousRole) -> None:
    with served.client(receive_buffer=WINDOW) as client:
        assert client.ask(call("echo")).status == 200
        first = role.fate()
        client.send(request(call("picture", size=PICTURE)))
        second = role.fate()
        assert first()
        assert not second()


def test_what_nobody_can_tell_counts_as_arrived(monkeypatch: pytest.MonkeyPatch) -> None:
    """On systems whose kernel does not say, an answer that was handed over is taken for heard."""
    monkeypatch.setattr(receipt, "fcntl", None)
    assert receipt.unacknowledged(None) == 0  # type: ignore[arg-type]


# --- taking leave ----------------------------------------------------------------------------


def test_a_refusal_reaches_a_client_that_is_still_sending(served: Served) -> None:
    """A connection closed at once would be reset by what comes in, and the refusal thrown away."""
    with served.client() as client:
        client.send(request(UNREADABLE))
        assert client.answer().status == 413


def test_a_long_answer_reaches_a_client_that_sends_on_and_reads_late(served: Served) -> None:
    """Its end leaves when the worker has gone, by the loop."""
    with served.client(receive_buffer=WINDOW) as client:
        client.send(request(call("picture", size=10 * PICTURE), "Connection: close") + UNREADABLE[:PICTURE])
        assert len(client.answer().body) > 10 * PICTURE
        assert client.ended()


def test_the_end_is_told_at_once(served: Served) -> None:
    with served.client() as client:
        assert client.ask(message("ping"), "Connection: close").status == 200
        assert client.ended()


def test_a_client_that_never_closes_its_side_is_left_in_time(
    monkeypatch: pytest.MonkeyPatch, served: Served
) -> None:
    monkeypatch.setattr(server, "SWEEP_SECONDS", 0.05)
    monkeypatch.setitem(LIMITS, LEAVING, 0.2)
    with served.client() as client:
        assert client.ask(message("ping"), "Connection: close").status == 200
        assert soon(lambda: not served.server._channels())


def test_a_client_that_talks_on_is_not_served_again(served: Served, role: CuriousRole) -> None:
    with served.client() as client:
        client.send(request(message("ping"), "Connection: close") + request(call("echo")))
        assert client.answer().status == 200
        assert client.ended()
    assert served.pings()
    assert role.ran == []
