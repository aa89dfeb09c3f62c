"""The home screen: two widgets, the grid of icons, the dock."""

from __future__ import annotations

import functools
from collections.abc import Iterator

from mcpboard.simulator.phone import masks, moves
from mcpboard.simulator.phone.app_icons import icon
from mcpboard.simulator.phone.canvas import Canvas
from mcpboard.simulator.phone.elements import Element, centred, decor, label
from mcpboard.simulator.phone.frames import Picture
from mcpboard.simulator.phone.view import DOCK, NAMES, Box, Place, View
from mcpboard.simulator.phone.wallpaper import wallpaper

ICON = 76  # points of an icon's side
RADIUS = 30  # points of the round corners of widgets and dock
REACH = (95, 50)  # thousandths from an icon's centre that still belong to it


def slot(view: View, index: int) -> Place:
    """The centre of a place for an icon, in thousandths: rows from the top, the dock below."""
    docked = index - (len(NAMES) - DOCK)
    columns = 8 if view.landscape else 4
    row, column = divmod(index, columns)
    if view.landscape:
        return (257 + 162 * docked, 858) if docked >= 0 else (80 + 120 * column, 230 + 275 * row)
    return (152 + 232 * docked, 922) if docked >= 0 else (152 + 232 * column, 330 + 135 * row)


def slot_at(view: View, place: Place) -> int | None:
    """The place for an icon that a point (in thousandths) lies in."""
    across, down = (58, 120) if view.landscape else REACH
    for index in range(len(NAMES)):
        x, y = slot(view, index)
        if abs(place[0] - x) <= across and abs(place[1] - y) <= down:
            return index
    return None


def icon_under(view: View, place: Place) -> str:
    """The name of the icon at a point, "" for none."""
    index = slot_at(view, place)
    return "" if index is None else view.order[index]


def background(view: View) -> Picture:
    """The wallpaper. Not to be drawn upon."""
    return wallpaper(*view.pixels, view.hue, view.dark)


@functools.lru_cache(maxsize=8)
def _glass(size: tuple[int, int], hue: int, dark: bool, pixels: Box) -> Picture:
    """A piece of the wallpaper behind frosted glass."""
    left, top, right, bottom = map(int, pixels)
    piece = wallpaper(*size, hue, dark).crop((left, top, right, bottom))
    return masks.veiled(masks.frosted(piece, 24), "#000000" if dark else "#ffffff", 0.28 if dark else 0.34)


def glass(canvas: Canvas, view: View, box: Box) -> None:
    """Lay frosted glass over the wallpaper."""
    left, top, right, bottom = map(canvas.px, box)
    canvas.stamp_round(_glass(view.pixels, view.hue, view.dark, (left, top, right, bottom)), box[0], box[1], RADIUS)


def elements(view: View) -> Iterator[Element]:
    if not view.landscape:
        yield _calendar(view)
        yield _weather(view)
    yield decor(lambda canvas: _dock(canvas, view))
    for index, name in enumerate(view.order):
        if name != view.lifted:
            yield _icon(view, index, name)
    if view.lifted and view.pressed:
        place = view.point(view.pressed)
        yield decor(lambda canvas: _held(canvas, view, place))


def _dock(canvas: Canvas, view: View) -> None:
    width, height = view.size
    middle = view.point(slot(view, len(NAMES) - 1))[1]
    reach = 380 if view.landscape else width / 2 - 14
    glass(canvas, view, (width / 2 - reach, middle - 53, width / 2 + reach, min(middle + 53, height - 16)))


def _icon(view: View, index: int, name: str) -> Element:
    """An icon; those in the dock are drawn without a name, and described by it."""
    (x, y), docked = view.point(slot(view, index)), index >= len(NAMES) - DOCK
    half = ICON / 2
    tag = centred((x, y + half + 14), name, 13, "#ffffff", scale=view.scale)

    def paint(canvas: Canvas) -> None:
        corner = x - half, y - half
        canvas.shadow((*corner, x + half, y + half), 18, 0.22, blur=7, drop=4)
        canvas.stamp(icon(name, canvas.px(ICON), view.moment.day), *corner)
        if not docked:
            canvas.text(tag.box[0] + 1, tag.box[1] + 1, name, 13, "#3c4657")
            tag.paint(canvas)

    low = y + half + (0 if docked else 24)
    box = (min(x - half, tag.box[0]), y - half, max(x + half, tag.box[2]), low)
    text = "" if docked else name
    return Element("icon", box, paint, text, name, f"app/{name}", tap=lambda view: moves.shown(view, name))


def _held(canvas: Canvas, view: View, place: Place) -> None:
    """The icon that hangs on the finger, a little larger."""
    side = ICON * 1.16
    corner = place[0] - side / 2, place[1] - side / 2
    canvas.shadow((*corner, corner[0] + side, corner[1] + side), 20, 0.4, blur=14, drop=10)
    canvas.stamp(icon(view.lifted, canvas.px(side), view.moment.day), *corner)


def _calendar(view: View) -> Element:
    """The widget of today."""
    box, dark = (36, 76, 237, 268), view.dark
    card, ink, pale = ("#1f2128", "#f4f5f8", "#a0a3ad") if dark else ("#ffffff", "#17181c", "#85868d")
    lines = (
        label((58, 94), f"{view.moment:%A}".upper(), 14, "#f0483e", bold=True),
        label((57, 110), f"{view.moment.day}", 52, ink),
        label((58, 194), "No more events", 15, pale),
        label((58, 214), "today", 15, pale),
    )

    def paint(canvas: Canvas) -> None:
        canvas.shadow(box, RADIUS, 0.2, blur=12, drop=6)
        canvas.fill(box, card, RADIUS)

    return Element("widget", box, paint, desc="Calendar widget", id="widget/Calendar", children=lines,
                   tap=lambda view: moves.shown(view, "Calendar"))  # fmt: skip


def _weather(view: View) -> Element:
    box = (261, 76, 462, 268)
    white, haze = "#ffffff", "#d3e7ff"
    lines = (
        label((283, 94), "Harbour", 17, white, bold=True),
        label((282, 112), "21\u00b0", 52, white),
        label((283, 206), "Mostly sunny", 15, white, bold=True),
        label((283, 226), "H 24\u00b0  L 13\u00b0", 15, haze),
    )

    def paint(canvas: Canvas) -> None:
        canvas.shadow(box, RADIUS, 0.2, blur=12, drop=6)
        canvas.slope(box, "#3f9df5" if not view.dark else "#173a70", "#86c8ff" if not view.dark else "#2b5a9c", RADIUS)
        canvas.disc(430, 124, 30, "#ffffff", 0.16)
        canvas.disc(430, 124, 20, "#ffd84d")

    return Element("widget", box, paint, desc="Weather widget", id="widget/Weather", children=lines,
                   tap=lambda view: moves.shown(view, "Weather"))  # fmt: skip
