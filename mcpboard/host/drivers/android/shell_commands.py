"""Commands for an Android phone's shell, and what its `getprop`, `wm`, `dumpsys` and `pm` print, as values."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from typing import Any

from mcpboard.host.drivers.base import Point, refuse_untypeable

CAPTURE = "screencap -p"
DISPLAYS = "dumpsys SurfaceFlinger --display-id"
# `uiautomator dump` writes only to a file, and ends well whatever came of it.
TREE = "f=${TMPDIR:-/data/local/tmp}/mcpboard-$$.xml; uiautomator dump $f 1>&2; cat $f; code=$?; rm -f $f; exit $code"
PACKAGES = "pm list packages"

# The size that taps are counted in is `cur`: it follows rotation and an "Override size" alike. Touches go to display 0,
# which newer phones need not name first.
_DISPLAY_0 = "Display: mDisplayId=0"
SCREEN = f"wm size; dumpsys window displays | grep -E '{_DISPLAY_0}|cur='"

_STATUS: Mapping[str, str] = {
    "model": "getprop ro.product.model",
    "android": "getprop ro.build.version.release",
    "battery": "dumpsys battery",
    "power": "dumpsys power | grep mWakefulness=",
    "size": "wm size",
    "window": f"dumpsys window | grep -E '{_DISPLAY_0}|mCurrentFocus|mFocusedApp|cur=|Rotation='",
}
STATUS = "; ".join(f"echo @{name}; {command}" for name, command in _STATUS.items())

FOREGROUND = "dumpsys window | grep -E 'mCurrentFocus|mFocusedApp'"

_ROTATION = re.compile(r"\bm(?:Current)?Rotation=(?:ROTATION_)?(\d+)")
_ACTIVITY = re.compile(r"(mCurrentFocus|mFocusedApp)=\S*\{[^}]*?\s([A-Za-z][\w.]*)/([\w.$]+)")

PIECE = 400  # characters for one `input text`: the phone makes key events of them one by one
KEYS: Mapping[str, str] = {"\n": "66", "\t": "61"}  # KEYCODE_ENTER and KEYCODE_TAB
UNTYPEABLE = re.compile(r"[^\n\t -~]")


def input_script(text: str) -> str:
    """Return a script that types `text`, each character once and as it is; ToolFailed names what it could not.

    The first command that fails ends it, so a piece is never typed behind a gap.
    """
    refuse_untypeable(text, UNTYPEABLE, "an Android phone's `input text` knows US-ASCII only")
    commands = []
    for run in re.findall(r"[\n\t]|[^\n\t]+", text):
        if run in KEYS:
            commands.append(f"input keyevent {KEYS[run]}")
            continue
        # `input` takes `%s` for a space, so no piece may hold both characters.
        for part in re.split(r"(?<=%)(?=s)", run):
            pieces = (part[at : at + PIECE] for at in range(0, len(part), PIECE))
            commands += [f"input text {shlex.quote(piece.replace(' ', '%s'))}" for piece in pieces]
    return " && ".join(commands)


def parse_status(output: str) -> dict[str, Any]:
    """Return what STATUS printed as members; those that the phone did not tell are left out."""
    pieces = re.split(r"^@(\w+)\n", output, flags=re.MULTILINE)
    parts = dict.fromkeys(_STATUS, "") | dict(zip(pieces[1::2], pieces[2::2], strict=True))
    level = re.search(r"^\s*level: (\d+)", parts["battery"], re.MULTILINE)
    awake = re.search(r"mWakefulness=(\w+)", parts["power"])
    match = _ROTATION.search(_from_display_0(parts["window"]))
    quarters = 90 if match and int(match[1]) < 4 else 1  # older phones tell quarters of a turn, newer ones degrees
    width, height = parse_screen(parts["size"] + "\n" + parts["window"]) or (None, None)
    override = _size("Override size", parts["size"])
    members: dict[str, Any] = {
        "model": parts["model"].strip() or None,
        "android": parts["android"].strip() or None,
        "battery": int(level[1]) if level else None,
        "screen_on": awake[1] == "Awake" if awake else None,
        "rotation": int(match[1]) * quarters if match else None,
        "width": width,
        "height": height,
        "override_size": list(override) if override else None,
        "app": parse_foreground(parts["window"]).get("id"),
    }
    return {name: value for name, value in members.items() if value is not None}


def parse_screen(output: str) -> Point | None:
    """Return width and height that taps are counted in, from what SCREEN printed; None where it does not tell."""
    current = re.search(r"\bcur=(\d+)x(\d+)", _from_display_0(output))
    if current:
        return int(current[1]), int(current[2])
    return _size("Override size", output) or _size("Physical size", output)


def parse_foreground(output: str) -> dict[str, str]:
    """Return package and activity in front, from what FOREGROUND printed; empty on a locked screen."""
    matches = {match[1]: match for match in _ACTIVITY.finditer(output)}
    match = matches.get("mCurrentFocus") or matches.get("mFocusedApp")
    return {"id": match[2], "activity": match[3]} if match else {}


def _from_display_0(output: str) -> str:
    """Return the output from display 0 on; all of it where displays are not named."""
    return output.partition(_DISPLAY_0)[2] or output


def _size(name: str, output: str) -> Point | None:
    match = re.search(rf"{name}: (\d+)x(\d+)", output)
    return (int(match[1]), int(match[2])) if match else None
