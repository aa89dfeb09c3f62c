"""Notes: one sheet of paper that takes text."""

from __future__ import annotations

from collections.abc import Iterator

from mcpboard.simulator.phone import fonts, moves
from mcpboard.simulator.phone.apps import bars, keyboard
from mcpboard.simulator.phone.canvas import Canvas
from mcpboard.simulator.phone.elements import Element, label
from mcpboard.simulator.phone.theme import theme
from mcpboard.simulator.phone.view import Box, View

SIZE = 21  # points of a letter
LINE = 31  # from line to line
VISIBLE = 1200  # characters that the sheet can show at most; the rest need not be measured
AMBER = "#e0a100"


def sheet(view: View) -> Box:
    """Where the text stands; it ends above the keyboard."""
    width, height = view.size
    upper = bars.head_height(view) - 6
    lower = keyboard.top(view) - 12 if view.focused else height - bars.FOOT - 10
    return 16, upper, width - 16, lower


def elements(view: View) -> Iterator[Element]:
    if view.focused:
        yield keyboard.shut(view)
    yield from bars.head(view, "Notes", large=True)
    if view.focused:
        yield _done(view)
    yield Element("field", sheet(view), lambda canvas: _paint(canvas, view), view.notes, "Note", "field/Notes",
                  tap=moves.focused, children=tuple(_hints(view)))  # fmt: skip
    if view.focused:
        yield from keyboard.elements(view)


def _done(view: View) -> Element:
    width, middle = view.size[0], bars.status_height(view) + 22
    box = (width - 92, middle - 18, width - 20, middle + 18)
    return Element("button", box, lambda canvas: canvas.middle(width - 56, middle, "Done", 18, AMBER, bold=True),
                   "Done", id="done", tap=moves.dismissed)  # fmt: skip


def _hints(view: View) -> Iterator[Element]:
    """The pale lines on the sheet: its date, and what to do with it while it is empty."""
    left, upper, _, _ = sheet(view)
    date = f"{view.moment.day} {view.moment:%B %Y at %H:%M}"
    yield label((left + 20, upper + 14), date, 14, theme(view).pale, scale=view.scale)
    if not view.notes and not view.focused:
        yield label((left + 20, upper + 46), "Tap to write", SIZE, theme(view).pale, scale=view.scale)


def _paint(canvas: Canvas, view: View) -> None:
    colours, box = theme(view), sheet(view)
    left, upper, right, lower = box
    canvas.shadow(box, 18, colours.shadow * 0.6, blur=10, drop=3)
    canvas.fill(box, colours.card, 18)
    _lines(canvas, view, (left + 20, upper + 46, right - 20, lower - 12))


def _lines(canvas: Canvas, view: View, box: Box) -> None:
    """The end of the text, as much as fits, and the caret behind it."""
    left, upper, right, lower = box
    colours, pixels = theme(view), canvas.px(SIZE)
    fit = max(1, int((lower - upper) // LINE))
    lines = fonts.wrapped(view.notes[-VISIBLE:], pixels, (right - left) * canvas.scale)[-fit:]
    for row, line in enumerate(lines):
        wide, y = canvas.width(line, SIZE), upper + LINE * row
        if view.marked and line:
            canvas.fill((left - 2, y - 1, left + wide + 2, y + LINE - 2), colours.accent, 4, 0.28)
        canvas.text(left, y + 1, line, SIZE, colours.ink)
    if view.focused and not view.marked:
        canvas.fill((left + wide + 1, y, left + wide + 3.4, y + 27), AMBER, 1.2)
