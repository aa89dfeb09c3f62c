"""An assignment as the cloud gave it, checked before anything is touched, and what became of it."""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from mcpboard.errors import BadArgument, DeviceBusy, InvalidParams, PeerBroken
from mcpboard.host.devices.leases import CLOUD, MCP, Owner
from mcpboard.host.drivers.base import Driver
from mcpboard.host.tools.arguments import Arguments
from mcpboard.host.tools.rows import ROWS, DeviceTool, VisionTool
from mcpboard.host.vision.service import VisionService
from mcpboard.protocol.tools import Content, Image, Text, check_arguments

MOST_STEPS = 200  # a person's errand has some twenty
LONGEST_SECONDS = 3600.0  # of an assignment; a device is not given away for longer
LONGEST_NAME = 256  # characters of an id that the cloud chose
RESULTS_BYTES = 600 << 10  # of all results together: an outbox file is 1 MiB at most, and is sent in one POST

SUCCEEDED, FAILED, CANCELLED = "succeeded", "failed", "cancelled"
CLAIMED, RUNNING = "claimed", "running"

HELD_BY_MCP = "device held by an active MCP session"  # to the letter (mission, Concurrency model)

_TOOLS = {row.tool.name: row for row in ROWS if isinstance(row, (DeviceTool, VisionTool))}


@dataclass(frozen=True)
class AssignmentOutcome:
    """How an assignment ended. `retryable`: nothing on the device was touched, so it may be given out again."""

    status: str
    reason: str | None = None
    code: str | None = None
    retryable: bool = False


# What is told should this process end before the assignment does; nobody knows what its last step did.
CUT_SHORT = AssignmentOutcome(
    FAILED, "the host agent ended while the assignment ran: look at the device before repeating it", "host_restarted"
)


def turned_away(busy: DeviceBusy) -> AssignmentOutcome:
    """Fail fast: somebody else has the device, which stays untouched."""
    holder = str((busy.data or {}).get("busy_owner", ""))
    if holder.startswith(MCP):
        return AssignmentOutcome(FAILED, HELD_BY_MCP, "device_busy_mcp", True)
    return AssignmentOutcome(FAILED, busy.message, "device_busy", True)


# --- as the cloud gave it ------------------------------------------------------------------------


@dataclass(frozen=True)
class AssignmentStep:
    """One operation: a row of the tools' table, and its arguments."""

    row: DeviceTool | VisionTool
    arguments: Mapping[str, Any]

    @property
    def name(self) -> str:
        return self.row.tool.name

    @property
    def acts(self) -> bool:
        """Whether it may change something on the device."""
        return not self.row.tool.annotations.get("readOnlyHint", False)

    def work(self, driver: Driver, arguments: Arguments, device: str, eyes: VisionService) -> Content:
        """The one command that it makes of the driver."""
        if isinstance(self.row, VisionTool):
            return self.row.work(driver, arguments, eyes)
        return self.row.work(driver, arguments, device)


@dataclass(frozen=True)
class Assignment:
    """What to do, for how many seconds at most."""

    timeout_s: float
    steps: tuple[AssignmentStep, ...]


def order(document: Mapping[str, Any], device: str) -> Assignment:
    """The steps of an assignment on `device`, all of them checked; InvalidParams for what cannot be carried out."""
    timeout_s, steps = document.get("timeout_s"), document.get("steps")
    if not isinstance(timeout_s, (int, float)) or isinstance(timeout_s, bool) or not 0 < timeout_s <= LONGEST_SECONDS:
        raise InvalidParams(f"timeout_s must be more than 0 and at most {LONGEST_SECONDS:g} seconds")
    if not isinstance(steps, list) or not 0 < len(steps) <= MOST_STEPS:
        raise InvalidParams(f"steps must be a list of 1 to {MOST_STEPS} steps")
    return Assignment(float(timeout_s), tuple(_step(number, each, device) for number, each in enumerate(steps, 1)))


def _step(number: int, given: Any, device: str) -> AssignmentStep:
    if not isinstance(given, dict) or not isinstance(given.get("arguments", {}), dict):
        raise InvalidParams(f"step {number} must be an object with tool and arguments")
    row, arguments = _TOOLS.get(str(given.get("tool"))), given.get("arguments", {})
    if row is None:
        raise InvalidParams(f"step {number} has no tool that a step may have: {', '.join(_TOOLS)}")
    try:
        check_arguments(row.tool.input_schema, arguments)
    except BadArgument as error:
        raise InvalidParams(f"step {number}, {row.tool.name}: {error.text}") from None
    unknown = set(arguments) - set(row.tool.input_schema["properties"])
    if unknown or "session_id" in arguments or arguments.get("device_id", device) != device:
        raise InvalidParams(f"step {number}, {row.tool.name}: an argument is unknown, or means another device or owner")
    return AssignmentStep(row, arguments)


# --- what becomes of it --------------------------------------------------------------------------


class AssignmentRun:
    """One assignment from its claim to its end; shared by the thread that runs it and those that watch.

    Raises PeerBroken when `document` does not even say whose assignment it is.
    """

    def __init__(self, document: Any, now: float) -> None:
        self.document: Mapping[str, Any] = document if isinstance(document, dict) else {}
        self.id, self.lease, self.device = (self._name(key) for key in ("id", "lease_id", "device_id"))
        self.owner = Owner(CLOUD, self.lease)
        self.phase = CLAIMED
        self.heard_at = now  # when the cloud last confirmed the lease
        self.touched = False
        self.results: list[dict[str, Any]] = []
        self._room = RESULTS_BYTES
        self._lock = threading.Lock()
        self._ending: AssignmentOutcome | None = None
        self._settled = False

    def _name(self, key: str) -> str:
        value = self.document.get(key)
        if not isinstance(value, str) or not 0 < len(value) <= LONGEST_NAME or not value.isprintable():
            raise PeerBroken(f"the cloud gave out an assignment without a usable {key}")
        return value

    @property
    def steps_done(self) -> int:
        return len(self.results)

    def stop(self, status: str, reason: str, code: str) -> None:
        """Have it end before its next step; what was said first counts."""
        with self._lock:
            self._ending = self._ending or AssignmentOutcome(status, reason, code, status == FAILED)

    @property
    def stopped(self) -> AssignmentOutcome | None:
        """How it is to end, None while it may go on; retryable only while nothing was touched."""
        with self._lock:
            ending = self._ending
        return ending and self.judged(ending.status, ending.reason or "", ending.code or "")

    def judged(self, status: str, reason: str, code: str) -> AssignmentOutcome:
        """An ending that may be tried again as long as nothing was touched."""
        return AssignmentOutcome(status, reason, code, status == FAILED and not self.touched)

    def settle(self) -> bool:
        """True for the first who asks: that one, and nobody else, tells how it ended."""
        with self._lock:
            first, self._settled = not self._settled, True
            return first

    def note(self, step: AssignmentStep, content: Content) -> None:
        """Keep what a step came to, as far as there is room."""
        result = {"step": self.steps_done, "tool": step.name, **_told(content)}
        size = len(json.dumps(result))
        if size > self._room:
            result = {"step": self.steps_done, "tool": step.name, "omitted_bytes": size}
        else:
            self._room -= size
        self.results.append(result)

    def finish(self, ending: AssignmentOutcome) -> dict[str, Any]:
        """The body of the POST that tells how it ended."""
        told: dict[str, Any] = {"lease_id": self.lease, "status": ending.status}
        if ending.reason is not None:
            told |= {"failure_reason": ending.reason, "failure_code": ending.code}
        return {**told, "retryable": ending.retryable, "results": list(self.results)}


def _told(content: Content) -> dict[str, Any]:
    told: dict[str, Any] = {"text": "\n".join(block.text for block in content.blocks if isinstance(block, Text))}
    if content.structured is not None:
        told["structured"] = dict(content.structured)
    for block in content.blocks:
        if isinstance(block, Image):
            told["image"] = {"mime": block.mime, "data": block.data}
    return told
