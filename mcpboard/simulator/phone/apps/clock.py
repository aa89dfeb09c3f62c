"""The clock: a dial with the board's time, and the hours of other cities."""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator
from datetime import timedelta

from mcpboard.simulator.phone.apps import bars
from mcpboard.simulator.phone.canvas import Canvas
from mcpboard.simulator.phone.elements import Element, centred, decor, label
from mcpboard.simulator.phone.frames import Picture
from mcpboard.simulator.phone.stencil import Stencil
from mcpboard.simulator.phone.theme import theme
from mcpboard.simulator.phone.view import View

CITIES = (("London", -7), ("New York", -12), ("Tokyo", 1), ("Sydney", 2))  # hours against the board's zone, in summer
DAYS = {-1: "Yesterday", 0: "Today", 1: "Tomorrow"}
DIAL = 300  # points across
ROW = 74


def elements(view: View) -> Iterator[Element]:
    yield from bars.head(view, "Clock", large=True)
    x, y = (view.size[0] / 2, bars.head_height(view) + 180) if not view.landscape else (220, 280)
    side = DIAL if not view.landscape else 330
    yield Element("clock", (x - side / 2, y - side / 2, x + side / 2, y + side / 2),
                  lambda canvas: _dial(canvas, view, x, y, side), desc=view.clock, id="dial")  # fmt: skip
    if not view.landscape:
        yield centred((x, y + 196), f"{view.moment:%A}, {view.moment.day} {view.moment:%B}", 19, theme(view).pale)
    left, top = (16, y + 232) if not view.landscape else (470, 96)
    yield from _cities(view, left, top)


def _dial(canvas: Canvas, view: View, x: float, y: float, side: float) -> None:
    box, colours = (x - side / 2, y - side / 2, x + side / 2, y + side / 2), theme(view)
    canvas.shadow(box, side / 2, colours.shadow, blur=14, drop=6)
    canvas.disc(x, y, side / 2, colours.card)
    minute = view.minute % 720
    canvas.stamp(_hands(canvas.px(side), minute, colours.ink, colours.pale), box[0], box[1])


@functools.lru_cache(maxsize=4)
def _hands(side: int, minute: int, ink: str, pale: str) -> Picture:
    pen = Stencil(side)
    for tick in range(60):
        long, thick = (6, 1.4) if tick % 5 == 0 else (2.5, 0.7)
        pen.stroke([_at(tick / 60, r) for r in (46 - long, 46)], thick, ink if tick % 5 == 0 else pale)
    pen.stroke(((50, 50), _at(minute / 720, 24)), 3.2, ink)
    pen.stroke(((50, 50), _at(minute % 60 / 60, 36)), 2.2, ink)
    pen.stroke((_at(0.5, 8), _at(0, 40)), 0.9, "#ff9500")
    pen.disc(50, 50, 2.2, "#ff9500")
    return pen.image()


def _at(turn: float, radius: float) -> tuple[float, float]:
    """A place on the dial; a turn of 0 is at twelve."""
    angle = math.tau * (turn - 0.25)
    return 50 + radius * math.cos(angle), 50 + radius * math.sin(angle)


def _cities(view: View, left: float, top: float) -> Iterator[Element]:
    colours, right = theme(view), view.size[0] - 16
    card = (left, top, right, top + ROW * len(CITIES))
    yield decor(lambda canvas: canvas.shadow(card, 18, colours.shadow * 0.4, blur=8, drop=2))
    yield decor(lambda canvas: canvas.fill(card, colours.card, 18))
    for index, (city, hours) in enumerate(CITIES):
        y = top + ROW * index
        if index:
            yield _rule(left + 22, right, y, colours.line)
        there = view.moment + timedelta(hours=hours)
        day = DAYS[(there.date() - view.moment.date()).days]
        yield label((left + 22, y + 13), city, 20, colours.ink, scale=view.scale)
        yield label((left + 22, y + 41), f"{day}, {hours:+d} h", 14, colours.pale, scale=view.scale)
        yield label((right - 104, y + 17), f"{there:%H:%M}", 31, colours.ink, scale=view.scale)


def _rule(left: float, right: float, y: float, colour: str) -> Element:
    return decor(lambda canvas: canvas.fill((left, y - 0.5, right, y + 0.5), colour))
