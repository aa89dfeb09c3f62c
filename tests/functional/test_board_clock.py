"""A board without a battery starts in 1970 and jumps by 56 years when it first hears the time; and maybe back."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from typing import Any

import pytest

from mcpboard.serving import server
from mcpboard.simulator import Simulator
from tests.support import rig
from tests.support.http import LIMIT_S, Caller, message

YEARS_S = 56 * 365.25 * 86400.0  # seconds
STEPS = [pytest.param(YEARS_S, id="56 years on"), pytest.param(-YEARS_S, id="56 years back")]
ENTER: dict[str, Any] = {"text": "hello", "focus": {"x": 500, "y": 300}}


class WallClock:
    """`time.time` for everybody, moved by hand."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.offset = 0.0
        real = time.time
        patch.setattr(time, "time", lambda: real() + self.offset)

    def step(self, seconds: float) -> None:
        self.offset += seconds


@pytest.fixture
def simulator() -> Iterator[Simulator]:
    with Simulator(speed=20) as running:
        running.phone.show("Notes")
        yield running


@pytest.fixture
def client(simulator: Simulator, monkeypatch: pytest.MonkeyPatch) -> Iterator[Caller]:
    monkeypatch.setattr(server, "SWEEP_SECONDS", 0.02)  # so that what could expire does so at once
    with rig.in_front_of(simulator.agent_url, simulator.config_web_url, send_buffer=8192) as client:
        yield client


@pytest.fixture
def wall(client: Caller, monkeypatch: pytest.MonkeyPatch) -> WallClock:
    return WallClock(monkeypatch)


def turned_around(client: Caller) -> None:
    """Let the server's loop look at all that could be over, several times."""
    for _ in range(10):
        client.ask("ping")


@pytest.mark.parametrize("step", STEPS)
def test_a_call_under_way_is_neither_ended_nor_kept(
    simulator: Simulator, client: Caller, wall: WallClock, step: float
) -> None:
    with simulator.hold("enter_text") as hold, client.begin("enter_text", **ENTER) as pending:
        assert hold.entered.wait(LIMIT_S)
        for seconds in (step, -step, step):
            wall.step(seconds)
            turned_around(client)
        busy = client.call("keyboard_tap", keys=["enter"])
        hold.release()
        assert not pending.response().is_error
    assert re.search(r"enter_text has been running for \d s", busy.text)
    assert not client.call("keyboard_tap", keys=["enter"]).is_error


@pytest.mark.parametrize("step", STEPS)
def test_a_hanging_backend_still_meets_its_deadline(
    simulator: Simulator, client: Caller, wall: WallClock, step: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    rig.shrink_deadlines(monkeypatch, screenshot=0.5)
    simulator.faults.set("hang", "screenshot", 1)
    with (
        rig.in_front_of(simulator.agent_url) as hurried,
        hurried.begin("screenshot") as pending,
    ):
        simulator.wait_for_request("screenshot")
        wall.step(step)
        began = time.monotonic()
        failed = pending.response()
        assert time.monotonic() - began < 3
    assert failed.is_error
    assert "within 0.5 s" in failed.text


@pytest.mark.parametrize("step", STEPS)
def test_a_bundle_and_an_idle_connection_live_through_it(
    simulator: Simulator, client: Caller, wall: WallClock, step: float
) -> None:
    simulator.faults.set("bundle", "support_bundle", 1, bytes=4 << 20)
    with (
        client.begin("support_bundle", receive_buffer=8192) as pending,
        client.connect() as idle,
    ):
        _, headers = pending.head()
        assert idle.post(message("ping")).result
        for seconds in (step, -step):
            assert len(pending.file.read(100_000)) == 100_000
            wall.step(seconds)
            turned_around(client)
        length = int(headers["content-length"])
        assert len(pending.file.read(length - 200_000)) == length - 200_000
        assert idle.post(message("ping")).result


@pytest.mark.parametrize("step", STEPS)
def test_an_orphan_is_as_old_as_it_is(simulator: Simulator, client: Caller, wall: WallClock, step: float) -> None:
    """Ten minutes are ten minutes of life, not of the calendar."""
    with rig.log_lines() as lines:
        with simulator.hold("enter_text") as hold, client.begin("enter_text", **ENTER) as pending:
            assert hold.entered.wait(LIMIT_S)
            pending.leave()
            turned_around(client)
        lines.wait_for("enter_text: ok")
    wall.step(step)
    told = client.call("keyboard_tap", keys=["enter"]).text
    assert re.match(r"The earlier enter_text finished OK \d s ago", told)
