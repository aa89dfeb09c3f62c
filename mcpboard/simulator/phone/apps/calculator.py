"""The calculator: a line of digits and the keys that count."""

from __future__ import annotations

from collections.abc import Iterator

from mcpboard.simulator.phone import moves
from mcpboard.simulator.phone.apps import bars
from mcpboard.simulator.phone.canvas import Canvas
from mcpboard.simulator.phone.elements import Element, decor
from mcpboard.simulator.phone.fonts import width
from mcpboard.simulator.phone.view import Box, View

ROWS = (
    ("7", "8", "9", "\u00f7"),
    ("4", "5", "6", "\u00d7"),
    ("1", "2", "3", "\u2212"),
    ("0", ".", "C", "+"),
)
GAP = 14  # points between keys
PAPER, DIGIT, SIGN, CLEAR = "#0b0c10", "#2c2e36", "#ff9f0a", "#8d909b"


def elements(view: View) -> Iterator[Element]:
    yield decor(lambda canvas: canvas.fill((0, 0, *view.size), PAPER))
    yield _display(view)
    yield from _keys(view)


def _key_box(view: View, row: int, column: int) -> Box:
    """Five rows of four at the bottom; the last row is one broad key."""
    wide, height = view.size
    tall = (height * 0.62 if not view.landscape else height * 0.70) / 5
    across = (wide - 2 * 22 + GAP) / 4
    x, y = 22 + across * column, height - bars.FOOT - 8 - tall * (5 - row)
    return x, y, x + across - GAP, y + tall - GAP


def _display(view: View) -> Element:
    bottom = _key_box(view, 0, 0)[1]
    right, size = view.size[0] - 34, 64 if not view.landscape else 40
    text = view.figures or "0"
    while size > 20 and width(text, round(size * view.scale)) / view.scale > right - 20:
        size -= 4
    box = (22, bottom - size * 1.6, right + 6, bottom - 8)

    def paint(canvas: Canvas) -> None:
        canvas.text(right - canvas.width(text, size), bottom - size * 1.6, text, size, "#ffffff")

    return Element("display", box, paint, text, id="display")


def _keys(view: View) -> Iterator[Element]:
    for row, signs in enumerate(ROWS):
        for column, key in enumerate(signs):
            colour = CLEAR if key == "C" else SIGN if column == 3 else DIGIT
            yield _key(_key_box(view, row, column), key, colour)
    first, last = _key_box(view, 4, 0), _key_box(view, 4, 3)
    yield _key((first[0], first[1], last[2], last[3]), "=", SIGN)


def _key(box: Box, key: str, colour: str) -> Element:
    left, top, right, bottom = box
    ink = "#0b0c10" if key == "C" else "#ffffff"

    def paint(canvas: Canvas) -> None:
        canvas.fill(box, colour, min(right - left, bottom - top) / 2)
        canvas.middle((left + right) / 2, (top + bottom) / 2, key, 32, ink)

    return Element("key", box, paint, key, id=f"key/{key}", tap=lambda view: moves.counted(view, key))
