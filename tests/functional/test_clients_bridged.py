"""SDK clients that start the bridge: large answers, and boards that die under them."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from mcpboard.simulator import Simulator
from tests.support.piped import RestartableBoard
from tests.support.served import Board
from tests.support.visitors import CLIENTS, Client, bridge_program, visit

pytestmark = pytest.mark.tools

# One SDK of either language and revision; what the others ask of a bridge is in test_clients.
SDKS = [
    pytest.param(each, id=each.name)
    for each in CLIENTS
    if str(each) in ("Python mcp 2.3, as it comes", "TypeScript sdk 1.32, as it comes")
]
BUNDLE_BYTES = 16 << 20
TAP = {"type": "tap", "point": {"x": 500, "y": 500}}


@pytest.fixture
def program(tmp_path: Path) -> str:
    return bridge_program(tmp_path)


@pytest.fixture
def simulator() -> Iterator[Simulator]:
    with Simulator() as simulator:
        yield simulator


@pytest.fixture
def mortal(tmp_path: Path, simulator: Simulator) -> Iterator[RestartableBoard]:
    board = RestartableBoard(tmp_path, simulator)
    board.start()
    try:
        yield board
    finally:
        board.kill()


def taps(simulator: Simulator) -> list[dict[str, Any]]:
    return [given for name, given in simulator.calls if name == "touch_gesture"]


@pytest.mark.parametrize("client", SDKS)
def test_a_bundle_of_sixteen_mebibytes_arrives_whole(board: Board, client: Client, program: str) -> None:
    board.simulator.faults.set("bundle", "support_bundle", times=1, bytes=BUNDLE_BYTES)
    with visit(client, [program, board.url]) as visitor:
        blob = visitor.ask("tools/call", "support_bundle", {})["content"][-1]["resource"]["blob"]
    assert len(base64.b64decode(blob, validate=True)) == BUNDLE_BYTES


@pytest.mark.parametrize("client", SDKS)
def test_a_board_killed_during_a_tap_is_an_error_and_one_tap(
    mortal: RestartableBoard, simulator: Simulator, client: Client, program: str
) -> None:
    with visit(client, [program, mortal.url]) as visitor:
        with simulator.hold("touch_gesture"):
            visitor.send("tools/call", "touch_gesture", TAP)
            simulator.wait_for_call("touch_gesture")
            mortal.kill()
            error = visitor.hear()["error"]
        assert "look before repeating it" in error["message"]
        assert error["data"] == {"delivery": "unknown"}
        mortal.start()
        assert visitor.ask("tools/call", "screenshot", {})["content"][0]["type"] == "image"
    assert len(taps(simulator)) == 1
