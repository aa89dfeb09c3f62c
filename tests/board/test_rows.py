"""The allowlist against a table written apart from it, and what clients demand of every listed tool."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest

from mcpboard.board import INSTRUCTIONS
from mcpboard.board.forward import LANE_CAPACITY
from mcpboard.board.tools import ROWS, TOOLS, BoardTool, allowed
from mcpboard.errors import BadArgument
from mcpboard.protocol.tools import check_arguments, compact

# Tool, backend, call, seconds, lane: agreed on with the board's makers, in this order.
# Then what an action does: it may destroy (D), may be repeated (R), reaches the open world (O).
TABLE = """
phone_bridge_status     agent       GET  /api/phone-bridge/status             10  status          -
screenshot              agent       POST /api/tools/screenshot                40  observation     -
wait_for_stable_screen  agent       POST /api/tools/wait_for_stable_screen    55  observation     -
touch_gesture           agent       POST /api/tools/touch_gesture            310  input           D-O
enter_text              agent       POST /api/tools/enter_text               310  input           D-O
keyboard_tap            agent       POST /api/tools/keyboard_tap             310  input           D-O
open_app                agent       POST /api/tools/open_app                 310  input           -RO
open_url                agent       POST /api/tools/open_url                  90  input           --O
quick_action            agent       POST /api/tools/quick_action             310  input           D-O
bridge_clipboard        agent       POST /api/tools/bridge_clipboard          60  input           DR-
shell                   agent       POST /api/tools/shell                    310  shell           D-O
device_status           config_web  GET  /api/device/status                   10  status          -
support_bundle          config_web  GET  /api/logs/support                    70  support_bundle  -
"""


def told(row: BoardTool) -> list[str]:
    hints = dict(row.tool.annotations)
    names = {"destructiveHint": "D", "idempotentHint": "R", "openWorldHint": "O"}
    does = "".join(letter if hints[name] else "-" for name, letter in names.items()) if len(hints) > 2 else "-"
    assert hints["readOnlyHint"] is (does == "-")
    return [row.tool.name, row.backend, row.method, row.path, f"{row.deadline_s:.0f}", row.lane, does]


def test_the_rows_are_the_table_in_its_order() -> None:
    assert [told(row) for row in ROWS] == [line.split() for line in TABLE.strip().splitlines()]
    assert {row.lane for row in ROWS} == LANE_CAPACITY.keys()


def test_without_the_switch_shell_does_not_exist() -> None:
    assert [row.tool.name for row in ROWS if row not in allowed(shell=False)] == ["shell"]
    assert allowed(shell=True) == ROWS


def _schemas(schema: Any) -> Iterator[dict[str, Any]]:
    yield schema
    for rule in [*schema.get("properties", {}).values(), *([schema["items"]] if "items" in schema else [])]:
        yield from _schemas(rule)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.tool.name)
def test_no_client_has_a_reason_to_drop_the_tool(row: BoardTool) -> None:
    """Roots are plain objects; no combinator, reference or list of types anywhere; everything says what it is."""
    tool, root = row.tool, row.tool.input_schema
    assert re.fullmatch(r"[a-z0-9_]{1,25}", tool.name)
    assert tool.title and 0 < len(tool.description) < 1024
    assert (root["type"], root["additionalProperties"]) == ("object", False)
    inner = list(_schemas(root))
    assert all(schema["description"] for schema in inner[1:])
    for schema in inner:
        assert isinstance(schema["type"], str)
        assert not {"anyOf", "oneOf", "allOf", "not", "if", "$ref", "$defs", "definitions"} & schema.keys()
        properties = schema.get("properties", {})
        assert all(re.fullmatch(r"[a-z0-9_]{1,25}", name) for name in properties)
        assert set(schema.get("required", ())) <= properties.keys()
        if "x" in properties:  # whoever has to send it is told how far it runs
            assert "normalized: x and y run from 0 to 1000" in tool.description


@pytest.mark.parametrize(("name", "words"), [
    *((name, ["screenshot taken after the action"]) for name in ("touch_gesture", "enter_text", "keyboard_tap", "quick_action")),
    ("support_bundle", ["UNREDACTED", "prompts", "logs", "tar", "three files", "one at a time"]),
])  # fmt: skip
def test_what_comes_back_is_said(name: str, words: list[str]) -> None:
    assert all(word in TOOLS[name].description for word in words)


def test_the_list_and_the_instructions_stay_small() -> None:
    """A model reads them at every start, before every conversation; bytes."""
    assert len(compact([row.tool.listed() for row in allowed(shell=False)])) < 11_600
    assert len(INSTRUCTIONS.encode()) <= 1024
    actions = (row.tool.name for row in ROWS if row.lane == "input")
    assert all(word in INSTRUCTIONS for word in ("0 to 1000", "delivery", *actions))


POINT = {"x": 500, "y": 500}


@pytest.mark.parametrize(("name", "arguments", "field"), [
    pytest.param("touch_gesture", {"type": "tap", "point": POINT}, None, id="a tap"),
    pytest.param("touch_gesture", {"type": "tap", "point": {"x": "500", "y": 1e9}}, None, id="a tap in text, far out"),
    pytest.param("touch_gesture", {"actions": [{"action": "touch_down", "point": POINT}]}, None, id="a hand-made gesture"),
    pytest.param("enter_text", {"text": "", "focus": POINT}, None, id="no text"),
    pytest.param("open_app", {"app": "Settings", "name": "Settings"}, None, id="an alias we do not list"),
    pytest.param("screenshot", {}, None, id="nothing"),
    pytest.param("touch_gesture", {"type": "tap", "point": {"x": 500}}, "point.y", id="half a point"),
    pytest.param("touch_gesture", {"type": "tap", "point": {"x": True, "y": 1}}, "point.x", id="a boolean place"),
    pytest.param("enter_text", {"text": "hi"}, "focus", id="no focus"),
    pytest.param("keyboard_tap", {"keys": "enter"}, "keys", id="keys as text"),
])  # fmt: skip
def test_arguments_pass_a_light_check_and_bad_ones_are_named(name: str, arguments: dict[str, Any], field: str | None) -> None:  # fmt: skip
    if field is None:
        return check_arguments(TOOLS[name].input_schema, arguments)
    with pytest.raises(BadArgument, match=re.escape(field)):
        check_arguments(TOOLS[name].input_schema, arguments)
    return None
