"""The keys on the screen: three rows that write, one that does the rest."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from mcpboard.simulator.phone import moves
from mcpboard.simulator.phone.canvas import Canvas
from mcpboard.simulator.phone.elements import Element
from mcpboard.simulator.phone.glyphs import sign
from mcpboard.simulator.phone.theme import theme
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
    """What is on a key: a text or a sign, in the colours of its kind; the name is for the tree."""

    name: str
    text: str = ""
    image: str = ""
    size: int = 16  # points
    kind: str = DULL


def top(view: View) -> float:
    """Where the keyboard begins."""
    return view.size[1] * (1 - SHARE[view.landscape])


def elements(view: View) -> Iterator[Element]:
    """The keyboard with all its keys below it."""
    width, height = view.size
    box = (0, top(view), width, height)
    colour = theme(view).board

    def paint(canvas: Canvas) -> None:
        canvas.fill(box, colour)

    yield Element("keyboard", box, paint, id="keyboard", children=tuple(_keys(view)))


def _keys(view: View) -> Iterator[Element]:
    width, height = view.size
    start = top(view) + 10
    pitch = (height - 30 - start) / 4
    step = (width - 2 * EDGE + GAP) / 10
    for row, letters in enumerate(ROWS[view.keys]):
        left = (width - step * len(letters) + GAP) / 2
        upper = start + pitch * row
        for column, letter in enumerate(letters):
            x = left + step * column
            yield _letter(view, (x, upper, x + step - GAP, upper + pitch - 10), letter)
    lower = start + 2 * pitch
    yield from _case(view, (EDGE, lower, EDGE + step * 1.3, lower + pitch - 10), width)
    yield from _bottom(view, start + 3 * pitch, pitch - 10, width)


def _case(view: View, box: Box, width: float) -> Iterator[Element]:
    """The two broad keys beside the third row."""
    if view.keys != "123":
        wanted = "abc" if view.keys == "ABC" else "ABC"
        shift = Cap("shift", image="shift", kind=PLAIN if view.keys == "ABC" else DULL)
        yield _key(view, box, shift, lambda view: moves.keyboard(view, wanted))
    right = (width - box[2], box[1], width - box[0], box[3])
    yield _key(view, right, Cap("delete", image="erase"), moves.erased)


def _bottom(view: View, upper: float, tall: float, width: float) -> Iterator[Element]:
    side, lower = width * 0.24, upper + tall
    other = "123" if view.keys != "123" else "abc"
    left = (EDGE, upper, side, lower)
    yield _key(view, left, Cap(other, other.upper()), lambda view: moves.keyboard(view, other))
    space = (side + GAP, upper, width - side - GAP, lower)
    yield _key(view, space, Cap("space", "space", kind=PLAIN), lambda view: moves.typed(view, " "))
    name = RETURNS.get(view.app, "return")
    right = (width - side, upper, width - EDGE, lower)
    yield _key(view, right, Cap(name, name, kind=STRONG if view.app in RETURNS else DULL), moves.returned)


def _letter(view: View, box: Box, letter: str) -> Element:
    return _key(view, box, Cap(letter, letter, size=23, kind=PLAIN), lambda view: moves.typed(view, letter))


def _key(view: View, box: Box, cap: Cap, move: Move) -> Element:
    colours = theme(view)
    face = {PLAIN: colours.key, DULL: colours.dull_key, STRONG: colours.accent}[cap.kind]
    ink = "#ffffff" if cap.kind == STRONG else colours.ink

    def paint(canvas: Canvas) -> None:
        left, upper, right, lower = box
        canvas.fill((left, upper + 1.5, right, lower + 1.5), "#000000", 7, 0.28)
        canvas.fill(box, face, 7)
        middle = (left + right) / 2, (upper + lower) / 2
        if cap.image:
            canvas.stamp(sign(cap.image, canvas.px(24), ink), middle[0] - 12, middle[1] - 12)
        else:
            canvas.middle(*middle, cap.text, cap.size, ink)

    return Element("key", box, paint, cap.text, cap.name, f"key/{cap.name}", tap=move)


def shut(view: View) -> Element:
    """Nothing to see: what a tap beside a focused field does."""
    return Element("", (0, 0, *view.size), tap=moves.dismissed)
