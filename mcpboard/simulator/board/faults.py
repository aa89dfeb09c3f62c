"""The switches that make the simulated board misbehave, set in process or over HTTP."""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mcpboard.simulator.board.bundle import SMALL

# kind -> its settings and their defaults, sizes in bytes, times in seconds; docs/simulator.md says what each does.
KINDS: Mapping[str, Mapping[str, Any]] = json.loads(Path(__file__).with_suffix(".json").read_text("utf-8"))


@dataclass
class Fault:
    """One armed switch: its target, how often it will still hit, how often it did."""

    kind: str
    tool: str
    times: int | None
    settings: Mapping[str, Any]
    hits: int = 0

    def __getitem__(self, setting: str) -> Any:
        return self.settings[setting]


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
        if kind not in KINDS:
            raise ValueError(f"no fault is called {kind!r}; there are: {', '.join(KINDS)}")
        for name, value in settings.items():
            if name not in KINDS[kind]:
                raise ValueError(f"fault {kind!r} has no setting {name!r}; it has: {', '.join(KINDS[kind]) or 'none'}")
            if not _fits(value, KINDS[kind][name]):
                raise ValueError(f"{name!r} of fault {kind!r} cannot be {value!r}; as in {KINDS[kind][name]!r}")
        if kind == "bundle" and settings.get("bytes", SMALL) < SMALL:
            raise ValueError(f"a bundle that holds an archive has at least {SMALL} bytes")
        if times is not None and (type(times) is not int or times < 1):
            raise ValueError(f"times must be a whole number above 0, or null for always, not {times!r}")
        fault = Fault(kind, str(tool).lower(), times, {**KINDS[kind], **settings})
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

    def as_json(self) -> list[dict[str, Any]]:
        """Return the armed switches, each with the number of hits that are left."""
        with self._lock:
            return [
                {"kind": each.kind, "tool": each.tool, "times": each.times and each.times - each.hits,
                 "hits": each.hits, **each.settings}
                for each in self._armed
            ]  # fmt: skip

    def _first(self, kind: str, target: str) -> Fault | None:
        wanted = ("*", target.lower())
        return next((fault for fault in self._armed if fault.kind == kind and fault.tool in wanted), None)


def _fits(value: Any, default: Any) -> bool:
    """Return True for a value of the default's kind: both flags, both texts, or a number not below 0."""
    if isinstance(default, (bool, str)):
        return type(value) is type(default)
    number = isinstance(value, (int, float)) and not isinstance(value, bool) and value >= 0
    return number or (default is None and value is None)
