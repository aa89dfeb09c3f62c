"""Callers of the host who leave while their action runs: the device's next action tells what became of it, once."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from mcpboard.errors import DONE, NOT_SENT, ToolFailed
from mcpboard.host.access import tokens
from tests.host.rig import Agent, Fake, agent
from tests.support.http import Caller
from tests.support.rig import log_lines

GONE = "after its caller had gone; look at the screen before repeating it"


@pytest.fixture
def phones() -> dict[str, Fake]:
    return {"A": Fake(), "B": Fake()}


@pytest.fixture
def host(tmp_path: Path, phones: dict[str, Fake]) -> Iterator[Agent]:
    with agent(tmp_path / "data", A=phones["A"], B=phones["B"]) as made:
        yield made


Leave = Callable[..., None]


@pytest.fixture(params=[False, True], ids=["closed", "reset"])
def leave(request: pytest.FixtureRequest, host: Agent, phones: dict[str, Fake]) -> Iterator[Leave]:
    """Make a call of A, and leave while the phone is at it."""

    def abandon(tool: str, **arguments: Any) -> None:
        phones["A"].stop_inside()
        connection = host.caller.begin(tool, device_id="A", **arguments)
        phones["A"].wait_inside()
        connection.leave(reset=request.param)
        host.caller.post("ping")  # the server looks at its sockets in rounds: it has seen by now who left
        before = len(lines.wait_for(f"{tool}: ", 0))
        phones["A"].go_on.set()
        lines.wait_for(f"{tool}: ", before + 1)

    with log_lines() as lines:
        yield abandon


def test_the_next_action_on_the_device_tells_it_once(host: Agent, leave: Leave, phones: dict[str, Fake]) -> None:
    leave("tap", x=1, y=1)
    host.clock.pass_by(3)
    first, second = (host.caller.call("tap", device_id="A", x=2, y=2) for _ in range(2))
    assert first.text == f"The earlier tap finished OK 3 s ago, {GONE}.\ntapped 2,2 on A"
    assert second.text == "tapped 2,2 on A"
    assert phones["A"].done == [("tap", (1, 1)), ("tap", (2, 2)), ("tap", (2, 2))]


def test_another_device_and_a_look_tell_nothing(host: Agent, leave: Leave) -> None:
    leave("tap", x=1, y=1)
    assert host.caller.call("tap", device_id="B", x=2, y=2).text == "tapped 2,2 on B"
    assert "earlier" not in host.caller.call("take_screenshot", device_id="A").text
    assert "earlier" not in host.caller.call("get_ui_tree", device_id="A").text
    assert host.caller.call("swipe", device_id="A", start_x=1, start_y=1, end_x=2, end_y=2).text.startswith(
        "The earlier"
    )


def test_who_is_turned_away_hears_nothing_and_uses_nothing_up(host: Agent, leave: Leave) -> None:
    """A device that is in use is none of theirs."""
    leave("tap", x=1, y=1)
    other = Caller(host.url, tokens.add_named(host.folder, "other"))
    assert other.call("tap", device_id="A", x=2, y=2).error["message"].startswith("device A is busy")
    assert host.caller.call("tap", device_id="A", x=2, y=2).text.startswith("The earlier tap finished OK")


FAULTS = [
    (ToolFailed("it burns", delivery=DONE), "took place, although something after it failed"),
    (ToolFailed("it burns"), "ended with an error"),
    (RuntimeError("a driver's own"), "ended with an error"),
    (ToolFailed("not now", delivery=NOT_SENT), ""),
]


@pytest.mark.parametrize(("fault", "told"), FAULTS)
def test_an_action_that_failed_is_told_by_what_became_of_it(
    host: Agent, leave: Leave, phones: dict[str, Fake], fault: Exception, told: str
) -> None:
    phones["A"].fault = fault
    leave("launch_app", app_id="Notes")
    phones["A"].fault = None
    text = host.caller.call("input_text", device_id="A", text="x").text
    assert text.startswith(f"The earlier launch_app {told} 0 s ago, {GONE}.\n") if told else "earlier" not in text


def test_what_was_to_be_told_and_got_lost_is_told_later_and_an_error_begins_with_it(
    host: Agent, leave: Leave, phones: dict[str, Fake]
) -> None:
    leave("tap", x=1, y=1)
    leave("launch_app", app_id="Notes")
    phones["A"].fault = ToolFailed("it burns", delivery=DONE)
    error = host.caller.call("tap", device_id="A", x=2, y=2).error
    assert error["message"].index("The earlier tap finished OK") < error["message"].index(
        "The earlier launch_app finished OK"
    )
    assert (error["message"].splitlines()[-1], error["data"]) == ("it burns", {"delivery": DONE})


def test_a_session_that_was_to_begin_with_it_is_begun_all_the_same(host: Agent, leave: Leave) -> None:
    leave("tap", x=1, y=1)
    host.clock.pass_by(60)  # its lease ends
    told = host.caller.call("tap", device_id="A", x=2, y=2, session_id="new")
    assert told.text.startswith("The earlier tap finished OK 60 s ago")
    assert told.result["structuredContent"]["session_id"].startswith("hs_")
