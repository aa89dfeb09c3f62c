"""Lanes turn away at once, and say what runs."""

from __future__ import annotations

import contextlib
import threading

import pytest

from mcpboard.board.lanes import Lanes, Slot
from mcpboard.errors import NOT_SENT, Busy
from tests.support.clock import Clock


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def lanes(clock: Clock) -> Lanes:
    return Lanes({"input": 1, "observation": 2, "status": 1}, clock)


def test_a_full_input_lane_names_the_tool_and_the_seconds_and_advises_to_look(lanes: Lanes, clock: Clock) -> None:
    lanes.acquire("input", "enter_text")
    clock.now += 12
    with pytest.raises(Busy) as refused:
        lanes.acquire("input", "touch_gesture")
    assert "touch_gesture was not started: enter_text has been running for 12 s" in refused.value.text
    assert "look at the screen first" in refused.value.text
    assert refused.value.delivery == NOT_SENT


def test_another_full_lane_names_all_that_runs_and_speaks_of_no_screen(lanes: Lanes, clock: Clock) -> None:
    lanes.acquire("observation", "screenshot")
    clock.now += 3
    lanes.acquire("observation", "wait_for_stable_screen")
    with pytest.raises(Busy) as refused:
        lanes.acquire("observation", "screenshot")
    assert "screenshot has been running for 3 s and wait_for_stable_screen" in refused.value.text
    assert "look at" not in refused.value.text


def test_lanes_do_not_mind_each_other(lanes: Lanes) -> None:
    lanes.acquire("input", "enter_text")
    lanes.acquire("status", "device_status")
    lanes.acquire("observation", "screenshot")


def test_a_slot_is_free_after_its_release_and_a_second_one_frees_no_other(lanes: Lanes) -> None:
    first = lanes.acquire("input", "enter_text")
    first.release()
    lanes.acquire("input", "keyboard_tap")
    first.release()
    with pytest.raises(Busy, match="keyboard_tap"):
        lanes.acquire("input", "enter_text")


def test_of_many_threads_at_once_exactly_as_many_get_in_as_there_are_slots(lanes: Lanes) -> None:
    barrier = threading.Barrier(16)
    inside: list[Slot] = []

    def rush() -> None:
        barrier.wait(5)
        with contextlib.suppress(Busy):
            inside.append(lanes.acquire("observation", "screenshot"))

    threads = [threading.Thread(target=rush) for _ in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(5)
    assert len(inside) == 2
