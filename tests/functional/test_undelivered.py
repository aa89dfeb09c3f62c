"""Callers who leave in the middle of an action: it is done once, and the next action hears of it once."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import pytest

from mcpboard.errors import NOT_SENT, UNKNOWN
from mcpboard.simulator import Simulator
from tests.support import rig
from tests.support.gohttp import Exchange, GoServer
from tests.support.http import LIMIT_S, Caller, Response

ENTER: dict[str, Any] = {"text": "hello", "focus": {"x": 500, "y": 300}}
OK = "The earlier enter_text finished OK"


class Board:
    """A simulated board, a client of mcpboard in front of it, and the log that tells when a call is over."""

    def __init__(self, simulator: Simulator, client: Caller, lines: rig.Lines) -> None:
        self.simulator, self.client, self.lines = simulator, client, lines
        self._over: dict[str, int] = {}

    def abandoned(self, tool: str, *, reset: bool = False, **arguments: Any) -> None:
        """A caller who leaves while the tool is under way; returns when the board's work is over as well."""
        with self.simulator.hold(tool) as hold, self.client.begin(tool, **arguments) as pending:
            assert hold.entered.wait(LIMIT_S)
            pending.leave(reset=reset)
            self.noticed()
        self.over(tool)

    def noticed(self) -> None:
        """Return when the server has seen what happened on its sockets before: it looks at them in rounds."""
        self.client.ask("ping")

    def over(self, tool: str) -> None:
        self._over[tool] = self._over.get(tool, 0) + 1
        self.lines.wait_for(f"{tool}: ok", self._over[tool])

    def press_enter(self) -> Response:
        return self.client.call("keyboard_tap", keys=["enter"])


@pytest.fixture
def board() -> Iterator[Board]:
    with Simulator(speed=20) as simulator:
        simulator.phone.show("Notes")
        with rig.in_front_of(simulator.agent_url, simulator.config_web_url) as client, rig.log_lines() as lines:
            yield Board(simulator, client, lines)


@pytest.mark.parametrize("reset", [pytest.param(False, id="closed"), pytest.param(True, id="reset")])
def test_the_next_action_hears_of_it_and_the_one_after_does_not(board: Board, reset: bool) -> None:
    """Finished once, told once, before whatever the next result says."""
    board.abandoned("enter_text", reset=reset, **ENTER)
    first, second = board.press_enter(), board.press_enter()
    assert first.text.startswith(OK)
    assert "after its caller had gone; look at the screen before repeating it" in first.text
    assert first.kinds == ["text", "image", "text"]
    assert OK not in second.text
    assert board.simulator.finished == [("enter_text", "ok"), ("keyboard_tap", "ok"), ("keyboard_tap", "ok")]


def test_an_error_begins_with_it_too(board: Board) -> None:
    board.abandoned("enter_text", **ENTER)
    board.simulator.faults.set("tool_error", "keyboard_tap", 1)
    failed = board.press_enter()
    assert failed.text.startswith(OK)
    assert "the HID device went away" in failed.text
    assert failed.delivery == UNKNOWN


def test_a_client_that_gave_up_and_calls_again(board: Board) -> None:
    """60 s of patience against 70 s of typing. Nothing is typed that was not really asked for."""
    with board.simulator.hold("enter_text") as hold, board.client.begin("enter_text", **ENTER) as pending:
        assert hold.entered.wait(LIMIT_S)
        pending.leave()
        board.noticed()
        meanwhile = board.client.call("enter_text", **ENTER)
        assert len(board.simulator.calls) == 1
    board.over("enter_text")
    again = board.client.call("enter_text", **ENTER)
    assert meanwhile.is_error
    assert "enter_text has been running for" in meanwhile.text
    assert "look at the screen first" in meanwhile.text
    assert meanwhile.delivery == NOT_SENT
    assert not again.is_error
    assert again.text.startswith(OK)
    assert board.simulator.phone.text == "hellohello"


@pytest.mark.parametrize("tool", ["screenshot", "device_status", "phone_bridge_status", "support_bundle"])
def test_only_an_action_tells(board: Board, tool: str) -> None:
    """A look at the screen may not use up what the next action has to hear."""
    board.abandoned("enter_text", **ENTER)
    assert "The earlier" not in board.client.call(tool).text
    assert board.press_enter().text.startswith(OK)


def test_an_action_that_failed_behind_its_callers_back_is_told_as_such(board: Board) -> None:
    board.simulator.faults.set("reset_after_execution", "enter_text", 1)
    with board.simulator.hold("enter_text") as hold, board.client.begin("enter_text", **ENTER) as pending:
        assert hold.entered.wait(LIMIT_S)
        pending.leave()
        board.noticed()
    board.lines.wait_for("enter_text: BackendBroken")
    assert board.press_enter().text.startswith("The earlier enter_text ended with an error")


def test_an_action_that_was_never_made_is_not_told() -> None:
    """There is nothing to warn of: the board was shutting down and did not begin."""
    gone = threading.Event()

    def shutting_down(went: Exchange) -> None:
        assert gone.wait(LIMIT_S)
        went.error("503 Service Unavailable", "Server is shutting down")

    with GoServer(shutting_down) as agent, rig.in_front_of(agent.url) as client, rig.log_lines() as lines:
        with client.begin("keyboard_tap", keys=["enter"]) as pending:
            agent.wait_for(1)
            pending.leave()
            client.ask("ping")
        gone.set()
        lines.wait_for("keyboard_tap: BackendUnreachable")
        assert "The earlier" not in client.call("keyboard_tap", keys=["enter"]).text
