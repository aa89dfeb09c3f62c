"""The calendar: the month of the board's clock, and an empty day below it."""

from __future__ import annotations

import calendar
from collections.abc import Iterator

from mcpboard.simulator.phone.apps import bars
from mcpboard.simulator.phone.elements import Element, centred, decor, label
from mcpboard.simulator.phone.theme import Theme, theme
from mcpboard.simulator.phone.view import View

RED = "#f0483e"
WEEKDAYS = ("M", "T", "W", "T", "F", "S", "S")


def elements(view: View) -> Iterator[Element]:
    yield from bars.head(view, f"{view.moment:%B}", large=True)
    top = bars.head_height(view) + 10
    weeks = calendar.Calendar().monthdayscalendar(view.moment.year, view.moment.month)
    across, row = (view.size[0] - 32, 66) if not view.landscape else (576, 52)
    yield from _month(view, weeks, top, across / 7, row)
    place = (32 + across, top) if view.landscape else (16, top + 52 + row * len(weeks))
    yield from _today(view, theme(view), *place)


def _month(view: View, weeks: list[list[int]], top: float, pitch: float, row: float) -> Iterator[Element]:
    """The days in their weeks, Monday first; 0 stands for a day of another month."""
    for column, name in enumerate(WEEKDAYS):
        middle = 16 + pitch * (column + 0.5)
        yield centred((middle, top + 12), name, 14, theme(view).pale, bold=True, scale=view.scale)
        for index, week in enumerate(weeks):
            if week[column]:
                yield from _day(view, middle, top + 52 + row * index, week[column], weekend=column > 4)


def _day(view: View, x: float, y: float, day: int, *, weekend: bool) -> Iterator[Element]:
    colours, today = theme(view), day == view.moment.day
    if today:
        yield decor(lambda canvas: canvas.disc(x, y, 23, RED))
    ink = "#ffffff" if today else colours.pale if weekend else colours.ink
    yield centred((x, y), str(day), 20, ink, bold=today, scale=view.scale)


def _today(view: View, colours: Theme, left: float, top: float) -> Iterator[Element]:
    """What is planned, which is nothing."""
    box = (left, top, view.size[0] - 16, top + 104)
    yield decor(lambda canvas: canvas.fill(box, colours.card, 18))
    yield decor(lambda canvas: canvas.fill((left + 16, top + 20, left + 20, top + 84), RED, 2))
    title = f"{view.moment:%A}, {view.moment.day} {view.moment:%B}"
    yield label((left + 36, top + 24), title, 19, colours.ink, bold=True, scale=view.scale)
    yield label((left + 36, top + 54), "Nothing planned", 17, colours.pale, scale=view.scale)
