"""What a model reads about each tool: title, description, hints and the built-in schema.

A description says what the tool is for, what the reply holds, and in which unit places on the
screen are given: everything that the schema cannot say.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mcpboard.board.schemas import SCHEMAS
from mcpboard.protocol.tools import Tool

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
