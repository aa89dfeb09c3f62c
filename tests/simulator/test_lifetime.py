"""Callers that wait for each other, callers that leave, and a board that starts and stops."""

from __future__ import annotations

import subprocess
import sys
import threading

import pytest

from mcpboard.simulator import Simulator
from tests.simulator.simulating import Caller, exchange, head, http_request, new_board, open_socket, run_tool, tool_post

NEW_NOTE = {"app": "Notes"}


def test_input_tools_stand_in_line(sim: Simulator) -> None:
    """The second caller waits, neither refused nor let in, while pictures are taken beside it."""
    with sim.hold("keyboard_tap") as hold:
        first = Caller(lambda: run_tool(sim, "keyboard_tap", keys=["a"]))
        assert hold.entered.wait(5)
        second = Caller(lambda: run_tool(sim, "touch_gesture", type="tap", point={"x": 500, "y": 20}))
        sim.wait_for_request("touch_gesture")
        assert run_tool(sim, "screenshot")["is_error"] is False
        assert [name for name, _ in sim.calls] == ["keyboard_tap", "screenshot"]
        hold.release()
        assert first.result()["is_error"] is second.result()["is_error"] is False
    assert [name for name, _ in sim.calls] == ["keyboard_tap", "screenshot", "touch_gesture"]


@pytest.mark.parametrize(
    ("tool", "given", "outcome"),
    [
        pytest.param("keyboard_tap", {"keys": ["a"]}, "ok", id="a key is pressed all the same"),
        pytest.param("enter_text", {"text": "a", "focus": {"x": 1, "y": 1}}, "ok", id="text is entered all the same"),
        pytest.param("open_app", NEW_NOTE, "ok", id="an app opens all the same"),
        pytest.param("screenshot", {}, "canceled", id="a picture is given up"),
        pytest.param("open_url", {"url": "https://a.b"}, "canceled", id="an address is given up"),
        pytest.param("shell", {"command": "pwd"}, "canceled", id="a command is given up"),
    ],
)
def test_a_caller_leaves(sim: Simulator, tool: str, given: dict[str, object], outcome: str) -> None:
    hold = sim.hold(tool)
    with open_socket(sim.agent_url) as caller:
        caller.sendall(tool_post(tool, given))
        assert hold.entered.wait(5)
    if outcome == "ok":
        hold.release()
    sim.wait_for_finish(tool)
    hold.release()
    assert sim.finished == [(tool, outcome)]
    assert (sim.phone.app == "Notes") is (tool == "open_app")


def test_an_input_tool_ends_at_its_limit() -> None:
    with new_board(input_limit_s=5) as board:
        run_tool(board, "open_app", app="Notes")
        response = run_tool(board, "touch_gesture", type="long_press", point={"x": 500, "y": 20}, hold_ms=9000)
    assert response["is_error"] is True
    assert response["tool_error"]["code"] == "deadline_exceeded"
    assert "action_completed" not in response["tool_error"].get("details", {})


def test_a_limit_in_the_wait_for_the_screen_says_that_the_action_is_done() -> None:
    with new_board(input_limit_s=0.2) as board:
        response = run_tool(board, "open_app", app="Notes")
        assert board.phone.app == "Notes"
    assert response["tool_error"]["code"] == "deadline_exceeded"
    assert response["tool_error"]["details"]["action_completed"] is True


def test_a_hold_works_on_the_statuses_too(sim: Simulator) -> None:
    with sim.hold("support_bundle") as hold:
        caller = Caller(lambda: http_request(sim.config_web_url, "GET", "/api/logs/support"))
        assert hold.entered.wait(5)
        hold.release()
        assert caller.result().status == 200


def test_a_hold_can_be_set_again_after_its_release(sim: Simulator) -> None:
    sim.hold("shell").release()
    with sim.hold("shell") as again:
        caller = Caller(lambda: run_tool(sim, "shell", command="pwd"))
        assert again.entered.wait(5)
        again.release()
        assert caller.result()["is_error"] is False


def test_a_wait_that_is_in_vain_says_for_what(sim: Simulator) -> None:
    with pytest.raises(AssertionError, match="call number 2 of shell"):
        sim.wait_for_call("shell", 2, timeout=0.01)


def test_stop_joins_every_thread_whatever_is_under_way() -> None:
    before = set(threading.enumerate())
    board = new_board().start()
    board.faults.set("hang", tool="shell")
    hold = board.hold("screenshot")
    idle, hung, held = (open_socket(board.agent_url) for _ in range(3))
    with idle, hung, held:
        hung.sendall(tool_post("shell", {}))
        held.sendall(tool_post("screenshot", {}))
        assert hold.entered.wait(5)
        board.wait_for_request("/api/tools/shell")
        board.stop()
        assert set(threading.enumerate()) == before
        assert idle.recv(1) == b""


def test_a_stopped_board_refuses_and_comes_back_on_the_same_port() -> None:
    board = new_board()
    with board:
        url = board.agent_url
    with pytest.raises(ConnectionRefusedError):
        open_socket(url)
    board.stop()
    with board:
        assert board.agent_url == url
        assert http_request(url, "GET", "/health").status == 200


def test_one_port_can_be_stopped_alone(sim: Simulator) -> None:
    sim.config_web.stop()
    with pytest.raises(ConnectionRefusedError):
        open_socket(sim.config_web_url)
    assert http_request(sim.agent_url, "GET", "/health").status == 200


def test_a_taken_port_is_an_error_that_leaves_nothing_behind(sim: Simulator) -> None:
    before = set(threading.enumerate())
    taken = int(sim.agent_url.rpartition(":")[2])
    for ports in ({"agent_port": taken}, {"config_web_port": taken}):
        with pytest.raises(OSError, match="in use"):
            new_board(**ports).start()
    assert set(threading.enumerate()) == before


def test_many_callers_at_once_are_all_answered(sim: Simulator) -> None:
    callers = [Caller(lambda: exchange(sim.agent_url, head("GET", "/health"))) for _ in range(20)]
    assert all(b"200 OK" in caller.result() for caller in callers)


def test_real_time_may_be_sped_up() -> None:
    with Simulator(speed=50) as board:
        assert run_tool(board, "shell", command="sleep 20")["output"] == "(no output)"


def test_without_pillow_the_import_says_what_to_install() -> None:
    code = "import sys; sys.modules['PIL'] = None; import mcpboard.simulator"
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=30)
    last = ended.stderr.strip().splitlines()[-1]
    assert last == "ModuleNotFoundError: the simulator draws with Pillow: pip install 'mcpboard[simulator]'"
