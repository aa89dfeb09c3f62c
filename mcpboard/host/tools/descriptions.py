"""The specification of each tool of the host, as a model reads it: title, description, hints and schema."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mcpboard.protocol.tools import Tool

LOOKS: Mapping[str, Any] = {"readOnlyHint": True, "openWorldHint": False}
# The screen says, and nothing else, whether a touch deletes, sends or buys something.
ACTS: Mapping[str, Any] = {
    "readOnlyHint": False,
    "destructiveHint": True,
    "idempotentHint": False,
    "openWorldHint": True,
}

PIXELS = (
    "Coordinates are pixels of the screenshot that take_screenshot returned for this device, (0,0) top left; a place "
    "outside the screenshot is refused. "
)
LEASE = (
    "The first call takes the device for you: others are told that it is busy until your session ends or 60 seconds "
    "pass without a call. "
)
ONCE = "It is done once and never repeated by itself: look with take_screenshot before you do it again. "

INSTRUCTIONS = """\
You see and drive one or more phones. list_devices names them; with a single device, device_id may be left out. \
Look first: take_screenshot returns a screenshot. Coordinates of every tool are pixels of that screenshot, from its \
top left corner, whatever kind of device it is. Act with tap, swipe, input_text and launch_app, then look again. \
The first call on a device takes it for you until your session ends or 60 seconds pass without a call; the error \
"device X is busy" means that somebody else is using it: wait, or use another device. Never repeat an action blindly.\
"""

_DEVICE = {"type": "string", "description": "Id from list_devices; may be left out when there is one device"}
_SESSION = {
    "type": "string",
    "description": 'Only to be told apart from others with your token: "new" starts a session, later calls give its id',
}


def _text(note: str) -> Mapping[str, Any]:
    return {"type": "string", "description": note}


def _pixel(note: str) -> Mapping[str, Any]:
    return {"type": "number", "minimum": 0, "description": f"Pixels from the {note} of the screenshot"}


def _tool(
    name: str, title: str, hints: Mapping[str, Any], description: str, required: Mapping[str, Any] | None = None,
    **optional: Any,
) -> Tool:  # fmt: skip
    needed = required or {}
    schema: dict[str, Any] = {"type": "object", "properties": {**needed, **optional}, "additionalProperties": False}
    if needed:
        schema["required"] = list(needed)
    return Tool(name, title, description.strip(), schema, hints)


def _on_device(
    name: str, title: str, hints: Mapping[str, Any], description: str, required: Mapping[str, Any] | None = None,
    **optional: Any,
) -> Tool:  # fmt: skip
    """Return a tool that leases the device it is used on."""
    return _tool(
        name, title, hints, description + " " + LEASE, required, **optional, device_id=_DEVICE, session_id=_SESSION
    )


_ALL = (
    _on_device(
        "take_screenshot",
        "Take screenshot",
        LOOKS,
        "Takes a screenshot of the device as it is now. The reply holds the image, and a text with its width "
        "and height in pixels and the device's id. The coordinates of all tools are pixels of this screenshot.",
    ),
    _on_device(
        "tap",
        "Tap",
        ACTS,
        f"Touches the screen once and lets go. {PIXELS}{ONCE}",
        {"x": _pixel("left edge"), "y": _pixel("top edge")},
    ),
    _on_device(
        "swipe",
        "Swipe",
        ACTS,
        "Draws a finger over the screen from start to end; to see what is further down, swipe from low to high. "
        f"{PIXELS}{ONCE}",
        {
            "start_x": _pixel("left edge"),
            "start_y": _pixel("top edge"),
            "end_x": _pixel("left edge"),
            "end_y": _pixel("top edge"),
        },
        duration_ms={"type": "integer", "minimum": 1, "maximum": 10000, "description": "Milliseconds, 300 by default"},
    ),
    _on_device(
        "input_text",
        "Input text",
        ACTS,
        f"Types text into the field that has the focus: tap into it first. {ONCE}"
        "Text that a device cannot type is refused whole, by the names of the characters.",
        {"text": _text("What to type, in any script")},
    ),
    _on_device(
        "launch_app",
        "Launch app",
        ACTS,
        f"Brings an app to the front. {ONCE}",
        {"app_id": _text("Name or id of the app, such as Settings or com.android.settings")},
    ),
    _on_device(
        "find_text",
        "Find text",
        LOOKS,
        "Finds words on the screen. The reply is a list of text, score (0 to 1), box (left, top, right, bottom), "
        "center (give it to tap), match and source; empty when the words are not there.",
        {"query": _text("The words to find, in any case")},
    ),
    _on_device(
        "find_icon",
        "Find icon",
        LOOKS,
        "Finds an icon by what it shows or is called. The reply is a list of name, score (0.75 to 1), box, center "
        "(give it to tap) and confident; check with take_screenshot before you tap one that is not confident.",
        {"name": _text("What the icon shows or means, such as settings, gear, back or search")},
    ),
    _on_device(
        "get_ui_tree",
        "Get UI tree",
        LOOKS,
        "Gives the elements on the screen as a tree of role, text, desc, id, box, clickable and children. A board has "
        "none: use describe_screen there.",
        include_app_info={"type": "boolean", "description": "Tell also which app is in front"},
    ),
    _on_device(
        "describe_screen",
        "Describe screen",
        LOOKS,
        'Gives the screen in words: one line an element, `[n] kind "text" @x,y`, in reading order, where x,y is the '
        "place to tap. 200 elements at most.",
    ),
    _tool(
        "list_devices",
        "List devices",
        LOOKS,
        "Names every device with its kind, its state (ready, offline ...), who is using it and for how many seconds "
        "they have been idle. Takes no device from anybody.",
    ),
    _tool(
        "device_status",
        "Device status",
        LOOKS,
        "Tells the state of one device, who is using it, and when it is free if left alone. Does not take it.",
        {"device_id": _text("Id from list_devices")},
    ),
)

TOOLS: Mapping[str, Tool] = {tool.name: tool for tool in _ALL}
