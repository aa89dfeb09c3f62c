"""Run alongside a stock Agent: see that it has the port, and name the two settings that make room for both."""

from __future__ import annotations

from mcpboard.board.backend import Backend
from mcpboard.board.live_schemas import live_schemas
from mcpboard.errors import ToolError

ALONGSIDE_PORT = 8090  # where mcpboard stands when the Agent itself owns 8080
LOOK_S = 1.0  # seconds; the Agent answers its tool list from memory


def advice(port: int) -> str | None:
    """Return the two settings that put mcpboard beside the Agent on `port`; None when no Agent answers there."""
    agent = f"http://127.0.0.1:{port}"
    try:
        live_schemas(Backend("agent", agent).call("GET", "/api/tools", None, LOOK_S))
    except (ToolError, ValueError):
        return None
    return f'listen = "0.0.0.0:{ALONGSIDE_PORT}"\nagent_base_url = "{agent}"'
