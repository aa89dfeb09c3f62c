"""The page of the apps that only open."""

from __future__ import annotations

from collections.abc import Iterator

from mcpboard.simulator.phone.app_icons import icon
from mcpboard.simulator.phone.apps import bars
from mcpboard.simulator.phone.canvas import Canvas
from mcpboard.simulator.phone.elements import Element, centred, decor
from mcpboard.simulator.phone.theme import theme
from mcpboard.simulator.phone.view import View

SIDE = 120  # points of the icon in the middle


def elements(view: View) -> Iterator[Element]:
    yield from bars.head(view, view.app, large=True)
    (width, height), colours = view.size, theme(view)
    x, y = width / 2, height * 0.42
    corner = x - SIDE / 2, y - SIDE / 2

    def paint(canvas: Canvas) -> None:
        canvas.shadow((*corner, x + SIDE / 2, y + SIDE / 2), 30, 0.24, blur=14, drop=8)
        canvas.stamp(icon(view.app, canvas.px(SIDE), view.moment.day), *corner)

    yield decor(paint)
    yield centred((x, y + 98), f"Nothing in {view.app} yet", 21, colours.ink, bold=True, scale=view.scale)
    yield centred((x, y + 130), "This app is only a front.", 16, colours.pale, scale=view.scale)
