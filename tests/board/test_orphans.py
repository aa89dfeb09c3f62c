"""Outcomes whose caller had gone are told once, within ten minutes."""

from __future__ import annotations

import pytest

from mcpboard.board.orphans import KEPT_OUTCOMES, KEPT_SECONDS, Orphans


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def orphans(clock: Clock) -> Orphans:
    return Orphans(clock)


def test_an_outcome_is_told_once_with_its_age_and_the_advice(orphans: Orphans, clock: Clock) -> None:
    orphans.record("enter_text", "finished OK", clock.now)
    clock.now += 12
    told = orphans.take().text
    assert told.startswith("The earlier enter_text finished OK 12 s ago, after its caller had gone")
    assert "look at the screen before repeating" in told
    assert orphans.take().text == ""


def test_several_are_told_together_oldest_first(orphans: Orphans, clock: Clock) -> None:
    orphans.record("enter_text", "finished OK", clock.now)
    orphans.record("keyboard_tap", "failed", clock.now)
    told = orphans.take().text
    assert 0 < told.index("enter_text") < told.index("keyboard_tap failed")


@pytest.mark.parametrize(
    ("age", "told"),
    [
        pytest.param(KEPT_SECONDS, True, id="ten minutes old is told"),
        pytest.param(KEPT_SECONDS + 1, False, id="older is forgotten"),
    ],
)
def test_ten_minutes(orphans: Orphans, clock: Clock, age: float, told: bool) -> None:
    orphans.record("enter_text", "finished OK", clock.now)
    clock.now += age
    assert bool(orphans.take().text) is told


def test_only_the_newest_are_kept(orphans: Orphans, clock: Clock) -> None:
    for number in range(KEPT_OUTCOMES + 1):
        orphans.record(f"tool_{number}", "finished OK", clock.now)
    told = orphans.take()
    assert len(told.orphans) == KEPT_OUTCOMES
    assert told.orphans[0].tool == "tool_1"


def test_what_was_put_back_is_told_again_before_newer_ones_and_keeps_its_age(orphans: Orphans, clock: Clock) -> None:
    orphans.record("enter_text", "finished OK", clock.now)
    lost = orphans.take()
    orphans.record("keyboard_tap", "failed", clock.now)
    orphans.put_back(lost)
    clock.now += 7
    told = orphans.take()
    assert [orphan.tool for orphan in told.orphans] == ["enter_text", "keyboard_tap"]
    assert "finished OK 7 s ago" in told.text


def test_putting_back_an_empty_telling_changes_nothing(orphans: Orphans) -> None:
    orphans.put_back(orphans.take())
    assert orphans.take().orphans == ()
