"""The app switcher: the open apps as cards, side by side."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from mcpboard.simulator.phone import moves
from mcpboard.simulator.phone.app_icons import icon
from mcpboard.simulator.phone.apps import shade
from mcpboard.simulator.phone.canvas import Canvas
from mcpboard.simulator.phone.elements import Element, centred, decor, label
from mcpboard.simulator.phone.frames import Picture
from mcpboard.simulator.phone.view import Box, View

SHRUNK = 0.56  # of the screen's size that a card has
SHOWN = 4  # cards that are drawn
WHITE = "#ffffff"
Render = Callable[[View], Picture]


def elements(view: View, render: Render) -> Iterator[Element]:
    """The cards, the newest in front; `render` draws the screen of an app."""
    yield decor(lambda canvas: shade.background(canvas, view))
    yield Element("switcher", (0, 0, *view.size), desc="App switcher", id="switcher", tap=moves.dismissed)
    apps = view.recent[:SHOWN]
    for index in reversed(range(len(apps))):
        yield _card(view, index, apps[index], render)
    if not apps:
        middle = view.size[0] / 2, view.size[1] / 2
        yield centred(middle, "No app is open", 21, WHITE, scale=view.scale)


def _card(view: View, index: int, app: str, render: Render) -> Element:
    """One card: the newest stands at the right, the older ones look out behind it."""
    width, height = view.size
    wide, tall = width * SHRUNK, height * SHRUNK
    shrink = 1 - 0.05 * index
    x = width * 0.60 - index * width * 0.23
    wide, tall = wide * shrink, tall * shrink
    box = (x - wide / 2, height * 0.53 - tall / 2, x + wide / 2, height * 0.53 + tall / 2)
    name = label((box[0] + 46, box[1] - 34), app, 16, WHITE, bold=True, scale=view.scale)

    def paint(canvas: Canvas) -> None:
        _paint(canvas, view, app, box, render)
        name.paint(canvas)

    seen = (max(0, box[0]), box[1] - 42, box[2] if index == 0 else box[0] + width * 0.23, box[3])
    return Element("card", seen, paint, app, id=f"card/{app}", tap=lambda view: moves.shown(view, app))


def _paint(canvas: Canvas, view: View, app: str, box: Box, render: Render) -> None:
    inner = replace(view.still(), layer="", pressed=None, toast="")
    picture = render(inner if app == view.app else replace(inner, app=app, page="", focused=False, scroll=0))
    size = canvas.px(box[2] - box[0]), canvas.px(box[3] - box[1])
    canvas.shadow(box, 26, 0.5, blur=18, drop=10)
    canvas.stamp_round(picture.resize(size, reducing_gap=2.0), box[0], box[1], 26)
    canvas.stamp(icon(app, canvas.px(30), view.moment.day), box[0] + 6, box[1] - 39)
