"""Touch gestures as the Agent checks them, and the phone that they move."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

from mcpboard.simulator.board.runs import ToolFailure, ToolRun
from mcpboard.simulator.phone.phone import Phone
from mcpboard.simulator.phone.view import Place

Arguments = Mapping[str, Any]

SPEED = 2500.0  # normalized units a second, the Agent's default
DRAG_HOLD_S = 0.5  # the finger rests before a drag begins
DROP_HOLD_S = 0.2  # and before it lets go
LONGEST_WAIT_MS = 60000  # all waits of one list of actions together
FASTEST = 100_000.0  # units a second; a hundredth of a second for the whole screen
TAPS = {"tap": 50.0, "double_tap": 150.0, "long_press": 500.0}  # milliseconds that the finger needs
EDGES = {"up": (None, 0.0), "down": (None, 1000.0), "left": (0.0, None), "right": (1000.0, None)}


def invalid(message: str) -> ToolFailure:
    return ToolFailure("invalid_input", "invalid_arguments", message)


def require(met: object, message: str) -> None:
    """Refuse the arguments, with this message, unless the condition is met."""
    if not met:
        raise invalid(message)


def place(value: Any, name: str) -> Place:
    """Return the two coordinates of a point; numbers in strings count."""
    require(isinstance(value, Mapping) and "x" in value and "y" in value, f"{name} must have x and y")
    try:
        x, y = float(value["x"]), float(value["y"])
    except (TypeError, ValueError):
        raise invalid(f"{name} must have numeric x and y") from None
    require(0 <= x <= 1000 and 0 <= y <= 1000, f"{name} must be in range [0, 1000]")
    return x, y


def number(arguments: Arguments, key: str, default: float, low: float, high: float) -> float:
    """Return the number under a key, the default when it is absent; refused outside its range."""
    value = arguments.get(key, default)
    fits = isinstance(value, (int, float)) and not isinstance(value, bool) and low <= value <= high
    require(fits, f"{key} must be in range [{low:g}, {high:g}]")
    return float(value)


def gesture(phone: Phone, run: ToolRun, arguments: Arguments) -> Place | None:
    """Carry out one gesture; returns the place to mark for the tap family, None for the others."""
    if "actions" in arguments:
        _actions(phone, run, arguments["actions"])
        return None
    kind = str(arguments.get("type") or "")
    require(kind, "type is required")
    if kind in TAPS:
        require("point" in arguments, f"point is required for {kind}")
        at = place(arguments["point"], "point")
        run.pause(number(arguments, "hold_ms", TAPS[kind], 0, LONGEST_WAIT_MS) / 1000)
        phone.tap(*at)
        return at
    require(kind in STROKES, f'unsupported gesture type: "{kind}"')
    STROKES[kind](phone, run, arguments)
    return None


def _swipe(phone: Phone, run: ToolRun, arguments: Arguments) -> None:
    require("start" in arguments, "start is required for swipe")
    start = place(arguments["start"], "start")
    direction, end = arguments.get("direction"), arguments.get("end")
    require(direction is not None or end is not None, "end or direction is required for swipe")
    require(direction is None or end is None, "swipe accepts either end or direction, not both")
    stop = place(end, "end") if end is not None else _stop_of(start, direction, arguments)
    require(start != stop, "start and end must differ")
    if "duration_ms" in arguments:
        run.pause(number(arguments, "duration_ms", 1, 1, 10000) / 1000)
    else:
        run.pause(math.dist(start, stop) / number(arguments, "speed", SPEED, 1, FASTEST))
    phone.swipe(start, stop)


def _stop_of(start: Place, direction: object, arguments: Arguments) -> Place:
    """Return the end of a swipe in a direction: the edge, or as far as speed and duration say."""
    require(str(direction) in EDGES, f'unsupported direction: "{direction}"')
    x, y = EDGES[str(direction)]
    end = (start[0] if x is None else x, start[1] if y is None else y)
    if "duration_ms" not in arguments:
        return end
    speed = number(arguments, "speed", SPEED, 1, FASTEST)
    units = speed * number(arguments, "duration_ms", 1, 1, 10000) / 1000
    reach = abs(end[0] - start[0]) + abs(end[1] - start[1])
    require(units <= reach, "swipe leaves the screen; lower speed or duration_ms")
    share = units / reach if reach else 0
    return start[0] + (end[0] - start[0]) * share, start[1] + (end[1] - start[1]) * share


def _drag(phone: Phone, run: ToolRun, arguments: Arguments) -> None:
    """Begin or end a drag, which spans two calls."""
    kind = str(arguments["type"])
    at = arguments.get("point", arguments.get("start" if kind == "drag_start" else "end"))
    require(at is not None, f"point is required for {kind}")
    require(kind == "drag_start" or phone.view().pressed is not None, "drag_release needs a drag_start before it")
    x, y = place(at, "point")
    if kind == "drag_start":
        run.pause(DRAG_HOLD_S)
        phone.press(x, y, held=True)
    else:
        run.pause(DROP_HOLD_S)
        phone.release(x, y)


STROKES: Mapping[str, Callable[[Phone, ToolRun, Arguments], None]] = {
    "swipe": _swipe, "drag_start": _drag, "drag_release": _drag,
}  # fmt: skip


def _actions(phone: Phone, run: ToolRun, steps: Any) -> None:
    """Carry out a list of touch steps; checked whole before the first one moves anything."""
    require(isinstance(steps, list) and 1 <= len(steps) <= 128, "actions must have 1 to 128 steps")
    checked: list[tuple[str, Place | None, float]] = []  # action, place, milliseconds
    for index, step in enumerate(steps):
        known = isinstance(step, Mapping) and step.get("action") in ("touch_down", "move_to", "wait", "touch_up")
        require(known, f"actions[{index}]: unsupported action")
        action = str(step["action"])
        point = step.get("point") or ({"x": step["x"], "y": step["y"]} if "x" in step and "y" in step else None)
        free = point is not None or action not in ("touch_down", "move_to")
        require(free, f"actions[{index}]: point is required for {action}")
        ms = number(step, "ms" if "ms" in step else "duration_ms", 0, 0, 30000)
        checked.append((action, None if point is None else place(point, f"actions[{index}].point"), ms))
    require(steps[-1]["action"] == "touch_up", "actions must end with touch_up")
    waits = sum(ms for _, _, ms in checked)
    require(waits <= LONGEST_WAIT_MS, f"actions wait longer than {LONGEST_WAIT_MS} ms in total")
    moves = {"touch_down": phone.press, "move_to": phone.move, "touch_up": phone.release}
    for action, at, ms in checked:
        run.pause(ms / 1000)
        here = at or phone.view().pressed
        if here is not None and action in moves:
            moves[action](*here)
