"""The apps that take text: Notes, one sheet of paper, and Messages, one conversation that answers everything."""

from __future__ import annotations

from collections.abc import Iterator

from mcpboard.simulator.phone import fonts, moves
from mcpboard.simulator.phone.apps import bars, keyboard
from mcpboard.simulator.phone.canvas import Canvas
from mcpboard.simulator.phone.elements import Element, Shape, clipped, decor, label
from mcpboard.simulator.phone.view import Box, Place, View

# --- notes ---------------------------------------------------------------------------------------------------------

SIZE = 21  # points of a letter
LINE = 31  # from line to line
VISIBLE = 1200  # characters that the sheet can show at most; the rest need not be measured
AMBER = "#e0a100"


def notes(view: View) -> Iterator[Element]:
    yield from bars.head(view)
    width, height = view.size
    if view.focused:
        middle = bars.status_height(view) + 22
        done = (width - 92, middle - 18, width - 20, middle + 18)
        yield Element("button", done, ((Canvas.middle, width - 56, middle, "Done", 18, AMBER, True),),
                      "Done", id="done", tap=moves.dismissed)  # fmt: skip
    upper = bars.head_height(view) - 6
    lower = keyboard.top(view) - 12 if view.focused else height - bars.FOOT - 10
    sheet = (16, upper, width - 16, lower)
    date = f"{view.moment.day} {view.moment:%B %Y at %H:%M}"
    hints = [label(view, (36, upper + 14), date, 14, view.theme.pale)]
    if not view.notes and not view.focused:
        hints.append(label(view, (36, upper + 46), "Tap to write", SIZE, view.theme.pale))
    yield Element("field", sheet, ((_sheet, view, sheet),), view.notes, "Note", "field/Notes",
                  tap=moves.focused, children=tuple(hints))  # fmt: skip


def _sheet(canvas: Canvas, view: View, box: Box) -> None:
    """Paint the paper, the end of the text, as much as fits, and the caret behind it."""
    theme = view.theme
    canvas.shadow(box, 18, theme.shadow * 0.6, blur=10, drop=3)
    canvas.fill(box, theme.card, 18)
    left, upper, right, lower = box[0] + 20, box[1] + 46, box[2] - 20, box[3] - 12
    fit = max(1, int((lower - upper) // LINE))
    lines = fonts.wrapped(view.notes[-VISIBLE:], canvas.px(SIZE), (right - left) * canvas.scale)[-fit:]
    for row, line in enumerate(lines):
        wide, y = canvas.width(line, SIZE), upper + LINE * row
        if view.marked and line:
            canvas.fill((left - 2, y - 1, left + wide + 2, y + LINE - 2), theme.accent, 4, 0.28)
        canvas.text(left, y + 1, line, SIZE, theme.ink)
    if view.focused and not view.marked:
        canvas.fill((left + wide + 1, y, left + wide + 3.4, y + 27), AMBER, 1.2)


# --- messages ------------------------------------------------------------------------------------------------------

BUBBLE_SIZE, BUBBLE_LINE = 18, 25  # points of a letter, and from line to line
PAD = 16  # between the text and the edge of its bubble
SHOWN = 600  # characters of one message that can matter
WIDEST = 0.72  # of the screen's width that a bubble takes


def messages(view: View) -> Iterator[Element]:
    (width, height), theme = view.size, view.theme
    bottom = keyboard.top(view) - 10 if view.focused else height - bars.FOOT - 8
    field = (16, bottom - 46, width - 72, bottom)
    yield from clipped(_thread(view, field[1] - 14), bars.head_height(view), field[1])
    yield decor((Canvas.fill, (0, field[1] - 8, width, height), theme.paper))
    yield from bars.head(view)
    yield Element("field", field, ((_draft, view, field),), view.draft, "Message", "field/Messages",
                  tap=moves.focused)  # fmt: skip
    x, y = width - 40, (field[1] + field[3]) / 2
    shapes = (
        (Canvas.disc, x, y, 22, theme.accent if view.draft.strip() else theme.off),
        (Canvas.sign, "shift", x - 11, y - 11, 22, "#ffffff"),
    )
    yield Element("button", (x - 22, y - 22, x + 22, y + 22), shapes, desc="Send", id="send", tap=moves.sent)


def _thread(view: View, bottom: float) -> Iterator[Element]:
    """Yield the thread from its end upwards, as far as there is room."""
    theme, width, size = view.theme, view.size[0], round(BUBBLE_SIZE * view.scale)
    bubbles: list[Element] = []
    for mine, text in reversed(view.thread):
        if bottom < bars.head_height(view):
            break
        lines = fonts.wrapped(text[:SHOWN], size, width * WIDEST * view.scale - 2 * PAD * view.scale)
        wide = max(fonts.width(line, size) for line in lines) / view.scale + 2 * PAD
        left = width - 16 - wide if mine else 16
        box = (left, bottom - BUBBLE_LINE * len(lines) - 16, left + wide, bottom)
        ground, ink = (theme.accent, "#ffffff") if mine else (theme.off, theme.ink)
        shapes: list[Shape] = [(Canvas.fill, box, ground, 20)]
        for row, line in enumerate(lines):
            shapes.append((Canvas.text, left + PAD, box[1] + 9 + BUBBLE_LINE * row, line, BUBBLE_SIZE, ink))
        bubbles.append(Element("message", box, tuple(shapes), text, "sent" if mine else "received"))
        bottom = box[1] - 8
    yield from reversed(bubbles)


def _draft(canvas: Canvas, view: View, box: Box) -> None:
    canvas.outline(box, view.theme.line, 23, 1.5, view.theme.card)
    text = view.draft[-SHOWN:].replace("\n", " ")
    field_line(canvas, view, (box[0] + 20, box[1] + 11), box[2] - box[0] - 44, text, "Message")


def field_line(canvas: Canvas, view: View, at: Place, room: float, text: str, hint: str) -> None:
    """Paint the text of a field of one line: the end of it while it is typed, else its beginning; or the hint."""
    (x, y), theme, typing = at, view.theme, view.focused and not view.marked
    while typing and text and canvas.width(text, BUBBLE_SIZE) > room:
        text = text[1:]
    shown = fonts.fitted(text, canvas.px(BUBBLE_SIZE), canvas.px(room))
    end = x + canvas.width(shown, BUBBLE_SIZE)
    if view.marked:
        canvas.fill((x - 2, y, end + 2, y + 24), theme.accent, 4, 0.28)
    if not text and not view.focused:
        canvas.text(x, y, hint, BUBBLE_SIZE, theme.pale)
    canvas.text(x, y, shown, BUBBLE_SIZE, theme.ink)
    if typing:
        canvas.fill((end + 1, y, end + 3.2, y + 24), theme.accent, 1.1)
