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
from tests.simulator.simulating import NOTES_FIELD, ask, new_board, output, run_tool

CENTER = {"x": 500, "y": 500}
NOTES_ICON = {"x": 384, "y": 330}
CLIPBOARD = {"action": "write", "text": "<from outside>"}


def _picture(shot: Any) -> Image.Image:
    return Image.open(io.BytesIO(base64.b64decode(shot["data"], validate=True)))


@pytest.mark.parametrize(
    ("device", "turned", "size", "active", "corner"),
    [
        pytest.param("iOS", False, (498, 1080), (500, 1080), (710, 0), id="a phone without the black bars"),
        pytest.param("iOS", True, (1920, 886), (1920, 886), (0, 97), id="a phone on its side, as wide as the frame"),
        pytest.param("macOS", False, (1920, 1080), (1920, 1080), (0, 0), id="a computer, with the whole frame"),
    ],
)
def test_a_screenshot(sim: Simulator, device: str, turned: bool, size: Any, active: Any, corner: Any) -> None:
    sim.phone.device_type = device
    sim.phone.turn("Landscape", turned)
    shot = output(run_tool(sim, "screenshot", anything="ignored"))
    assert _picture(shot).size == (shot["width"], shot["height"]) == size
    assert (shot["active_width"], shot["active_height"]) == active
    assert (shot["active_area"]["X"], shot["active_area"]["Y"]) == corner
    assert (shot["source_width"], shot["source_height"], shot["format"]) == (1920, 1080, "jpeg")
    assert shot["size"] == len(base64.b64decode(shot["data"]))


def test_a_tap_opens_the_app_under_it_and_shows_rings(sim: Simulator) -> None:
    done = output(run_tool(sim, "touch_gesture", type="tap", point=NOTES_ICON))
    assert sim.phone.app == "Notes"
    assert (done["action_output"], done["screen_changed"], done["screen_stable"]) == ("ok", True, True)
    assert done["stable_wait_ms"] >= 250
    x, y = 384 * 497 // 1000, 330 * 1079 // 1000
    ring = [_picture(done).convert("RGB").getpixel((x + step, y)) for step in range(8, 20)]
    assert any(isinstance(spot, tuple) and spot[0] > 180 and spot[1] < 120 for spot in ring), "no red ring"


def test_waiting_for_a_stable_screen_skips_the_animation_but_does_not_wait_for_ever(sim: Simulator) -> None:
    """The picture taken at once is on its way; the one that was waited for is the app's."""
    sim.phone.show("Settings")
    early = output(run_tool(sim, "screenshot"))["data"]
    stable = output(run_tool(sim, "wait_for_stable_screen"))
    assert (stable["ok"], stable["stable"]) == (True, True)
    assert stable["data"] != early
    assert stable["data"] == output(run_tool(sim, "screenshot"))["data"]
    sim.phone.show("Notes")
    sim.phone.animate(60)
    assert output(run_tool(sim, "wait_for_stable_screen", timeout_ms=9))["elapsed_ms"] >= 250


# Calls, one after the other, then the app on the screen and the text in its field.
EFFECTS = [
    pytest.param([("open_app", {"app": "notes"}), ("enter_text", {"text": "Grüße 日本", "focus": NOTES_FIELD})], "Notes", "Grüße 日本", id="text goes into the field that was named"),
    pytest.param([("open_url", {"url": "https://example.com"})], "Browser", "https://example.com", id="an address opens in the browser"),
    pytest.param([("open_app", {"app": "Settings"}), ("touch_gesture", {"type": "swipe", "start": {"x": 500, "y": 990}, "direction": "up"})], "Home", "", id="a swipe home"),
    pytest.param([("open_app", {"app": "Settings"}), ("touch_gesture", {"actions": [
        {"action": "touch_down", "point": {"x": "500", "y": 990}}, {"action": "move_to", "x": 500, "y": 600, "duration_ms": 40}, {"action": "touch_up"},
    ]})], "Home", "", id="a swipe in steps"),
    pytest.param([("open_app", {"app": "Settings"}), ("touch_gesture", {"type": "swipe", "start": CENTER, "direction": "down"})], "Settings", "", id="a scroll"),
    pytest.param([
        ("bridge_clipboard", CLIPBOARD), ("open_app", {"app": "Notes"}), ("touch_gesture", {"type": "tap", "point": NOTES_FIELD}), ("quick_action", {"action": "paste"}),
        ("keyboard_tap", {"keys": ["space"]}), ("keyboard_tap", {"keys": list("abc")}), ("keyboard_tap", {"keys": ["backspace"]}), ("keyboard_tap", {"keys": ["enter"]}),
        ("keyboard_tap", {"keys": ["shift", "a"]}),
    ], "Notes", "<from outside> ab\nA", id="keys write, erase and paste what the bridge brought"),
]  # fmt: skip


@pytest.mark.parametrize(("calls", "app", "text"), EFFECTS)
def test_tools_move_the_phone(sim: Simulator, calls: list[tuple[str, dict[str, Any]]], app: str, text: str) -> None:
    for tool, given in calls:
        assert run_tool(sim, tool, **given)["is_error"] is False
    assert (sim.phone.app, sim.phone.text) == (app, text)


def test_a_drag_spans_two_calls(sim: Simulator) -> None:
    run_tool(sim, "open_app", app="Settings")
    run_tool(sim, "touch_gesture", type="drag_start", point={"x": 500, "y": 800})
    held = sim.phone.view()
    run_tool(sim, "touch_gesture", type="drag_release", point={"x": 500, "y": 500})
    assert (held.pressed, held.scroll) == ((500, 800), 0)
    assert (sim.phone.view().pressed, sim.phone.view().scroll) == (None, 300)


# What the output says in JSON, the picture's object around it where a tool has one.
SAYS = [
    pytest.param("enter_text", {"text": "hello", "focus": CENTER}, {"ok": False}, id="text without a field is a soft failure"),
    pytest.param("open_app", {"app": "Chess"}, {"ok": False, "target": "Chess", "vlm_calls": 2}, id="an app that is not there"),
    pytest.param("open_url", {"url": "https://example.com"}, {"ok": True, "method": "open_url", "target": "https://example.com"}, id="an address"),
    pytest.param("bridge_clipboard", {"action": "read"}, {"ok": True, "text": ""}, id="the clipboard"),
    pytest.param("quick_action", {"action": "list"}, {"ok": True, "platform": "ios"}, id="the quick actions"),
]  # fmt: skip


@pytest.mark.parametrize(("tool", "given", "says"), SAYS)
def test_a_tool_says_how_it_went(sim: Simulator, tool: str, given: dict[str, Any], says: dict[str, Any]) -> None:
    response = run_tool(sim, tool, **given)
    told = output(response)
    told = json.loads(told["action_output"]) if "action_output" in told else told
    assert response["is_error"] is False
    assert says.items() <= told.items()


def test_the_search_opens_apps_without_a_bridge(sim: Simulator) -> None:
    sim.phone.bridge_connected = False
    response = ask(sim.agent_url, "POST", "/api/tools/open_app", b'{"raw_input": "Maps"}').json  # a bare word is an app
    assert json.loads(output(response)["action_output"])["vlm_calls"] == 2
    assert response["duration_ms"] >= 2000
    assert sim.phone.app == "Maps"


BAD, SWIPE = "invalid_arguments", {"type": "swipe", "start": CENTER}
WRONG = [
    pytest.param("touch_gesture", {}, BAD, "type is required", id="no gesture"),
    pytest.param("touch_gesture", {"type": "tap"}, BAD, "point is required for tap", id="no point"),
    pytest.param("touch_gesture", {"type": ["tap"]}, BAD, "unsupported gesture type: \"['tap']\"", id="a type that is no text"),
    pytest.param("touch_gesture", {"type": "swipe"}, BAD, "start is required for swipe", id="no start"),
    pytest.param("touch_gesture", SWIPE, BAD, "end or direction is required for swipe", id="no end"),
    pytest.param("touch_gesture", {**SWIPE, "end": CENTER, "direction": "up"}, BAD, "swipe accepts either end or direction, not both", id="two ends"),
    pytest.param("touch_gesture", {**SWIPE, "direction": "up", "duration_ms": 0}, BAD, "duration_ms must be in range [1, 10000]", id="no duration"),
    pytest.param("touch_gesture", {"type": "tap", "point": CENTER, "hold_ms": "x"}, BAD, "hold_ms must be in range [0, 60000]", id="a hold that is no number"),
    pytest.param("touch_gesture", {"actions": [{"action": "wait", "ms": 1}]}, BAD, "actions must end with touch_up", id="a finger left down"),
    pytest.param("touch_gesture", {"type": "drag_release", "point": CENTER}, BAD, "drag_release needs a drag_start before it", id="no drag"),
    pytest.param("keyboard_tap", {}, BAD, "keys array is required", id="no keys"),
    pytest.param("enter_text", {"text": " ", "focus": CENTER}, BAD, '{"ok":false,"suggestion":"text is required"}', id="no text"),
    pytest.param("open_app", {}, BAD, "app is required", id="no app"),
    pytest.param("open_app", {"app": "https://a.b"}, BAD, "app must be an app name or alias; use open_url for HTTP/HTTPS URLs", id="an address as app"),
    pytest.param("open_url", {"url": "ftp://x"}, BAD, "url must start with http:// or https://", id="another scheme"),
    pytest.param("bridge_clipboard", {"action": "x"}, BAD, 'unknown action "x", expected "read" or "write"', id="an unknown clipboard action"),
    pytest.param("quick_action", {"action": "quit_app"}, "quick_action_reserved", "quick action quit_app is reserved on ios", id="a reserved quick action"),
    pytest.param("quick_action", {"action": "hom"}, "quick_action_unknown", "unknown quick action: hom", id="an unknown quick action"),
    pytest.param("mouse_move", {}, "tool_not_simulated", "mouse_move is not simulated", id="a tool that no board forwards"),
    pytest.param("shell", {"command": "warn no; exit 3"}, None, "Stderr:\nno; exit 3\n", id="words on stderr"),
    pytest.param("shell", {"command": "dance"}, "tool_execution_failed", "Error: exit status 127\nStderr:\nsh: 1: dance: not found", id="an unknown command"),
    pytest.param("shell", {"command": "sleep 9", "timeout": 2}, "deadline_exceeded", "Error: command timed out after 2 seconds", id="a command over its time"),
    pytest.param("shell", {"command": "true"}, None, "(no output)", id="a silent command"),
]  # fmt: skip


@pytest.mark.parametrize(("tool", "given", "code", "message"), WRONG)
def test_a_tool_says_what_is_wrong(sim: Simulator, tool: str, given: dict[str, Any], code: str | None, message: str) -> None:  # fmt: skip
    response = run_tool(sim, tool, **given)
    assert (response["output"], response["is_error"]) == (message, code is not None)
    assert response.get("tool_error", {}).get("code") == code
    assert response.get("error", message) == message


ODD: list[Any] = [None, True, -1, 1.5, "x", "\ud800", [], [[]], {}, {"x": 1}, [{"action": []}], {"x": [], "y": "nan"}, 10**30]  # fmt: skip


@pytest.mark.parametrize("tool", ROWS)
def test_odd_arguments_are_answered_like_any(sim: Simulator, tool: str) -> None:
    """The Agent does not check against its schemas, so every tool meets every kind of value; none may break."""
    for key in ROWS[tool].schema["properties"]:
        for odd in ODD:
            given = {**ROWS[tool].example, key: odd}
            assert run_tool(sim, tool, **given)["tool"]["name"] == tool


def test_a_background_command_is_polled_and_stopped(sim: Simulator) -> None:
    name = output(run_tool(sim, "shell", command="echo hi", background=True))["session_id"]
    assert output(run_tool(sim, "shell", action="poll", session_id=name))["output"] == "hi\n"
    assert output(run_tool(sim, "shell", action="stop", session_id=name))["stopped"] is True
    assert run_tool(sim, "shell", action="poll", session_id=name)["is_error"] is True


def test_a_seed_and_a_clock_decide_everything() -> None:
    """Two boards with the same seed answer the same bytes; another seed looks different."""
    responses = []
    for seed in (7, 7, 9):
        with new_board(seed=seed) as board:
            shot = run_tool(board, "touch_gesture", type="tap", point=CENTER)
            responses.append((shot, board.phone.view()))
    assert responses[0] == responses[1]
    assert responses[0][1] != responses[2][1]
    with pytest.raises(ValueError, match="go together"):
        Simulator(clock=lambda: 0.0)
