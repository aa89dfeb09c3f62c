"""What the console wants to know of the cloud; the worker that talks with it gives this, when there is one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class CloudState:
    """How things stand with the cloud that this host is enrolled with."""

    server: str  # its URL
    heartbeat_ago_s: float | None = None  # seconds since the last one that was answered; None before the first
    busy_ids: tuple[str, ...] = ()  # `mcp_busy_device_ids` of that heartbeat
    assignment: str | None = None  # what is being worked on, in words for people
    problem: str | None = None  # why the cloud is not reached at the moment


CloudLook = Callable[[], "CloudState | None"]  # never waits; None for a host that is not enrolled


def not_enrolled() -> CloudState | None:
    """The state of a host that no cloud knows."""
    return None
