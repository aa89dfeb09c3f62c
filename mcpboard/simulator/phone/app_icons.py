"""The icons of the apps: a gradient in a rounded square, and a drawing on it."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping

from PIL import Image, ImageDraw

from mcpboard.simulator.phone import fonts, masks
from mcpboard.simulator.phone.frames import Picture
from mcpboard.simulator.phone.masks import FINE
from mcpboard.simulator.phone.stencil import Stencil

WHITE, INK = "#ffffff", "#1d1f25"
Drawing = Callable[[Stencil], None]


def _gear(pen: Stencil) -> None:
    for tooth in range(9):
        angle = math.tau * tooth / 9
        reach = (27, 35)
        pen.stroke([(50 + r * math.cos(angle), 50 + r * math.sin(angle)) for r in reach], 9, WHITE)
    pen.disc(50, 50, 29, WHITE)
    pen.disc(50, 50, 19, "#7b808c")
    pen.disc(50, 50, 9, WHITE)


def _paper(pen: Stencil) -> None:
    pen.slab((0, 0, 100, 27), 0, "#f7c843")
    pen.slab((0, 26, 100, 28.5), 0, "#d9a514")
    for row in (44, 60, 76):
        pen.stroke(((18, row), (82 if row < 76 else 54, row)), 4.5, "#c9cbd2")


def _flower(pen: Stencil) -> None:
    colours = ("#ff9f1c", "#ffd23f", "#8bd450", "#2ec4b6", "#3a86ff", "#8a5cf6", "#e056b5", "#ff5d5d")
    for petal, colour in enumerate(colours):
        angle = math.tau * petal / len(colours)
        pen.disc(50 + 20 * math.cos(angle), 50 + 20 * math.sin(angle), 14.5, colour)
    pen.disc(50, 50, 8, WHITE)


def _dial(pen: Stencil) -> None:
    pen.disc(50, 50, 38, WHITE)
    for hour in range(12):
        angle = math.tau * hour / 12
        pen.disc(50 + 31 * math.cos(angle), 50 + 31 * math.sin(angle), 2.2, INK)
    pen.stroke(((50, 50), (36, 39)), 4.5, INK)
    pen.stroke(((50, 50), (69, 33)), 3.5, INK)
    pen.stroke(((50, 57), (50, 24)), 1.8, "#ff9500")
    pen.disc(50, 50, 3.5, "#ff9500")


def _calendar(pen: Stencil) -> None:
    pen.slab((0, 0, 100, 28), 0, "#f0483e")
    for x in (30, 70):
        pen.disc(x, 14, 4.5, WHITE)


def _map(pen: Stencil) -> None:
    pen.patch(((0, 62), (100, 30), (100, 46), (0, 80)), "#f7f3e3")
    pen.patch(((22, 0), (38, 0), (62, 100), (46, 100)), "#f7f3e3")
    pen.patch(((62, 0), (100, 0), (100, 22), (70, 30)), "#8cc8f5")
    pen.patch(((35, 37), (69, 37), (52, 68)), "#e8453c")
    pen.disc(52, 33, 18, "#e8453c")
    pen.disc(52, 33, 7.5, WHITE)


def _sky(pen: Stencil) -> None:
    pen.disc(63, 36, 19, "#ffd84d")
    for x, y, radius in ((32, 63, 15), (50, 55, 19), (68, 64, 14)):
        pen.disc(x, y, radius, WHITE)
    pen.slab((20, 62, 82, 78), 8, WHITE)


def _lens(pen: Stencil) -> None:
    pen.slab((34, 20, 66, 40), 8, INK)
    pen.slab((15, 30, 85, 78), 12, INK)
    pen.disc(50, 54, 19, "#e9eaee")
    pen.disc(50, 54, 15, "#2b3750")
    pen.disc(50, 54, 9, "#4f79c6")
    pen.disc(45, 49, 3.5, "#d7e6ff")
    pen.disc(76, 39, 3, "#ffc83d")


def _keys(pen: Stencil) -> None:
    pen.slab((18, 16, 82, 36), 6, "#5a5d66")
    pen.slab((60, 22, 76, 30), 2, "#b9f6ca")
    for row in range(3):
        for column in range(4):
            colour = "#ff9f0a" if column == 3 else "#d8dae0"
            pen.disc(25.5 + 16.4 * column, 48.5 + 15.5 * row, 6.2, colour)


def _heart(pen: Stencil) -> None:
    pen.disc(37, 42, 16, "#ff3b5c")
    pen.disc(63, 42, 16, "#ff3b5c")
    pen.patch(((22.5, 49), (77.5, 49), (50, 79)), "#ff3b5c")
    pen.slab((36, 42, 64, 54), 0, "#ff3b5c")
    pen.stroke(((14, 54), (36, 54), (43, 42), (51, 66), (58, 54), (86, 54)), 4, "#ffd0d8")


def _cards(pen: Stencil) -> None:
    for top, colour in ((24, "#4aa8ff"), (34, "#ffc23d"), (44, "#4cd07d"), (54, "#ff6b5e")):
        pen.slab((16, top, 84, 80), 8, colour)
    pen.slab((16, 62, 84, 80), 8, "#e8e9ee")
    pen.slab((16, 60, 84, 72), 0, "#e8e9ee")
    pen.disc(50, 60, 10, "#e8e9ee")
    pen.disc(50, 58, 7, "#ff6b5e")


def _folder(pen: Stencil) -> None:
    pen.slab((15, 26, 52, 60), 7, "#1f8df2")
    pen.slab((15, 33, 85, 78), 8, "#38a7ff")
    pen.slab((15, 41, 85, 78), 8, "#6cc3ff")


def _tongues(pen: Stencil) -> None:
    pen.slab((12, 18, 58, 60), 10, WHITE)
    pen.slab((42, 40, 88, 82), 10, "#143d8a")
    pen.stroke(((25, 50), (35, 27), (45, 50)), 4.5, "#143d8a")
    pen.stroke(((29, 42), (41, 42)), 4, "#143d8a")
    pen.stroke(((54, 53), (76, 53)), 4, WHITE)
    pen.stroke(((65, 47), (65, 53)), 4, WHITE)
    pen.stroke(((73, 54), (66, 65), (55, 72)), 4, WHITE)
    pen.stroke(((57, 58), (65, 67), (75, 72)), 4, WHITE)


def _mast(pen: Stencil) -> None:
    for radius in (34, 23):
        pen.bow(50, 47, radius, (140, 40), 6, WHITE)
    pen.disc(50, 45, 9, WHITE)
    pen.slab((43, 57, 57, 84), 7, WHITE)


def _person(pen: Stencil) -> None:
    pen.slab((20, 14, 80, 86), 10, "#f4efe6")
    pen.disc(50, 41, 13, "#9c8f7c")
    pen.disc(50, 76, 21, "#9c8f7c")
    pen.slab((20, 78, 80, 86), 0, "#f4efe6")
    for top, colour in ((22, "#5bb0ff"), (42, "#69d28c"), (62, "#ffb84d")):
        pen.slab((81, top, 88, top + 15), 2.5, colour)


def _bag(pen: Stencil) -> None:
    pen.bow(50, 38, 14, (180, 360), 5.5, WHITE)
    pen.slab((23, 36, 77, 80), 11, WHITE)
    pen.stroke(((50, 46), (36, 68)), 5.5, "#1c7cf5")
    pen.stroke(((50, 46), (64, 68)), 5.5, "#1c7cf5")
    pen.stroke(((34, 61), (66, 61)), 5, "#1c7cf5")


def _compass(pen: Stencil) -> None:
    pen.disc(50, 50, 37, WHITE)
    pen.disc(50, 50, 33.5, "#2f8cf5")
    for tick in range(24):
        angle = math.tau * tick / 24
        inner = 27 if tick % 2 == 0 else 29.5
        pen.stroke([(50 + r * math.cos(angle), 50 + r * math.sin(angle)) for r in (inner, 31.5)], 1.1, "#d9ebff")
    pen.patch(((70, 30), (54.5, 54.5), (45.5, 45.5)), "#ff4b45")
    pen.patch(((30, 70), (54.5, 54.5), (45.5, 45.5)), WHITE)


def _bubble(pen: Stencil) -> None:
    pen.patch(((28, 62), (24, 84), (48, 70)), WHITE)
    pen.oval(50, 47, 34, 27, WHITE)


def _letter(pen: Stencil) -> None:
    pen.slab((16, 27, 84, 75), 8, WHITE)
    pen.stroke(((20, 33), (50, 55), (80, 33)), 4, "#2b8cf7")


def _note(pen: Stencil) -> None:
    pen.patch(((36, 26), (73, 18), (73, 32), (36, 40)), WHITE)
    pen.slab((36, 28, 42, 72), 0, WHITE)
    pen.slab((67, 22, 73, 65), 0, WHITE)
    pen.oval(33, 71, 10.5, 8.5, WHITE)
    pen.oval(64, 64, 10.5, 8.5, WHITE)


# Name -> the colours of the gradient, and what is drawn on it.
ICONS: Mapping[str, tuple[str, str, Drawing]] = {
    "Settings": ("#a3a8b4", "#5c616d", _gear),
    "Notes": ("#ffffff", "#f4f4f6", _paper),
    "Photos": ("#ffffff", "#f3f4f7", _flower),
    "Clock": ("#3b3e47", "#0d0e12", _dial),
    "Calendar": ("#ffffff", "#f4f4f6", _calendar),
    "Maps": ("#a8e08c", "#6ec46a", _map),
    "Weather": ("#4bb4ff", "#1b6ee8", _sky),
    "Camera": ("#f1f2f5", "#c5c8d0", _lens),
    "Calculator": ("#34373f", "#121318", _keys),
    "Health": ("#ffffff", "#f6f4f5", _heart),
    "Wallet": ("#3a3d47", "#14151a", _cards),
    "Files": ("#ffffff", "#eef3f9", _folder),
    "Translate": ("#5ac8e6", "#2a86d8", _tongues),
    "Podcasts": ("#d27bf5", "#8a35d6", _mast),
    "Contacts": ("#c9bfae", "#9d917d", _person),
    "Store": ("#3ab6ff", "#1464f4", _bag),
    "Browser": ("#ffffff", "#eef0f4", _compass),
    "Messages": ("#6fe77f", "#22bd45", _bubble),
    "Mail": ("#54c0ff", "#1a6df0", _letter),
    "Music": ("#ff7388", "#f7254f", _note),
}


@functools.lru_cache(maxsize=256)
def icon(name: str, side: int, day: int = 0) -> Picture:
    """An icon of that many pixels; `day` is the date on the calendar's. Not to be drawn upon."""
    top, bottom, draw = ICONS[name]
    pen = Stencil(side, masks.slope(side, side, top, bottom))
    draw(pen)
    made = pen.image()
    if name == "Calendar":
        _date(made, day)
    made.putalpha(masks.squircle(side))
    return made


def _date(image: Picture, day: int) -> None:
    """The day of the month, drawn large and then small so that it is smooth at any size."""
    side = image.width * FINE
    big = Image.new("L", (side, side), 0)
    size = side * 52 // 100
    name = (fonts.chain(True) or ("",))[0]
    text = str(day)
    wide = fonts.run_width(name or "own", text, size)
    ImageDraw.Draw(big).text(((side - wide) / 2, side * 0.34), text, fill=255, font=fonts.font(name, size))
    image.paste(INK, (0, 0, *image.size), big.reduce(FINE))
