"""Slots by the sums alone: who gets one, and who gives one up."""

from __future__ import annotations

import pytest

from mcpboard.errors import Busy
from mcpboard.serving.concurrency import HELD_BYTES, READING_SECONDS, ConcurrencyLimit, ConcurrencySlot
from tests.support.clock import Clock

LARGE = HELD_BYTES // 2


class Reader:
    """A connection with bytes that its reader has not taken."""

    def __init__(self, unsent: int = 1) -> None:
        self.total_outbufs_len = unsent
        self.broken_off = False

    def break_off(self) -> None:
        self.broken_off = True


@pytest.fixture
def now() -> Clock:
    return Clock()


def read(limit: ConcurrencyLimit, now: Clock, *, acts: bool = True, unsent: int = 1, size: int = 0) -> tuple[ConcurrencySlot, Reader]:  # fmt: skip
    """A slot whose reply is being read from now on."""
    slot, reader = limit.acquire(acts and not size, "shot"), Reader(unsent)
    slot.read_by(reader, now.now, size)
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
def test_the_reply_read_for_longest_gives_its_slot(now: Clock, acts: bool) -> None:
    limit = ConcurrencyLimit(3, clock=now)
    running = limit.acquire()
    slow, first = read(limit, now, acts=False)
    now.now += 1
    _, second = read(limit, now, acts=False)
    now.now += READING_SECONDS
    taken = limit.acquire(acts)
    assert (first.broken_off, second.broken_off, len(limit.held)) == (True, False, 3)
    slow.release()  # as its thread does when it finds the connection gone: the slot is another's
    assert len(limit.held) == 3
    for slot in (taken, running, running):
        slot.release()
    assert len(limit.held) == 1, "released twice is released once"


def test_one_that_only_looks_breaks_off_no_reply_of_an_action(now: Clock) -> None:
    """Its caller wants to know what it did; and the slots that are kept for actions stay theirs."""
    limit = ConcurrencyLimit(3, clock=now)
    _, acted = read(limit, now)
    now.now += 1
    looked = [read(limit, now, acts=False)[1] for _ in range(2)]
    now.now += READING_SECONDS
    limit.acquire(acts=False)
    assert [each.broken_off for each in (acted, *looked)] == [False, True, False]
    limit.acquire(acts=True)
    assert acted.broken_off


def test_an_action_under_way_takes_no_slot_of_those_that_look() -> None:
    limit = ConcurrencyLimit(6)
    for acts in (True, *[False] * 5):
        limit.acquire(acts)
    assert len(limit.held) == 6


@pytest.mark.parametrize(("unsent", "age"), [
    pytest.param(1, READING_SECONDS - 0.1, id="it has only begun"),
    pytest.param(0, 100.0, id="its reader has all there is, and waits for the source"),
    pytest.param(None, 1000.0, id="the call is under way"),
])  # fmt: skip
def test_nobody_gives_a_slot_that_is_no_slow_reader(now: Clock, unsent: int | None, age: float) -> None:
    limit = ConcurrencyLimit(2, clock=now)
    limit.acquire()
    reader = Reader() if unsent is None else read(limit, now, unsent=unsent)[1]
    if unsent is None:
        limit.acquire()
    now.now += age
    with pytest.raises(Busy):
        limit.acquire()
    assert not reader.broken_off


def test_no_third_large_reply_is_made_while_two_are_read(now: Clock) -> None:
    limit = ConcurrencyLimit(6, clock=now)
    readers = [read(limit, now, size=LARGE)[1] for _ in range(2)]
    with pytest.raises(Busy):
        limit.acquire(acts=False, tool="shot")
    limit.acquire(acts=False, tool="status")
    limit.acquire(acts=True, tool="shot")
    now.now += READING_SECONDS
    limit.acquire(acts=False, tool="shot")
    assert [reader.broken_off for reader in readers] == [True, False]


@pytest.mark.parametrize(("size", "at_once"), [(LARGE, 2), (1 << 20, 5)], ids=["large", "an ordinary screenshot"])
def test_large_replies_count_while_they_are_made(now: Clock, size: int, at_once: int) -> None:
    limit = ConcurrencyLimit(6, clock=now)
    read(limit, now, size=size)[0].release()
    for _ in range(at_once):
        limit.acquire(acts=False, tool="shot")
    with pytest.raises(Busy):
        limit.acquire(acts=False, tool="shot")
