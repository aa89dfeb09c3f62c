"""The allowlist: thirteen rows, each one tool and the backend call behind it (`docs/agent-api.md`)."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from mcpboard.board import readers
from mcpboard.protocol.tools import Content, Tool

if TYPE_CHECKING:
    from mcpboard.board.backend import BackendResponse

# Lanes: calls of one lane share its slots.
STATUS, OBSERVATION, INPUT, SHELL, BUNDLE = "status", "observation", "input", "shell", "support_bundle"

# Backends, by the setting that holds their address without `_base_url`.
AGENT, CONFIG_WEB = "agent", "config_web"

# Seconds from connecting to the last byte of the response.
ACTION_S = 310.0  # the Agent's own limit is 300: its word on the outcome comes first
STABLE_S = 55.0  # below the 60 s after which common clients hang up
URL_S = 90.0
CLIPBOARD_S = 60.0
SHOT_S = 40.0  # the frame service has 30
STATUS_S = 10.0  # Config Web asks its control script, about 3
BUNDLE_S = 70.0  # to the first byte; Config Web's own is 65


@dataclass(frozen=True)
class BoardTool:
    """One tool: what the client sees of it, who does it, how long that may take, how the response reads.

    `read` turns a response of the backend into content or raises ToolError. In the lane of the
    support bundle the body of a good response is passed on unread; `read` then gets only the others.
    """

    tool: Tool
    lane: str
    backend: str
    method: str
    path: str
    deadline_s: float
    read: Callable[[BackendResponse], Content]


# Name -> the tool as a model reads it: what it is for, what the reply holds, in which unit places are given. The
# schemas count while the Agent does not say what a tool takes, or says it unusably; they are plain on purpose, because
# one odd schema makes some clients drop a tool or a whole list. Whether a touch, a key or a command deletes, sends or
# buys something is for the screen to say: the honest hint is that it may, and that twice is not the same as once.
# open_app closes nothing, and opening what is open leaves it open; twice the same write to the clipboard is one.
TOOLS: Mapping[str, Tool] = {
    each["name"]: Tool(**each)
    for each in json.loads((Path(__file__).parent / "tool_descriptions.json").read_text("utf-8"))
}


def _agent_tool(name: str, lane: str, deadline_s: float, read: Callable[[BackendResponse], Content]) -> BoardTool:
    return BoardTool(TOOLS[name], lane, AGENT, "POST", f"/api/tools/{name}", deadline_s, read)


def _plain_get(name: str, lane: str, backend: str, path: str, deadline_s: float) -> BoardTool:
    return BoardTool(TOOLS[name], lane, backend, "GET", path, deadline_s, readers.status)


ROWS: tuple[BoardTool, ...] = (
    _plain_get("phone_bridge_status", STATUS, AGENT, "/api/phone-bridge/status", STATUS_S),
    _agent_tool("screenshot", OBSERVATION, SHOT_S, readers.screenshot),
    _agent_tool("wait_for_stable_screen", OBSERVATION, STABLE_S, readers.screenshot),
    _agent_tool("touch_gesture", INPUT, ACTION_S, readers.action),
    _agent_tool("enter_text", INPUT, ACTION_S, readers.action),
    _agent_tool("keyboard_tap", INPUT, ACTION_S, readers.action),
    _agent_tool("open_app", INPUT, ACTION_S, readers.output),
    _agent_tool("open_url", INPUT, URL_S, readers.output),
    _agent_tool("quick_action", INPUT, ACTION_S, readers.action),
    _agent_tool("bridge_clipboard", INPUT, CLIPBOARD_S, readers.output),
    _agent_tool("shell", SHELL, ACTION_S, readers.shell),
    _plain_get("device_status", STATUS, CONFIG_WEB, "/api/device/status", STATUS_S),
    BoardTool(TOOLS["support_bundle"], BUNDLE, CONFIG_WEB, "GET", "/api/logs/support", BUNDLE_S, readers.reject),
)


def allowed(shell: bool, rows: tuple[BoardTool, ...] = ROWS) -> tuple[BoardTool, ...]:
    """Return the rows on offer, in order; without `shell` its row does not exist for anybody."""
    return tuple(row for row in rows if shell or row.lane != SHELL)
