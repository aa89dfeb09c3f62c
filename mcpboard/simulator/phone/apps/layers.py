"""The layers over an app: the notification shade, and the app switcher with its cards."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from dataclasses import replace

from mcpboard.simulator.phone import masks, moves
from mcpboard.simulator.phone.apps.settings import slider
from mcpboard.simulator.phone.canvas import Canvas
from mcpboard.simulator.phone.drawings import icon, sign
from mcpboard.simulator.phone.elements import Element, centered, decor, label
from mcpboard.simulator.phone.frames import Picture
from mcpboard.simulator.phone.scenery import wallpaper
from mcpboard.simulator.phone.view import Box, View

TILES = (("Wi-Fi", "wifi"), ("Bluetooth", "bluetooth"), ("Focus", "moon"), ("Dark Mode", "sun"))
NEWS = (
    ("Calendar", "Nothing planned", "The rest of the day is free."),
    ("Weather", "Mostly sunny, 21\u00b0", "No rain is expected this evening."),
    ("Messages", "Welcome", "This phone is pretended, and at your service."),
)
WHITE, HAZE = "#ffffff", "#c9d3e6"
NOTICE = 92  # points of one notification
TOP, SIDE = 306, 16
SHRUNK = 0.56  # of the screen's size that a card has
SHOWN = 4  # cards that are drawn


@functools.lru_cache(maxsize=2)
def _glass(pixels: tuple[int, int], hue: int, dark: bool) -> Picture:
    """Draw the wallpaper behind dark frosted glass."""
    return masks.veiled(masks.frosted(wallpaper(*pixels, hue, dark), 30), "#0a1020", 0.5)


# --- the shade: the time, four switches, the brightness, what came in ----------------------------------------------


def shade(view: View) -> Iterator[Element]:
    """Yield the shade; on its side the switches are at the left, the news at the right."""
    yield decor(lambda canvas: canvas.image.paste(_glass(view.pixels, view.hue, view.dark)))
    yield Element("shade", (0, 0, *view.size), desc="Notification shade", id="shade", tap=moves.dismissed)
    if view.landscape:
        middle, top, left, upper = 250.0, 52, 24, 200
        bar, news, pitch, right = (16.0, 330.0, 480.0, 390.0), (520, 70), NOTICE + 16, view.size[0] - 40
    else:
        middle, top, left, upper = view.size[0] / 2, 88, SIDE + 8, TOP - 74
        right = view.size[0] - SIDE
        bar, news, pitch = (SIDE, TOP + 46, right, TOP + 106), (SIDE, TOP + 130), NOTICE + 12
    today = f"{view.moment:%A}, {view.moment.day} {view.moment:%B}"
    yield centered((middle, top), today, 19, HAZE, bold=True, scale=view.scale)
    yield centered((middle, top + 62), view.clock, 84, WHITE, scale=view.scale, role="clock")
    for index, (name, image) in enumerate(TILES):
        yield _tile(view, left + index * 115, upper, name, image)
    yield _brightness(view, bar)
    for index, (app, title, text) in enumerate(NEWS):
        y = news[1] + index * pitch
        yield _notice(view, (news[0], y, right, y + NOTICE), app, title, text)


def _tile(view: View, x: float, y: float, name: str, image: str) -> Element:
    """Return a switch as a round button over its name."""
    on = name in view.on
    tag = centered((x + 52, y + 90), name, 14, WHITE, scale=view.scale)

    def paint(canvas: Canvas) -> None:
        canvas.disc(x + 52, y + 38, 36, WHITE, 0.94 if on else 0.16)
        canvas.stamp(sign(image, canvas.px(32), "#0a74ff" if on else WHITE), x + 36, y + 22)
        tag.paint(canvas)

    return Element("switch", (x, y, x + 104, y + 102), paint, name, "on" if on else "off", f"shade/{name}",
                   tap=lambda view: moves.toggled(view, name))  # fmt: skip


def _brightness(view: View, box: Box) -> Element:
    left, top, right, bottom = box
    track = (left + 64, (top + bottom) / 2 - 3, right - 30, (top + bottom) / 2 + 3)

    def paint(canvas: Canvas) -> None:
        canvas.fill(box, WHITE, 24, 0.14)
        canvas.stamp(sign("sun", canvas.px(26), WHITE), left + 20, (top + bottom) / 2 - 13)
        slider(canvas, view, track, WHITE)

    reach = (track[0], top, track[2], bottom)
    return Element("slider", reach, paint, desc=f"Brightness {view.brightness} %", id="shade/Brightness",
                   slide=moves.brightened)  # fmt: skip


def _notice(view: View, box: Box, app: str, title: str, text: str) -> Element:
    left, top, _, _ = box

    def paint(canvas: Canvas) -> None:
        canvas.fill(box, WHITE, 24, 0.18)
        canvas.stamp(icon(app, canvas.px(50), view.moment.day), left + 20, top + 21)
        canvas.text(left + 86, top + 20, title, 18, WHITE, bold=True)
        canvas.text(left + 86, top + 48, text, 15, HAZE)

    return Element("notification", box, paint, f"{title}\n{text}", app, f"notice/{app}",
                   tap=lambda view: moves.shown(view, app))  # fmt: skip


# --- the cards of the open apps, side by side ----------------------------------------------------------------------


def cards(view: View, render: Callable[[View], Picture]) -> Iterator[Element]:
    """Yield the cards, the newest in front; `render` draws the screen of an app."""
    yield decor(lambda canvas: canvas.image.paste(_glass(view.pixels, view.hue, view.dark)))
    yield Element("switcher", (0, 0, *view.size), desc="App switcher", id="switcher", tap=moves.dismissed)
    apps = view.recent[:SHOWN]
    for index in reversed(range(len(apps))):
        yield _card(view, index, apps[index], render)
    if not apps:
        middle = view.size[0] / 2, view.size[1] / 2
        yield centered(middle, "No app is open", 21, WHITE, scale=view.scale)


def _card(view: View, index: int, app: str, render: Callable[[View], Picture]) -> Element:
    """Return one card: the newest stands at the right, the older ones look out behind it."""
    width, height = view.size
    shrink = 1 - 0.05 * index
    wide, tall = width * SHRUNK * shrink, height * SHRUNK * shrink
    x = width * 0.60 - index * width * 0.23
    box = (x - wide / 2, height * 0.53 - tall / 2, x + wide / 2, height * 0.53 + tall / 2)
    name = label((box[0] + 46, box[1] - 34), app, 16, WHITE, bold=True, scale=view.scale)

    def paint(canvas: Canvas) -> None:
        inner = replace(view.still(), layer="", pressed=None, toast="")
        picture = render(inner if app == view.app else replace(inner, app=app, page="", focused=False, scroll=0))
        size = canvas.px(box[2] - box[0]), canvas.px(box[3] - box[1])
        canvas.shadow(box, 26, 0.5, blur=18, drop=10)
        canvas.stamp_round(picture.resize(size, reducing_gap=2.0), box[0], box[1], 26)
        canvas.stamp(icon(app, canvas.px(30), view.moment.day), box[0] + 6, box[1] - 39)
        name.paint(canvas)

    visible = (max(0, box[0]), box[1] - 42, box[2] if index == 0 else box[0] + width * 0.23, box[3])
    return Element("card", visible, paint, app, id=f"card/{app}", tap=lambda view: moves.shown(view, app))
