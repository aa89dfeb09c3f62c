"""Lanes turn away at once, and say what runs."""

from __future__ import annotations

import contextlib
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest

from mcpboard.board.lanes import Lanes
from mcpboard.errors import NOT_SENT, Busy
from tests.support.clock import Clock


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def lanes(clock: Clock) -> Lanes:
    return Lanes({"input": 1, "observation": 2, "status": 1}, clock)


@pytest.mark.parametrize(("lane", "running", "runs", "looks"), [
    pytest.param("input", ["enter_text"], "enter_text has been running for 12 s", True, id="input, which may have changed the screen"),
    pytest.param("observation", ["screenshot", "wait"], "screenshot has been running for 24 s and wait has been running for 12 s", False, id="two that look"),
])  # fmt: skip
def test_a_full_lane_names_all_that_runs_and_advises(lanes: Lanes, clock: Clock, lane: str, running: list[str], runs: str, looks: bool) -> None:  # fmt: skip
    for tool in running:
        lanes.acquire(lane, tool)
        clock.now += 12
    with pytest.raises(Busy) as refused:
        lanes.acquire(lane, "another")
    assert f"another was not started: {runs}. Nothing was sent; " in refused.value.text
    assert ("enter_text may have changed the screen already: look at the screen first" in refused.value.text) is looks
    assert refused.value.delivery == NOT_SENT
    lanes.acquire("status", "device_status")  # lanes do not mind each other


def test_a_slot_is_free_after_its_release_and_a_second_one_frees_no_other(lanes: Lanes) -> None:
    first = lanes.acquire("input", "enter_text")
    first.release()
    lanes.acquire("input", "keyboard_tap")
    first.release()
    with pytest.raises(Busy, match="keyboard_tap"):
        lanes.acquire("input", "enter_text")


def test_of_many_threads_at_once_exactly_as_many_get_in_as_there_are_slots(lanes: Lanes) -> None:
    barrier = Barrier(16)

    def rush() -> bool:
        barrier.wait(5)
        with contextlib.suppress(Busy):
            return bool(lanes.acquire("observation", "screenshot"))
        return False

    with ThreadPoolExecutor(16) as pool:
        assert sum(rushed.result(5) for rushed in [pool.submit(rush) for _ in range(16)]) == 2
