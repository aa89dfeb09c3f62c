"""The apps that neither scroll nor take text: clock, calendar, calculator, weather, and those that are only a front."""

from __future__ import annotations

import calendar as months
import math
from collections.abc import Iterator, Mapping
from datetime import timedelta
from functools import lru_cache, partial

from PIL import Image, ImageDraw

from mcpboard.simulator.phone import moves
from mcpboard.simulator.phone.apps import bars
from mcpboard.simulator.phone.canvas import Canvas
from mcpboard.simulator.phone.elements import Element, centered, decor, floating_icon, label, width
from mcpboard.simulator.phone.frames import Picture
from mcpboard.simulator.phone.masks import FINE
from mcpboard.simulator.phone.view import CONTENT, Box, View

FRONT = 120  # points of the icon in the middle of an app that is only a front

# --- the clock: a dial with the phone's time, and the hours of other cities ----------------------------------------

CITIES: Mapping[str, int] = CONTENT["cities"]  # hours ahead of UTC, in summer
DAYS = {-1: "Yesterday", 0: "Today", 1: "Tomorrow"}
DIAL = 300  # points across
CITY = 74  # points of one city's line


def clock(view: View) -> Iterator[Element]:
    yield from bars.head(view)
    theme = view.theme
    x, y = (view.size[0] / 2, bars.head_height(view) + 180) if not view.landscape else (220, 280)
    side = DIAL if not view.landscape else 330
    box = (x - side / 2, y - side / 2, x + side / 2, y + side / 2)

    yield Element("clock", box, (
        (Canvas.shadow, box, side / 2, theme.shadow, 14, 6),
        (Canvas.disc, x, y, side / 2, theme.card),
        (Canvas.stamp, _dial(round(side * view.scale), view.minute % 720, theme.ink, theme.pale), box[0], box[1]),
    ), desc=view.clock, id="dial")  # fmt: skip
    if not view.landscape:
        yield centered(view, (x, y + 196), f"{view.moment:%A}, {view.moment.day} {view.moment:%B}", 19, theme.pale)
    left, top = (16, y + 232) if not view.landscape else (470, 96)
    right = view.size[0] - 16
    card = (left, top, right, top + CITY * len(CITIES))
    yield decor((Canvas.shadow, card, 18, theme.shadow * 0.4, 8, 2), (Canvas.fill, card, theme.card, 18))
    for index, (city, hours) in enumerate(CITIES.items()):
        row = top + CITY * index
        if index:
            yield decor((Canvas.fill, (left + 22, row - 0.5, right, row + 0.5), theme.line))
        ahead = hours - view.zone / 60
        there = view.moment + timedelta(hours=ahead)
        day = DAYS[(there.date() - view.moment.date()).days]
        yield label(view, (left + 22, row + 13), city, 20, theme.ink)
        yield label(view, (left + 22, row + 41), f"{day}, {ahead:+g} h", 14, theme.pale)
        time = f"{there:%H:%M}"
        yield label(view, (right - 22 - width(view, time, 31), row + 17), time, 31, theme.ink)


@lru_cache(maxsize=4)
def _dial(side: int, minute: int, ink: str, pale: str) -> Picture:
    """Draw the ticks and hands, large and then reduced, so that their edges are smooth."""
    full = side * FINE
    image = Image.new("RGBA", (full, full))
    pen = ImageDraw.Draw(image)

    def stroke(turn: float, inner: float, outer: float, thick: float, color: str) -> None:
        """Draw a line from the middle, in hundredths of the side; a turn of 0 is at twelve."""
        angle, half = math.tau * (turn - 0.25), full * thick / 200
        ends = [(radius * math.cos(angle), radius * math.sin(angle)) for radius in (inner, outer)]
        places = [(full * (50 + x) / 100, full * (50 + y) / 100) for x, y in ends]
        pen.line(places, color, round(2 * half))
        for x, y in places:
            pen.ellipse((x - half, y - half, x + half, y + half), color)

    for tick in range(60):
        stroke(tick / 60, *((40, 46, 1.4, ink) if tick % 5 == 0 else (43.5, 46, 0.7, pale)))
    stroke(minute / 720, 0, 24, 3.2, ink)
    stroke(minute % 60 / 60, 0, 36, 2.2, ink)
    stroke(0, -8, 40, 0.9, "#ff9500")
    stroke(0, 0, 0, 4.4, "#ff9500")
    return image.reduce(FINE)


# --- the calendar: the month of the phone's clock, and an empty day below it ---------------------------------------

RED = "#f0483e"
WEEKDAYS = ("M", "T", "W", "T", "F", "S", "S")


def calendar(view: View) -> Iterator[Element]:
    yield from bars.head(view, f"{view.moment:%B}")
    theme, top = view.theme, bars.head_height(view) + 10
    weeks = months.Calendar().monthdayscalendar(view.moment.year, view.moment.month)  # 0 for another month's day
    across, row = (view.size[0] - 32, 66) if not view.landscape else (576, 52)
    for column, name in enumerate(WEEKDAYS):
        x = 16 + across / 7 * (column + 0.5)
        yield centered(view, (x, top + 12), name, 14, theme.pale, bold=True)
        for index, week in enumerate(weeks):
            y, day = top + 52 + row * index, week[column]
            today = day == view.moment.day
            if today:
                yield decor((Canvas.disc, x, y, 23, RED))
            if day:
                ink = "#ffffff" if today else theme.pale if column > 4 else theme.ink
                yield centered(view, (x, y), str(day), 20, ink, bold=today)
    left, upper = (32 + across, top) if view.landscape else (16, top + 52 + row * len(weeks))
    yield decor(
        (Canvas.fill, (left, upper, view.size[0] - 16, upper + 104), theme.card, 18),
        (Canvas.fill, (left + 16, upper + 20, left + 20, upper + 84), RED, 2),
    )
    title = f"{view.moment:%A}, {view.moment.day} {view.moment:%B}"
    yield label(view, (left + 36, upper + 24), title, 19, theme.ink, bold=True)
    yield label(view, (left + 36, upper + 54), "Nothing planned", 17, theme.pale)


# --- the calculator: a line of digits and the keys that count ------------------------------------------------------

KEYS = ("789\u00f7", "456\u00d7", "123\u2212", "0.C+")
GAP = 14  # points between keys
PAPER, DIGIT, SIGN, CLEAR = "#0b0c10", "#2c2e36", "#ff9f0a", "#8d909b"


def calculator(view: View) -> Iterator[Element]:
    yield decor((Canvas.fill, (0, 0, *view.size), PAPER))
    bottom = _key_box(view, 0, 0)[1]
    right, size = view.size[0] - 34, 64 if not view.landscape else 40
    text = view.figures or "0"
    while size > 20 and width(view, text, size) > right - 20:
        size -= 4
    left, top = right - width(view, text, size), bottom - size * 1.6
    digits = (Canvas.text, left, top, text, size, "#ffffff")
    yield Element("display", (22, top, right + 6, bottom - 8), (digits,), text, id="display")
    for row, keys in enumerate(KEYS):
        for column, key in enumerate(keys):
            color = CLEAR if key == "C" else SIGN if column == 3 else DIGIT
            yield _key(_key_box(view, row, column), key, color)
    first, last = _key_box(view, 4, 0), _key_box(view, 4, 3)
    yield _key((first[0], first[1], last[2], last[3]), "=", SIGN)


def _key_box(view: View, row: int, column: int) -> Box:
    """Return the place of a key: five rows of four at the bottom; the last row is one broad key."""
    wide, height = view.size
    tall = (height * 0.62 if not view.landscape else height * 0.70) / 5
    across = (wide - 2 * 22 + GAP) / 4
    x, y = 22 + across * column, height - bars.FOOT - 8 - tall * (5 - row)
    return x, y, x + across - GAP, y + tall - GAP


def _key(box: Box, key: str, color: str) -> Element:
    left, top, right, bottom = box
    ink = "#0b0c10" if key == "C" else "#ffffff"
    shapes = (
        (Canvas.fill, box, color, min(right - left, bottom - top) / 2),
        (Canvas.middle, (left + right) / 2, (top + bottom) / 2, key, 32, ink),
    )
    return Element("key", box, shapes, key, id=f"key/{key}", tap=partial(moves.counted, key=key))


# --- the weather: always the same fine day, and the week after it --------------------------------------------------

SKY, NIGHT = ("#2f83e4", "#8fcdfb"), ("#0b1f44", "#2f5591")
WHITE, HAZE, SUN, PANEL = "#ffffff", "#dbeaff", "#ffd84d", "#0d2c5c"
HOURS, WEEK = CONTENT["degrees"].values()
COLDEST, WARMEST = 10, 28
ROW = 46  # points of one day's line


def weather(view: View) -> Iterator[Element]:
    top, bottom = NIGHT if view.dark else SKY
    yield decor((Canvas.slope, (0, 0, *view.size), top, bottom))
    middle, start = (view.size[0] / 2, 96) if not view.landscape else (250, 60)
    yield centered(view, (middle, start), "Harbour", 30, WHITE, role="title")
    yield centered(view, (middle + 10, start + 76), "21\u00b0", 92, WHITE)
    yield centered(view, (middle, start + 144), "Mostly sunny", 20, HAZE, bold=True)
    yield centered(view, (middle, start + 172), "H 24\u00b0   L 13\u00b0", 18, WHITE)
    left, right = (16, view.size[0] - 16) if not view.landscape else (16, 484)
    yield from _panel(view, (left, start + 212, right, start + 352), "TODAY")
    pitch = (right - left - 24) / len(HOURS)
    for index, degrees in enumerate(HOURS):
        x, y = left + 12 + pitch * (index + 0.5), start + 212
        yield centered(view, (x, y + 52), f"{(view.moment.hour + 3 * index) % 24:02d}", 15, HAZE)
        yield decor((Canvas.sign, "sun", x - 15, y + 82 - 15, 30, SUN))
        yield centered(view, (x, y + 114), f"{degrees}\u00b0", 18, WHITE, bold=True)
    left, upper = (16, start + 372) if not view.landscape else (508, 60)
    yield from _week(view, (left, upper, view.size[0] - 16, upper + 48 + ROW * len(WEEK)))


def _panel(view: View, box: Box, title: str) -> Iterator[Element]:
    yield decor((Canvas.fill, box, PANEL, 20, 0.28))
    yield label(view, (box[0] + 20, box[1] + 14), title, 13, HAZE, bold=True)


def _week(view: View, box: Box) -> Iterator[Element]:
    yield from _panel(view, box, "THE WEEK")
    left, right = box[0] + 236, box[2] - 66
    for index, (low, high) in enumerate(WEEK):
        y = box[1] + 42 + ROW * index
        day = "Today" if index == 0 else f"{view.moment + timedelta(days=index):%A}"
        yield label(view, (box[0] + 20, y + 10), day, 18, WHITE)
        yield decor((Canvas.sign, "sun", box[0] + 158 - 15, y + 21 - 15, 30, SUN))
        yield label(view, (box[0] + 192, y + 10), f"{low}\u00b0", 18, HAZE)
        # the day's range within the week's
        first, last = (left + (right - left) * (each - COLDEST) / (WARMEST - COLDEST) for each in (low, high))
        yield decor(
            (Canvas.fill, (left, y + 21 - 3, right, y + 21 + 3), PANEL, 3, 0.35),
            (Canvas.fill, (first, y + 21 - 3, last, y + 21 + 3), SUN, 3),
        )
        yield label(view, (box[2] - 54, y + 10), f"{high}\u00b0", 18, WHITE)


# --- the others ----------------------------------------------------------------------------------------------------


def front(view: View) -> Iterator[Element]:
    yield from bars.head(view)
    x, y = view.size[0] / 2, view.size[1] * 0.42
    yield decor(*floating_icon(view, view.app, (x, y), FRONT, 30, 0.24, 14, 8))
    yield centered(view, (x, y + 98), f"Nothing in {view.app} yet", 21, view.theme.ink, bold=True)
    yield centered(view, (x, y + 130), "This app is only a front.", 16, view.theme.pale)
