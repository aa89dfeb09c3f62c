"""The tools as a model reads them: title, description, hints and the built-in schema.

A description says what the tool is for, what the reply holds, and in which unit places on the
screen are given: everything that the schema cannot say.

The built-in schemas count while the Agent does not say what a tool takes, or says it unusably.
They are plain on purpose, because one odd schema makes some clients drop a tool or a whole list:
the root is a bare object with `properties`, and there is no combinator, no reference and no list of
types. Limits are told for the model's sake; enforcing them is the Agent's business.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mcpboard.protocol.tools import Tool

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

# --- titles, hints and descriptions ----------------------------------------------------------

Hints = Mapping[str, Any]

# Looking changes nothing, and reaches no further than the board and its phone.
LOOKS: Hints = {"readOnlyHint": True, "openWorldHint": False}


def _acts(*, destroys: bool, idempotent: bool = False, open_world: bool = True) -> Hints:
    return {
        "readOnlyHint": False,
        "destructiveHint": destroys,
        "idempotentHint": idempotent,
        "openWorldHint": open_world,
    }


# Whether a touch, a key or a typed line deletes, sends or buys something is for the screen to
# say, not for us: the honest hint is that it may, and that twice is not the same as once.
TOUCHES = _acts(destroys=True)

_UNIT = (
    "Places are normalised: x and y run from 0 to 1000, (0,0) top left, (1000,1000) bottom right, "
    "whatever the pixels of the picture. "
)
_AFTERWARDS = "The reply holds a screenshot taken after the action, and a text with action_output and screen_changed. "


def _tool(name: str, title: str, hints: Hints, *description: str) -> Tool:
    return Tool(name, title, "".join(description).strip(), SCHEMAS[name], hints)


_ALL = (
    _tool(
        "phone_bridge_status",
        "Phone link status",
        LOOKS,
        "Tells whether the companion app on the phone is linked to the board, and what it says of the phone: "
        "platform, pointer mode, app state, screen, battery, installed apps. open_url and bridge_clipboard need "
        "the link (connected true); touch, keys and screenshots work without it. The reply is JSON.",
    ),
    _tool(
        "screenshot",
        "Screenshot",
        LOOKS,
        "Takes a picture of the phone's screen as it is now. The reply holds the picture, and a text with its size "
        "in pixels and bytes. To touch what is at pixel (px,py), convert to the 0-1000 scale: x=px*1000/(width-1), "
        "y=py*1000/(height-1).",
    ),
    _tool(
        "wait_for_stable_screen",
        "Wait for a stable screen",
        LOOKS,
        "Waits a few seconds at most until the screen stops changing, then takes a picture. The reply holds the "
        "picture, and a text with stable and elapsed_ms; stable false means that something still moves, and is no "
        "error. Pixels convert to the 0-1000 scale as for screenshot.",
    ),
    _tool(
        "touch_gesture",
        "Touch gesture",
        TOUCHES,
        "Touches the phone: tap, double_tap and long_press take point; swipe takes start and either end or direction; "
        "drag_start presses and keeps holding until drag_release. ",
        _UNIT,
        _AFTERWARDS,
        "In that picture a red ring marks where it touched. screen_changed false means that nothing visible happened.",
    ),
    _tool(
        "enter_text",
        "Enter text",
        TOUCHES,
        "Touches the input field at focus and enters text there, in any script; may take minutes. ",
        _UNIT,
        _AFTERWARDS,
        "When it fails, the reply says why and what to try instead; look at the field before trying again.",
    ),
    _tool(
        "keyboard_tap",
        "Press keys",
        TOUCHES,
        "Presses keys together, once, as on a keyboard plugged into the phone: one key, or a chord such as ctrl and c. "
        "For text use enter_text. ",
        _AFTERWARDS,
    ),
    _tool(
        "open_app",
        "Open app",
        # Opening what is open leaves it open, and closes nothing.
        _acts(destroys=False, idempotent=True),
        "Opens an app by its name, through the companion app or by searching on the screen (tens of seconds). Success "
        "means that the phone accepted the launch: check the picture. The reply holds JSON with ok, method or steps, "
        "and on newer boards a screenshot taken after the action.",
    ),
    _tool(
        "open_url",
        "Open web address",
        # A page more; every call opens it anew.
        _acts(destroys=False),
        "Opens an http or https address on the phone, through the companion app, which must be linked "
        "(phone_bridge_status). The reply holds JSON with ok and target, and on newer boards a screenshot taken after "
        "the action; otherwise take one to see the page.",
    ),
    _tool(
        "quick_action",
        "Quick action",
        TOUCHES,
        "Does a named system action, such as home, back, app_switch, notification_center, copy, paste or undo. The "
        "action list names all that this phone knows. ",
        _AFTERWARDS,
    ),
    _tool(
        "bridge_clipboard",
        "Phone clipboard",
        # A write replaces what was there, and twice the same write is one write.
        _acts(destroys=True, idempotent=True, open_world=False),
        "Reads or writes the phone's clipboard through the companion app, which must be linked (phone_bridge_status). "
        "The reply is JSON: ok, and for read the text, unchanged to the last line break. No screenshot comes with it.",
    ),
    _tool(
        "shell",
        "Shell on the board",
        _acts(destroys=True),
        "Runs a command on the board itself (not on the phone) with the Agent's rights, or with background a session "
        "to poll and write to. The reply is the output as text, at most 256 KiB of it; a command that exits "
        "non-zero is an error with its output. No screenshot comes with it.",
    ),
    _tool(
        "device_status",
        "Board status",
        LOOKS,
        "Tells how the board is: the Agent process, firmware versions and slots, USB keyboard, pointer and network, "
        "capabilities. The reply is JSON. For the link to the phone see phone_bridge_status.",
    ),
    _tool(
        "support_bundle",
        "Support bundle",
        LOOKS,
        "Fetches the board's logs for a person who looks into a problem. The reply holds a short text and an embedded "
        "resource, a gzip-compressed tar (application/gzip) of three files: langfuse.yaml, agent.log and the newest "
        "HTTP log of the language model. UNREDACTED: prompts, replies, tool inputs and logs are in it as they were, "
        "so share it only on purpose. Up to several MB; one at a time, a second call meanwhile is refused.",
    ),
)

TOOLS: Mapping[str, Tool] = {tool.name: tool for tool in _ALL}
