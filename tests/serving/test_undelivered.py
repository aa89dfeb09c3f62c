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


def finished(clock: Clock, tool: str = "enter_text") -> list[UndeliveredOutcome]:
    return [UndeliveredOutcome(tool, "finished OK", clock.now)]


def test_what_was_kept_again_is_told_before_newer_ones_with_its_age_and_the_advice(undelivered: UndeliveredOutcomes, clock: Clock) -> None:  # fmt: skip
    undelivered.keep(finished(clock))
    lost = undelivered.take()
    clock.now += 1
    undelivered.keep(finished(clock, "keyboard_tap"))
    undelivered.keep(lost.outcomes)
    clock.now += 6
    told = undelivered.take()
    assert [each.tool for each in told.outcomes] == ["enter_text", "keyboard_tap"]
    assert told.text.startswith(
        "The earlier enter_text finished OK 7 s ago, after its caller had gone; look at the screen"
    )
    assert undelivered.take() == ("", ())


@pytest.mark.parametrize(("age", "told"), [(KEPT_SECONDS, True), (KEPT_SECONDS + 1, False)])
def test_ten_minutes(undelivered: UndeliveredOutcomes, clock: Clock, age: float, told: bool) -> None:
    undelivered.keep(finished(clock))
    clock.now += age
    assert bool(undelivered.take().text) is told


def test_only_the_newest_are_kept(undelivered: UndeliveredOutcomes, clock: Clock) -> None:
    for number in range(KEPT_OUTCOMES + 1):
        undelivered.keep(finished(clock, f"tool_{number}"))
    assert [each.tool for each in undelivered.take().outcomes] == [f"tool_{each + 1}" for each in range(KEPT_OUTCOMES)]


@pytest.mark.parametrize(("arrived", "age", "told"), [
    pytest.param(False, ARRIVAL_SECONDS, True, id="not acknowledged in good time"),
    pytest.param(False, ARRIVAL_SECONDS / 2, False, id="too young to be sure of it: asked after again"),
    pytest.param(True, ARRIVAL_SECONDS, False, id="acknowledged"),
])  # fmt: skip
def test_a_reply_that_was_handed_over_is_told_of_when_it_does_not_arrive(
    undelivered: UndeliveredOutcomes, clock: Clock, arrived: bool, age: float, told: bool
) -> None:
    undelivered.keep(finished(clock), lambda: arrived)
    clock.now += age
    text = undelivered.take().text
    assert ("but its answer may never have arrived; look at the screen" in text) is bool(text) is told
    clock.now += ARRIVAL_SECONDS
    assert bool(undelivered.take().text) is (not told and not arrived)
