"""Drawn scenery: the wallpaper behind the icons, and the landscapes of the photos."""

from __future__ import annotations

import functools
import math
from collections.abc import Iterable

from PIL import Image, ImageChops, ImageDraw, ImageFilter

from mcpboard.simulator.phone import masks
from mcpboard.simulator.phone.frames import Picture
from mcpboard.simulator.phone.view import Box, Place

# Of each light: the place (shares of the sides), the reach (share of the longer one), the brightness (percent).
LIGHTS = ((0.15, 0.1, 0.8, 74), (0.95, 0.34, 0.9, 66), (0.3, 0.78, 0.8, 62))
USUAL_TURNS = (40, -38, 74)  # degrees from the wallpaper's hue to those of its lights
TURNS = {18: (24, -40, -58)}  # where the usual ones would clash
HILLS = ((0.70, 0.06, -6, 40, 90), (0.82, 0.045, -30, 28, 120))  # height, swing, turn of the hue, lightness, opacity
Wall = tuple[int, int, int, bool]  # width and height in pixels, hue, dark: what a wallpaper is drawn from
SKIES = ((208, 36), (224, 330), (196, 150), (24, 46), (262, 12), (336, 30), (168, 60))  # hues above and below


@functools.lru_cache(maxsize=4)
def wallpaper(width: int, height: int, hue: int, dark: bool) -> Picture:
    """Draw three lights over a slope of one hue, and two hills in front of them. Not to be drawn upon."""
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


@functools.lru_cache(maxsize=8)
def glass(wall: Wall, box: Box, blur: float, veil: str, strength: float) -> Picture:
    """Draw a piece of a wallpaper behind frosted glass; `box` is in its pixels."""
    left, top, right, bottom = map(int, box)
    piece = wallpaper(*wall).crop((left, top, right, bottom))
    frosted = piece.reduce(6).filter(ImageFilter.GaussianBlur(blur / 6)).resize(piece.size, Image.Resampling.BICUBIC)
    return masks.veiled(frosted, veil, strength)


def _hsl(hue: float, saturation: float, lightness: float) -> str:
    return f"hsl({int(hue) % 360}, {saturation:.0f}%, {lightness:.0f}%)"


def _fill(image: Picture, outline: Iterable[Place], color: str, alpha: int) -> None:
    """Paint a polygon, its points in half pixels, translucent and with smooth edges."""
    mask = Image.new("L", (image.width * 2, image.height * 2), 0)
    ImageDraw.Draw(mask).polygon(list(outline), fill=alpha)
    image.paste(color, (0, 0, *image.size), mask.reduce(2))


@functools.lru_cache(maxsize=128)
def landscape(index: int, width: int, height: int) -> Picture:
    """Draw a made-up view: sky, a sun, three ridges. Not to be drawn upon."""
    hue, glow = SKIES[index * 5 % len(SKIES)]
    image = masks.slope(width, height, f"hsl({hue}, 62%, 52%)", f"hsl({glow}, 82%, 84%)").copy()
    x, y = width * (0.2 + 0.6 * (index * 37 % 100) / 100), height * (0.25 + 0.2 * (index * 61 % 100) / 100)
    radius = min(width, height) / 9
    sun = Image.new("L", (width * 2, height * 2), 0)
    ImageDraw.Draw(sun).ellipse([2 * part for part in (x - radius, y - radius, x + radius, y + radius)], fill=235)
    image.paste("#fff6d8", (0, 0, width, height), sun.reduce(2))
    wide, tall = width * 2, height * 2
    for ridge in range(3):
        turn, base = index * 3 + ridge, 0.55 + 0.14 * ridge
        crest = [
            (x, tall * (base + 0.07 * math.sin(x / wide * 6 + turn * 1.7) + 0.03 * math.sin(x / wide * 17 + turn)))
            for x in range(-4, wide + 8, 6)
        ]
        outline = [*crest, (wide + 8, tall), (-4, tall)]
        _fill(image, outline, f"hsl({hue + 8 * ridge}, 38%, {46 - 14 * ridge}%)", 255)
    return image
