"""Messages: one conversation, a field to write in, and an answer to everything."""

from __future__ import annotations

from collections.abc import Iterator

from mcpboard.simulator.phone import fonts, moves
from mcpboard.simulator.phone.apps import bars, keyboard
from mcpboard.simulator.phone.canvas import Canvas
from mcpboard.simulator.phone.elements import Element, clipped, decor
from mcpboard.simulator.phone.glyphs import sign
from mcpboard.simulator.phone.theme import theme
from mcpboard.simulator.phone.view import Box, View

SIZE, LINE = 18, 25  # points of a letter, and from line to line
PAD = 16  # between the text and the edge of its bubble
SHOWN = 600  # characters of one message that can matter
WIDEST = 0.72  # of the screen's width that a bubble takes


def _field(view: View) -> Box:
    """Where the draft stands: above the keyboard, or above the home line."""
    width, height = view.size
    bottom = keyboard.top(view) - 10 if view.focused else height - bars.FOOT - 8
    return 16, bottom - 46, width - 72, bottom


def elements(view: View) -> Iterator[Element]:
    if view.focused:
        yield keyboard.shut(view)
    field = _field(view)
    yield from clipped(_bubbles(view, field[1] - 14), bars.head_height(view), field[1])
    width, colours = view.size[0], theme(view)
    yield decor(lambda canvas: canvas.fill((0, field[1] - 8, width, view.size[1]), colours.paper))
    yield from bars.head(view, "Messages", large=True)
    yield Element("field", field, lambda canvas: _draft(canvas, view, field), view.draft, "Message", "field/Messages",
                  tap=moves.focused)  # fmt: skip
    yield _send(view, field)
    if view.focused:
        yield from keyboard.elements(view)


def _bubbles(view: View, bottom: float) -> Iterator[Element]:
    """The thread from its end upwards, as far as there is room."""
    made: list[Element] = []
    for mine, text in reversed(view.thread):
        if bottom < bars.head_height(view):
            break
        made.append(_bubble(view, text, bottom, mine=mine))
        bottom = made[-1].box[1] - 8
    yield from reversed(made)


def _bubble(view: View, text: str, bottom: float, *, mine: bool) -> Element:
    colours, width = theme(view), view.size[0]
    lines = fonts.wrapped(text[:SHOWN], round(SIZE * view.scale), width * WIDEST * view.scale - 2 * PAD * view.scale)
    wide = max(fonts.width(line, round(SIZE * view.scale)) for line in lines) / view.scale + 2 * PAD
    left = width - 16 - wide if mine else 16
    box = (left, bottom - LINE * len(lines) - 16, left + wide, bottom)
    ground, ink = (colours.accent, "#ffffff") if mine else (colours.off, colours.ink)

    def paint(canvas: Canvas) -> None:
        canvas.fill(box, ground, 20)
        for row, line in enumerate(lines):
            canvas.text(left + PAD, box[1] + 9 + LINE * row, line, SIZE, ink)

    return Element("message", box, paint, text, "sent" if mine else "received")


def _draft(canvas: Canvas, view: View, box: Box) -> None:
    colours, (left, top, right, _) = theme(view), box
    canvas.outline(box, colours.line, 23, 1.5, colours.card)
    text = view.draft[-SHOWN:].replace("\n", " ")
    while text and canvas.width(text, SIZE) > right - left - 44:
        text = text[1:]
    wide = canvas.width(text, SIZE)
    if view.marked:
        canvas.fill((left + 18, top + 11, left + 22 + wide, top + 35), colours.accent, 4, 0.28)
    if not view.draft and not view.focused:
        canvas.text(left + 20, top + 11, "Message", SIZE, colours.pale)
    canvas.text(left + 20, top + 11, text, SIZE, colours.ink)
    if view.focused and not view.marked:
        canvas.fill((left + 21 + wide, top + 11, left + 23 + wide, top + 35), colours.accent, 1)


def _send(view: View, field: Box) -> Element:
    x, y = view.size[0] - 40, (field[1] + field[3]) / 2
    colours = theme(view)

    def paint(canvas: Canvas) -> None:
        canvas.disc(x, y, 22, colours.accent if view.draft.strip() else colours.off)
        canvas.stamp(sign("shift", canvas.px(22), "#ffffff"), x - 11, y - 11)

    return Element("button", (x - 22, y - 22, x + 22, y + 22), paint, desc="Send", id="send", tap=moves.sent)
