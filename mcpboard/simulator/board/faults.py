"""The switches that make the simulated board misbehave, set in process or over HTTP."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from mcpboard.simulator.board.bundle import smallest_sized

MIB = 1 << 20

# kind -> its settings and their defaults. Sizes in bytes, times in seconds.
KINDS: Mapping[str, Mapping[str, Any]] = {
    # the connection
    "reset_before_read": {},
    "reset_after_read": {},
    "reset_after_execution": {},
    "hang": {},  # read, not executed, never answered
    "hang_after_execution": {},
    # the bytes of the reply
    "drip": {"bytes_per_second": 200},
    "truncated": {"framing": "chunked", "keep": 100},  # framing: chunked or length
    "oversized": {"bytes": 10 * MIB},
    "gzip": {"honest": True},  # False: labelled gzip, sent plain
    "charset": {"label": "utf-16"},  # the label lies, the bytes stay UTF-8
    # another response than the asked one
    "html": {"status": 200},
    "redirect": {"status": 302, "location": "/elsewhere"},
    "status": {"status": 500, "text": "Internal Server Error"},
    "shutting_down": {},
    "missing_tool": {},
    "old_catalogue": {},  # entries without args_schema
    # what a tool does
    "slow": {"seconds": 1.0},
    "no_tool_error": {},  # a failure as old Agents report it: is_error and error only
    "empty_output": {},
    "soft_failure": {"suggestion": "tap the field first"},  # ok:false, is_error:false
    "legacy_error": {"text": "error: no model is configured"},  # is_error:false
    "tool_error": {"category": "internal", "code": "tool_execution_failed", "message": "the HID device went away"},
    "action_completed": {},  # the action worked, the picture after it did not
    "stale_frame": {},
    "not_a_picture": {},
    "bridge_down": {},
    "unwrapped": {},  # open_app and open_url without the post-action object
    # the support bundle
    "bundle": {"bytes": 28 * MIB, "length": True, "dies_after": None, "bytes_per_second": None},
    "bundle_error": {"error": "cannot write the archive"},
}


@dataclass
class Fault:
    """One armed switch: its target, how often it will still hit, how often it did."""

    kind: str
    tool: str
    times: int | None
    settings: dict[str, Any] = field(default_factory=dict)
    hits: int = 0

    def __getitem__(self, setting: str) -> Any:
        return self.settings[setting]

    def as_json(self) -> dict[str, Any]:
        return {"kind": self.kind, "tool": self.tool, "times": self.times, "hits": self.hits, **self.settings}


class Faults:
    """The armed switches, safe to use from several threads.

    A target is a tool's name, `*` for all, or one of `tools` (the catalog), `health`, `phone_bridge_status`,
    `device_status` and `support_bundle`. The first armed switch of a kind that fits is taken.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._armed: list[Fault] = []

    def set(self, kind: str, tool: str = "*", times: int | None = None, **settings: Any) -> Fault:
        """Arm one switch, for `times` hits or until cleared; returns it so that its `hits` can be read.

        Raises ValueError for a kind, a setting or a number of times that does not exist.
        """
        defaults = KINDS.get(kind)
        if defaults is None:
            raise ValueError(f"no fault is called {kind!r}; there are: {', '.join(KINDS)}")
        for name, value in settings.items():
            if name not in defaults:
                known = ", ".join(defaults) or "none"
                raise ValueError(f"fault {kind!r} has no setting {name!r}; it has: {known}")
            if not _fits(value, defaults[name]):
                raise ValueError(f"{name!r} of fault {kind!r} cannot be {value!r}; the default is {defaults[name]!r}")
        if kind == "bundle" and settings.get("bytes", MIB) < smallest_sized():
            raise ValueError(f"a bundle that holds an archive has at least {smallest_sized()} bytes")
        if times is not None and (type(times) is not int or times < 1):
            raise ValueError(f"times must be a whole number above 0, or null for always, not {times!r}")
        fault = Fault(kind, str(tool).lower(), times, {**defaults, **settings})
        with self._lock:
            self._armed.append(fault)
        return fault

    def clear(self, kind: str | None = None, tool: str | None = None) -> None:
        """Disarm all switches, or only those of a kind or a target."""
        with self._lock:
            self._armed = [
                fault for fault in self._armed
                if (kind is not None and fault.kind != kind) or (tool is not None and fault.tool != tool.lower())
            ]  # fmt: skip

    def take(self, kind: str, target: str) -> Fault | None:
        """Return the armed switch for this target, counted as one hit; None when there is none."""
        with self._lock:
            fault = self._first(kind, target)
            if fault is not None:
                fault.hits += 1
                if fault.times is not None:
                    fault.times -= 1
                    if fault.times == 0:
                        self._armed.remove(fault)
            return fault

    def armed(self, kind: str, target: str) -> bool:
        """Return True when a switch would hit, without counting it."""
        with self._lock:
            return self._first(kind, target) is not None

    def as_json(self) -> list[dict[str, Any]]:
        with self._lock:
            return [fault.as_json() for fault in self._armed]

    def _first(self, kind: str, target: str) -> Fault | None:
        wanted = ("*", target.lower())
        return next((fault for fault in self._armed if fault.kind == kind and fault.tool in wanted), None)


def _fits(value: Any, default: Any) -> bool:
    """Return True for a value of the default's kind: both flags, both texts, or a number not below 0."""
    if isinstance(default, (bool, str)):
        return type(value) is type(default)
    number = isinstance(value, (int, float)) and not isinstance(value, bool) and value >= 0
    return number or (default is None and value is None)
