"""What lies behind the icons: lights over a slope of one hue, and hills in front of them."""

from __future__ import annotations

import functools
import math

from PIL import Image, ImageChops, ImageDraw, ImageFilter

from mcpboard.simulator.phone import masks
from mcpboard.simulator.phone.frames import Picture

# Where a light hangs (shares of the sides), how far it reaches (of the longer one), how bright it is (percent).
LIGHTS = ((0.15, 0.1, 0.8, 74), (0.95, 0.34, 0.9, 66), (0.3, 0.78, 0.8, 62))
USUAL_TURNS = (40, -38, 74)  # degrees from the wallpaper's hue to those of its lights
TURNS = {18: (24, -40, -58)}  # where the usual ones would clash


@functools.lru_cache(maxsize=4)
def wallpaper(width: int, height: int, hue: int, dark: bool) -> Picture:
    """Three lights over a slope of one hue, and two hills in front of them. Not to be drawn upon."""
    depth = 0.5 if dark else 1.0
    small = masks.slope(width // 6, height // 6, _hsl(hue + 18, 62, 52 * depth), _hsl(hue - 22, 58, 34 * depth)).copy()
    for (x, y, reach, light), turn in zip(LIGHTS, TURNS.get(hue, USUAL_TURNS), strict=True):
        _light(small, (x, y), reach, _hsl(hue + turn, 72, light * depth))
    image = small.filter(ImageFilter.GaussianBlur(6)).resize((width, height), Image.Resampling.BICUBIC)
    for base, swing, turn, light, alpha in ((0.70, 0.06, -6, 40, 90), (0.82, 0.045, -30, 28, 120)):
        _hill(image, base, swing, _hsl(hue + turn, 60, light * depth), alpha)
    return image


def _hsl(hue: float, saturation: float, light: float) -> str:
    return f"hsl({int(hue) % 360}, {saturation:.0f}%, {light:.0f}%)"


def _light(image: Picture, centre: tuple[float, float], reach: float, colour: str) -> None:
    side = int(max(image.size) * reach)
    mask = ImageChops.invert(Image.radial_gradient("L")).resize((side, side)).point(lambda v: v * 0.85)
    left, top = round(image.width * centre[0] - side / 2), round(image.height * centre[1] - side / 2)
    image.paste(colour, (left, top, left + side, top + side), mask)


def _hill(image: Picture, base: float, swing: float, colour: str, alpha: int) -> None:
    """A translucent wave across the lower part."""
    width, height = image.size
    crest = [
        (x, height * (base + swing * math.sin(x / width * 4.2 + base * 9)))
        for x in range(-1, width + 8, 8)
    ]  # fmt: skip
    big = Image.new("L", (width * 2, height * 2), 0)
    outline = [(2 * x, 2 * y) for x, y in (*crest, (width + 8, height), (-1, height))]
    ImageDraw.Draw(big).polygon(outline, fill=alpha)
    image.paste(colour, (0, 0, width, height), big.reduce(2))
