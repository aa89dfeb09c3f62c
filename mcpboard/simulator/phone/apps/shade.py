"""The notification shade: the time, four switches, the brightness, what came in."""

from __future__ import annotations

import functools
from collections.abc import Iterator

from mcpboard.simulator.phone import masks, moves
from mcpboard.simulator.phone.app_icons import icon
from mcpboard.simulator.phone.apps.settings import slider
from mcpboard.simulator.phone.canvas import Canvas
from mcpboard.simulator.phone.elements import Element, centred, decor
from mcpboard.simulator.phone.frames import Picture
from mcpboard.simulator.phone.glyphs import sign
from mcpboard.simulator.phone.view import Box, View
from mcpboard.simulator.phone.wallpaper import wallpaper

TILES = (("Wi-Fi", "wifi"), ("Bluetooth", "bluetooth"), ("Focus", "moon"), ("Dark Mode", "sun"))
NEWS = (
    ("Calendar", "Nothing planned", "The rest of the day is free."),
    ("Weather", "Mostly sunny, 21\u00b0", "No rain is expected this evening."),
    ("Messages", "Welcome", "This phone is pretended, and at your service."),
)
WHITE, HAZE = "#ffffff", "#c9d3e6"
CARD = 92  # points of one notification
TOP, SIDE = 306, 16


def background(canvas: Canvas, view: View) -> None:
    """The wallpaper behind dark frosted glass."""
    canvas.image.paste(_glass(view.pixels, view.hue, view.dark))


@functools.lru_cache(maxsize=2)
def _glass(pixels: tuple[int, int], hue: int, dark: bool) -> Picture:
    return masks.veiled(masks.frosted(wallpaper(*pixels, hue, dark), 30), "#0a1020", 0.5)


def elements(view: View) -> Iterator[Element]:
    yield decor(lambda canvas: background(canvas, view))
    yield Element("shade", (0, 0, *view.size), desc="Notification shade", id="shade", tap=moves.dismissed)
    yield from _upright(view) if not view.landscape else _lying(view)


def _upright(view: View) -> Iterator[Element]:
    middle = view.size[0] / 2
    yield from _time(view, middle, 88)
    for index in range(len(TILES)):
        yield _tile(view, index, SIDE + 8 + index * 115, TOP - 74)
    yield _brightness(view, (SIDE, TOP + 46, view.size[0] - SIDE, TOP + 106))
    for index in range(len(NEWS)):
        yield _notice(view, index, SIDE, TOP + 130 + index * (CARD + 12), view.size[0] - SIDE)


def _lying(view: View) -> Iterator[Element]:
    """Switches at the left, news at the right."""
    yield from _time(view, 250, 52)
    for index in range(len(TILES)):
        yield _tile(view, index, 24 + index * 115, 200)
    yield _brightness(view, (16, 330, 480, 390))
    for index in range(len(NEWS)):
        yield _notice(view, index, 520, 70 + index * (CARD + 16), view.size[0] - 40)


def _time(view: View, middle: float, top: float) -> Iterator[Element]:
    today = f"{view.moment:%A}, {view.moment.day} {view.moment:%B}"
    yield centred((middle, top), today, 19, HAZE, bold=True, scale=view.scale)
    yield centred((middle, top + 62), view.clock, 84, WHITE, scale=view.scale, role="clock")


def _tile(view: View, index: int, x: float, y: float) -> Element:
    """A switch as a round button over its name."""
    name, image = TILES[index]
    on = name in view.on
    tag = centred((x + 52, y + 90), name, 14, WHITE, scale=view.scale)

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


def _notice(view: View, index: int, left: float, top: float, right: float) -> Element:
    app, title, text = NEWS[index]
    box = (left, top, right, top + CARD)

    def paint(canvas: Canvas) -> None:
        canvas.fill(box, WHITE, 24, 0.18)
        canvas.stamp(icon(app, canvas.px(50), view.moment.day), left + 20, top + 21)
        canvas.text(left + 86, top + 20, title, 18, WHITE, bold=True)
        canvas.text(left + 86, top + 48, text, 15, HAZE)

    return Element("notification", box, paint, f"{title}\n{text}", app, f"notice/{app}",
                   tap=lambda view: moves.shown(view, app))  # fmt: skip
