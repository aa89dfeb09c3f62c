"""Phone screens drawn for the vision engine: the same strings in six looks, icons on toolbars and tiles, and odd pictures."""

from __future__ import annotations

import io
import random
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from PIL import Image, ImageDraw, ImageFont

FONT = "/usr/share/fonts/truetype/wqy/wqy-microhei.ttc"  # fonts-wqy-microhei: Chinese and Latin

# What stands on each screen: 27 strings, as rows of a list with something at both ends.
ROWS = (
    ("12:34", "5G 87%"), ("Settings", ""), ("Search settings", ""), ("Network & internet", "无线局域网"), ("Bluetooth", "已连接"),
    ("蓝牙", "Off"), ("电池", ""), ("Display and brightness", ""), ("显示与亮度", "自动"), ("Privacy policy", "隐私政策"),
    ("Balance", "$1,284.50"), ("订单编号", "2026-11-30"), ("请输入手机号码", ""), ("Sign in", "Create account"), ("取消", "确定"),
    ("Version 14.2.1", "检查更新"),
)  # fmt: skip
STRINGS = tuple(text for row in ROWS for text in row if text)

# Pixels across and down, ground, ink, and the size of letters in thousandths of the width.
LOOKS: Mapping[str, tuple[int, int, str, str, int]] = {
    "light": (1080, 2400, "#ffffff", "#1b1b1f", 42),
    "dark": (1080, 2400, "#121212", "#e6e1e5", 42),
    "grey on grey": (1080, 2400, "#f2f2f7", "#6c6c70", 38),
    "blue on black, large": (1179, 2556, "#000000", "#0a84ff", 46),
    "480 pixels": (480, 1067, "#fafafa", "#212121", 42),
    "letterboxed HDMI JPEG": (500, 1080, "#ffffff", "#111111", 42),
}


def text_screen(look: str) -> bytes:
    """A list of settings as PNG; letterboxed ones in the middle of a 1920x1080 frame, as a JPEG of quality 80."""
    width, height, ground, ink, letters = LOOKS[look]
    image = Image.new("RGB", (width, height), ground)
    pen, font = ImageDraw.Draw(image), ImageFont.truetype(FONT, letters * width // 1000)
    edge, step = width * 6 // 100, height // (len(ROWS) + 1)
    for row, (left, right) in enumerate(ROWS):
        y = step // 3 + row * step
        pen.text((edge, y), left, ink, font)
        pen.text((width - edge - pen.textlength(right, font), y), right, ink, font)
        pen.line((edge, y + step * 2 // 3, width - edge, y + step * 2 // 3), "#8e8e93")
    if not look.startswith("letterboxed"):
        return encoded(image)
    frame = Image.new("RGB", (1920, 1080), "black")
    frame.paste(image, ((1920 - width) // 2, 0))
    return encoded(frame, "JPEG")


def encoded(image: Image.Image, kind: str = "PNG") -> bytes:
    out = io.BytesIO()
    image.save(out, kind, quality=80)
    return out.getvalue()


# --- icons ---------------------------------------------------------------------------------------

GROUNDS = (  # ground, ink, and whether each icon stands on a tile of its own color
    ("#ffffff", "#111111", False), ("#121212", "#eeeeee", False), ("#f2f2f7", "#007aff", False),
    ("#ffffff", "#ffffff", True), ("#202124", "#8ab4f8", False), ("#eceff1", "#5f6368", False),
)  # fmt: skip
TILES = ("#e53935", "#43a047", "#1e88e5", "#8e24aa", "#fb8c00", "#3949ab")
SIZES = (48, 56, 64, 72, 96, 40)  # pixels, of icons on a screen 1080 wide
PER_SCREEN, ACROSS = 60, 6

Placed = tuple[str, int, int]  # the shape that an icon shows, and where its middle is


def icon_screens(icons: list[tuple[str, Path]], rasterized: Callable[..., Any]) -> Iterator[tuple[bytes, list[Placed]]]:
    """Screens 1080x2400 of sixty named icons each, shuffled so that every shape meets many looks."""
    shuffled = random.Random(1).sample(icons, len(icons))
    font = ImageFont.truetype(FONT, 30)
    for start in range(0, len(shuffled), PER_SCREEN):
        ground, ink, tiled = GROUNDS[start // PER_SCREEN % len(GROUNDS)]
        image = Image.new("RGB", (1080, 2400), ground)
        pen, placed = ImageDraw.Draw(image), []
        for index, (shape, drawing) in enumerate(shuffled[start : start + PER_SCREEN]):
            x, y, size = 110 + index % ACROSS * 172, 120 + index // ACROSS * 220, SIZES[index % len(SIZES)]
            if tiled:
                pen.rounded_rectangle((x - 70, y - 70, x + 70, y + 70), 30, TILES[index % len(TILES)])
            mask = Image.fromarray(rasterized(drawing, size))
            image.paste(Image.new("RGB", mask.size, ink), (x - size // 2, y - size // 2), mask)
            label = shape[:9]
            pen.text((x - pen.textlength(label, font) / 2, y + 80), label, "#000000" if tiled else ink, font)
            placed.append((shape, x, y))
        yield encoded(image), placed


# --- the user's own ------------------------------------------------------------------------------


def zigzag(image: Image.Image, x: int, y: int, size: int, ink: str) -> Image.Image:
    """Three slanting strokes, thick."""
    steps = [(-0.5, 0.5), (-0.25, -0.5), (0.0, 0.5), (0.25, -0.5), (0.5, 0.5)]
    ImageDraw.Draw(image).line([(x + right * size, y + down * size) for right, down in steps], ink, size // 8)
    return image


def target(image: Image.Image, x: int, y: int, size: int, ink: str) -> Image.Image:
    """A ring around a square that stands on its corner."""
    pen, half, part = ImageDraw.Draw(image), size // 2, size // 2 * 0.6
    pen.ellipse((x - half, y - half, x + half, y + half), outline=ink, width=size // 12)
    pen.polygon([(x, y - part), (x + part, y), (x, y + part), (x - part, y)], ink)
    return image


def own_icons(folder: Path) -> bytes:
    """A screen with two icons that no family has, and in `folder` what the user has of them, in other colors and sizes.

    One is transparent, one on a white ground; and a file that is no image.
    """
    zigzag(Image.new("RGBA", (128, 128)), 64, 64, 100, "#000000").save(folder / "my-app.png")
    target(Image.new("RGB", (64, 64), "white"), 32, 32, 50, "#0000ff").save(folder / "Logo.png")
    (folder / "broken.png").write_bytes(b"no picture")
    screen = zigzag(Image.new("RGB", (1080, 2400), "#203040"), 300, 500, 90, "#ffcc00")
    return encoded(target(screen, 700, 1500, 70, "#ffffff"))


def plain(width: int, height: int, mode: str = "RGB") -> bytes:
    return encoded(Image.new(mode, (width, height)))
