"""Actions that can be told apart: each carries a number in its arguments, and the Agent that ran it reads it there.

As a program, `python -m tests.bench.numbered FILE`: a simulated Agent that writes every action down, once when it
begins and once when the phone has moved, into a file that outlives it; prints its URL and serves until it is ended.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from mcpboard.simulator import Simulator
from mcpboard.simulator.board import actions
from mcpboard.simulator.board.actions import Action, ActionContext

WIDTH, HEIGHT = 498, 1080  # pixels of the screenshots, in which a host's clients count
ROW, FIRST_ROW = 20, 60  # numbers side by side, at the left edge, where no app has anything to touch
SCALE = 1000
PADDING = 160_000  # characters: a request that no socket takes in one piece, below the limit of a body
URL = "http://127.0.0.1/"
SPEED = 50  # times as fast as a phone

Call = tuple[str, dict[str, Any]]  # name and arguments of a tool


def for_board(number: int) -> Call:
    """A tool call of a board, one of four shapes: gesture, page, short and long text."""
    if number % 4 == 0:
        return "open_url", {"url": f"{URL}{number}"}
    if number % 4 == 1:
        padding = "x" * PADDING if number % 8 == 1 else ""
        return "bridge_clipboard", {"action": "write", "text": f"{number} {padding}"}
    x, y = _pixel(number)
    point = {"x": round(x * SCALE / (WIDTH - 1), 2), "y": round(y * SCALE / (HEIGHT - 1), 2)}
    return "touch_gesture", {"type": "tap", "point": point}


def for_host(number: int) -> Call:
    """The same of a host, whose board is called `board`."""
    x, y = _pixel(number)
    if number % 2:
        return "tap", {"device_id": "board", "x": x, "y": y}
    ends = {"start_x": x, "start_y": y, "end_x": x + 200, "end_y": y}
    return "swipe", {"device_id": "board", **ends, "duration_ms": 100}


def _pixel(number: int) -> tuple[int, int]:
    return number % ROW, FIRST_ROW + number // ROW


def number_of(arguments: Mapping[str, Any]) -> int:
    """The number in the arguments that the Agent was given; -1 where they are not those of any call above."""
    try:
        if "url" in arguments:
            return int(arguments["url"].removeprefix(URL))
        if "text" in arguments:
            return int(arguments["text"].partition(" ")[0])
        point = arguments.get("point") or arguments["start"]
        x, y = (round(point[axis] * (side - 1) / SCALE) for axis, side in (("x", WIDTH), ("y", HEIGHT)))
        return int((y - FIRST_ROW) * ROW + x)
    except (KeyError, TypeError, ValueError):
        return -1


@dataclass(frozen=True)
class Executed:
    """Counts of each number, begun and done, by all Agents that wrote into one file."""

    begun: Counter[int]
    done: Counter[int]

    @classmethod
    def read(cls, file: Path) -> Executed:
        words = [line.split() for line in file.read_text("ascii").splitlines()]
        begun, done = (Counter(int(number) for kind, number in words if kind == wanted) for wanted in ("begun", "done"))
        return cls(begun, done)


# --- the Agent ---------------------------------------------------------------------------------


def _written_down(action: Action, file: int) -> Action:
    def run(context: ActionContext, arguments: Mapping[str, Any]) -> str:
        number = number_of(arguments)
        os.write(file, f"begun {number}\n".encode())
        output = action(context, arguments)
        os.write(file, f"done {number}\n".encode())
        return output

    return run


def main(path: str) -> None:
    # Unbuffered, so that a line is in the file whatever happens to this process after it.
    file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    table = cast(dict[str, Action], actions.ACTIONS)
    table.update({name: _written_down(action, file) for name, action in table.items()})
    ended = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: ended.set())
    with Simulator(speed=SPEED) as simulator:
        assert simulator.phone.view().pixels == (WIDTH, HEIGHT)
        print(simulator.agent_url, flush=True)
        while not ended.wait(1.0):  # without a limit, a signal that comes just before the wait would not end it
            pass


if __name__ == "__main__":
    main(sys.argv[1])
