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
    pitch = (height - 30 - start) / 4
    step = (width - 2 * EDGE + GAP) / 10
    keys: list[Element] = []
    for row, letters in enumerate(ROWS[view.keys]):
        left = (width - step * len(letters) + GAP) / 2
        upper = start + pitch * row
        for column, letter in enumerate(letters):
            x = left + step * column
            box = (x, upper, x + step - GAP, upper + pitch - 10)
            keys.append(_key(view, box, Cap(letter, letter, size=23, kind=PLAIN), partial(moves.typed, text=letter)))
    upper = start + 2 * pitch
    lower = upper + pitch - 10
    if view.keys != "123":
        case, kind = ("abc", PLAIN) if view.keys == "ABC" else ("ABC", DULL)
        shift = Cap("shift", image="shift", kind=kind)
        keys.append(_key(view, (EDGE, upper, EDGE + step * 1.3, lower), shift, partial(replace, keys=case)))
    right = (width - EDGE - step * 1.3, upper, width - EDGE, lower)
    keys.append(_key(view, right, Cap("delete", image="erase"), moves.erased))
    upper = start + 3 * pitch
    side, lower = width * 0.24, upper + pitch - 10
    other = "123" if view.keys != "123" else "abc"
    keys.append(_key(view, (EDGE, upper, side, lower), Cap(other, other.upper()), partial(replace, keys=other)))
    space = (side + GAP, upper, width - side - GAP, lower)
    keys.append(_key(view, space, Cap("space", "space", kind=PLAIN), partial(moves.typed, text=" ")))
    name = RETURNS.get(view.app, "return")
    enter = Cap(name, name, kind=STRONG if view.app in RETURNS else DULL)
    keys.append(_key(view, (width - side, upper, width - EDGE, lower), enter, moves.returned))
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
