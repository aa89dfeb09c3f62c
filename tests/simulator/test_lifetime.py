"""Callers that wait for each other, callers that leave, and a board that starts and stops."""

from __future__ import annotations

import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from mcpboard.simulator import Simulator
from tests.simulator.simulating import ask, new_board, run_tool, tool_post
from tests.support.http import LIMIT_S, Caller


def test_input_tools_stand_in_line(sim: Simulator) -> None:
    """The second caller waits, neither refused nor let in, while pictures are taken beside it; a hold can be set again."""
    sim.hold("keyboard_tap").release()
    with ThreadPoolExecutor() as pool, sim.hold("keyboard_tap") as hold:
        first = pool.submit(run_tool, sim, "keyboard_tap", keys=["a"])
        assert hold.entered.wait(LIMIT_S)
        second = pool.submit(run_tool, sim, "touch_gesture", type="tap", point={"x": 500, "y": 20})
        sim.wait_for_request("touch_gesture")
        assert run_tool(sim, "screenshot")["is_error"] is False
        assert [name for name, _ in sim.calls] == ["keyboard_tap", "screenshot"]
        hold.release()
        assert first.result(LIMIT_S)["is_error"] is second.result(LIMIT_S)["is_error"] is False
    assert [name for name, _ in sim.calls] == ["keyboard_tap", "screenshot", "touch_gesture"]


@pytest.mark.parametrize(
    ("tool", "given", "outcome"),
    [
        pytest.param("keyboard_tap", {"keys": ["a"]}, "ok", id="a key is pressed all the same"),
        pytest.param("enter_text", {"text": "a", "focus": {"x": 1, "y": 1}}, "ok", id="text is entered all the same"),
        pytest.param("open_app", {"app": "Notes"}, "ok", id="an app opens all the same"),
        pytest.param("screenshot", {}, "canceled", id="a picture is given up"),
        pytest.param("open_url", {"url": "https://a.b"}, "canceled", id="an address is given up"),
        pytest.param("shell", {"command": "pwd"}, "canceled", id="a command is given up"),
    ],
)
def test_a_caller_leaves(sim: Simulator, tool: str, given: dict[str, object], outcome: str) -> None:
    hold = sim.hold(tool)
    with Caller(sim.agent_url).connect() as caller:
        caller.send(tool_post(tool, **given))
        assert hold.entered.wait(LIMIT_S)
    if outcome == "ok":
        hold.release()
    sim.wait_for_finish(tool)
    hold.release()
    assert sim.finished == [(tool, outcome)]
    assert (sim.phone.app == "Notes") is (tool == "open_app")


@pytest.mark.parametrize(
    ("limit_s", "tool", "given", "completed"),
    [
        pytest.param(5, "touch_gesture", {"type": "long_press", "point": {"x": 500, "y": 20}, "hold_ms": 9000}, None, id="in the action"),
        pytest.param(0.2, "open_app", {"app": "Notes"}, True, id="in the wait for the screen"),
    ],
)  # fmt: skip
def test_an_input_tool_ends_at_its_limit(limit_s: float, tool: str, given: dict[str, object], completed: bool | None) -> None:  # fmt: skip
    with new_board(input_limit_s=limit_s) as board:
        error = run_tool(board, tool, **given)["tool_error"]
    assert error["code"] == "deadline_exceeded"
    assert error.get("details", {}).get("action_completed") is completed


def test_a_wait_that_is_in_vain_says_for_what(sim: Simulator) -> None:
    with pytest.raises(AssertionError, match="call 2 of shell"):
        sim.wait_for_call("shell", 2, timeout=0.01)


def test_stop_joins_every_thread_whatever_is_under_way() -> None:
    before = set(threading.enumerate())
    board = new_board().start()
    board.faults.set("hang", tool="shell")
    hold = board.hold("screenshot")
    with (
        Caller(board.agent_url).connect() as idle,
        Caller(board.agent_url).connect() as hung,
        Caller(board.agent_url).connect() as held,
    ):
        hung.send(tool_post("shell"))
        held.send(tool_post("screenshot"))
        assert hold.entered.wait(LIMIT_S)
        board.wait_for_request("/api/tools/shell")
        board.stop()
        assert set(threading.enumerate()) == before
        assert idle.ended()


def test_one_port_stops_alone_and_both_come_back_on_their_numbers(sim: Simulator) -> None:
    urls = sim.agent_url, sim.config_web_url
    sim.config_web.stop()
    with pytest.raises(ConnectionRefusedError):
        ask(sim.config_web_url, "GET", "/")
    assert ask(sim.agent_url, "GET", "/health").status == 200
    sim.stop()
    sim.start()
    assert urls == (sim.agent_url, sim.config_web_url)
    assert ask(sim.agent_url, "GET", "/health").status == 200


def test_a_taken_port_is_an_error_that_leaves_nothing_behind(sim: Simulator) -> None:
    before = set(threading.enumerate())
    taken = int(sim.agent_url.rpartition(":")[2])
    for ports in ({"agent_port": taken}, {"config_web_port": taken}):
        with pytest.raises(OSError, match="in use"):
            new_board(**ports).start()
    assert set(threading.enumerate()) == before


def test_real_time_may_be_sped_up() -> None:
    with Simulator(speed=50) as board:
        assert run_tool(board, "shell", command="sleep 20")["output"] == "(no output)"


def test_without_pillow_the_import_says_what_to_install() -> None:
    code = "import sys; sys.modules['PIL'] = None; import mcpboard.simulator"
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=30)
    last = ended.stderr.strip().splitlines()[-1]
    assert last == "ModuleNotFoundError: the simulator draws with Pillow: pip install 'mcpboard[simulator]'"
