"""The Agent's catalog: every tool it lists, the steps around it, and the two replies that are no tool."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from mcpboard.simulator.board.go_http import go_json
from mcpboard.simulator.phone.view import APPS

COORDINATE = {"type": "number", "minimum": 0, "maximum": 1000}
POINT = {
    "type": "object",
    "additionalProperties": False,
    "properties": {"x": COORDINATE, "y": COORDINATE},
    "required": ["x", "y"],
}
TEXT = {"type": "string"}
FLAG = {"type": "boolean"}


def _shape(required: tuple[str, ...] = (), **properties: Any) -> dict[str, Any]:
    shape: dict[str, Any] = {"type": "object", "additionalProperties": False, "properties": properties}
    return {**shape, "required": list(required)} if required else shape


def _whole(low: int, high: int | None = None) -> dict[str, Any]:
    return {"type": "integer", "minimum": low} | ({} if high is None else {"maximum": high})


_STROKE = _shape(
    ("action",),
    action={"type": "string", "enum": ["touch_down", "move_to", "wait", "touch_up"]},
    point=POINT, x=COORDINATE, y=COORDINATE, ms=_whole(0, 30000), duration_ms=_whole(0, 30000),
    speed={"type": "number"}, button=TEXT,
)  # fmt: skip
_GESTURE = _shape(
    type={"type": "string", "enum": ["tap", "double_tap", "long_press", "swipe", "drag_start", "drag_release"]},
    point=POINT, start=POINT, end=POINT,
    direction={"type": "string", "enum": ["up", "down", "left", "right"]},
    button={"type": "string", "enum": ["left", "right", "middle"]},
    hold_ms=_whole(0), speed={"type": "number", "exclusiveMinimum": 0}, duration_ms=_whole(1, 10000),
    hold_before_ms=_whole(0, 10000), hold_after_ms=_whole(0, 10000), steps=_whole(1, 1000),
    actions={"type": "array", "minItems": 1, "maxItems": 128, "items": _STROKE},
) | {"anyOf": [{"required": ["actions"]}, {"required": ["type"]}]}  # fmt: skip
_SHELL = _shape(
    command=TEXT, timeout=_whole(1, 300), workdir=TEXT, background=FLAG, pty=FLAG,
    action={"type": "string", "enum": ["start", "poll", "write", "submit", "send_keys", "resize", "stop"]},
    session_id=TEXT, input=TEXT, keys={"type": "array", "items": TEXT},
    rows=_whole(1), cols=_whole(1), bytes=_whole(1, 100000),
)  # fmt: skip
_KEYS = {"type": "array", "items": TEXT, "minItems": 1, "maxItems": 6, "examples": [["enter"], ["ctrl", "c"]]}


@dataclass(frozen=True)
class AgentTool:
    """One listed tool. `wrap`: the post-action object, "full", "short" (no stability wait) or None.

    `hid` runs take the one mutex of the input devices; `detached` ones outlive their caller's socket.
    """

    name: str
    category: str
    description: str
    example: Mapping[str, Any]
    schema: Mapping[str, Any]
    wrap: str | None = None
    hid: bool = False
    detached: bool = False

    def entry(self, *, schema: bool = True) -> dict[str, Any]:
        """Return the catalog entry, as listed and as repeated in every response."""
        entry: dict[str, Any] = {
            "name": self.name,
            "category": self.category,
            "description": self.description,
            "input_mode": "json",
            "example_input": go_json(self.example),
        }
        if schema:
            entry["args_schema"] = self.schema
        return {**entry, "http": {"method": "POST", "path": f"/api/tools/{self.name}"}}


_ROWS = (
    AgentTool("bridge_clipboard", "bridge", "Read or write the phone's clipboard over the bridge.", {"action": "read"},
        _shape(("action",), action={"type": "string", "enum": ["read", "write"]}, text=TEXT)),
    AgentTool("enter_text", "input", "Focus a field and enter text into it.",
        {"text": "hello", "focus": {"x": 500, "y": 300}}, _shape(("text", "focus"), text=TEXT, focus=POINT),
        wrap="short", hid=True, detached=True),
    AgentTool("keyboard_tap", "input", "Press one key or a chord.", {"keys": ["enter"]}, _shape(("keys",), keys=_KEYS),
        wrap="full", hid=True, detached=True),
    AgentTool("keyboard_text", "input", "Type ASCII text on the keyboard.", {"text": "hello"},
        _shape(("text",), text=TEXT), wrap="full", hid=True, detached=True),
    AgentTool("mouse_move", "input", "Move the pointer.", {"x": 500, "y": 500}, POINT,
        wrap="full", hid=True, detached=True),
    AgentTool("mouse_scroll", "input", "Turn the wheel.", {"delta": -3}, _shape(("delta",), delta={"type": "integer"}),
        wrap="full", hid=True, detached=True),
    AgentTool("open_app", "bridge", "Open an app by its name.", {"app": "Settings"},
        _shape(("app",), app=TEXT, name=TEXT), wrap="full", detached=True),
    AgentTool("open_url", "bridge", "Open a web address on the phone.", {"url": "https://example.com"},
        _shape(("url",), url=TEXT), wrap="full"),
    AgentTool("quick_action", "input", "Run a named shortcut of the phone; \"list\" names them.", {"action": "home"},
        _shape(("action",), action=TEXT, alternative=FLAG, alternative_index=_whole(1)),
        wrap="full", hid=True, detached=True),
    AgentTool("run_script", "input", "Run several input steps in one call.", {"steps": []},
        _shape(("steps",), steps={"type": "array", "items": {"type": "object"}}), hid=True, detached=True),
    AgentTool("screenshot", "observation", "Take a picture of the screen.", {}, _shape()),
    AgentTool("shell", "system", "Run a command on the board.", {"command": "pwd"}, _SHELL),
    AgentTool("touch_gesture", "input", "Tap, press, swipe or drag; places run from 0 to 1000 & scale with the screen.",
        {"type": "tap", "point": {"x": 500, "y": 500}}, _GESTURE, wrap="full", hid=True, detached=True),
    AgentTool("wait_for_stable_screen", "observation", "Wait until the screen stands still, then take a picture.", {},
        _shape()),
)  # fmt: skip

ROWS: Mapping[str, AgentTool] = {row.name: row for row in _ROWS}  # sorted by name, as the Agent lists them


def bridge_status(*, connected: bool, platform: str, device_type: str, heartbeat: str, battery: int) -> dict[str, Any]:
    """Return the phone-bridge status; with no phone only what is configured."""
    configured = {"connected": connected, "platform": platform, "device_type": device_type, "pointer_mode": "absolute"}
    if not connected:
        return configured
    return configured | {
        "phone_id": "simulated-phone",
        "hid_connection_id": "simulated-board",
        "last_heartbeat_at": heartbeat,
        "app_state": "active",
        "app_state_updated_at": heartbeat,
        "return_entry": "",
        "return_entry_available": False,
        "environment": {
            "captured_at": heartbeat,
            "platform": platform,
            "system_name": device_type,
            "locale": "en_GB",
            "uses_24_hour_clock": True,
            "model": "Simulated Phone",
            "device_name": "Simulated phone",
            "screen": {"width_pixels": 1179, "height_pixels": 2556, "scale": 3},
            "battery": {"level": battery / 100, "charging": True, "state": "charging"},
            "available_apps": [
                {"name": app.name, "available": True, "category": "system", "availability_source": "simulated"}
                for app in APPS
            ],
        },
    }


def device_status(device_type: str, port: int) -> dict[str, Any]:
    """Return Config Web's status of a board that is well; nine firmware keys, as without an update."""
    return {
        "ok": True,
        "device_type": device_type,
        "agent_status": {
            "state": "running", "watchdog_running": True, "watchdog_pid": 211, "process_running": True, "pid": 223,
            "addr": f":{port}", "port_host": "127.0.0.1", "port": port, "public_port": port, "port_reachable": True,
            "port_detail": "connected", "detail": "agent is running", "startup_error": "",
        },
        "firmware": {
            "version": "0.9.0", "build_time": "2026-05-18T00:00:00Z", "phase": "", "current_version": "0.9.0",
            "current_build_time": "2026-05-18T00:00:00Z", "running_slot": "a", "target_slot": "b",
            "health_status": "", "health_error": "",
        },
        "usb_hid": {"keyboard": True, "pointer": True, "ecm": True},
        "capabilities": {"wifi": True, "ota": True, "storage": True, "usb_hid": True},
    }  # fmt: skip
