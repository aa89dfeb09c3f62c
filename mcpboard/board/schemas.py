"""The built-in input schemas: what a tool takes when the Agent does not say, or says it unusably.

Plain on purpose, because one odd schema makes some clients drop a tool or a whole list: the root
is a bare object with `properties`, and there is no combinator, no reference and no list of types.
Limits are told for the model's sake; enforcing them is the Agent's business.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

Schema = Mapping[str, Any]

MAX_COORDINATE = 1000  # right and bottom edge of the screen, whatever its pixels
MAX_STEPS = 128  # entries of a hand-made gesture


def _object(required: tuple[str, ...] = (), note: str = "", **properties: Schema) -> Schema:
    schema: dict[str, Any] = {"type": "object", "properties": properties, "additionalProperties": False}
    if note:
        schema["description"] = note
    if required:
        schema["required"] = list(required)
    return schema


def _plain(kind: str, note: str, **rules: Any) -> Schema:
    return {"type": kind, "description": note, **rules}


def _text(note: str, *choices: str) -> Schema:
    return _plain("string", note, **({"enum": list(choices)} if choices else {}))


def _coordinate(note: str) -> Schema:
    return _plain("number", note, minimum=0, maximum=MAX_COORDINATE)


def _point(note: str) -> Schema:
    return _object(
        ("x", "y"),
        f"{note}, normalised 0-{MAX_COORDINATE}",
        x=_coordinate("left to right"),
        y=_coordinate("top to bottom"),
    )


_BUTTON = _text("Mouse button, left by default", "left", "right", "middle")

_CONTACT = _object(
    ("action",),
    "One step of the finger",
    action=_text("What the finger does", "touch_down", "move_to", "wait", "touch_up"),
    point=_point("Where; for touch_down and move_to"),
    ms=_plain("integer", "Length of a wait in ms", minimum=0, maximum=30000),
    duration_ms=_plain("integer", "Length of a move in ms", minimum=0, maximum=30000),
    speed=_plain("number", "Speed of a move in units/s"),
)

_GESTURE = _object(
    type=_text(
        "Kind of gesture; leave out when actions is given",
        *("tap", "double_tap", "long_press", "swipe", "drag_start", "drag_release"),
    ),
    point=_point("Where; for tap, double_tap and long_press"),
    start=_point("Where a swipe or drag begins"),
    end=_point("Where it ends; not with direction"),
    direction=_text("Way of a swipe without end", "up", "down", "left", "right"),
    hold_ms=_plain("integer", "Length of a long_press in ms, 500 by default", minimum=0),
    duration_ms=_plain("integer", "Length of the movement in ms", minimum=1, maximum=10000),
    speed=_plain("number", "Speed of the movement in units/s, 2500 by default"),
    hold_before_ms=_plain("integer", "Rest before moving, in ms", minimum=0, maximum=10000),
    hold_after_ms=_plain("integer", "Rest before lifting, in ms", minimum=0, maximum=10000),
    button=_BUTTON,
    actions=_plain(
        "array",
        "A gesture made by hand instead of type; must end with touch_up",
        items=_CONTACT,
        minItems=1,
        maxItems=MAX_STEPS,
    ),
)

SCHEMAS: Mapping[str, Schema] = {
    "phone_bridge_status": _object(),
    "screenshot": _object(),
    "wait_for_stable_screen": _object(),
    "touch_gesture": _GESTURE,
    "enter_text": _object(
        ("text", "focus"),
        text=_text("The text to enter, in any script"),
        focus=_point("A point inside the input field"),
    ),
    "keyboard_tap": _object(
        ("keys",),
        keys=_plain(
            "array",
            'Keys pressed together, such as ["enter"] or ["ctrl","a"]',
            items=_text("Name of a key: a-z, 0-9, f1-f12, enter, escape, tab, ctrl, alt, KEYCODE_BACK ..."),
            minItems=1,
            maxItems=6,
        ),
    ),
    "open_app": _object(("app",), app=_text("Name of the app as people say it; no address")),
    "open_url": _object(("url",), url=_text("Address that starts with http:// or https://")),
    "quick_action": _object(
        ("action",),
        action=_text("Id such as home, back, app_switch, copy or paste; list names all of them"),
        platform=_text("Needed by older boards only", "ios", "android", "mac"),
        alternative=_plain("boolean", "Use the next way of doing it when the first had no effect"),
        alternative_index=_plain("integer", "Use this alternative, counted from 1", minimum=1),
    ),
    "bridge_clipboard": _object(
        ("action",),
        action=_text("read or write", "read", "write"),
        text=_text("What to write; may be empty; kept to the byte"),
    ),
    "shell": _object(
        command=_text("Command line; needed for a start"),
        timeout=_plain("integer", "Limit in seconds, 30 by default", minimum=1, maximum=300),
        workdir=_text("Directory to run in"),
        background=_plain("boolean", "Start a session and return at once"),
        pty=_plain("boolean", "Give the session a terminal"),
        action=_text(
            "What to do, start by default",
            *("start", "poll", "write", "submit", "send_keys", "resize", "stop"),
        ),
        session_id=_text("Session that the action is for"),
        input=_text("Text to write or submit"),
        keys=_plain("array", "Keys for send_keys", items=_text("Name of a key")),
        rows=_plain("integer", "Height of the terminal in lines", minimum=1),
        cols=_plain("integer", "Width of the terminal in columns", minimum=1),
        bytes=_plain("integer", "Most output to poll, in bytes", minimum=1, maximum=100000),
    ),
    "device_status": _object(),
    "support_bundle": _object(),
}
