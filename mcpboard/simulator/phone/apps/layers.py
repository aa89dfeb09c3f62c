"""The layers over an app: the notification shade, and the app switcher with its cards."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial

from mcpboard.simulator.phone import moves
from mcpboard.simulator.phone.apps.settings import slider
from mcpboard.simulator.phone.canvas import Canvas
from mcpboard.simulator.phone.elements import Element, centered, decor, label
from mcpboard.simulator.phone.frames import Picture
from mcpboard.simulator.phone.sprites import glass
from mcpboard.simulator.phone.view import CONTENT, Box, View

WHITE, HAZE = "#ffffff", "#c9d3e6"
NOTICE = 92  # points of one notification
TOP, SIDE = 306, 16
SHRUNK = 0.56  # of the screen's size that a card has
BEHIND = (30, "#0a1020", 0.5)  # blur, color and strength of the dark frosted glass before the wallpaper
SHOWN = 4  # cards that are drawn


# --- the shade: the time, four switches, the brightness, what came in ----------------------------------------------


def shade(view: View) -> Iterator[Element]:
    """Yield the shade; on its side the switches are at the left, the news at the right."""
    yield decor((Canvas.stamp, glass(view.wall, (0, 0, *view.pixels), *BEHIND), 0, 0))
    yield Element("shade", (0, 0, *view.size), desc="Notification shade", id="shade", tap=moves.dismissed)
    if view.landscape:
        middle, top, left, upper = 250.0, 52, 24, 200
        bar, news, pitch, right = (16.0, 330.0, 480.0, 390.0), (520, 70), NOTICE + 16, view.size[0] - 40
    else:
        middle, top, left, upper = view.size[0] / 2, 88, SIDE + 8, TOP - 74
        right = view.size[0] - SIDE
        bar, news, pitch = (SIDE, TOP + 46, right, TOP + 106), (SIDE, TOP + 130), NOTICE + 12
    today = f"{view.moment:%A}, {view.moment.day} {view.moment:%B}"
    yield centered(view, (middle, top), today, 19, HAZE, bold=True)
    yield centered(view, (middle, top + 62), view.clock, 84, WHITE, role="clock")
    for index, (name, image) in enumerate(CONTENT["tiles"].items()):
        x, on = left + index * 115, name in view.on
        yield Element("switch", (x, upper, x + 104, upper + 102), (
            (Canvas.disc, x + 52, upper + 38, 36, WHITE, 0.94 if on else 0.16),
            (Canvas.sign, image, x + 36, upper + 22, 32, "#0a74ff" if on else WHITE),
            *centered(view, (x + 52, upper + 90), name, 14, WHITE).shapes,
        ), name, "on" if on else "off", f"shade/{name}", tap=partial(moves.toggled, switch=name))  # fmt: skip
    track = (bar[0] + 64, (bar[1] + bar[3]) / 2 - 3, bar[2] - 30, (bar[1] + bar[3]) / 2 + 3)
    yield Element("slider", (track[0], bar[1], track[2], bar[3]), (
        (Canvas.fill, bar, WHITE, 24, 0.14),
        (Canvas.sign, "sun", bar[0] + 20, (bar[1] + bar[3]) / 2 - 13, 26, WHITE),
        *slider(view, track, WHITE),
    ), desc=f"Brightness {view.brightness} %", id="shade/Brightness", slide=moves.brightened)  # fmt: skip
    for index, (app, title, text) in enumerate(CONTENT["news"]):
        x, y = news[0], news[1] + index * pitch
        box = (x, y, right, y + NOTICE)
        yield Element("notification", box, (
            (Canvas.fill, box, WHITE, 24, 0.18),
            (Canvas.icon, app, x + 20, y + 21, 50, view.moment.day),
            (Canvas.text, x + 86, y + 20, title, 18, WHITE, True),
            (Canvas.text, x + 86, y + 48, text, 15, HAZE),
        ), f"{title}\n{text}", app, f"notice/{app}", tap=partial(moves.shown, app=app))  # fmt: skip


# --- the cards of the open apps, side by side ----------------------------------------------------------------------


def cards(view: View, render: Callable[[View], Picture]) -> Iterator[Element]:
    """Yield the cards, the newest in front; `render` draws the screen of an app."""
    yield decor((Canvas.stamp, glass(view.wall, (0, 0, *view.pixels), *BEHIND), 0, 0))
    yield Element("switcher", (0, 0, *view.size), desc="App switcher", id="switcher", tap=moves.dismissed)
    (width, height), apps = view.size, view.recent[:SHOWN]
    for index, app in reversed(list(enumerate(apps))):  # the newest at the right, the older ones look out behind it
        shrink = 1 - 0.05 * index
        wide, tall = width * SHRUNK * shrink, height * SHRUNK * shrink
        x = width * 0.60 - index * width * 0.23
        box = (x - wide / 2, height * 0.53 - tall / 2, x + wide / 2, height * 0.53 + tall / 2)
        visible = (max(0, box[0]), box[1] - 42, box[2] if index == 0 else box[0] + width * 0.23, box[3])
        yield Element("card", visible, (
            (Canvas.shadow, box, 26, 0.5, 18, 10),
            (_paint_card, view, app, box, render),
            (Canvas.icon, app, box[0] + 6, box[1] - 39, 30, view.moment.day),
            *label(view, (box[0] + 46, box[1] - 34), app, 16, WHITE, bold=True).shapes,
        ), app, id=f"card/{app}", tap=partial(moves.shown, app=app))  # fmt: skip
    if not apps:
        yield centered(view, (width / 2, height / 2), "No app is open", 21, WHITE)


def _paint_card(canvas: Canvas, view: View, app: str, box: Box, render: Callable[[View], Picture]) -> None:
    inner = replace(view.still(), layer="", pressed=None, toast="")
    picture = render(inner if app == view.app else replace(inner, app=app, page="", focused=False, scroll=0))
    size = canvas.px(box[2] - box[0]), canvas.px(box[3] - box[1])
    canvas.stamp(picture.resize(size, reducing_gap=2.0), box[0], box[1], 26)
