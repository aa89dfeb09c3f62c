"""The home screen: two widgets, the grid of icons, the dock."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from mcpboard.simulator.phone import moves
from mcpboard.simulator.phone.canvas import Canvas
from mcpboard.simulator.phone.elements import Element, centered, decor, floating_icon, label
from mcpboard.simulator.phone.sprites import glass
from mcpboard.simulator.phone.view import DOCK, HOME, NAMES, Place, View

ICON = 76  # points of an icon's side
RADIUS = 30  # points of the round corners of widgets and dock
REACH = (95, 50)  # thousandths from an icon's center that still belong to it


def slot(view: View, index: int) -> Place:
    """Return the center of a slot for an icon, in thousandths: rows from the top, the dock below."""
    docked = index - (len(NAMES) - DOCK)
    columns = 8 if view.landscape else 4
    row, column = divmod(index, columns)
    if view.landscape:
        return (257 + 162 * docked, 858) if docked >= 0 else (80 + 120 * column, 230 + 275 * row)
    return (152 + 232 * docked, 922) if docked >= 0 else (152 + 232 * column, 330 + 135 * row)


def slot_at(view: View, place: Place) -> int | None:
    """Return the slot that a point (in thousandths) lies in."""
    across, down = (58, 120) if view.landscape else REACH
    away = ((abs(place[0] - x), abs(place[1] - y)) for x, y in (slot(view, index) for index in range(len(NAMES))))
    return next((index for index, (x, y) in enumerate(away) if x <= across and y <= down), None)


def icon_under(view: View, place: Place) -> str:
    """Return the name of the icon at a point, "" for none and where the icons are covered."""
    index = slot_at(view, place) if view.app == HOME and not view.layer else None
    return "" if index is None else view.order[index]


def elements(view: View) -> Iterator[Element]:
    if not view.landscape:
        yield from _widgets(view)
    yield decor((_dock, view))
    half = ICON / 2
    for index, name in enumerate(view.order):
        if name == view.lifted:
            continue
        # those in the dock are drawn without a name, and described by it
        (x, y), docked = view.point(slot(view, index)), index >= len(NAMES) - DOCK
        tag = centered(view, (x, y + half + 14), name, 13, "#ffffff")
        shapes = floating_icon(view, name, (x, y), ICON, 18, 0.22, 7, 4)
        if not docked:
            shapes += ((Canvas.text, tag.box[0] + 1, tag.box[1] + 1, name, 13, "#3c4657"), *tag.shapes)
        low = y + half + (0 if docked else 24)
        box = (min(x - half, tag.box[0]), y - half, max(x + half, tag.box[2]), low)
        yield Element("icon", box, shapes, "" if docked else name, name, f"app/{name}",
                      tap=partial(moves.shown, app=name))  # fmt: skip
    if view.lifted and view.pressed:  # the icon that hangs on the finger, a little larger
        yield decor(*floating_icon(view, view.lifted, view.point(view.pressed), ICON * 1.16, 20, 0.4, 14, 10))


def _dock(canvas: Canvas, view: View) -> None:
    """Lay frosted glass over the wallpaper behind the last icons."""
    width, height = view.size
    middle = view.point(slot(view, len(NAMES) - 1))[1]
    reach = 380 if view.landscape else width / 2 - 14
    box = (width / 2 - reach, middle - 53, width / 2 + reach, min(middle + 53, height - 16))
    left, top, right, bottom = map(canvas.px, box)
    veil, strength = ("#000000", 0.28) if view.dark else ("#ffffff", 0.34)
    pane = glass(view.wall, (left, top, right, bottom), 24, veil, strength)
    canvas.stamp(pane, box[0], box[1], RADIUS)


def _widgets(view: View) -> Iterator[Element]:
    """Yield the widgets of today and of the weather."""
    today, dark = (36, 76, 237, 268), view.dark
    card, ink, pale = ("#1f2128", "#f4f5f8", "#a0a3ad") if dark else ("#ffffff", "#17181c", "#85868d")

    ground = ((Canvas.shadow, today, RADIUS, 0.2, 12, 6), (Canvas.fill, today, card, RADIUS))
    yield Element("widget", today, ground, desc="Calendar widget", id="widget/Calendar", children=(
        label(view, (58, 94), f"{view.moment:%A}".upper(), 14, "#f0483e", bold=True),
        label(view, (57, 110), f"{view.moment.day}", 52, ink),
        label(view, (58, 194), "No more events", 15, pale),
        label(view, (58, 214), "today", 15, pale),
    ), tap=partial(moves.shown, app="Calendar"))  # fmt: skip
    weather = (261, 76, 462, 268)
    sky = (
        (Canvas.shadow, weather, RADIUS, 0.2, 12, 6),
        (Canvas.slope, weather, "#173a70" if dark else "#3f9df5", "#2b5a9c" if dark else "#86c8ff", RADIUS),
        (Canvas.disc, 430, 124, 30, "#ffffff", 0.16),
        (Canvas.disc, 430, 124, 20, "#ffd84d"),
    )
    yield Element("widget", weather, sky, desc="Weather widget", id="widget/Weather", children=(
        label(view, (283, 94), "Harbour", 17, "#ffffff", bold=True),
        label(view, (282, 112), "21\u00b0", 52, "#ffffff"),
        label(view, (283, 206), "Mostly sunny", 15, "#ffffff", bold=True),
        label(view, (283, 226), "H 24\u00b0  L 13\u00b0", 15, "#d3e7ff"),
    ), tap=partial(moves.shown, app="Weather"))  # fmt: skip
