"""An assignment as the cloud gave it, checked before anything is touched, and its outcome."""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from mcpboard.errors import BadArgument, DeviceBusy, InvalidParams, PeerBroken
from mcpboard.host.devices.leases import CLOUD, MCP, Owner
from mcpboard.host.tools.rows import ROWS, LeasedTool, StatusTool
from mcpboard.protocol.tools import Content, Image, Text, check_arguments, normalize_arguments

MOST_STEPS = 200  # a person's task has some twenty
LONGEST_SECONDS = 3600.0  # of an assignment; a device is not given away for longer
LONGEST_NAME = 256  # characters of an id that the cloud chose
RESULTS_BYTES = 600 << 10  # of all results together: an outbox file is 1 MiB at most, and is sent in one POST

SUCCEEDED, FAILED, CANCELLED = "succeeded", "failed", "cancelled"
CLAIMED, RUNNING = "claimed", "running"

HELD_BY_MCP = "device held by an active MCP session"  # clouds compare this sentence, so it never changes

_TOOLS = {row.tool.name: row for row in ROWS if not isinstance(row, StatusTool)}


@dataclass(frozen=True)
class AssignmentOutcome:
    """The end of an assignment. `retryable`: nothing on the device was touched, so it may be given out again."""

    status: str
    reason: str | None = None
    code: str | None = None
    retryable: bool = False


# Reported should this process end before the assignment does; nobody knows what its last step did.
CUT_SHORT = AssignmentOutcome(
    FAILED, "the host agent ended while the assignment ran: look at the device before repeating it", "host_restarted"
)


def busy_outcome(busy: DeviceBusy) -> AssignmentOutcome:
    """Fail fast: somebody else has the device, which stays untouched."""
    holder = str((busy.data or {}).get("busy_owner", ""))
    if holder.startswith(MCP):
        return AssignmentOutcome(FAILED, HELD_BY_MCP, "device_busy_mcp", True)
    return AssignmentOutcome(FAILED, busy.message, "device_busy", True)


# --- as the cloud gave it ------------------------------------------------------------------------


@dataclass(frozen=True)
class AssignmentStep:
    """One operation: a row of the tools' table, and its arguments."""

    row: LeasedTool
    arguments: Mapping[str, Any]

    @property
    def name(self) -> str:
        return self.row.tool.name


@dataclass(frozen=True)
class Assignment:
    """The steps to take, within so many seconds."""

    timeout_s: float
    steps: tuple[AssignmentStep, ...]


def parse_assignment(document: Mapping[str, Any], device: str) -> Assignment:
    """Return an assignment on `device` with every step checked; InvalidParams for what cannot be executed."""
    timeout_s, steps = document.get("timeout_s"), document.get("steps")
    if not isinstance(timeout_s, (int, float)) or isinstance(timeout_s, bool) or not 0 < timeout_s <= LONGEST_SECONDS:
        raise InvalidParams(f"timeout_s must be more than 0 and at most {LONGEST_SECONDS:g} seconds")
    if not isinstance(steps, list) or not 0 < len(steps) <= MOST_STEPS:
        raise InvalidParams(f"steps must be a list of 1 to {MOST_STEPS} steps")
    parsed = (_parse_step(number, each, device) for number, each in enumerate(steps, 1))
    return Assignment(float(timeout_s), tuple(parsed))


def _parse_step(number: int, given: Any, device: str) -> AssignmentStep:
    if not isinstance(given, dict) or not isinstance(given.get("arguments", {}), dict):
        raise InvalidParams(f"step {number} must be an object with tool and arguments")
    row, arguments = _TOOLS.get(str(given.get("tool"))), given.get("arguments", {})
    if row is None:
        raise InvalidParams(f"step {number} has no tool that a step may have: {', '.join(_TOOLS)}")
    arguments = normalize_arguments(row.tool.input_schema, arguments)
    try:
        check_arguments(row.tool.input_schema, arguments)
    except BadArgument as error:
        raise InvalidParams(f"step {number}, {row.tool.name}: {error.text}") from None
    unknown = set(arguments) - set(row.tool.input_schema["properties"])
    if unknown or "session_id" in arguments or arguments.get("device_id", device) != device:
        raise InvalidParams(f"step {number}, {row.tool.name}: an argument is unknown, or means another device or owner")
    return AssignmentStep(row, arguments)


# --- from its claim to its end -------------------------------------------------------------------


class AssignmentRun:
    """One assignment from its claim to its end; shared by the thread that runs it and those that watch.

    Raises PeerBroken when `document` does not even say whose assignment it is.
    """

    def __init__(self, document: Any, now: float) -> None:
        self.document: Mapping[str, Any] = document if isinstance(document, dict) else {}
        for key in ("id", "lease_id", "device_id"):
            value = self.document.get(key)
            if not isinstance(value, str) or not 0 < len(value) <= LONGEST_NAME or not value.isprintable():
                raise PeerBroken(f"the cloud gave out an assignment without a usable {key}")
        self.id: str = self.document["id"]
        self.lease: str = self.document["lease_id"]
        self.device: str = self.document["device_id"]
        self.owner = Owner(CLOUD, self.lease)
        self.phase = CLAIMED
        self.confirmed_at = now  # when the cloud last confirmed the lease
        self.touched = False
        self.results: list[dict[str, Any]] = []
        self._room = RESULTS_BYTES
        self._lock = threading.Lock()
        self._stop: AssignmentOutcome | None = None
        self._settled = False

    @property
    def steps_done(self) -> int:
        return len(self.results)

    def stop(self, status: str, reason: str, code: str) -> None:
        """Have it end before its next step; the first stop counts."""
        with self._lock:
            self._stop = self._stop or AssignmentOutcome(status, reason, code, status == FAILED)

    @property
    def stopped(self) -> AssignmentOutcome | None:
        """The outcome of a run that is to end, None while it may go on; retryable only while nothing was touched."""
        with self._lock:
            stop = self._stop
        return stop and self.outcome(stop.status, stop.reason or "", stop.code or "")

    def outcome(self, status: str, reason: str, code: str) -> AssignmentOutcome:
        """Return an outcome that may be tried again as long as nothing was touched."""
        return AssignmentOutcome(status, reason, code, status == FAILED and not self.touched)

    def settle(self) -> bool:
        """Return True to the first caller: that one, and nobody else, reports the outcome."""
        with self._lock:
            first, self._settled = not self._settled, True
            return first

    def record(self, step: AssignmentStep, content: Content) -> None:
        """Keep the result of a step, as far as there is room."""
        result: dict[str, Any] = {"step": self.steps_done, "tool": step.name}
        result["text"] = "\n".join(block.text for block in content.blocks if isinstance(block, Text))
        if content.structured is not None:
            result["structured"] = dict(content.structured)
        for block in content.blocks:
            if isinstance(block, Image):
                result["image"] = {"mime": block.mime, "data": block.data}
        size = len(json.dumps(result))
        if size > self._room:
            result = {"step": self.steps_done, "tool": step.name, "omitted_bytes": size}
        else:
            self._room -= size
        self.results.append(result)

    def finish(self, outcome: AssignmentOutcome) -> dict[str, Any]:
        """Return the body of the POST that reports the outcome."""
        body: dict[str, Any] = {"lease_id": self.lease, "status": outcome.status}
        if outcome.reason is not None:
            body |= {"failure_reason": outcome.reason, "failure_code": outcome.code}
        return {**body, "retryable": outcome.retryable, "results": list(self.results)}
