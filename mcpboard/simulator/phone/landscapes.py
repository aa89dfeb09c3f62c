"""The landscapes of the photos, drawn from their number."""

from __future__ import annotations

import functools
import math

from PIL import Image, ImageDraw

from mcpboard.simulator.phone import masks
from mcpboard.simulator.phone.frames import Picture

SKIES = ((208, 36), (224, 330), (196, 150), (24, 46), (262, 12), (336, 30), (168, 60))  # hues above and below


@functools.lru_cache(maxsize=128)
def landscape(index: int, width: int, height: int) -> Picture:
    """Draw a made-up view: sky, a sun, three ridges. Not to be drawn upon."""
    hue, glow = SKIES[index * 5 % len(SKIES)]
    image = masks.slope(width, height, f"hsl({hue}, 62%, 52%)", f"hsl({glow}, 82%, 84%)").copy()
    x, y = width * (0.2 + 0.6 * (index * 37 % 100) / 100), height * (0.25 + 0.2 * (index * 61 % 100) / 100)
    radius = min(width, height) / 9
    wide, tall = width * 2, height * 2  # masks are drawn large, for smooth edges
    mask = Image.new("L", (wide, tall), 0)
    ImageDraw.Draw(mask).ellipse([2 * part for part in (x - radius, y - radius, x + radius, y + radius)], fill=235)
    image.paste("#fff6d8", (0, 0, width, height), mask.reduce(2))
    for ridge in range(3):
        turn, base = index * 3 + ridge, 0.55 + 0.14 * ridge
        crest = [
            (x, tall * (base + 0.07 * math.sin(x / wide * 6 + turn * 1.7) + 0.03 * math.sin(x / wide * 17 + turn)))
            for x in range(-4, wide + 8, 6)
        ]
        mask = Image.new("L", (wide, tall), 0)
        ImageDraw.Draw(mask).polygon([*crest, (wide + 8, tall), (-4, tall)], fill=255)
        image.paste(f"hsl({hue + 8 * ridge}, 38%, {46 - 14 * ridge}%)", (0, 0, width, height), mask.reduce(2))
    return image
