"""Slow values are shared, bounded, and waited for by nobody."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from mcpboard.host.console import cache
from mcpboard.host.console.cache import RevalidatingCache
from tests.host.browser import settled
from tests.support.clock import Clock
from tests.support.http import LIMIT_S

FRESH_S = 2.0


class Source:
    """Something slow that counts how often it was asked."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.inside = threading.Semaphore(0)
        self.go_on = threading.Event()
        self.go_on.set()
        self.value: int | None = 0
        self.fault: Exception | None = None

    def __call__(self, key: str) -> int | None:
        self.asked.append(key)
        self.inside.release()
        assert self.go_on.wait(LIMIT_S)
        if self.fault is not None:
            raise self.fault
        return self.value


@pytest.fixture
def source() -> Source:
    return Source()


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def values(source: Source, clock: Clock) -> Iterator[RevalidatingCache[int]]:
    made = RevalidatingCache("value", source, clock, FRESH_S)
    yield made
    source.go_on.set()
    made.close()
    settled()


def value(values: RevalidatingCache[int], key: str = "a") -> int | None:
    known = values.latest(key)
    settled()
    return None if known is None else known[0]


def test_many_who_ask_cost_one_look_a_key_and_do_not_wait(values: RevalidatingCache[int], source: Source) -> None:
    source.go_on.clear()
    for _ in range(20):
        assert (values.latest("a"), values.latest("b")) == (None, None)
    source.go_on.set()
    settled()
    assert sorted(source.asked) == ["a", "b"]
    assert value(values) == 0


def test_what_is_old_is_renewed_while_the_old_one_is_returned(
    values: RevalidatingCache[int], source: Source, clock: Clock
) -> None:
    value(values)
    source.value = 1
    clock.pass_by(FRESH_S - 0.1)
    assert (value(values), value(values), source.asked) == (0, 0, ["a"])
    clock.pass_by(0.1)
    assert (value(values), value(values), source.asked) == (0, 1, ["a", "a"])


def test_no_news_leaves_the_last_value_and_its_age(
    values: RevalidatingCache[int], source: Source, clock: Clock
) -> None:
    value(values)
    source.value = None
    clock.pass_by(5)
    value(values)
    known = values.latest("a")
    assert known is not None
    assert (known[0], clock() - known[1]) == (0, 5)


def test_a_bug_in_a_look_is_logged_and_the_next_look_is_made(
    values: RevalidatingCache[int], source: Source, caplog: pytest.LogCaptureFixture
) -> None:
    source.fault = KeyError("ours")
    assert value(values) is None
    assert "console: the value of a" in caplog.text
    source.fault = None
    value(values)
    assert value(values) == 0


def test_what_nobody_looks_at_is_forgotten_and_what_was_dropped_is_asked_anew(
    values: RevalidatingCache[int], source: Source, clock: Clock
) -> None:
    value(values)
    values.drop("a")
    values.drop("never there")
    assert value(values) is None
    assert (value(values), source.asked) == (0, ["a", "a"])
    clock.pass_by(cache.FORGET_SECONDS + 1)
    value(values, "b")
    assert values.latest("a") is None


def test_looks_are_bounded_and_a_silent_one_delays_no_other(values: RevalidatingCache[int], source: Source) -> None:
    source.go_on.clear()
    for number in range(cache.MOST_UNDER_WAY + 5):
        values.latest(str(number))
    assert len([each for each in threading.enumerate() if each.name == "console value"]) == cache.MOST_UNDER_WAY


def test_nothing_is_begun_after_the_end_which_waits_a_moment_only(
    values: RevalidatingCache[int], source: Source, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cache, "LEAVE_SECONDS", 0.05)
    source.go_on.clear()
    values.latest("a")
    assert source.inside.acquire(timeout=LIMIT_S)
    values.close()
    values.latest("b")
    assert source.asked == ["a"]
