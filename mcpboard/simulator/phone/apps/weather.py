"""The weather: always the same fine day, and the week after it."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

from mcpboard.simulator.phone.canvas import Canvas
from mcpboard.simulator.phone.elements import Element, centred, decor, label
from mcpboard.simulator.phone.glyphs import sign
from mcpboard.simulator.phone.view import Box, View

SKY, NIGHT = ("#2f83e4", "#8fcdfb"), ("#0b1f44", "#2f5591")
WHITE, HAZE, SUN = "#ffffff", "#dbeaff", "#ffd84d"
HOURS = (17, 18, 20, 21, 19, 16)  # degrees, every third hour
DAYS = ((13, 24), (12, 22), (14, 25), (15, 27), (13, 23), (11, 20), (12, 21))  # lowest and highest, degrees
COLDEST, WARMEST = 10, 28
ROW = 46


def elements(view: View) -> Iterator[Element]:
    top, bottom = NIGHT if view.dark else SKY
    yield decor(lambda canvas: canvas.slope((0, 0, *view.size), top, bottom))
    middle, start = (view.size[0] / 2, 96) if not view.landscape else (250, 60)
    yield centred((middle, start), "Harbour", 30, WHITE, scale=view.scale, role="title")
    yield centred((middle + 10, start + 76), "21\u00b0", 92, WHITE, scale=view.scale)
    yield centred((middle, start + 144), "Mostly sunny", 20, HAZE, bold=True, scale=view.scale)
    yield centred((middle, start + 172), "H 24\u00b0   L 13\u00b0", 18, WHITE, scale=view.scale)
    left, right = (16, view.size[0] - 16) if not view.landscape else (16, 484)
    yield from _hours(view, (left, start + 212, right, start + 352))
    left, upper = (16, start + 372) if not view.landscape else (508, 60)
    yield from _days(view, (left, upper, view.size[0] - 16, upper + 48 + ROW * len(DAYS)))


def _panel(view: View, box: Box, title: str) -> Iterator[Element]:
    yield decor(lambda canvas: canvas.fill(box, "#0d2c5c", 20, 0.28))
    yield label((box[0] + 20, box[1] + 14), title, 13, HAZE, bold=True, scale=view.scale)


def _hours(view: View, box: Box) -> Iterator[Element]:
    yield from _panel(view, box, "TODAY")
    pitch = (box[2] - box[0] - 24) / len(HOURS)
    for index, degrees in enumerate(HOURS):
        x = box[0] + 12 + pitch * (index + 0.5)
        yield centred((x, box[1] + 52), f"{(view.moment.hour + 3 * index) % 24:02d}", 15, HAZE, scale=view.scale)
        yield _sun(x, box[1] + 82)
        yield centred((x, box[1] + 114), f"{degrees}\u00b0", 18, WHITE, bold=True, scale=view.scale)


def _sun(x: float, y: float) -> Element:
    return decor(lambda canvas: canvas.stamp(sign("sun", canvas.px(30), SUN), x - 15, y - 15))


def _days(view: View, box: Box) -> Iterator[Element]:
    yield from _panel(view, box, "THE WEEK")
    for index, (low, high) in enumerate(DAYS):
        y = box[1] + 42 + ROW * index
        day = "Today" if index == 0 else f"{view.moment + timedelta(days=index):%A}"
        yield label((box[0] + 20, y + 10), day, 18, WHITE, scale=view.scale)
        yield _sun(box[0] + 158, y + 21)
        yield label((box[0] + 192, y + 10), f"{low}\u00b0", 18, HAZE, scale=view.scale)
        yield _span(box[0] + 236, box[2] - 66, y + 21, low, high)
        yield label((box[2] - 54, y + 10), f"{high}\u00b0", 18, WHITE, scale=view.scale)


def _span(left: float, right: float, y: float, low: int, high: int) -> Element:
    """A day's range within the week's."""
    first, last = (left + (right - left) * (each - COLDEST) / (WARMEST - COLDEST) for each in (low, high))

    def paint(canvas: Canvas) -> None:
        canvas.fill((left, y - 3, right, y + 3), "#0d2c5c", 3, 0.35)
        canvas.fill((first, y - 3, last, y + 3), SUN, 3)

    return decor(paint)
