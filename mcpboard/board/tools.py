"""The allowlist: thirteen rows, in the order of the mission's table and comparable to it by eye."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from mcpboard.board import readers
from mcpboard.board.tool_specs import TOOLS
from mcpboard.protocol.tools import Content, Tool

if TYPE_CHECKING:
    from mcpboard.board.arrival import BackendResponse

# Lanes: calls of one lane share its places (decision 10).
STATUS, OBSERVATION, INPUT, SHELL, BUNDLE = "status", "observation", "input", "shell", "support_bundle"

# Backends, by the setting that holds their address without `_base_url`.
AGENT, CONFIG_WEB = "agent", "config_web"

# Seconds from sending to the last byte of the answer (decision 11).
ACTION_S = 310.0  # the Agent's own limit is 300: its word on the outcome comes first
STABLE_S = 55.0  # below the 60 s after which common clients hang up
URL_S = 90.0
CLIPBOARD_S = 60.0
SHOT_S = 40.0  # the frame service has 30
STATUS_S = 10.0  # Config Web asks its control script, about 3
BUNDLE_S = 70.0  # to the first byte; Config Web's own is 65


@dataclass(frozen=True)
class BoardTool:
    """One tool: what the client sees of it, who does it, how long that may take, how the answer reads.

    `read` turns an answer of the backend into content or raises ToolError. Where `streams`, the
    body of a good answer is passed on unread; `read` then gets the other answers alone.
    """

    tool: Tool
    lane: str
    backend: str
    method: str
    path: str
    deadline_s: float
    read: Callable[[BackendResponse], Content]
    streams: bool = False


def _get(name: str, lane: str, backend: str, path: str, deadline_s: float) -> BoardTool:
    return BoardTool(TOOLS[name], lane, backend, "GET", path, deadline_s, readers.status)


def _post(name: str, lane: str, deadline_s: float, read: Callable[[BackendResponse], Content]) -> BoardTool:
    return BoardTool(TOOLS[name], lane, AGENT, "POST", f"/api/tools/{name}", deadline_s, read)


def _stream(name: str, lane: str, backend: str, path: str, deadline_s: float) -> BoardTool:
    return BoardTool(TOOLS[name], lane, backend, "GET", path, deadline_s, readers.turned_down, streams=True)


ROWS: tuple[BoardTool, ...] = (
    _get("phone_bridge_status", STATUS, AGENT, "/api/phone-bridge/status", STATUS_S),
    _post("screenshot", OBSERVATION, SHOT_S, readers.picture),
    _post("wait_for_stable_screen", OBSERVATION, STABLE_S, readers.picture),
    _post("touch_gesture", INPUT, ACTION_S, readers.aftermath),
    _post("enter_text", INPUT, ACTION_S, readers.aftermath),
    _post("keyboard_tap", INPUT, ACTION_S, readers.aftermath),
    _post("open_app", INPUT, ACTION_S, readers.output),
    _post("open_url", INPUT, URL_S, readers.output),
    _post("quick_action", INPUT, ACTION_S, readers.aftermath),
    _post("bridge_clipboard", INPUT, CLIPBOARD_S, readers.output),
    _post("shell", SHELL, ACTION_S, readers.shell),
    _get("device_status", STATUS, CONFIG_WEB, "/api/device/status", STATUS_S),
    _stream("support_bundle", BUNDLE, CONFIG_WEB, "/api/logs/support", BUNDLE_S),
)


def allowed(shell: bool, rows: tuple[BoardTool, ...] = ROWS) -> tuple[BoardTool, ...]:
    """The rows on offer, in order; without `shell` its row does not exist for anybody."""
    return tuple(row for row in rows if shell or row.lane != SHELL)
