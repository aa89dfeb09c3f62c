"""The simulated tools: their responses, and their effects on the phone."""

from __future__ import annotations

import base64
import io
import json
from typing import Any

import pytest
from PIL import Image

from mcpboard.simulator import Simulator
from mcpboard.simulator.board.agent_catalog import ROWS
from tests.simulator.simulating import http_request, new_board, output, run_tool

CENTER = {"x": 500, "y": 500}
NOTES_ICON = {"x": 384, "y": 330}
NOTES_FIELD = {"x": 450, "y": 105}


def test_a_screenshot_is_the_phone_without_the_black_bars(sim: Simulator) -> None:
    shot = output(run_tool(sim, "screenshot", anything="ignored"))
    picture = base64.b64decode(shot["data"], validate=True)
    assert len(picture) == shot["size"]
    assert Image.open(io.BytesIO(picture)).size == (shot["width"], shot["height"]) == (498, 1080)
    assert (shot["source_width"], shot["source_height"]) == (1920, 1080)
    assert (shot["active_width"], shot["active_height"]) == (500, 1080)
    assert shot["active_area"]["X"] == 710
    assert shot["format"] == "jpeg"


def test_a_computer_is_shown_with_the_whole_frame(sim: Simulator) -> None:
    sim.phone.device_type = "macOS"
    shot = output(run_tool(sim, "screenshot"))
    image = Image.open(io.BytesIO(base64.b64decode(shot["data"])))
    assert image.size == (shot["width"], shot["height"]) == (1920, 1080)
    assert max(image.convert("L").crop((0, 0, 700, 1080)).tobytes()) < 8, "the left bar is black"


def test_a_tap_opens_the_app_under_it_and_shows_rings(sim: Simulator) -> None:
    done = output(run_tool(sim, "touch_gesture", type="tap", point=NOTES_ICON))
    assert sim.phone.app == "Notes"
    assert done["action_output"] == "ok"
    assert done["screen_changed"] is True
    assert done["screen_stable"] is True
    assert done["stable_wait_ms"] >= 250
    image = Image.open(io.BytesIO(base64.b64decode(done["data"]))).convert("RGB")
    x, y = 384 * 497 // 1000, 330 * 1079 // 1000
    ring = [image.getpixel((x + step, y)) for step in range(8, 20)]
    assert any(isinstance(spot, tuple) and spot[0] > 180 and spot[1] < 120 for spot in ring), "no red ring"


def test_text_goes_into_the_field_that_was_named(sim: Simulator) -> None:
    run_tool(sim, "open_app", app="notes")
    done = output(run_tool(sim, "enter_text", text="Grüße 日本", focus=NOTES_FIELD))
    assert sim.phone.text == "Grüße 日本"
    assert json.loads(done["action_output"]) == {"ok": True}
    assert "screen_stable" not in done


def test_text_without_a_field_is_a_soft_failure(sim: Simulator) -> None:
    response = run_tool(sim, "enter_text", text="hello", focus=CENTER)
    assert response["is_error"] is False
    assert "tool_error" not in response
    assert json.loads(output(response)["action_output"])["ok"] is False


def test_a_hard_failure_of_enter_text_says_it_in_json(sim: Simulator) -> None:
    response = run_tool(sim, "enter_text", text=" ", focus=CENTER)
    assert response["is_error"] is True
    assert output(response)["ok"] is False
    assert response["tool_error"]["message"] == response["output"] == response["error"]


def test_an_app_that_is_not_there_is_a_soft_failure_of_the_search(sim: Simulator) -> None:
    response = run_tool(sim, "open_app", app="Chess")
    inner = json.loads(output(response)["action_output"])
    assert (response["is_error"], inner["ok"], inner["target"]) == (False, False, "Chess")


def test_a_bare_word_is_an_app(sim: Simulator) -> None:
    body = json.dumps({"raw_input": "Settings"}).encode()
    response = http_request(sim.agent_url, "POST", "/api/tools/open_app", body).json
    assert response["raw_input"] == "Settings"
    assert sim.phone.app == "Settings"


def test_the_search_opens_apps_without_a_bridge(sim: Simulator) -> None:
    sim.phone.bridge_connected = False
    response = run_tool(sim, "open_app", name="Maps")
    assert json.loads(output(response)["action_output"])["vlm_calls"] == 2
    assert response["duration_ms"] >= 2000
    assert sim.phone.app == "Maps"


def test_an_address_opens_in_the_browser(sim: Simulator) -> None:
    inner = json.loads(output(run_tool(sim, "open_url", url="https://example.com"))["action_output"])
    assert inner == {"ok": True, "method": "open_url", "target": "https://example.com"}
    assert (sim.phone.app, sim.phone.text) == ("Browser", "https://example.com")


def test_the_clipboard_is_one_for_bridge_and_keys(sim: Simulator) -> None:
    assert output(run_tool(sim, "bridge_clipboard", action="write", text="<from outside>")) == {"ok": True}
    run_tool(sim, "open_app", app="Notes")
    run_tool(sim, "touch_gesture", type="tap", point=NOTES_FIELD)
    run_tool(sim, "quick_action", action="paste")
    run_tool(sim, "keyboard_tap", keys=["space"])
    run_tool(sim, "keyboard_tap", keys=list("abc"))
    run_tool(sim, "keyboard_tap", keys=["backspace"])
    run_tool(sim, "keyboard_tap", keys=["cmd", "c"])
    read = output(run_tool(sim, "bridge_clipboard", action="read"))
    assert read == {"ok": True, "text": "<from outside> ab"}


def test_a_drag_spans_two_calls(sim: Simulator) -> None:
    run_tool(sim, "open_app", app="Settings")
    run_tool(sim, "touch_gesture", type="drag_start", point={"x": 500, "y": 800})
    held = sim.phone.view()
    run_tool(sim, "touch_gesture", type="drag_release", point={"x": 500, "y": 500})
    free = sim.phone.view()
    assert (held.pressed, free.pressed) == ((500, 800), None)
    assert (held.scroll, free.scroll) == (0, 300)


@pytest.mark.parametrize(
    ("given", "app"),
    [
        pytest.param({"type": "swipe", "start": {"x": 500, "y": 990}, "direction": "up"}, "Home", id="a swipe home"),
        pytest.param(
            {"actions": [{"action": "touch_down", "point": {"x": "500", "y": 990}},
                         {"action": "move_to", "x": 500, "y": 600, "duration_ms": 40},
                         {"action": "touch_up"}]}, "Home", id="a swipe in steps",
        ),
        pytest.param({"type": "swipe", "start": CENTER, "direction": "down"}, "Settings", id="a scroll"),
    ],
)  # fmt: skip
def test_gestures_move_the_phone(sim: Simulator, given: dict[str, Any], app: str) -> None:
    run_tool(sim, "open_app", app="Settings")
    assert run_tool(sim, "touch_gesture", **given)["is_error"] is False
    assert sim.phone.app == app


@pytest.mark.parametrize(
    ("tool", "given", "code", "message"),
    [
        pytest.param("touch_gesture", {}, "invalid_arguments", "type is required", id="no gesture"),
        pytest.param("touch_gesture", {"type": "tap"}, "invalid_arguments", "point is required for tap", id="no point"),
        pytest.param("touch_gesture", {"type": "drag"}, "invalid_arguments", 'unsupported gesture type: "drag"', id="the old drag"),
        pytest.param("touch_gesture", {"type": ["tap"]}, "invalid_arguments", "unsupported gesture type: \"['tap']\"", id="a type that is no text"),
        pytest.param("touch_gesture", {"type": "swipe"}, "invalid_arguments", "start is required for swipe", id="no start"),
        pytest.param("touch_gesture", {"type": "swipe", "start": CENTER}, "invalid_arguments", "end or direction is required for swipe", id="no end"),
        pytest.param("touch_gesture", {"type": "swipe", "start": CENTER, "end": CENTER, "direction": "up"},
                     "invalid_arguments", "swipe accepts either end or direction, not both", id="two ends"),
        pytest.param("touch_gesture", {"type": "swipe", "start": CENTER, "direction": "up", "duration_ms": 0},
                     "invalid_arguments", "duration_ms must be in range [1, 10000]", id="no duration"),
        pytest.param("touch_gesture", {"type": "tap", "point": CENTER, "hold_ms": "x"}, "invalid_arguments",
                     "hold_ms must be in range [0, 60000]", id="a hold that is no number"),
        pytest.param("touch_gesture", {"actions": [{"action": "wait", "ms": 1}]}, "invalid_arguments", "actions must end with touch_up", id="a finger left down"),
        pytest.param("keyboard_tap", {}, "invalid_arguments", "keys array is required", id="no keys"),
        pytest.param("open_app", {}, "invalid_arguments", "app is required", id="no app"),
        pytest.param("open_app", {"app": "https://a.b"}, "invalid_arguments",
                     "app must be an app name or alias; use open_url for HTTP/HTTPS URLs", id="an address as app"),
        pytest.param("open_url", {"url": "ftp://x"}, "invalid_arguments", "url must start with http:// or https://", id="another scheme"),
        pytest.param("bridge_clipboard", {"action": "x"}, "invalid_arguments", 'unknown action "x", expected "read" or "write"', id="an unknown clipboard action"),
        pytest.param("quick_action", {"action": "quit_app"}, "quick_action_reserved", "quick action quit_app is reserved on ios", id="a reserved quick action"),
        pytest.param("shell", {"command": "warn no; exit 3"}, None, "Stderr:\nno; exit 3\n", id="words on stderr"),
        pytest.param("shell", {"command": "exit 3"}, "tool_execution_failed", "Error: exit status 3", id="an exit"),
        pytest.param("shell", {"command": "dance"}, "tool_execution_failed", "Error: exit status 127\nStderr:\nsh: 1: dance: not found", id="an unknown command"),
        pytest.param("shell", {"command": "sleep 9", "timeout": 2}, "deadline_exceeded", "Error: command timed out after 2 seconds", id="a command over its time"),
        pytest.param("shell", {"command": "true"}, None, "(no output)", id="a silent command"),
    ],
)  # fmt: skip
def test_a_tool_says_what_is_wrong(
    sim: Simulator, tool: str, given: dict[str, Any], code: str | None, message: str
) -> None:
    response = run_tool(sim, tool, **given)
    assert response["output"] == message
    assert response["is_error"] is (code is not None)
    assert response.get("tool_error", {}).get("code") == code


ODD: list[Any] = [
    None,
    True,
    -1,
    1.5,
    "x",
    "\ud800",
    [],
    [[]],
    {},
    {"x": 1},
    [{"action": []}],
    {"x": [], "y": "nan"},
    10**30,
]


@pytest.mark.parametrize("tool", ROWS)
def test_odd_arguments_are_answered_like_any(sim: Simulator, tool: str) -> None:
    """The Agent does not check against its schemas, so every tool meets every kind of value; none may break."""
    for key in ("anything", *ROWS[tool].schema["properties"]):
        for odd in ODD:
            given = {**ROWS[tool].example, key: odd}
            assert run_tool(sim, tool, **given)["tool"]["name"] == tool


def test_a_near_miss_of_a_quick_action_is_told_the_right_ones(sim: Simulator) -> None:
    error = run_tool(sim, "quick_action", action="hom")["tool_error"]
    assert error["code"] == "quick_action_unknown"
    assert "home" in error["details"]["suggestions"]


def test_quick_actions_can_be_listed(sim: Simulator) -> None:
    inner = json.loads(output(run_tool(sim, "quick_action", action="list"))["action_output"])
    assert {"id", "label", "category", "platform", "status"} == set(inner["actions"][0])


def test_a_background_command_is_polled_and_stopped(sim: Simulator) -> None:
    response = run_tool(sim, "shell", command="echo hi", background=True)
    assert response["output"].startswith('{\n  "session_id"')
    name = output(response)["session_id"]
    assert output(run_tool(sim, "shell", action="poll", session_id=name))["output"] == "hi\n"
    assert output(run_tool(sim, "shell", action="stop", session_id=name))["stopped"] is True
    assert run_tool(sim, "shell", action="poll", session_id=name)["is_error"] is True


def test_a_moving_screen_is_waited_for_and_then_taken_as_it_is(sim: Simulator) -> None:
    sim.phone.show("Notes")
    assert output(run_tool(sim, "wait_for_stable_screen"))["stable"] is True
    run_tool(sim, "quick_action", action="home")
    sim.phone.show("Notes")
    sim.phone.animate(60)
    seen = output(run_tool(sim, "wait_for_stable_screen", timeout_ms=9))
    assert seen["ok"] is True
    assert seen["elapsed_ms"] >= 250


def test_input_that_is_no_json_fails_the_tool_not_the_request(sim: Simulator) -> None:
    body = json.dumps({"raw_input": "not json"}).encode()
    response = http_request(sim.agent_url, "POST", "/api/tools/keyboard_tap", body)
    assert response.status == 200
    assert response.json["tool_error"]["code"] == "invalid_arguments"


def test_a_seed_and_a_clock_decide_everything() -> None:
    """Two boards with the same seed answer the same bytes; another seed looks different."""
    responses = []
    for seed in (7, 7, 9):
        with new_board(seed=seed) as board:
            shot = run_tool(board, "touch_gesture", type="tap", point=CENTER)
            responses.append((shot, board.phone.view()))
    assert responses[0] == responses[1]
    assert responses[0][1] != responses[2][1]


def test_a_clock_needs_its_sleep() -> None:
    with pytest.raises(ValueError, match="go together"):
        Simulator(clock=lambda: 0.0)
