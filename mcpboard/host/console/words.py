"""How the console says things."""

from __future__ import annotations

from mcpboard.host.devices.leases import CLOUD, MCP

MINUTE, HOUR, DAY = 60, 3600, 86400  # seconds
_UNITS = ((DAY, "d"), (HOUR, "h"), (MINUTE, "min"))


def ago(seconds: float | None) -> str:
    """How long ago something was, as coarse as a person would say it."""
    if seconds is None:
        return "never"
    for size, unit in _UNITS:
        if seconds >= size:
            return f"{int(seconds // size)} {unit} ago"
    return f"{int(seconds)} s ago" if seconds >= 1 else "just now"


def person(label: str) -> str:
    """An owner's label in words."""
    if label == CLOUD:
        return "a cloud assignment"
    return f"MCP session {label.removeprefix(MCP + ':')}"
