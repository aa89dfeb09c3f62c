"""The Agent's catalog and the two replies that are no tool, from `agent_catalog.json`; one tool a line there."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mcpboard.simulator.board.go_http import go_json
from mcpboard.simulator.phone.view import APPS

_FILE: Mapping[str, Any] = json.loads(Path(__file__).with_suffix(".json").read_text("utf-8"))


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
        return {
            "name": self.name, "category": self.category, "description": self.description, "input_mode": "json",
            "example_input": go_json(self.example), **({"args_schema": self.schema} if schema else {}),
            "http": {"method": "POST", "path": f"/api/tools/{self.name}"},
        }  # fmt: skip


# Sorted by name, as the Agent lists them.
ROWS: Mapping[str, AgentTool] = {row["name"]: AgentTool(**row) for row in _FILE["tools"]}

# Config Web's status of a board that is well; nine firmware keys, as without an update.
DEVICE_STATUS: dict[str, Any] = _FILE["device_status"]

# id -> label, and the chord behind it; None where the phone has no way to do it
QUICK: Mapping[str, tuple[str, Sequence[str] | None]] = _FILE["quick_actions"]


def bridge_status(*, connected: bool, platform: str, device_type: str, heartbeat: str, battery: int) -> dict[str, Any]:
    """Return the phone-bridge status; with no phone only what is configured."""
    configured = {"connected": connected, "platform": platform, "device_type": device_type, "pointer_mode": "absolute"}
    if not connected:
        return configured
    known = {"available": True, "category": "system", "availability_source": "simulated"}
    apps = [{"name": app, **known} for app in APPS]
    seen = {"captured_at": heartbeat, "platform": platform, "system_name": device_type, "available_apps": apps}
    power = {"level": battery / 100, "charging": True, "state": "charging"}
    times = {"last_heartbeat_at": heartbeat, "app_state_updated_at": heartbeat}
    return {**configured, **_FILE["phone"], **times, "environment": {**_FILE["environment"], **seen, "battery": power}}
