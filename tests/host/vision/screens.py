"""Phone screens drawn for the OCR: the same strings in six looks; and icons on toolbars and tiles."""

from __future__ import annotations

import functools
import io
import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from PIL import Image, ImageDraw, ImageFont

FONT = "/usr/share/fonts/truetype/wqy/wqy-microhei.ttc"  # fonts-wqy-microhei: Chinese and Latin

# What stands on each screen: 27 strings, as rows of a list with something at both ends.
ROWS = (
    ("12:34", "5G 87%"),
    ("Settings", ""),
    ("Search settings", ""),
    ("Network & internet", "无线局域网"),
    ("Bluetooth", "已连接"),
    ("蓝牙", "Off"),
    ("电池", ""),
    ("Display and brightness", ""),
    ("显示与亮度", "自动"),
    ("Privacy policy", "隐私政策"),
    ("Balance", "$1,284.50"),
    ("订单编号", "2026-11-30"),
    ("请输入手机号码", ""),
    ("Sign in", "Create account"),
    ("取消", "确定"),
    ("Version 14.2.1", "检查更新"),
)
STRINGS = tuple(text for row in ROWS for text in row if text)


@dataclass(frozen=True)
class Look:
    """How a screen is drawn: pixels, colors, font, and the size of letters in thousandths of its width."""

    width: int
    height: int
    ground: str
    ink: str
    font: str = FONT
    letters: int = 42
    letterboxed: bool = False


LOOKS: Mapping[str, Look] = {
    "light": Look(1080, 2400, "#ffffff", "#1b1b1f"),
    "dark": Look(1080, 2400, "#121212", "#e6e1e5"),
    "grey on grey": Look(1080, 2400, "#f2f2f7", "#6c6c70", letters=38),
    "blue on black, large": Look(1179, 2556, "#000000", "#0a84ff", letters=46),
    "480 pixels": Look(480, 1067, "#fafafa", "#212121"),
    "letterboxed HDMI JPEG": Look(500, 1080, "#ffffff", "#111111", letterboxed=True),
}


def text_screen(look: Look) -> bytes:
    """A list of settings as PNG; letterboxed ones in the middle of a 1920x1080 frame, as a JPEG of quality 80."""
    image = Image.new("RGB", (look.width, look.height), look.ground)
    pen, font = ImageDraw.Draw(image), _font(look.font, look.letters * look.width // 1000)
    edge, step = look.width * 6 // 100, look.height // (len(ROWS) + 1)
    for row, (left, right) in enumerate(ROWS):
        y = step // 3 + row * step
        pen.text((edge, y), left, look.ink, font)
        pen.text((look.width - edge - pen.textlength(right, font), y), right, look.ink, font)
        pen.line((edge, y + step * 2 // 3, look.width - edge, y + step * 2 // 3), "#8e8e93")
    if not look.letterboxed:
        return encoded(image)
    frame = Image.new("RGB", (1920, 1080), "black")
    frame.paste(image, ((1920 - look.width) // 2, 0))
    return encoded(frame, "JPEG")


def encoded(image: Image.Image, kind: str = "PNG") -> bytes:
    out = io.BytesIO()
    image.save(out, kind, quality=80)
    return out.getvalue()


@functools.lru_cache
def _font(name: str, size: int) -> Any:
    return ImageFont.truetype(name, size)


# --- icons ---------------------------------------------------------------------------------------

GROUNDS = (  # ground, ink, and whether each icon stands on a tile of its own color
    ("#ffffff", "#111111", False),
    ("#121212", "#eeeeee", False),
    ("#f2f2f7", "#007aff", False),
    ("#ffffff", "#ffffff", True),
    ("#202124", "#8ab4f8", False),
    ("#eceff1", "#5f6368", False),
)
TILES = ("#e53935", "#43a047", "#1e88e5", "#8e24aa", "#fb8c00", "#3949ab")
SIZES = (48, 56, 64, 72, 96, 40)  # pixels, of icons on a screen 1080 wide
PER_SCREEN = 60
ACROSS = 6


@dataclass(frozen=True)
class Placed:
    """One icon on a screen: the shape it shows, its drawing, and where its middle is."""

    shape: str
    drawing: Path
    x: int
    y: int


def icon_screens(icons: list[tuple[str, Path]], rasterized: Any) -> Iterator[tuple[bytes, list[Placed]]]:
    """Screens 1080x2400 of sixty named icons each, shuffled so that every shape meets many looks."""
    shuffled = random.Random(1).sample(icons, len(icons))
    for start in range(0, len(shuffled), PER_SCREEN):
        look = GROUNDS[start // PER_SCREEN % len(GROUNDS)]
        yield _icon_screen(shuffled[start : start + PER_SCREEN], look, rasterized)


def _icon_screen(
    icons: list[tuple[str, Path]], look: tuple[str, str, bool], rasterized: Any
) -> tuple[bytes, list[Placed]]:
    ground, ink, tiled = look
    image = Image.new("RGB", (1080, 2400), ground)
    pen, font = ImageDraw.Draw(image), _font(FONT, 30)
    placed = []
    for index, (shape, drawing) in enumerate(icons):
        x, y, size = 110 + index % ACROSS * 172, 120 + index // ACROSS * 220, SIZES[index % len(SIZES)]
        if tiled:
            pen.rounded_rectangle((x - 70, y - 70, x + 70, y + 70), 30, TILES[index % len(TILES)])
        mask = Image.fromarray(rasterized(drawing, size))
        image.paste(Image.new("RGB", mask.size, ink), (x - size // 2, y - size // 2), mask)
        label = shape[:9]
        pen.text((x - pen.textlength(label, font) / 2, y + 80), label, "#000000" if tiled else ink, font)
        placed.append(Placed(shape, drawing, x, y))
    return encoded(image), placed


# --- the user's own ------------------------------------------------------------------------------


def zigzag(pen: ImageDraw.ImageDraw, at: tuple[int, int], size: int, ink: str) -> None:
    """Three slanting strokes, thick."""
    steps = [(-0.5, 0.5), (-0.25, -0.5), (0.0, 0.5), (0.25, -0.5), (0.5, 0.5)]
    pen.line([(at[0] + x * size, at[1] + y * size) for x, y in steps], ink, size // 8)


def target(pen: ImageDraw.ImageDraw, at: tuple[int, int], size: int, ink: str) -> None:
    """A ring around a square that stands on its corner."""
    x, y, half = *at, size // 2
    pen.ellipse((x - half, y - half, x + half, y + half), outline=ink, width=size // 12)
    pen.polygon([(x, y - half * 0.6), (x + half * 0.6, y), (x, y + half * 0.6), (x - half * 0.6, y)], ink)


def own_icons(folder: Path) -> None:
    """Their PNGs: one transparent, one on a white ground; and a file that is none."""
    image = Image.new("RGBA", (128, 128))
    zigzag(ImageDraw.Draw(image), (64, 64), 100, "#000000")
    image.save(folder / "my-app.png")
    image = Image.new("RGB", (64, 64), "white")
    target(ImageDraw.Draw(image), (32, 32), 50, "#0000ff")
    image.save(folder / "Logo.png")
    (folder / "broken.png").write_bytes(b"no picture")
