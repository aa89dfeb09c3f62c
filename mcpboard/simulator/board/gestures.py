"""Touch gestures as the Agent checks them, and what they do to the pretend phone."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

from mcpboard.simulator.board.runs import ToolFailure, ToolRun
from mcpboard.simulator.phone.phone import Phone
from mcpboard.simulator.phone.view import Place

Arguments = Mapping[str, Any]

SPEED = 2500.0  # normalised units a second, the Agent's default
DRAG_HOLD_S = 0.5  # the finger rests before a drag begins
DROP_HOLD_S = 0.2  # and before it lets go
LONGEST_WAIT_MS = 60000  # all waits of one list of actions together
FASTEST = 100_000.0  # units a second; a hundredth of a second for the whole screen
TAPS = {"tap": 50.0, "double_tap": 150.0, "long_press": 500.0}  # milliseconds that the finger needs
EDGES = {"up": (None, 0.0), "down": (None, 1000.0), "left": (0.0, None), "right": (1000.0, None)}


def invalid(message: str) -> ToolFailure:
    return ToolFailure("invalid_input", "invalid_arguments", message)


def place(value: object, name: str) -> Place:
    """The two coordinates of a point; numbers in strings count."""
    if not isinstance(value, Mapping) or "x" not in value or "y" not in value:
        raise invalid(f"{name} must have x and y")
    try:
        x, y = float(value["x"]), float(value["y"])
    except (TypeError, ValueError):
        raise invalid(f"{name} must have numeric x and y") from None
    if not (0 <= x <= 1000 and 0 <= y <= 1000):
        raise invalid(f"{name} must be in range [0, 1000]")
    return x, y


def gesture(phone: Phone, run: ToolRun, arguments: Arguments) -> Place | None:
    """Carry out one gesture; gives the place to mark for the tap family, None for the others."""
    if "actions" in arguments:
        _actions(phone, run, arguments["actions"])
        return None
    kind = str(arguments.get("type") or "")
    if not kind:
        raise invalid("type is required")
    if kind in TAPS:
        return tap(phone, run, kind, arguments)
    if kind not in STROKES:
        raise invalid(f'unsupported gesture type: "{kind}"')
    STROKES[kind](phone, run, arguments)
    return None


def number(arguments: Arguments, key: str, default: float, low: float, high: float) -> float:
    """The number under a key, the default when it is absent; refused outside its range."""
    value = arguments.get(key, default)
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not low <= value <= high:
        raise invalid(f"{key} must be in range [{low:g}, {high:g}]")
    return float(value)


def tap(phone: Phone, run: ToolRun, kind: str, arguments: Arguments) -> Place:
    if "point" not in arguments:
        raise invalid(f"point is required for {kind}")
    at = place(arguments["point"], "point")
    run.pause(number(arguments, "hold_ms", TAPS[kind], 0, LONGEST_WAIT_MS) / 1000)
    phone.tap(*at)
    return at


def _swipe(phone: Phone, run: ToolRun, arguments: Arguments) -> None:
    start, end = _stroke(arguments, "swipe")
    run.pause(_travel_s(arguments, start, end))
    phone.swipe(start, end)


def _stroke(arguments: Arguments, kind: str) -> tuple[Place, Place]:
    if "start" not in arguments:
        raise invalid(f"start is required for {kind}")
    start = place(arguments["start"], "start")
    towards, end = arguments.get("direction"), arguments.get("end")
    if towards is None and end is None:
        raise invalid(f"end or direction is required for {kind}")
    if towards is not None and end is not None:
        raise invalid(f"{kind} accepts either end or direction, not both")
    stop = place(end, "end") if end is not None else _edge(start, towards, arguments)
    if start == stop:
        raise invalid("start and end must differ")
    return start, stop


def _edge(start: Place, towards: object, arguments: Arguments) -> Place:
    """Where a direction leads: to the edge, or as far as speed and duration say."""
    if str(towards) not in EDGES:
        raise invalid(f'unsupported direction: "{towards}"')
    x, y = EDGES[str(towards)]
    end = (start[0] if x is None else x, start[1] if y is None else y)
    if "duration_ms" not in arguments:
        return end
    units = _speed(arguments) * _duration_ms(arguments) / 1000
    reach = abs(end[0] - start[0]) + abs(end[1] - start[1])
    if units > reach:
        raise invalid("swipe leaves the screen; lower speed or duration_ms")
    share = units / reach if reach else 0
    return start[0] + (end[0] - start[0]) * share, start[1] + (end[1] - start[1]) * share


def _duration_ms(arguments: Arguments) -> float:
    return number(arguments, "duration_ms", 1, 1, 10000)


def _speed(arguments: Arguments) -> float:
    return number(arguments, "speed", SPEED, 1, FASTEST)


def _travel_s(arguments: Arguments, start: Place, end: Place) -> float:
    if "duration_ms" in arguments:
        return _duration_ms(arguments) / 1000
    return math.dist(start, end) / _speed(arguments)


def _drag_start(phone: Phone, run: ToolRun, arguments: Arguments) -> None:
    at = arguments.get("point", arguments.get("start"))
    if at is None:
        raise invalid("point is required for drag_start")
    x, y = place(at, "point")
    run.pause(DRAG_HOLD_S)
    phone.press(x, y, held=True)


def _drag_release(phone: Phone, run: ToolRun, arguments: Arguments) -> None:
    at = arguments.get("point", arguments.get("end"))
    if at is None:
        raise invalid("point is required for drag_release")
    if phone.pressed is None:
        raise invalid("drag_release needs a drag_start before it")
    x, y = place(at, "point")
    run.pause(DROP_HOLD_S)
    phone.release(x, y)


def _actions(phone: Phone, run: ToolRun, steps: object) -> None:
    """A list of touch steps; checked whole before the first one moves anything."""
    if not isinstance(steps, list) or not 1 <= len(steps) <= 128:
        raise invalid("actions must have 1 to 128 steps")
    checked = [_step(index, step) for index, step in enumerate(steps)]
    if steps[-1]["action"] != "touch_up":
        raise invalid("actions must end with touch_up")
    if sum(ms for _, _, ms in checked) > LONGEST_WAIT_MS:
        raise invalid(f"actions wait longer than {LONGEST_WAIT_MS} ms in total")
    for step in checked:
        _perform(phone, run, *step)


def _step(index: int, step: object) -> tuple[str, Place | None, float]:
    if not isinstance(step, Mapping) or step.get("action") not in ("touch_down", "move_to", "wait", "touch_up"):
        raise invalid(f"actions[{index}]: unsupported action")
    at = step.get("point") or ({"x": step["x"], "y": step["y"]} if "x" in step and "y" in step else None)
    if at is None and step["action"] in ("touch_down", "move_to"):
        raise invalid(f"actions[{index}]: point is required for {step['action']}")
    ms = number(step, "ms" if "ms" in step else "duration_ms", 0, 0, 30000)
    return str(step["action"]), None if at is None else place(at, f"actions[{index}].point"), ms


def _perform(phone: Phone, run: ToolRun, action: str, at: Place | None, ms: float) -> None:
    run.pause(ms / 1000)
    here = at or phone.pressed
    if here is None:
        return
    if action == "touch_down":
        phone.press(*here)
    elif action == "touch_up":
        phone.release(*here)
    elif action == "move_to":
        phone.move(*here)


STROKES: Mapping[str, Callable[[Phone, ToolRun, Arguments], None]] = {
    "swipe": _swipe, "drag_start": _drag_start, "drag_release": _drag_release,
}  # fmt: skip
