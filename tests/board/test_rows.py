"""The allowlist against a table written apart from it, and what clients demand of every listed tool."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest

from mcpboard.board import INSTRUCTIONS
from mcpboard.board.forward import LANE_CAPACITY
from mcpboard.board.tools import INPUT, ROWS, SHELL, BoardTool, allowed
from mcpboard.errors import BadArgument
from mcpboard.protocol.tools import check_arguments, compact

# Tool, backend, call, seconds, lane: agreed on with the board's makers, in this order.
TABLE = """
phone_bridge_status     agent       GET  /api/phone-bridge/status             10  status
screenshot              agent       POST /api/tools/screenshot                40  observation
wait_for_stable_screen  agent       POST /api/tools/wait_for_stable_screen    55  observation
touch_gesture           agent       POST /api/tools/touch_gesture            310  input
enter_text              agent       POST /api/tools/enter_text               310  input
keyboard_tap            agent       POST /api/tools/keyboard_tap             310  input
open_app                agent       POST /api/tools/open_app                 310  input
open_url                agent       POST /api/tools/open_url                  90  input
quick_action            agent       POST /api/tools/quick_action             310  input
bridge_clipboard        agent       POST /api/tools/bridge_clipboard          60  input
shell                   agent       POST /api/tools/shell                    310  shell
device_status           config_web  GET  /api/device/status                   10  status
support_bundle          config_web  GET  /api/logs/support                    70  support_bundle
"""
ACTIONS = [
    "touch_gesture",
    "enter_text",
    "keyboard_tap",
    "open_app",
    "open_url",
    "quick_action",
    "bridge_clipboard",
    "shell",
]

each_row = pytest.mark.parametrize("row", ROWS, ids=lambda row: row.tool.name)


def test_the_rows_are_the_table_in_its_order() -> None:
    ours = [[row.tool.name, row.backend, row.method, row.path, f"{row.deadline_s:.0f}", row.lane] for row in ROWS]
    assert ours == [line.split() for line in TABLE.strip().splitlines()]


def test_every_lane_has_its_slots() -> None:
    assert {row.lane for row in ROWS} == LANE_CAPACITY.keys()


def test_without_the_switch_shell_does_not_exist() -> None:
    assert [row.tool.name for row in ROWS if row not in allowed(shell=False)] == ["shell"]
    assert allowed(shell=True) == ROWS


def test_input_and_shell_are_the_actions() -> None:
    assert [row.tool.name for row in ROWS if row.lane in (INPUT, SHELL)] == ACTIONS


def _schemas(schema: Any) -> Iterator[dict[str, Any]]:
    yield schema
    for rule in [*schema.get("properties", {}).values(), *([schema["items"]] if "items" in schema else [])]:
        yield from _schemas(rule)


@each_row
def test_no_client_has_a_reason_to_drop_the_schema(row: BoardTool) -> None:
    """Roots are plain objects; no combinator, reference or list of types anywhere."""
    root = row.tool.input_schema
    assert root["type"] == "object"
    assert root["additionalProperties"] is False
    for schema in _schemas(root):
        assert isinstance(schema["type"], str)
        assert not {"anyOf", "oneOf", "allOf", "not", "if", "$ref", "$defs", "definitions"} & schema.keys()
        if schema["type"] == "object":
            assert all(re.fullmatch(r"[a-z0-9_]{1,25}", name) for name in schema["properties"])
            assert set(schema.get("required", ())) <= schema["properties"].keys()


@each_row
def test_every_tool_and_property_says_what_it_is(row: BoardTool) -> None:
    assert row.tool.title
    assert all(schema["description"] for schema in list(_schemas(row.tool.input_schema))[1:])


@each_row
def test_names_and_descriptions_keep_the_clients_limits(row: BoardTool) -> None:
    assert re.fullmatch(r"[a-z0-9_]{1,25}", row.tool.name)
    assert 0 < len(row.tool.description) < 1024


@each_row
def test_the_unit_is_named_where_places_are_given(row: BoardTool) -> None:
    """Whoever has to send x and y is told that they run from 0 to 1000."""
    if any("x" in schema.get("properties", ()) for schema in _schemas(row.tool.input_schema)):
        assert "normalised" in row.tool.description
        assert "0 to 1000" in row.tool.description


@pytest.mark.parametrize("name", ["touch_gesture", "enter_text", "keyboard_tap", "quick_action"])
def test_actions_say_that_a_screenshot_comes_back(name: str) -> None:
    assert "screenshot taken after the action" in _row(name).tool.description


def test_the_bundle_says_what_it_gives_away() -> None:
    description = _row("support_bundle").tool.description
    for word in ("UNREDACTED", "prompts", "logs", "tar", "three files", "one at a time"):
        assert word in description


@each_row
def test_hints_tell_looking_from_acting(row: BoardTool) -> None:
    hints, acts = row.tool.annotations, row.tool.name in ACTIONS
    assert hints["readOnlyHint"] is not acts
    assert acts == ("destructiveHint" in hints)


def test_hints_of_the_actions_are_honest() -> None:
    harmless = [name for name in ACTIONS if not _row(name).tool.annotations["destructiveHint"]]
    repeatable = [name for name in ACTIONS if _row(name).tool.annotations["idempotentHint"]]
    assert harmless == ["open_app", "open_url"]
    assert repeatable == ["open_app", "bridge_clipboard"]


def test_the_list_stays_small() -> None:
    """A list is read by the model at every start; the target is 12 kB for the whole answer."""
    assert len(compact([row.tool.listed() for row in allowed(shell=False)])) < 11_600


def test_the_instructions_stay_small_and_say_how_to_drive_a_phone() -> None:
    """Clients put them before every conversation, too."""
    assert len(INSTRUCTIONS.encode()) <= 1024  # bytes
    assert all(
        word in INSTRUCTIONS for word in ("0 to 1000", "delivery", *(word for word in ACTIONS if word != "shell"))
    )


POINT = {"x": 500, "y": 500}


@pytest.mark.parametrize(("name", "arguments"), [
    pytest.param("touch_gesture", {"type": "tap", "point": POINT}, id="a tap"),
    pytest.param("touch_gesture", {"type": "tap", "point": {"x": "500", "y": 1e9}}, id="a tap in text, far out"),
    pytest.param("touch_gesture", {"actions": [{"action": "touch_down", "point": POINT}]}, id="a hand-made gesture"),
    pytest.param("enter_text", {"text": "", "focus": POINT}, id="no text"),
    pytest.param("keyboard_tap", {"keys": ["enter"]}, id="a key"),
    pytest.param("open_app", {"app": "Settings", "name": "Settings"}, id="an app with an alias we do not list"),
    pytest.param("quick_action", {"action": "list"}, id="the list of quick actions"),
    pytest.param("shell", {"command": "pwd"}, id="a command"),
    pytest.param("screenshot", {}, id="nothing"),
])  # fmt: skip
def test_good_arguments_pass_the_light_check(name: str, arguments: dict[str, Any]) -> None:
    check_arguments(_row(name).tool.input_schema, arguments)


@pytest.mark.parametrize(("name", "arguments", "field"), [
    pytest.param("touch_gesture", {"type": "tap", "point": {"x": 500}}, "point.y", id="half a point"),
    pytest.param("touch_gesture", {"type": "tap", "point": {"x": True, "y": 1}}, "point.x", id="a boolean place"),
    pytest.param("enter_text", {"text": "hi"}, "focus", id="no focus"),
    pytest.param("keyboard_tap", {"keys": "enter"}, "keys", id="keys as text"),
    pytest.param("open_url", {}, "url", id="no address"),
])  # fmt: skip
def test_bad_arguments_are_named(name: str, arguments: dict[str, Any], field: str) -> None:
    with pytest.raises(BadArgument, match=re.escape(field)):
        check_arguments(_row(name).tool.input_schema, arguments)


def test_rows_can_be_listed_as_json() -> None:
    assert json.loads(compact([row.tool.listed() for row in ROWS]))[0]["name"] == "phone_bridge_status"


def _row(name: str) -> BoardTool:
    return next(row for row in ROWS if row.tool.name == name)
