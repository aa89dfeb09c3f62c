"""Soft edges: masks, slopes and shadows, each drawn once and kept."""

from __future__ import annotations

import functools

from PIL import Image, ImageDraw, ImageFilter

from mcpboard.simulator.phone.frames import Picture

FINE = 4  # times larger than seen is drawn what gets smooth edges


@functools.lru_cache(maxsize=512)
def rounded(width: int, height: int, radius: int, alpha: int = 255) -> Picture:
    """Draw a filled rectangle with round corners."""
    mask = Image.new("L", (width, height), alpha)
    radius = min(radius, width // 2, height // 2)
    if radius > 0:
        disc = _disc(radius, alpha)
        for left, top in ((0, 0), (1, 0), (0, 1), (1, 1)):
            corner = disc.crop((left * radius, top * radius, (left + 1) * radius, (top + 1) * radius))
            mask.paste(corner, (left * (width - radius), top * (height - radius)))
    return mask


@functools.lru_cache(maxsize=128)
def _disc(radius: int, alpha: int) -> Picture:
    side = 2 * radius * FINE
    big = Image.new("L", (side, side), 0)
    ImageDraw.Draw(big).ellipse((0, 0, side - 1, side - 1), fill=alpha)
    return big.reduce(FINE)


@functools.lru_cache(maxsize=64)
def slope(width: int, height: int, top: str, bottom: str) -> Picture:
    """Draw a gradient from the top color to the bottom one."""
    run = Image.linear_gradient("L").resize((1, height), Image.Resampling.BILINEAR).resize((width, height))
    return Image.composite(Image.new("RGB", (width, height), bottom), Image.new("RGB", (width, height), top), run)


@functools.lru_cache(maxsize=128)
def shadow(width: int, height: int, radius: int, blur: int, alpha: int) -> Picture:
    """Draw the mask of a soft shadow, larger than its caster by `2 * blur` on each side.

    It is blurred small: nothing in it is fine enough to be missed.
    """
    shrink = 2 if blur >= 4 else 1
    full = width + 4 * blur, height + 4 * blur
    mask = Image.new("L", full, 0)
    mask.paste(rounded(width, height, radius, alpha), (2 * blur, 2 * blur))
    small = mask.resize((max(1, full[0] // shrink), max(1, full[1] // shrink)), Image.Resampling.BOX)
    return small.filter(ImageFilter.GaussianBlur(blur / shrink)).resize(full, Image.Resampling.BICUBIC)


def veiled(image: Picture, color: str, strength: float) -> Picture:
    """Return the picture behind a veil of one color."""
    return Image.blend(image, Image.new("RGB", image.size, color), strength)
