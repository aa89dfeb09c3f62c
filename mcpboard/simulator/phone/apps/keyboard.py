"""The keys on the screen: three rows that write, one that does the rest."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial

from mcpboard.simulator.phone import moves
from mcpboard.simulator.phone.canvas import Canvas
from mcpboard.simulator.phone.elements import Element
from mcpboard.simulator.phone.view import CONTENT, Box, Move, View

RETURNS = {"Browser": "go", "Messages": "send"}  # what the last key is called where it does more than a new line
EDGE, GAP = 5, 6  # points beside the keys and between them
PLAIN, DULL, STRONG = "plain", "dull", "strong"  # keys that write, that do something else, that finish
SHARE = {False: 0.31, True: 0.52}  # of the height that the keys take, upright and on its side


def top(view: View) -> float:
    """Return the height at which the keyboard begins."""
    return view.size[1] * (1 - SHARE[view.landscape])


def elements(view: View) -> Iterator[Element]:
    """Yield the keyboard with all its keys as its children."""
    width, height = view.size
    start = top(view) + 10
    pitch, step = (height - 30 - start) / 4, (width - 2 * EDGE + GAP) / 10
    keys: list[Element] = []

    def add(row: int, left: float, right: float, name: str, move: Move, kind: str = DULL, sign: str = "") -> None:
        box = left, start + pitch * row, right, start + pitch * (row + 1) - 10
        keys.append(_key(view, box, name, move, kind, sign))

    for row, letters in enumerate(CONTENT["keys"][view.keys]):
        for column, letter in enumerate(letters):
            left = (width - step * len(letters) + GAP) / 2 + step * column
            add(row, left, left + step - GAP, letter, partial(moves.typed, text=letter), PLAIN)
    if view.keys != "123":
        case, kind = ("abc", PLAIN) if view.keys == "ABC" else ("ABC", DULL)
        add(2, EDGE, EDGE + step * 1.3, "shift", partial(replace, keys=case), kind, "shift")
    add(2, width - EDGE - step * 1.3, width - EDGE, "delete", moves.erased, sign="erase")
    side, other = width * 0.24, "123" if view.keys != "123" else "abc"
    add(3, EDGE, side, other, partial(replace, keys=other))
    add(3, side + GAP, width - side - GAP, "space", partial(moves.typed, text=" "), PLAIN)
    name = RETURNS.get(view.app, "return")
    add(3, width - side, width - EDGE, name, moves.returned, STRONG if view.app in RETURNS else DULL)
    ground = ((Canvas.fill, (0, start - 10, width, height), view.theme.board),)
    yield Element("keyboard", (0, start - 10, width, height), ground, id="keyboard", children=tuple(keys))


def _key(view: View, box: Box, name: str, move: Move, kind: str, sign: str) -> Element:
    """Return one key, which shows its name or a sign; what leads back to the letters is written in capitals."""
    theme, (left, upper, right, lower) = view.theme, box
    face = {PLAIN: theme.key, DULL: theme.dull_key, STRONG: theme.accent}[kind]
    ink = "#ffffff" if kind == STRONG else theme.ink
    x, y = (left + right) / 2, (upper + lower) / 2
    text = "" if sign else name.upper() if name == "abc" else name
    shapes = (
        (Canvas.fill, (left, upper + 1.5, right, lower + 1.5), "#000000", 7, 0.28),
        (Canvas.fill, box, face, 7),
        (Canvas.sign, sign, x - 12, y - 12, 24, ink) if sign
        else (Canvas.middle, x, y, text, 23 if len(text) == 1 else 16, ink),
    )  # fmt: skip
    return Element("key", box, shapes, text, name, f"key/{name}", tap=move)


def shut(view: View) -> Element:
    """Return an unseen element below all others: a tap beside a focused field puts the keyboard away."""
    return Element("", (0, 0, *view.size), tap=moves.dismissed)
