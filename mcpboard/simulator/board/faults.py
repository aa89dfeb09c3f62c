"""The switches that make the simulated board misbehave."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

# kind -> its settings and their defaults. Sizes in bytes, times in seconds.
KINDS: Mapping[str, Mapping[str, Any]] = {
    # the connection
    "reset_before_read": {},
    "reset_after_read": {},
    "reset_after_execution": {},
    "hang": {},  # read, not executed, never answered
    "hang_after_execution": {},
    # the bytes of the reply
    "truncated": {},  # in the middle of the body
    "oversized": {},
    "gzip": {},
    "charset": {},  # the label lies, the bytes stay UTF-8
    # another response than the asked one
    "html": {},
    "redirect": {},
    "status": {},
    "shutting_down": {},
    "missing_tool": {},
    # what a tool does
    "slow": {"seconds": 1.0},
    "empty_output": {},
    "soft_failure": {},  # ok:false, is_error:false
    "legacy_error": {},  # is_error:false
    "tool_error": {},
    "action_completed": {},  # the action worked, the picture after it did not
    "not_a_picture": {},
    "bridge_down": {},
    # the support bundle
    "bundle": {"bytes": 28 << 20, "length": True, "dies_after": None, "bytes_per_second": None},
    "bundle_error": {},
}


@dataclass
class Fault:
    """One armed switch: its target, how often it will still hit, how often it did."""

    kind: str
    tool: str
    times: int | None
    settings: Mapping[str, Any]
    hits: int = 0


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

        Raises ValueError for a kind or a setting that does not exist.
        """
        if kind not in KINDS or not settings.keys() <= KINDS[kind].keys():
            raise ValueError(f"no fault is called {kind!r} and set by {list(settings)}; there are: {KINDS}")
        fault = Fault(kind, tool.lower(), times, {**KINDS[kind], **settings})
        with self._lock:
            self._armed.append(fault)
        return fault

    def clear(self) -> None:
        """Disarm all switches."""
        with self._lock:
            self._armed = []

    def take(self, kind: str, target: str) -> Fault | None:
        """Return the armed switch for this target, counted as one hit; None when there is none."""
        with self._lock:
            fault = self._first(kind, target)
            if fault is not None:
                fault.hits += 1
                if fault.hits == fault.times:
                    self._armed.remove(fault)
            return fault

    def armed(self, kind: str, target: str) -> bool:
        """Return True when a switch would hit, without counting it."""
        with self._lock:
            return self._first(kind, target) is not None

    def _first(self, kind: str, target: str) -> Fault | None:
        wanted = ("*", target.lower())
        return next((fault for fault in self._armed if fault.kind == kind and fault.tool in wanted), None)
