"""The keys on the screen: three rows that write, one that does the rest."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial

from mcpboard.simulator.phone import moves
from mcpboard.simulator.phone.canvas import Canvas
from mcpboard.simulator.phone.elements import Element
from mcpboard.simulator.phone.view import Box, Move, View

ROWS = {
    "abc": ("qwertyuiop", "asdfghjkl", "zxcvbnm"),
    "ABC": ("QWERTYUIOP", "ASDFGHJKL", "ZXCVBNM"),
    "123": ("1234567890", '-/:;()$&@"', ".,?!'"),
}
RETURNS = {"Browser": "go", "Messages": "send"}  # what the last key is called where it does more than a new line
EDGE, GAP = 5, 6  # points beside the keys and between them
PLAIN, DULL, STRONG = "plain", "dull", "strong"  # keys that write, that do something else, that finish
SHARE = {False: 0.31, True: 0.52}  # of the height that the keys take, upright and on its side


@dataclass(frozen=True)
class Cap:
    """The face of a key: a text or a sign, in the colors of its kind; the name is for the tree."""

    name: str
    text: str = ""
    image: str = ""
    size: int = 16  # points
    kind: str = DULL


def top(view: View) -> float:
    """Return the height at which the keyboard begins."""
    return view.size[1] * (1 - SHARE[view.landscape])


def elements(view: View) -> Iterator[Element]:
    """Yield the keyboard with all its keys as its children."""
    width, height = view.size
    start = top(view) + 10
    pitch, step = (height - 30 - start) / 4, (width - 2 * EDGE + GAP) / 10
    keys: list[Element] = []

    def add(row: int, left: float, right: float, cap: Cap, move: Move) -> None:
        keys.append(_key(view, (left, start + pitch * row, right, start + pitch * (row + 1) - 10), cap, move))

    for row, letters in enumerate(ROWS[view.keys]):
        for column, letter in enumerate(letters):
            left = (width - step * len(letters) + GAP) / 2 + step * column
            add(
                row,
                left,
                left + step - GAP,
                Cap(letter, letter, size=23, kind=PLAIN),
                partial(moves.typed, text=letter),
            )
    if view.keys != "123":
        case, kind = ("abc", PLAIN) if view.keys == "ABC" else ("ABC", DULL)
        add(2, EDGE, EDGE + step * 1.3, Cap("shift", image="shift", kind=kind), partial(replace, keys=case))
    add(2, width - EDGE - step * 1.3, width - EDGE, Cap("delete", image="erase"), moves.erased)
    side, other = width * 0.24, "123" if view.keys != "123" else "abc"
    add(3, EDGE, side, Cap(other, other.upper()), partial(replace, keys=other))
    add(3, side + GAP, width - side - GAP, Cap("space", "space", kind=PLAIN), partial(moves.typed, text=" "))
    name = RETURNS.get(view.app, "return")
    add(3, width - side, width - EDGE, Cap(name, name, kind=STRONG if view.app in RETURNS else DULL), moves.returned)
    ground = ((Canvas.fill, (0, start - 10, width, height), view.theme.board),)
    yield Element("keyboard", (0, start - 10, width, height), ground, id="keyboard", children=tuple(keys))


def _key(view: View, box: Box, cap: Cap, move: Move) -> Element:
    theme = view.theme
    face = {PLAIN: theme.key, DULL: theme.dull_key, STRONG: theme.accent}[cap.kind]
    ink = "#ffffff" if cap.kind == STRONG else theme.ink

    left, upper, right, lower = box
    x, y = (left + right) / 2, (upper + lower) / 2
    shapes = (
        (Canvas.fill, (left, upper + 1.5, right, lower + 1.5), "#000000", 7, 0.28),
        (Canvas.fill, box, face, 7),
        (Canvas.sign, cap.image, x - 12, y - 12, 24, ink)
        if cap.image
        else (Canvas.middle, x, y, cap.text, cap.size, ink),
    )
    return Element("key", box, shapes, cap.text, cap.name, f"key/{cap.name}", tap=move)


def shut(view: View) -> Element:
    """Return an unseen element below all others: a tap beside a focused field puts the keyboard away."""
    return Element("", (0, 0, *view.size), tap=moves.dismissed)
