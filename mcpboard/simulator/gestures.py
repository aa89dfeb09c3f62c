"""Touch gestures as the Agent checks them, and what they do to the pretend phone."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .phone import Phone
from .runs import Run, ToolFailure

Arguments = Mapping[str, Any]
Place = tuple[float, float]

SPEED = 2500.0  # normalised units a second, the Agent's default
LONG_PRESS_MS = 500
DRAG_HOLD_S = 0.5  # the finger rests before a drag begins
DROP_HOLD_S = 0.2  # and before it lets go
LONGEST_WAIT_MS = 60000  # all waits of one list of actions together
TAPS = {"tap": 0.05, "double_tap": 0.15, "long_press": LONG_PRESS_MS / 1000}  # seconds the finger needs
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


def gesture(phone: Phone, run: Run, arguments: Arguments) -> Place | None:
    """Carry out one gesture; gives the place to mark for the tap family, None for the others."""
    if "actions" in arguments:
        return _actions(phone, run, arguments["actions"])
    kind = arguments.get("type")
    if not kind:
        raise invalid("type is required")
    if kind in TAPS:
        return _tap(phone, run, str(kind), arguments)
    if kind == "swipe":
        return _swipe(phone, run, arguments)
    if kind == "drag_start":
        return _drag_start(phone, run, arguments)
    if kind == "drag_release":
        return _drag_release(phone, run, arguments)
    raise invalid(f'unsupported gesture type: "{kind}"')


def _tap(phone: Phone, run: Run, kind: str, arguments: Arguments) -> Place:
    if "point" not in arguments:
        raise invalid(f"point is required for {kind}")
    at = place(arguments["point"], "point")
    run.pause(int(arguments.get("hold_ms") or TAPS[kind] * 1000) / 1000)
    phone.tap(*at)
    return at


def _swipe(phone: Phone, run: Run, arguments: Arguments) -> None:
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
    if towards not in EDGES:
        raise invalid(f'unsupported direction: "{towards}"')
    x, y = EDGES[str(towards)]
    end = (start[0] if x is None else x, start[1] if y is None else y)
    if "duration_ms" not in arguments:
        return end
    units = float(arguments.get("speed") or SPEED) * _duration_ms(arguments) / 1000
    reach = abs(end[0] - start[0]) + abs(end[1] - start[1])
    if units > reach:
        raise invalid("swipe leaves the screen; lower speed or duration_ms")
    share = units / reach if reach else 0
    return start[0] + (end[0] - start[0]) * share, start[1] + (end[1] - start[1]) * share


def _duration_ms(arguments: Arguments) -> float:
    duration = arguments["duration_ms"]
    if not isinstance(duration, (int, float)) or not 1 <= duration <= 10000:
        raise invalid("duration_ms must be in range [1, 10000]")
    return float(duration)


def _travel_s(arguments: Arguments, start: Place, end: Place) -> float:
    if "duration_ms" in arguments:
        return _duration_ms(arguments) / 1000
    length = ((end[0] - start[0]) ** 2 + (end[1] - start[1]) ** 2) ** 0.5
    return length / float(arguments.get("speed") or SPEED)


def _drag_start(phone: Phone, run: Run, arguments: Arguments) -> None:
    at = arguments.get("point", arguments.get("start"))
    if at is None:
        raise invalid("point is required for drag_start")
    x, y = place(at, "point")
    run.pause(DRAG_HOLD_S)
    phone.press(x, y)


def _drag_release(phone: Phone, run: Run, arguments: Arguments) -> None:
    at = arguments.get("point", arguments.get("end"))
    if at is None:
        raise invalid("point is required for drag_release")
    if phone.pressed is None:
        raise invalid("drag_release needs a drag_start before it")
    x, y = place(at, "point")
    run.pause(DROP_HOLD_S)
    phone.release(x, y)


def _actions(phone: Phone, run: Run, steps: object) -> None:
    """A list of touch steps; checked whole before the first one moves anything."""
    if not isinstance(steps, list) or not 1 <= len(steps) <= 128:
        raise invalid("actions must have 1 to 128 steps")
    checked = [_step(number, step) for number, step in enumerate(steps)]
    if steps[-1]["action"] != "touch_up":
        raise invalid("actions must end with touch_up")
    if sum(ms for _, _, ms in checked) > LONGEST_WAIT_MS:
        raise invalid(f"actions wait longer than {LONGEST_WAIT_MS} ms in total")
    for step in checked:
        _perform(phone, run, *step)


def _step(number: int, step: object) -> tuple[str, Place | None, float]:
    if not isinstance(step, Mapping) or step.get("action") not in ("touch_down", "move_to", "wait", "touch_up"):
        raise invalid(f"actions[{number}]: unsupported action")
    at = step.get("point") or ({"x": step["x"], "y": step["y"]} if "x" in step and "y" in step else None)
    if at is None and step["action"] in ("touch_down", "move_to"):
        raise invalid(f"actions[{number}]: point is required for {step['action']}")
    ms = step.get("ms", step.get("duration_ms", 0))
    if not isinstance(ms, (int, float)) or not 0 <= ms <= 30000:
        raise invalid(f"actions[{number}]: ms must be in range [0, 30000]")
    return str(step["action"]), None if at is None else place(at, f"actions[{number}].point"), float(ms)


def _perform(phone: Phone, run: Run, action: str, at: Place | None, ms: float) -> None:
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
