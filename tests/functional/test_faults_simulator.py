"""The simulated board's own fault switches, seen through mcpboard by a client."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from mcpboard.errors import DONE, NOT_SENT, UNKNOWN
from mcpboard.simulator import Simulator
from tests.support import rig
from tests.support.http import LIMIT_S, Caller, Response

pytestmark = pytest.mark.slow  # waits for real limits, links or processes

TAP: dict[str, Any] = {"type": "tap", "point": {"x": 500, "y": 500}}
DEADLINE_S = 1.0  # seconds, in place of the rows' own; the tap after a fault has to make it on a busy machine, too


@dataclass(frozen=True)
class Told:
    """A fault as the caller is told of it: part of the text, and what became of the action."""

    says: str
    delivery: str | None
    executed: int = 1  # how often the tool ran on the board


# What the board does with the action; what its answers look like is in test_faults_backend.
FAULTS = [
    pytest.param("reset_after_execution", {}, Told("broke off", UNKNOWN), id="reset after the action"),
    pytest.param("hang_after_execution", {}, Told(f"within {DEADLINE_S:g} s", UNKNOWN), id="a hang after the action"),
    pytest.param("slow", {"seconds": 2 * DEADLINE_S}, Told(f"within {DEADLINE_S:g} s", UNKNOWN), id="slow"),
    pytest.param("missing_tool", {}, Told("does not offer", NOT_SENT, 0), id="a tool that is missing"),
    pytest.param("soft_failure", {}, Told("tap the field first", UNKNOWN), id="not ok, and no error"),
    pytest.param("legacy_error", {}, Told("no model is configured", UNKNOWN), id="an error in text"),
    pytest.param("tool_error", {}, Told("the HID device went away", UNKNOWN), id="an error of the tool"),
    pytest.param("action_completed", {}, Told("", DONE), id="only the picture afterwards failed"),
]

HARMLESS = [
    pytest.param("charset", {}, id="a charset label that lies"),
    pytest.param("empty_output", {}, id="empty output"),
    pytest.param("not_a_picture", {}, id="a picture that is none"),
]


@pytest.fixture
def simulator() -> Iterator[Simulator]:
    with Simulator(speed=20) as running:
        yield running


@pytest.fixture
def client(simulator: Simulator, monkeypatch: pytest.MonkeyPatch) -> Iterator[Caller]:
    rig.shrink_deadlines(monkeypatch, touch_gesture=DEADLINE_S, support_bundle=DEADLINE_S)
    with rig.in_front_of(simulator.agent_url, simulator.config_web_url) as client:
        yield client


def tap(client: Caller) -> Response:
    return client.call("touch_gesture", **TAP)


@pytest.mark.parametrize(("kind", "settings", "told"), FAULTS)
def test_a_tap_that_meets_a_fault(
    simulator: Simulator, client: Caller, kind: str, settings: dict[str, Any], told: Told
) -> None:
    """One error with the right `delivery`, at most one execution, and the next tap works."""
    fault = simulator.faults.set(kind, "touch_gesture", 1, **settings)
    failed = tap(client)
    executed, asked = len(simulator.calls), len(simulator.requests)
    assert fault.hits == 1
    assert failed.is_error
    assert told.says in failed.text
    assert failed.delivery == told.delivery
    assert executed == told.executed
    assert asked == 1
    simulator.wait_for_finish("touch_gesture", executed)  # the board goes on when its caller gives up
    assert not tap(client).is_error  # the same id and the same arguments are a new call all the same
    assert len(simulator.calls) == executed + 1


@pytest.mark.parametrize(("kind", "settings"), HARMLESS)
def test_a_tap_that_worked_stays_a_success(
    simulator: Simulator, client: Caller, kind: str, settings: dict[str, Any]
) -> None:
    """What came after the action does not undo it, and must not lead to a second one."""
    simulator.faults.set(kind, "touch_gesture", 1, **settings)
    result = tap(client)
    assert not result.is_error
    assert ("screenshot is missing" in result.text) is (kind != "charset")
    assert simulator.finished == [("touch_gesture", "ok")]


def test_a_board_that_restarts_between_two_calls(simulator: Simulator, client: Caller) -> None:
    """Same ports, new process: no connection of before is tried again."""
    assert not tap(client).is_error
    simulator.stop()
    gone = tap(client)
    simulator.start()
    assert (gone.is_error, gone.delivery) == (True, NOT_SENT)
    assert not tap(client).is_error
    assert not client.call("device_status").is_error
    assert [name for name, _ in simulator.calls] == ["touch_gesture"] * 2


def test_a_board_that_stops_in_the_middle_of_a_call(simulator: Simulator, client: Caller) -> None:
    with simulator.hold("touch_gesture") as hold, client.begin("touch_gesture", **TAP) as pending:
        assert hold.entered.wait(LIMIT_S)
        simulator.stop()
        failed = pending.response()
    simulator.start()
    assert (failed.is_error, failed.delivery) == (True, UNKNOWN)
    assert not tap(client).is_error


@pytest.mark.parametrize(
    ("kind", "settings", "says"),
    [
        pytest.param("bundle_error", {}, "cannot write the archive", id="an error in JSON"),
        pytest.param("bundle", {"dies_after": 100}, "it ended after 100 of", id="dies within the first block"),
        pytest.param("bundle", {"dies_after": 100, "length": False}, "broke off", id="dies early, no length"),
    ],
)
def test_a_bundle_that_fails_early_is_an_error_and_no_blob(
    simulator: Simulator, client: Caller, kind: str, settings: dict[str, Any], says: str
) -> None:
    """The first block is read before the head goes out."""
    simulator.faults.set(kind, "support_bundle", 1, **settings)
    failed = client.call("support_bundle")
    assert failed.is_error
    assert failed.kinds == ["text"]
    assert says in failed.text
    assert failed.delivery is None
    assert client.call("support_bundle").kinds == ["text", "resource"]
