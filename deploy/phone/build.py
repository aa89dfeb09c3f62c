"""Build what the simulated phone is drawn with: fonts, icons, signs, emoji and wallpapers, as files beside its code.

    python -m venv /tmp/phone && /tmp/phone/bin/pip install Pillow==11.3.0 fonttools==4.60.1
    PYTHONPATH=. /tmp/phone/bin/python deploy/phone/build.py    # needs apt-get; says the files' sizes

The fonts come from Debian's packages, unpacked and not installed; with `--fonts FOLDER` from a folder that holds their
files. The drawings are below, as shapes on a grid of 100 by 100: each is drawn large and reduced, which makes its
edges smooth. Nothing else than these two is read, so that the same versions give the same files.
"""

from __future__ import annotations

import argparse
import json
import math
import subprocess
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from fontTools import subset
from fontTools.ttLib import TTFont
from PIL import Image, ImageChops, ImageDraw, ImageFilter, ImageFont

from mcpboard.simulator.phone import masks
from mcpboard.simulator.phone.frames import Picture
from mcpboard.simulator.phone.view import HUES, Place

ART = Path(__file__).parents[2] / "mcpboard/simulator/phone/art"
FINE = masks.FINE

GRID = 100.0  # units across, whatever the pixels
CLEAR = (0, 0, 0, 0)
WHITE, INK = "#ffffff", "#1d1f25"

Corners = tuple[float, float, float, float]
Shape = tuple[Any, ...]  # a method of Stencil and its arguments


class Stencil:
    """A square drawing. Places and sizes are units of GRID; `image()` returns it in its true size."""

    def __init__(self, side: int, background: Picture | None = None) -> None:
        self._unit = side * FINE / GRID
        full = (side * FINE, side * FINE)
        self._image = Image.new("RGBA", full, CLEAR) if background is None else background.resize(full).convert("RGBA")
        self._pen = ImageDraw.Draw(self._image)

    def image(self) -> Picture:
        return self._image.reduce(FINE)

    def disc(self, x: float, y: float, radius: float, color: str) -> None:
        self.oval(x, y, radius, radius, color)

    def oval(self, x: float, y: float, across: float, along: float, color: str) -> None:
        self._pen.ellipse(self._pixels((x - across, y - along, x + across, y + along)), fill=color)

    def ring(self, x: float, y: float, across: float, along: float, thick: float, color: str) -> None:
        """Draw an oval that is only an outline."""
        corners = self._pixels((x - across, y - along, x + across, y + along))
        self._pen.ellipse(corners, outline=color, width=round(thick * self._unit))

    def bow(self, x: float, y: float, radius: float, angles: tuple[float, float], thick: float, color: str) -> None:
        """Draw a part of a ring, from angle to angle in degrees, clockwise from three o'clock."""
        corners = self._pixels((x - radius, y - radius, x + radius, y + radius))
        self._pen.arc(corners, *angles, fill=color, width=round(thick * self._unit))

    def slab(self, box: Corners, radius: float, color: str) -> None:
        """Draw a rectangle with round corners."""
        self._pen.rounded_rectangle(self._pixels(box), radius * self._unit, fill=color)

    def patch(self, points: Iterable[Place], color: str) -> None:
        """Draw a polygon."""
        self._pen.polygon([(x * self._unit, y * self._unit) for x, y in points], fill=color)

    def stroke(self, points: Iterable[Place], thick: float, color: str) -> None:
        """Draw a line with round ends and joints."""
        path = list(points)
        self._pen.line([(x * self._unit, y * self._unit) for x, y in path], color, round(thick * self._unit), "curve")
        for x, y in (path[0], path[-1]):
            self.disc(x, y, thick / 2, color)

    def _pixels(self, box: Corners) -> Corners:
        left, top, right, bottom = (part * self._unit for part in box)
        return left, top, right - 1, bottom - 1


disc, oval, ring, bow = Stencil.disc, Stencil.oval, Stencil.ring, Stencil.bow
slab, patch, stroke = Stencil.slab, Stencil.patch, Stencil.stroke


def arc(x: float, y: float, radius: float, degrees: Iterable[float]) -> list[Place]:
    """Return the points of a circle at these angles, clockwise from three o'clock."""
    angles = [math.radians(each) for each in degrees]
    return [(x + radius * math.cos(angle), y + radius * math.sin(angle)) for angle in angles]


def around(count: int, radius: float) -> list[Place]:
    """Return that many points, evenly spread on a circle around the middle."""
    angles = [math.tau * index / count for index in range(count)]
    return [(50 + radius * math.cos(angle), 50 + radius * math.sin(angle)) for angle in angles]


def spokes(count: int, inner: float, outer: float) -> list[tuple[Place, Place]]:
    """Return that many short lines that point away from the middle."""
    return list(zip(around(count, inner), around(count, outer), strict=True))


# --- signs: name -> shapes without their color, which is the same for all of them ---------------------------------

SIGNS: Mapping[str, tuple[Shape, ...]] = {
    "forward": ((stroke, ((36, 18), (66, 50), (36, 82)), 12),),
    "back": ((stroke, ((64, 14), (30, 50), (64, 86)), 11),),
    "plane": (
        (stroke, ((50, 14), (50, 84)), 13),
        (patch, ((50, 34), (94, 62), (94, 71), (50, 58), (6, 71), (6, 62))),
        (patch, ((50, 72), (70, 86), (70, 92), (50, 87), (30, 92), (30, 86))),
    ),
    "wifi": ((bow, 50, 82, 58, (225, 315), 13), (bow, 50, 82, 37, (225, 315), 13), (disc, 50, 78, 9)),
    "bluetooth": ((stroke, ((28, 32), (72, 68), (50, 88), (50, 12), (72, 32), (28, 68)), 8),),
    "mast": tuple((slab, (8 + 23 * bar, 68 - 17 * bar, 24 + 23 * bar, 88), 5) for bar in range(4)),
    "link": ((ring, 36, 50, 24, 24, 11), (ring, 64, 50, 24, 24, 11)),
    "moon": ((patch, arc(50, 50, 38, range(-20, 250, 6)) + arc(64, 38, 32, range(222, 12, -6))),),
    "sun": ((disc, 50, 50, 19), *((stroke, ray, 8) for ray in spokes(8, 31, 41))),
    "turn": ((bow, 50, 52, 34, (-40, 230), 10), (patch, ((64, 20), (88, 42), (94, 12)))),
    "bell": ((disc, 50, 42, 24), (patch, ((26, 42), (74, 42), (82, 72), (18, 72))), (disc, 50, 80, 9)),
    "speaker": (
        (patch, ((12, 38), (30, 38), (52, 18), (52, 82), (30, 62), (12, 62))),
        (bow, 52, 50, 20, (-50, 50), 9),
        (bow, 52, 50, 36, (-50, 50), 9),
    ),
    "hourglass": (
        (patch, ((24, 16), (76, 16), (50, 52))),
        (patch, ((50, 48), (76, 84), (24, 84))),
        (stroke, ((22, 14), (78, 14)), 9),
        (stroke, ((22, 86), (78, 86)), 9),
    ),
    "gear": (*((stroke, tooth, 14) for tooth in spokes(8, 30, 38)), (ring, 50, 50, 32, 32, 17)),
    "person": ((disc, 50, 30, 19), (slab, (16, 56, 84, 112), 34)),
    "picture": ((disc, 70, 28, 11), (patch, ((6, 84), (36, 34), (58, 66), (68, 54), (94, 84)))),
    "battery": ((slab, (6, 30, 84, 70), 12), (slab, (88, 42, 95, 58), 3)),
    "hand": (
        (slab, (32, 44, 72, 90), 16),
        *((stroke, ((x, 56), (x, top)), 11) for x, top in ((38, 24), (52, 14), (66, 24))),
        (stroke, ((40, 74), (22, 54)), 11),
    ),
    "disk": tuple((slab, (12, top, 88, top + 19), 7) for top in (16, 42, 68)),
    "key": (
        (ring, 32, 50, 22, 22, 11),
        (stroke, ((54, 50), (92, 50), (92, 66)), 10),
        (stroke, ((76, 50), (76, 62)), 10),
    ),
    "globe": ((ring, 50, 50, 40, 40, 8), (ring, 50, 50, 18, 40, 8), (stroke, ((12, 50), (88, 50)), 8)),
    "info": ((disc, 50, 20, 10), (stroke, ((50, 44), (50, 84)), 15)),
    "lens": ((ring, 43, 43, 31, 31, 10), (stroke, ((66, 66), (87, 87)), 11)),
    "reload": ((bow, 50, 52, 34, (-30, 270), 9), (patch, ((48, 2), (48, 36), (72, 18)))),
    "lock": ((bow, 50, 40, 20, (180, 360), 9), (slab, (22, 42, 78, 86), 10)),
    "shift": ((patch, ((50, 12), (90, 54), (66, 54), (66, 86), (34, 86), (34, 54), (10, 54))),),
    "erase": (
        (stroke, ((4, 50), (30, 22), (94, 22), (94, 78), (30, 78), (4, 50)), 8),
        (stroke, ((48, 38), (74, 62)), 8),
        (stroke, ((74, 38), (48, 62)), 8),
    ),
    "tick": ((stroke, ((18, 54), (42, 76), (84, 26)), 13),),
}


def sign(name: str, side: int) -> Picture:
    """Draw a sign, white on nothing."""
    pen = Stencil(side)
    for draw, *arguments in SIGNS[name]:
        draw(pen, *arguments, WHITE)
    return pen.image()


# --- icons: name -> the colors of the gradient in a rounded square, and the shapes on it ---------------------------

ICONS: Mapping[str, tuple[str, str, tuple[Shape, ...]]] = {
    "Settings": ("#a3a8b4", "#5c616d", (
        *((stroke, tooth, 9, WHITE) for tooth in spokes(9, 27, 35)),
        (disc, 50, 50, 29, WHITE), (disc, 50, 50, 19, "#7b808c"), (disc, 50, 50, 9, WHITE),
    )),
    "Notes": ("#ffffff", "#f4f4f6", (
        (slab, (0, 0, 100, 27), 0, "#f7c843"), (slab, (0, 26, 100, 28.5), 0, "#d9a514"),
        *((stroke, ((18, row), (right, row)), 4.5, "#c9cbd2") for row, right in ((44, 82), (60, 82), (76, 54))),
    )),
    "Photos": ("#ffffff", "#f3f4f7", (
        *((disc, *petal, 14.5, color) for petal, color in zip(around(8, 20), (
            "#ff9f1c", "#ffd23f", "#8bd450", "#2ec4b6", "#3a86ff", "#8a5cf6", "#e056b5", "#ff5d5d",
        ), strict=True)),
        (disc, 50, 50, 8, WHITE),
    )),
    "Clock": ("#3b3e47", "#0d0e12", (
        (disc, 50, 50, 38, WHITE), *((disc, *hour, 2.2, INK) for hour in around(12, 31)),
        (stroke, ((50, 50), (36, 39)), 4.5, INK), (stroke, ((50, 50), (69, 33)), 3.5, INK),
        (stroke, ((50, 57), (50, 24)), 1.8, "#ff9500"), (disc, 50, 50, 3.5, "#ff9500"),
    )),
    "Calendar": ("#ffffff", "#f4f4f6", (
        (slab, (0, 0, 100, 28), 0, "#f0483e"), (disc, 30, 14, 4.5, WHITE), (disc, 70, 14, 4.5, WHITE),
    )),
    "Maps": ("#a8e08c", "#6ec46a", (
        (patch, ((0, 62), (100, 30), (100, 46), (0, 80)), "#f7f3e3"),
        (patch, ((22, 0), (38, 0), (62, 100), (46, 100)), "#f7f3e3"),
        (patch, ((62, 0), (100, 0), (100, 22), (70, 30)), "#8cc8f5"),
        (patch, ((35, 37), (69, 37), (52, 68)), "#e8453c"),
        (disc, 52, 33, 18, "#e8453c"), (disc, 52, 33, 7.5, WHITE),
    )),
    "Weather": ("#4bb4ff", "#1b6ee8", (
        (disc, 63, 36, 19, "#ffd84d"), (disc, 32, 63, 15, WHITE), (disc, 50, 55, 19, WHITE), (disc, 68, 64, 14, WHITE),
        (slab, (20, 62, 82, 78), 8, WHITE),
    )),
    "Camera": ("#f1f2f5", "#c5c8d0", (
        (slab, (34, 20, 66, 40), 8, INK), (slab, (15, 30, 85, 78), 12, INK), (disc, 50, 54, 19, "#e9eaee"),
        (disc, 50, 54, 15, "#2b3750"), (disc, 50, 54, 9, "#4f79c6"), (disc, 45, 49, 3.5, "#d7e6ff"),
        (disc, 76, 39, 3, "#ffc83d"),
    )),
    "Calculator": ("#34373f", "#121318", (
        (slab, (18, 16, 82, 36), 6, "#5a5d66"), (slab, (60, 22, 76, 30), 2, "#b9f6ca"),
        *((disc, 25.5 + 16.4 * column, 48.5 + 15.5 * row, 6.2, "#ff9f0a" if column == 3 else "#d8dae0")
          for row in range(3) for column in range(4)),
    )),
    "Health": ("#ffffff", "#f6f4f5", (
        (disc, 37, 42, 16, "#ff3b5c"), (disc, 63, 42, 16, "#ff3b5c"),
        (patch, ((22.5, 49), (77.5, 49), (50, 79)), "#ff3b5c"), (slab, (36, 42, 64, 54), 0, "#ff3b5c"),
        (stroke, ((14, 54), (36, 54), (43, 42), (51, 66), (58, 54), (86, 54)), 4, "#ffd0d8"),
    )),
    "Wallet": ("#3a3d47", "#14151a", (
        (slab, (16, 24, 84, 80), 8, "#4aa8ff"), (slab, (16, 34, 84, 80), 8, "#ffc23d"),
        (slab, (16, 44, 84, 80), 8, "#4cd07d"), (slab, (16, 54, 84, 80), 8, "#ff6b5e"),
        (slab, (16, 62, 84, 80), 8, "#e8e9ee"), (slab, (16, 60, 84, 72), 0, "#e8e9ee"),
        (disc, 50, 60, 10, "#e8e9ee"), (disc, 50, 58, 7, "#ff6b5e"),
    )),
    "Files": ("#ffffff", "#eef3f9", (
        (slab, (15, 26, 52, 60), 7, "#1f8df2"), (slab, (15, 33, 85, 78), 8, "#38a7ff"),
        (slab, (15, 41, 85, 78), 8, "#6cc3ff"),
    )),
    "Translate": ("#5ac8e6", "#2a86d8", (
        (slab, (12, 18, 58, 60), 10, WHITE), (slab, (42, 40, 88, 82), 10, "#143d8a"),
        (stroke, ((25, 50), (35, 27), (45, 50)), 4.5, "#143d8a"), (stroke, ((29, 42), (41, 42)), 4, "#143d8a"),
        (stroke, ((54, 53), (76, 53)), 4, WHITE), (stroke, ((65, 47), (65, 53)), 4, WHITE),
        (stroke, ((73, 54), (66, 65), (55, 72)), 4, WHITE), (stroke, ((57, 58), (65, 67), (75, 72)), 4, WHITE),
    )),
    "Podcasts": ("#d27bf5", "#8a35d6", (
        (bow, 50, 47, 34, (140, 40), 6, WHITE), (bow, 50, 47, 23, (140, 40), 6, WHITE), (disc, 50, 45, 9, WHITE),
        (slab, (43, 57, 57, 84), 7, WHITE),
    )),
    "Contacts": ("#c9bfae", "#9d917d", (
        (slab, (20, 14, 80, 86), 10, "#f4efe6"), (disc, 50, 41, 13, "#9c8f7c"), (disc, 50, 76, 21, "#9c8f7c"),
        (slab, (20, 78, 80, 86), 0, "#f4efe6"), (slab, (81, 22, 88, 37), 2.5, "#5bb0ff"),
        (slab, (81, 42, 88, 57), 2.5, "#69d28c"), (slab, (81, 62, 88, 77), 2.5, "#ffb84d"),
    )),
    "Store": ("#3ab6ff", "#1464f4", (
        (bow, 50, 38, 14, (180, 360), 5.5, WHITE), (slab, (23, 36, 77, 80), 11, WHITE),
        (stroke, ((50, 46), (36, 68)), 5.5, "#1c7cf5"), (stroke, ((50, 46), (64, 68)), 5.5, "#1c7cf5"),
        (stroke, ((34, 61), (66, 61)), 5, "#1c7cf5"),
    )),
    "Browser": ("#ffffff", "#eef0f4", (
        (disc, 50, 50, 37, WHITE), (disc, 50, 50, 33.5, "#2f8cf5"),
        *((stroke, tick, 1.1, "#d9ebff") for tick in (*spokes(24, 27, 31.5)[::2], *spokes(24, 29.5, 31.5)[1::2])),
        (patch, ((70, 30), (54.5, 54.5), (45.5, 45.5)), "#ff4b45"),
        (patch, ((30, 70), (54.5, 54.5), (45.5, 45.5)), WHITE),
    )),
    "Messages": ("#6fe77f", "#22bd45", (
        (patch, ((28, 62), (24, 84), (48, 70)), WHITE), (oval, 50, 47, 34, 27, WHITE),
    )),
    "Mail": ("#54c0ff", "#1a6df0", (
        (slab, (16, 27, 84, 75), 8, WHITE), (stroke, ((20, 33), (50, 55), (80, 33)), 4, "#2b8cf7"),
    )),
    "Music": ("#ff7388", "#f7254f", (
        (patch, ((36, 26), (73, 18), (73, 32), (36, 40)), WHITE), (slab, (36, 28, 42, 72), 0, WHITE),
        (slab, (67, 22, 73, 65), 0, WHITE), (oval, 33, 71, 10.5, 8.5, WHITE), (oval, 64, 64, 10.5, 8.5, WHITE),
    )),
}  # fmt: skip


def icon(name: str, side: int) -> Picture:
    """Draw the icon of an app; the calendar's without its day."""
    top, bottom, shapes = ICONS[name]
    pen = Stencil(side, masks.slope(side, side, top, bottom))
    for draw, *arguments in shapes:
        draw(pen, *arguments)
    image = pen.image()
    image.putalpha(squircle(side))
    return image


def squircle(side: int) -> Picture:
    """Draw the outline of an icon: a superellipse, whose corners begin without a kink."""
    half, points = side * FINE / 2, []
    for step in range(360):
        cosine, sine = math.cos(math.radians(step)), math.sin(math.radians(step))
        points.append(tuple(half + math.copysign(abs(part) ** 0.4, part) * half for part in (cosine, sine)))
    big = Image.new("L", (side * FINE, side * FINE), 0)
    ImageDraw.Draw(big).polygon(points, fill=255)
    return big.reduce(FINE)


# --- scenery -------------------------------------------------------------------------------------------------------

# Of each light: the place (shares of the sides), the reach (share of the longer one), the brightness (percent).
LIGHTS = ((0.15, 0.1, 0.8, 74), (0.95, 0.34, 0.9, 66), (0.3, 0.78, 0.8, 62))
USUAL_TURNS = (40, -38, 74)  # degrees from the wallpaper's hue to those of its lights
TURNS = {18: (24, -40, -58)}  # where the usual ones would clash
HILLS = ((0.70, 0.06, -6, 40, 90), (0.82, 0.045, -30, 28, 120))  # height, swing, turn of the hue, lightness, opacity


def wallpaper(width: int, height: int, hue: int, dark: bool) -> Picture:
    """Draw three lights over a slope of one hue, and two hills in front of them."""
    depth = 0.5 if dark else 1.0
    small = masks.slope(width // 6, height // 6, _hsl(hue + 18, 62, 52 * depth), _hsl(hue - 22, 58, 34 * depth)).copy()
    for (x, y, reach, lightness), turn in zip(LIGHTS, TURNS.get(hue, USUAL_TURNS), strict=True):
        side = int(max(small.size) * reach)
        mask = ImageChops.invert(Image.radial_gradient("L")).resize((side, side)).point(lambda value: value * 0.85)
        left, top = round(small.width * x - side / 2), round(small.height * y - side / 2)
        small.paste(_hsl(hue + turn, 72, lightness * depth), (left, top, left + side, top + side), mask)
    image = small.filter(ImageFilter.GaussianBlur(6)).resize((width, height), Image.Resampling.BICUBIC)
    for base, swing, turn, lightness, alpha in HILLS:
        crest = ((x, height * (base + swing * math.sin(x / width * 4.2 + base * 9))) for x in range(-1, width + 8, 8))
        outline = [(2 * x, 2 * y) for x, y in (*crest, (width + 8, height), (-1, height))]
        _fill(image, outline, _hsl(hue + turn, 60, lightness * depth), alpha)
    return image


def _hsl(hue: float, saturation: float, lightness: float) -> str:
    return f"hsl({int(hue) % 360}, {saturation:.0f}%, {lightness:.0f}%)"


def _fill(image: Picture, outline: Iterable[Place], color: str, alpha: int) -> None:
    """Paint a polygon, its points in half pixels, translucent and with smooth edges."""
    mask = Image.new("L", (image.width * 2, image.height * 2), 0)
    ImageDraw.Draw(mask).polygon(list(outline), fill=alpha)
    image.paste(color, (0, 0, *image.size), mask.reduce(2))


# --- fonts and emoji -----------------------------------------------------------------------------------------------

PACKAGES = ("fonts-inter", "fonts-noto-cjk", "fonts-noto-color-emoji")
LATIN = [*range(0x20, 0x7F), *range(0xA0, 0x180), *range(0x370, 0x400), *range(0x400, 0x530), *range(0x1E00, 0x2000),
         *range(0x2010, 0x2070), *range(0x20A0, 0x20C0), *range(0x2100, 0x2200), *range(0x2200, 0x2300)]  # fmt: skip
KANA = [*range(0x3000, 0x3100), *range(0xFF01, 0xFFE6), 0xFFFD]  # with the punctuation and the wide forms of East Asia
# File -> the package's file, the number of the font in it, and the characters that are kept.
FONTS: Mapping[str, tuple[str, int, list[int]]] = {
    "regular.otf": ("Inter-Regular.otf", 0, LATIN),
    "bold.otf": ("Inter-SemiBold.otf", 0, LATIN),
    "asian.otf": ("NotoSansCJK-Regular.ttc", 2, KANA),  # the Chinese one, to which the commonest Han characters come
}
EMOJI_FONT, EMOJI_PIXELS = "NotoColorEmoji.ttf", 109  # the only size that it has
EMOJI = (
    "\U0001f600\U0001f601\U0001f602\U0001f923\U0001f60a\U0001f60d\U0001f618\U0001f60e\U0001f914\U0001f622"
    "\U0001f62d\U0001f621\U0001f631\U0001f634\U0001f973\U0001f917\U0001f644\U0001f605\U0001f609\U0001f642"
    "\U0001f44d\U0001f44e\U0001f44f\U0001f64f\U0001f44b\U0001f4aa\U0001f91d\u270c\U0001f44c\u2764"
    "\U0001f494\U0001f525\u2728\u2b50\U0001f389\U0001f382\U0001f381\U0001f339\u2600\U0001f319"
    "\u2614\u2744\U0001f308\u2615\U0001f355\U0001f34e\U0001f37a\u26bd\U0001f3c6\U0001f697"
    "\u2708\U0001f3e0\U0001f4f1\U0001f4bb\U0001f4f7\U0001f3b5\U0001f4a1\u2705\u274c\u26a0"
)


def han() -> list[int]:
    """Return the 3,755 commonest Han characters: level 1 of GB 2312, rows 16 to 55."""
    found = []
    for row in range(16, 56):
        for column in range(1, 95):
            try:
                found.append(ord(bytes((row + 0xA0, column + 0xA0)).decode("gb2312")))
            except UnicodeDecodeError:  # the end of the last row
                continue
    return found


def write_font(source: Path, number: int, characters: Iterable[int], file: Path) -> None:
    """Write the font with these characters alone, without hints, layout rules and names but those of its license."""
    options = subset.Options(layout_features=[], hinting=False, name_IDs=[0, 1, 2, 13, 14], notdef_outline=True,
                             desubroutinize=False, font_number=number)  # fmt: skip
    font = subset.load_font(str(source), options)
    subsetter = subset.Subsetter(options)
    subsetter.populate(unicodes=characters)
    subsetter.subset(font)
    family = {"bold.otf": "Phone Bold", "regular.otf": "Phone", "asian.otf": "Phone Asian"}[file.name]
    for record in font["name"].names:
        if record.nameID == 1:
            record.string = family
    font["head"].modified = font["head"].created  # so that nothing is dated
    font.recalcTimestamp = False
    font.save(str(file))
    TTFont(str(file)).close()


def emoji(letter: str, font: Path, side: int) -> Picture:
    """Draw a colored character in a square."""
    face = ImageFont.truetype(str(font), EMOJI_PIXELS, layout_engine=ImageFont.Layout.BASIC)
    full = Image.new("RGBA", (136, 136))  # pixels of a glyph of that font, which is 128 high
    ImageDraw.Draw(full).text((0, 4), letter, font=face, embedded_color=True)
    return full.resize((side, side), Image.Resampling.LANCZOS)


def unpacked(folder: Path) -> Path:
    """Return a folder with the files of the packages."""
    for package in PACKAGES:
        subprocess.run(["apt-get", "download", "-qq", package], cwd=folder, check=True)
    for archive in folder.glob("*.deb"):
        subprocess.run(["dpkg-deb", "-x", archive, folder], check=True)
    return folder


# --- the files -----------------------------------------------------------------------------------------------------

COLUMNS = 10
SIDES = {"icons": 214, "signs": 96, "emoji": 72}  # pixels of one sprite: what the largest screen needs


def sheet(sprites: list[Picture], side: int) -> Picture:
    """Lay sprites out in rows."""
    image = Image.new("RGBA", (COLUMNS * side, -(-len(sprites) // COLUMNS) * side))
    for index, sprite in enumerate(sprites):
        image.paste(sprite, (index % COLUMNS * side, index // COLUMNS * side))
    return image


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--fonts", type=Path, metavar="FOLDER", help="where the packages' files are")
    with tempfile.TemporaryDirectory() as temporary:
        fonts = parser.parse_args().fonts or unpacked(Path(temporary))
        named = {path.name: path for path in fonts.rglob("*.[ot]t[fc]")}
        for file, (source, number, characters) in FONTS.items():
            wanted = [*characters, *han()] if characters is KANA else characters
            write_font(named[source], number, wanted, ART / file)
        pictures = {
            "icons": [icon(name, SIDES["icons"]) for name in ICONS],
            "signs": [sign(name, SIDES["signs"]) for name in SIGNS],
            "emoji": [emoji(letter, named[EMOJI_FONT], SIDES["emoji"]) for letter in EMOJI],
        }
    for name, sprites in pictures.items():
        image = sheet(sprites, SIDES[name])
        (image.getchannel("A") if name == "signs" else image).save(ART / f"{name}.png", optimize=True)
    names = {"icons": list(ICONS), "signs": list(SIGNS), "emoji": list(EMOJI)}
    index = {name: {"side": SIDES[name], "columns": COLUMNS, "names": found} for name, found in names.items()}
    (ART / "sprites.json").write_text(json.dumps(index, indent=1) + "\n", "utf-8")
    for hue in HUES:
        for dark in (False, True):
            for form, size in {"upright": (498, 1080), "lying": (1920, 886)}.items():
                wall = wallpaper(*size, hue, dark)
                wall.save(ART / f"wall-{hue}-{'dark' if dark else 'light'}-{form}.jpg", quality=86)
    for path in sorted(ART.iterdir()):
        print(f"{path.stat().st_size:9,}  {path.name}")


if __name__ == "__main__":
    main()
