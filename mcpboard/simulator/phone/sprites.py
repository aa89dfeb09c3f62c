"""Drawings that are kept as pictures in `art`: icons, signs, emoji, wallpapers. deploy/phone/build.py makes them."""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from PIL import Image, ImageFilter

from mcpboard.simulator.phone import masks
from mcpboard.simulator.phone.frames import Picture
from mcpboard.simulator.phone.view import Box, Wall

ART = Path(__file__).with_name("art")
INDEX: Mapping[str, Mapping[str, Any]] = json.loads((ART / "sprites.json").read_text("utf-8"))  # sheet -> its names
EMOJI = frozenset(INDEX["emoji"]["names"])


@functools.lru_cache(maxsize=3)
def _sheet(name: str) -> Picture:
    with Image.open(ART / f"{name}.png") as image:
        found: Picture = image.copy()
        return found


@functools.lru_cache(maxsize=512)
def sprite(sheet: str, name: str, side: int) -> Picture:
    """Draw a picture of a sheet, that many pixels wide and high. Not to be drawn upon."""
    facts = INDEX[sheet]
    row, column = divmod(facts["names"].index(name), facts["columns"])
    full = facts["side"]
    piece = _sheet(sheet).crop((column * full, row * full, (column + 1) * full, (row + 1) * full))
    return piece.resize((side, side), Image.Resampling.LANCZOS)


@functools.lru_cache(maxsize=256)
def sign(name: str, side: int, color: str) -> Picture:
    """Draw a sign of that many pixels in one color, the rest clear. Not to be drawn upon."""
    image = Image.new("RGBA", (side, side), color)
    image.putalpha(sprite("signs", name, side))
    return image


@functools.lru_cache(maxsize=4)
def wallpaper(width: int, height: int, hue: int, dark: bool) -> Picture:
    """Draw the ground behind the icons. Not to be drawn upon."""
    name = f"wall-{hue}-{'dark' if dark else 'light'}-{'lying' if width > height else 'upright'}.jpg"
    with Image.open(ART / name) as image:
        found: Picture = image.convert("RGB").resize((width, height))
        return found


@functools.lru_cache(maxsize=8)
def glass(wall: Wall, box: Box, blur: float, veil: str, strength: float) -> Picture:
    """Draw a piece of a wallpaper behind frosted glass; `box` is in its pixels."""
    left, top, right, bottom = map(int, box)
    piece = wallpaper(*wall).crop((left, top, right, bottom))
    frosted = piece.reduce(6).filter(ImageFilter.GaussianBlur(blur / 6)).resize(piece.size, Image.Resampling.BICUBIC)
    return masks.veiled(frosted, veil, strength)
