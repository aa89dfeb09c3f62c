"""What an Android phone says of itself, read from its `getprop`, `wm`, `dumpsys` and `pm`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from mcpboard.host.drivers.base import Point

# The size that taps are counted in is `cur`: it follows rotation and an "Override size" alike. Touches go to display 0,
# which newer phones need not name first.
_OURS = "Display: mDisplayId=0"
SCREEN = f"wm size; dumpsys window displays | grep -E '{_OURS}|cur='"

_ASKED = {
    "model": "getprop ro.product.model",
    "android": "getprop ro.build.version.release",
    "battery": "dumpsys battery",
    "power": "dumpsys power | grep mWakefulness=",
    "size": "wm size",
    "window": f"dumpsys window | grep -E '{_OURS}|mCurrentFocus|mFocusedApp|cur=|Rotation='",
}
STATUS = "; ".join(f"echo @{name}; {command}" for name, command in _ASKED.items())

FOREGROUND = "dumpsys window | grep -E 'mCurrentFocus|mFocusedApp'"

_ROTATION = re.compile(r"\bm(?:Current)?Rotation=(?:ROTATION_)?(\d+)")
_ACTIVITY = re.compile(r"(mCurrentFocus|mFocusedApp)=\S*\{[^}]*?\s([A-Za-z][\w.]*)/([\w.$]+)")


def status(told: str) -> dict[str, Any]:
    """What STATUS printed, as members; those that the phone did not tell are left out."""
    parts = _sections(told)
    level = re.search(r"^\s*level: (\d+)", parts.get("battery", ""), re.MULTILINE)
    awake = re.search(r"mWakefulness=(\w+)", parts.get("power", ""))
    rotation = _ROTATION.search(_of_ours(parts.get("window", "")))
    found: dict[str, Any] = {
        "model": parts.get("model", "").strip() or None,
        "android": parts.get("android", "").strip() or None,
        "battery": int(level[1]) if level else None,
        "screen_on": awake[1] == "Awake" if awake else None,
        "rotation": _degrees(int(rotation[1])) if rotation else None,
        **_sizes(parts.get("size", ""), parts.get("window", "")),
        "app": foreground(parts.get("window", "")).get("id"),
    }
    return {name: value for name, value in found.items() if value is not None}


def _sections(told: str) -> Mapping[str, str]:
    """The output of each command of STATUS behind its `@name`."""
    pieces = re.split(r"^@(\w+)\n", told, flags=re.MULTILINE)
    return dict(zip(pieces[1::2], pieces[2::2], strict=True))


def _degrees(rotation: int) -> int:
    """Android tells quarters of a turn, newer ones degrees."""
    return rotation * 90 if rotation < 4 else rotation


def _sizes(size: str, window: str) -> dict[str, Any]:
    current = screen(f"{size}\n{window}")
    override = _size("Override size", size)
    return {
        "width": current[0] if current else None,
        "height": current[1] if current else None,
        "override_size": list(override) if override else None,
    }


def screen(told: str) -> Point | None:
    """Width and height that taps are counted in, from what SCREEN printed; None where it does not tell."""
    current = re.search(r"\bcur=(\d+)x(\d+)", _of_ours(told))
    if current:
        return int(current[1]), int(current[2])
    return _size("Override size", told) or _size("Physical size", told)


def _of_ours(told: str) -> str:
    """What is told from display 0 on; everything where displays are not named."""
    return told.partition(_OURS)[2] or told


def _size(name: str, told: str) -> Point | None:
    found = re.search(rf"{name}: (\d+)x(\d+)", told)
    return (int(found[1]), int(found[2])) if found else None


def foreground(told: str) -> dict[str, str]:
    """Package and activity in front, from what FOREGROUND printed; empty on a locked screen."""
    found = {match[1]: match for match in _ACTIVITY.finditer(told)}
    match = found.get("mCurrentFocus") or found.get("mFocusedApp")
    return {"id": match[2], "activity": match[3]} if match else {}


def packages(told: str) -> list[str]:
    """The packages that `pm list packages` printed."""
    return sorted(line.partition(":")[2].strip() for line in told.splitlines() if line.startswith("package:"))


def displays(told: str) -> list[str]:
    """The display ids that `dumpsys SurfaceFlinger --display-id` printed, the built-in one first."""
    return re.findall(r"^Display (\d+)\b", told, re.MULTILINE)
