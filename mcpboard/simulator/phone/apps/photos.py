"""Photos: a wall of small landscapes, each of which opens."""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator

from PIL import Image, ImageDraw

from mcpboard.simulator.phone import moves
from mcpboard.simulator.phone.apps import bars
from mcpboard.simulator.phone.canvas import Canvas
from mcpboard.simulator.phone.elements import Element, clipped
from mcpboard.simulator.phone.frames import Picture
from mcpboard.simulator.phone.masks import slope
from mcpboard.simulator.phone.view import View

COUNT = 36  # photos there are
COLUMNS = {False: 3, True: 6}
GAP = 3  # points between two photos
SKIES = ((208, 36), (224, 330), (196, 150), (24, 46), (262, 12), (336, 30), (168, 60))  # hues above and below
TITLES = ("Morning", "Harbour", "Ridge", "Meadow", "Dunes", "Evening")


def _pitch(view: View) -> float:
    return (view.size[0] + GAP) / COLUMNS[view.landscape]


def extent(view: View) -> float:
    """How far the wall can be scrolled, in thousandths of the height."""
    rows = math.ceil(COUNT / COLUMNS[view.landscape])
    seen = view.size[1] - bars.head_height(view) - bars.FOOT
    return 0 if view.page else max(0, (rows * _pitch(view) - seen) * 1000 / view.size[1])


def name(index: int) -> str:
    """What a photo is called, its number at the end."""
    return f"{TITLES[index % len(TITLES)]} {index + 1}"


def elements(view: View) -> Iterator[Element]:
    top = bars.head_height(view)
    yield from clipped(_one(view) if view.page else _wall(view), top, view.size[1])
    yield from bars.head(view, view.page or "Photos", large=True)


def _wall(view: View) -> Iterator[Element]:
    pitch, top = _pitch(view), bars.head_height(view) - view.scroll * view.size[1] / 1000
    for index in range(COUNT):
        row, column = divmod(index, COLUMNS[view.landscape])
        y = top + row * pitch
        if y + pitch > 0 and y < view.size[1]:
            yield _photo(view, index, column * pitch, y, pitch - GAP)


def _photo(view: View, index: int, x: float, y: float, side: float) -> Element:
    def paint(canvas: Canvas) -> None:
        canvas.stamp(landscape(index, canvas.px(side) + 1, canvas.px(side) + 1), x, y)

    return Element("photo", (x, y, x + side, y + side), paint, desc=name(index), id=f"photo/{index + 1}",
                   tap=lambda view: moves.entered(view, name(index)))  # fmt: skip


def _one(view: View) -> Iterator[Element]:
    index = int(view.page.rpartition(" ")[2]) - 1
    width, height = view.size
    room = height - bars.head_height(view) - bars.FOOT
    tall = min(room, width * 1.25)
    wide = min(width, tall * 1.25)
    x, y = (width - wide) / 2, bars.head_height(view) + (room - tall) / 2
    yield Element("photo", (x, y, x + wide, y + tall),
                  lambda canvas: canvas.stamp(landscape(index, canvas.px(wide), canvas.px(tall)), x, y),
                  desc=view.page, id=f"photo/{index + 1}")  # fmt: skip


@functools.lru_cache(maxsize=128)
def landscape(index: int, width: int, height: int) -> Picture:
    """A made-up view: sky, a sun, three ridges. Not to be drawn upon."""
    hue, glow = SKIES[index * 5 % len(SKIES)]
    image = slope(width, height, f"hsl({hue}, 62%, 52%)", f"hsl({glow}, 82%, 84%)").copy()
    _sun(image, width * (0.2 + 0.6 * (index * 37 % 100) / 100), height * (0.25 + 0.2 * (index * 61 % 100) / 100))
    for ridge in range(3):
        _ridge(image, index * 3 + ridge, 0.55 + 0.14 * ridge, f"hsl({hue + 8 * ridge}, 38%, {46 - 14 * ridge}%)")
    return image


def _sun(image: Picture, x: float, y: float) -> None:
    radius = min(image.size) / 9
    big = Image.new("L", (image.width * 2, image.height * 2), 0)
    ImageDraw.Draw(big).ellipse([2 * part for part in (x - radius, y - radius, x + radius, y + radius)], fill=235)
    image.paste("#fff6d8", (0, 0, *image.size), big.reduce(2))


def _ridge(image: Picture, turn: int, base: float, colour: str) -> None:
    width, height = image.width * 2, image.height * 2
    crest = [
        (x, height * (base + 0.07 * math.sin(x / width * 6 + turn * 1.7) + 0.03 * math.sin(x / width * 17 + turn)))
        for x in range(-4, width + 8, 6)
    ]
    big = Image.new("L", (width, height), 0)
    ImageDraw.Draw(big).polygon([*crest, (width + 8, height), (-4, height)], fill=255)
    image.paste(colour, (0, 0, *image.size), big.reduce(2))
