"""Slots by the sums alone: who gets one, and who gives one up."""

from __future__ import annotations

import pytest

from mcpboard.errors import Busy
from mcpboard.serving.concurrency import HELD_BYTES, READING_SECONDS, ConcurrencyLimit, ConcurrencySlot

LARGE = HELD_BYTES // 2


class Now:
    """A clock that is set."""

    def __init__(self) -> None:
        self.seconds = 1000.0

    def __call__(self) -> float:
        return self.seconds


class Reader:
    """A connection with bytes that its reader has not taken."""

    def __init__(self, unsent: int = 1) -> None:
        self.total_outbufs_len = unsent
        self.broken_off = False

    def break_off(self) -> None:
        self.broken_off = True


@pytest.fixture
def now() -> Now:
    return Now()


def read(
    limit: ConcurrencyLimit, now: Now, *, acts: bool = True, unsent: int = 1, size: int = 0, tool: str = "shot"
) -> tuple[ConcurrencySlot, Reader]:
    """A slot whose reply is being read from now on."""
    slot, reader = limit.acquire(acts and not size, tool), Reader(unsent)
    slot.read_by(reader, now.seconds, size)
    return slot, reader


@pytest.mark.parametrize(("capacity", "for_looking"), [(1, 1), (2, 1), (6, 5), (8, 6), (40, 33)])
def test_some_slots_are_kept_for_tools_that_act(capacity: int, for_looking: int) -> None:
    limit = ConcurrencyLimit(capacity)
    for _ in range(for_looking):
        limit.acquire(acts=False)
    with pytest.raises(Busy, match=f"^{for_looking} calls are under way already"):
        limit.acquire(acts=False)
    for _ in range(capacity - for_looking):
        limit.acquire(acts=True)
    with pytest.raises(Busy):
        limit.acquire(acts=True)
    assert len(limit.held) == capacity


@pytest.mark.parametrize("acts", [True, False])
def test_the_reply_read_for_longest_gives_its_slot(now: Now, acts: bool) -> None:
    limit = ConcurrencyLimit(3, clock=now)
    running = limit.acquire()
    slow, first = read(limit, now, acts=False)
    now.seconds += 1
    _, second = read(limit, now, acts=False)
    now.seconds += READING_SECONDS
    taken = limit.acquire(acts)
    assert (first.broken_off, second.broken_off, len(limit.held)) == (True, False, 3)
    slow.release()  # as its thread does when it finds the connection gone: the slot is another's
    assert len(limit.held) == 3
    taken.release()
    running.release()
    assert len(limit.held) == 1


def test_one_that_only_looks_breaks_off_no_reply_of_an_action(now: Now) -> None:
    """Its caller wants to know what it did; and the slots that are kept for actions stay theirs."""
    limit = ConcurrencyLimit(3, clock=now)
    _, acted = read(limit, now)
    now.seconds += 1
    looked = [read(limit, now, acts=False)[1] for _ in range(2)]
    now.seconds += READING_SECONDS
    limit.acquire(acts=False)
    assert [each.broken_off for each in (acted, *looked)] == [False, True, False]
    limit.acquire(acts=True)
    assert acted.broken_off


def test_an_action_under_way_takes_no_slot_of_those_that_look() -> None:
    limit = ConcurrencyLimit(6)
    limit.acquire(acts=True)
    for _ in range(5):
        limit.acquire(acts=False)
    assert len(limit.held) == 6


@pytest.mark.parametrize(("unsent", "age"), [
    pytest.param(1, READING_SECONDS - 0.1, id="it has only begun"),
    pytest.param(0, 100.0, id="its reader has all there is, and waits for the source"),
])  # fmt: skip
def test_nobody_gives_a_slot_that_is_no_slow_reader(now: Now, unsent: int, age: float) -> None:
    limit = ConcurrencyLimit(2, clock=now)
    limit.acquire()
    _, reader = read(limit, now, unsent=unsent)
    now.seconds += age
    with pytest.raises(Busy):
        limit.acquire()
    assert not reader.broken_off


def test_calls_under_way_never_give_theirs(now: Now) -> None:
    limit = ConcurrencyLimit(2, clock=now)
    slots = [limit.acquire(), limit.acquire()]
    now.seconds += 1000
    with pytest.raises(Busy):
        limit.acquire()
    slots[0].release()
    slots[0].release()
    assert len(limit.held) == 1


class TestMemory:
    def test_no_third_large_reply_is_made_while_two_are_read(self, now: Now) -> None:
        limit = ConcurrencyLimit(6, clock=now)
        readers = [read(limit, now, size=LARGE)[1] for _ in range(2)]
        with pytest.raises(Busy):
            limit.acquire(acts=False, tool="shot")
        limit.acquire(acts=False, tool="status")
        limit.acquire(acts=True, tool="shot")
        now.seconds += READING_SECONDS
        limit.acquire(acts=False, tool="shot")
        assert [reader.broken_off for reader in readers] == [True, False]

    def test_those_that_are_being_made_count(self, now: Now) -> None:
        limit = ConcurrencyLimit(6, clock=now)
        read(limit, now, size=LARGE)[0].release()
        limit.acquire(acts=False, tool="shot")
        limit.acquire(acts=False, tool="shot")
        with pytest.raises(Busy):
            limit.acquire(acts=False, tool="shot")

    def test_ordinary_pictures_are_not_large(self, now: Now) -> None:
        limit = ConcurrencyLimit(6, clock=now)
        for _ in range(5):
            read(limit, now, size=1 << 20)
        assert len(limit.held) == 5
