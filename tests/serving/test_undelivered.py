"""Outcomes whose caller had gone are told once, within ten minutes."""

from __future__ import annotations

import pytest

from mcpboard.serving.undelivered import (
    ARRIVAL_SECONDS,
    KEPT_OUTCOMES,
    KEPT_SECONDS,
    UndeliveredOutcome,
    UndeliveredOutcomes,
)
from tests.support.clock import Clock


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def undelivered(clock: Clock) -> UndeliveredOutcomes:
    return UndeliveredOutcomes(clock)


def test_an_outcome_is_told_once_with_its_age_and_the_advice(undelivered: UndeliveredOutcomes, clock: Clock) -> None:
    undelivered.keep([UndeliveredOutcome("enter_text", "finished OK", clock.now)])
    clock.now += 12
    told = undelivered.take().text
    assert told.startswith("The earlier enter_text finished OK 12 s ago, after its caller had gone")
    assert "look at the screen before repeating" in told
    assert undelivered.take().text == ""


def test_several_are_told_together_oldest_first(undelivered: UndeliveredOutcomes, clock: Clock) -> None:
    undelivered.keep([UndeliveredOutcome("enter_text", "finished OK", clock.now)])
    undelivered.keep([UndeliveredOutcome("keyboard_tap", "failed", clock.now)])
    told = undelivered.take().text
    assert 0 < told.index("enter_text") < told.index("keyboard_tap failed")


@pytest.mark.parametrize(("age", "told"), [
    pytest.param(KEPT_SECONDS, True, id="ten minutes old is told"),
    pytest.param(KEPT_SECONDS + 1, False, id="older is forgotten"),
])  # fmt: skip
def test_ten_minutes(undelivered: UndeliveredOutcomes, clock: Clock, age: float, told: bool) -> None:
    undelivered.keep([UndeliveredOutcome("enter_text", "finished OK", clock.now)])
    clock.now += age
    assert bool(undelivered.take().text) is told


def test_only_the_newest_are_kept(undelivered: UndeliveredOutcomes, clock: Clock) -> None:
    for number in range(KEPT_OUTCOMES + 1):
        undelivered.keep([UndeliveredOutcome(f"tool_{number}", "finished OK", clock.now)])
    told = undelivered.take()
    assert len(told.outcomes) == KEPT_OUTCOMES
    assert told.outcomes[0].tool == "tool_1"


def test_what_was_kept_again_is_told_before_newer_ones_and_keeps_its_age(
    undelivered: UndeliveredOutcomes, clock: Clock
) -> None:
    undelivered.keep([UndeliveredOutcome("enter_text", "finished OK", clock.now)])
    lost = undelivered.take()
    clock.now += 1
    undelivered.keep([UndeliveredOutcome("keyboard_tap", "failed", clock.now)])
    undelivered.keep(lost.outcomes)
    clock.now += 6
    told = undelivered.take()
    assert [each.tool for each in told.outcomes] == ["enter_text", "keyboard_tap"]
    assert "finished OK 7 s ago" in told.text


def test_keeping_an_empty_notice_changes_nothing(undelivered: UndeliveredOutcomes) -> None:
    undelivered.keep(undelivered.take().outcomes)
    assert undelivered.take().outcomes == ()


@pytest.mark.parametrize(("arrived", "age", "told"), [
    pytest.param(False, ARRIVAL_SECONDS, True, id="not acknowledged in good time"),
    pytest.param(False, ARRIVAL_SECONDS / 2, False, id="too young to be sure of it"),
    pytest.param(True, ARRIVAL_SECONDS, False, id="acknowledged"),
])  # fmt: skip
def test_a_reply_that_was_handed_over_is_told_of_when_it_does_not_arrive(
    undelivered: UndeliveredOutcomes, clock: Clock, arrived: bool, age: float, told: bool
) -> None:
    undelivered.keep([UndeliveredOutcome("enter_text", "finished OK", clock.now)], lambda: arrived)
    clock.now += age
    text = undelivered.take().text
    assert bool(text) is told
    assert not told or "but its answer may never have arrived; look at the screen" in text
    assert undelivered.take().text == ""


def test_a_young_reply_is_asked_after_again(undelivered: UndeliveredOutcomes, clock: Clock) -> None:
    undelivered.keep([UndeliveredOutcome("enter_text", "finished OK", clock.now)], lambda: False)
    assert undelivered.take().text == ""
    clock.now += ARRIVAL_SECONDS
    assert "enter_text" in undelivered.take().text
