"""Beside a stock Agent: who has the port, and the two lines that make room for both (decision 1)."""

from __future__ import annotations

from mcpboard.board.backend import Backend
from mcpboard.board.catalog import schemas
from mcpboard.errors import ToolError

BESIDE_PORT = 8090  # where mcpboard stands when the Agent itself owns 8080
LOOK_S = 1.0  # seconds; the Agent answers its catalogue from memory


def advice(port: int) -> str | None:
    """The two settings that put mcpboard beside the Agent on `port`; None when no Agent answers there."""
    agent = f"http://127.0.0.1:{port}"
    try:
        schemas(Backend("agent", agent).call("GET", "/api/tools", None, LOOK_S))
    except (ToolError, ValueError, RecursionError):
        return None
    return f'listen = "0.0.0.0:{BESIDE_PORT}"\nagent_base_url = "{agent}"'
