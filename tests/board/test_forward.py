"""One row run: what an action's outcome says, and what is kept of one that was not delivered."""

from __future__ import annotations

import json
from typing import Any, cast

import pytest

from mcpboard.board.backend import Backend, BackendResponse
from mcpboard.board.forward import LANE_CAPACITY, Forwarder
from mcpboard.board.lanes import Lanes
from mcpboard.board.tools import ROWS
from mcpboard.errors import BackendBroken, BackendTimeout, NotOffered, ToolError, ToolRefused
from mcpboard.protocol.messages import Outcome, ToolCall
from mcpboard.protocol.tools import Content, Text
from mcpboard.protocol.versions import RequestVersion
from mcpboard.serving.undelivered import UndeliveredOutcomes

LIMIT = 1 << 20  # bytes of a bundle; no test here comes near it


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


class Scripted:
    """A backend that answers in a fixed way, and remembers the bodies it was sent."""

    def __init__(self, response: BackendResponse | Exception) -> None:
        self.response = response
        self.bodies: list[bytes | None] = []

    def call(self, method: str, path: str, body: bytes | None, seconds: float) -> BackendResponse:
        self.bodies.append(body)
        if isinstance(self.response, Exception):
            raise self.response
        return self.response


WELL = BackendResponse(200, "application/json", json.dumps({"output": "done", "is_error": False}).encode())


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def forward(clock: Clock) -> Forwarder:
    return Forwarder(Lanes(LANE_CAPACITY, clock), UndeliveredOutcomes(clock))


def run(
    forward: Forwarder, tool: str, response: BackendResponse | Exception = WELL, arguments: bytes = b"{}"
) -> Outcome:
    return run_on(forward, tool, Scripted(response), arguments)


def run_on(forward: Forwarder, tool: str, backend: Scripted, arguments: bytes = b"{}") -> Outcome:
    row = next(row for row in ROWS if row.tool.name == tool)
    call = ToolCall(1, tool, arguments, RequestVersion(False, False, None), None, "")
    return forward.run(row, call, cast(Backend, backend), LIMIT)


def text(outcome: Outcome) -> str:
    if isinstance(outcome.result, Content):
        return "\n".join(block.text for block in outcome.result.blocks if isinstance(block, Text))
    return str(outcome.result)


def lose(outcome: Outcome) -> None:
    assert outcome.on_delivered is not None
    outcome.on_delivered(None)


def test_arguments_are_carried_over_as_they_came(forward: Forwarder) -> None:
    backend = Scripted(WELL)
    run_on(forward, "open_app", backend, b'{"app":"caf\xc3\xa9","n":1.50}')
    run_on(forward, "device_status", backend)
    assert backend.bodies == [b'{"input":{"app":"caf\xc3\xa9","n":1.50}}', None]


def test_an_undelivered_outcomes_age_counts_from_the_action(forward: Forwarder, clock: Clock) -> None:
    """And not from the reader who was given up, who may stall for half a minute before the server ends it."""
    undelivered = run(forward, "open_app")
    clock.now += 30
    lose(undelivered)
    clock.now += 12
    assert "The earlier open_app finished OK 42 s ago" in text(run(forward, "keyboard_tap"))


@pytest.mark.parametrize(
    ("response", "message"),
    [
        pytest.param(WELL, "finished OK", id="it worked"),
        pytest.param(BackendTimeout("late"), "ended with an error", id="nobody knows"),
        pytest.param(BackendBroken("cut"), "ended with an error", id="cut off"),
        pytest.param(ToolRefused("no picture", delivery="done"), "took place, although", id="done all the same"),
        pytest.param(NotOffered("no such tool"), None, id="never begun"),
        pytest.param(BackendBroken("cut", delivery="not_sent"), None, id="never sent"),
    ],
)
def test_an_outcome_is_told_in_our_words_alone(forward: Forwarder, response: Any, message: str | None) -> None:
    lose(run(forward, "open_app", response))
    told = text(run(forward, "keyboard_tap"))
    assert ("The earlier open_app" in told) is (message is not None)
    assert (message or "") in told
    assert str(response) not in told


@pytest.mark.parametrize("error", [MemoryError(), RecursionError("deep"), KeyError("a bug")])
def test_an_action_whose_answer_cannot_be_read_may_have_been_executed(
    forward: Forwarder, caplog: pytest.LogCaptureFixture, error: Exception
) -> None:
    """The caller hears so, the lane is free again, and the next action hears of it if the caller did not."""
    outcome = run(forward, "keyboard_tap", error)
    assert isinstance(outcome.result, ToolError)
    assert outcome.result.delivery == "unknown"
    assert "keyboard_tap: the answer cannot be read" in caplog.text
    lose(outcome)
    assert text(run(forward, "open_app")).startswith("The earlier keyboard_tap ended with an error")


def test_input_is_the_only_lane_whose_outcomes_are_kept(forward: Forwarder) -> None:
    kept = {row.tool.name for row in ROWS if not row.streams and run(forward, row.tool.name).on_delivered is not None}
    assert kept == {row.tool.name for row in ROWS if row.lane == "input"}
