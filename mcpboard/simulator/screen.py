"""Pixels of the pretend phone: sizes, letters, rings, JPEG, and how two pictures differ.

The only module that imports Pillow; what is on the screen is drawn by `pages`.
"""

from __future__ import annotations

import functools
import io
import unicodedata
from typing import Any

try:
    from PIL import Image, ImageChops, ImageDraw, ImageFont, ImageStat
except ModuleNotFoundError as missing:
    cure = "the simulator draws with Pillow: pip install 'mcpboard[simulator]'"
    raise ModuleNotFoundError(cure, name=missing.name) from None

WIDTH, HEIGHT = 498, 1080  # pixels of a 1179x2556 phone in a frame 1080 high
SOURCE = (1920, 1080)  # the only format the board's video input offers
ACTIVE = (710, 0, 500, 1080)  # x, y, width, height between the black bars, one soft column at each side
QUALITY = 80  # of the Agent's JPEG
MARKED_QUALITY = 90  # of a picture with touch rings, encoded again
NO_CHARACTER = "\U0010fffe"  # never assigned, so that its glyph is the font's sign for "I have none"
NOISE = 4  # of 255; smaller differences are the video path's

Pen = ImageDraw.ImageDraw
Picture = Image.Image
Font = Any  # FreeTypeFont, or ImageFont where Pillow came without FreeType
Box = tuple[float, float, float, float]


def px(x: float, y: float) -> tuple[float, float]:
    """Pixels of a normalised place."""
    return x * (WIDTH - 1) / 1000, y * (HEIGHT - 1) / 1000


def around(centre: tuple[float, float], radius: float) -> Box:
    x, y = centre
    return x - radius, y - radius, x + radius, y + radius


def blank(colour: str) -> tuple[Picture, Pen]:
    image = Image.new("RGB", (WIDTH, HEIGHT), colour)
    return image, ImageDraw.Draw(image)


def pen_on(image: Picture) -> Pen:
    return ImageDraw.Draw(image)


@functools.lru_cache(maxsize=2)
def wallpaper(hue: int) -> Picture:
    """A soft slope of one hue, light above and dark below, with a hill of light. Not to be drawn upon."""
    slope = Image.linear_gradient("L").resize((WIDTH, HEIGHT), Image.Resampling.BICUBIC)
    hill = Image.radial_gradient("L").resize((WIDTH * 2, HEIGHT)).crop((0, 0, WIDTH, HEIGHT))
    value = ImageChops.add(slope.point(lambda v: 225 - v * 0.55), hill.point(lambda v: max(0, 90 - v * 0.5)))
    colour = Image.new("L", (WIDTH, HEIGHT), hue * 255 // 360)
    depth = slope.point(lambda v: 70 + v * 0.45)
    return Image.merge("HSV", (colour, depth, value)).convert("RGB")


def source_frame(image: Picture) -> Picture:
    """The whole video frame, the phone between black bars."""
    frame = Image.new("RGB", SOURCE, "black")
    frame.paste(image, (ACTIVE[0] + 1, 0))
    return frame


def marked(image: Picture, x: float, y: float) -> Picture:
    """The picture with the two rings, white around red, that the Agent draws where it touched."""
    copy = image.copy()
    radius = max(10, min(24, min(image.size) // 28))
    centre = x * (image.width - 1) / 1000, y * (image.height - 1) / 1000
    for colour, size in (("white", radius), ("#e02020", radius - 4)):
        ImageDraw.Draw(copy).ellipse(around(centre, size), outline=colour, width=3)
    return copy


def jpeg(image: Picture, quality: int = QUALITY) -> bytes:
    made = io.BytesIO()
    image.save(made, "JPEG", quality=quality)
    return made.getvalue()


def difference(first: Picture, second: Picture) -> float:
    """Mean absolute difference over all three colours, 0 to 255."""
    means = ImageStat.Stat(ImageChops.difference(first, second)).mean
    return round(sum(means) / len(means), 4)


def changed(first: Picture, second: Picture) -> bool:
    """Whether more than one in a hundred of 40x80 blocks differ, the status bar left out."""
    histogram = ImageChops.difference(_blocks(first), _blocks(second)).histogram()
    return sum(histogram[NOISE:]) > 40 * 80 / 100


def _blocks(image: Picture) -> Picture:
    body = image.crop((0, image.height * 8 // 100, image.width, image.height)).convert("L")
    return body.resize((40, 80), Image.Resampling.BOX)


@functools.lru_cache(maxsize=32)
def font(size: int, bold: bool = False) -> Font:
    """DejaVu where the system has it, else what Pillow brings along."""
    try:
        return ImageFont.truetype("DejaVuSans-Bold.ttf" if bold else "DejaVuSans.ttf", size)
    except (OSError, ImportError):
        return _own_font(size)


def _own_font(size: int) -> Font:
    try:
        return ImageFont.load_default(size)
    except (TypeError, OSError, ImportError):
        return ImageFont.load_default()  # before Pillow 10.1, or without FreeType: one size only


@functools.lru_cache(maxsize=4096)
def drawable(letter: str, size: int, bold: bool = False) -> bool:
    """Whether the font has a glyph of its own for this character."""
    glyph = _glyph(letter, size, bold)
    return glyph is not None and (letter.isspace() or glyph != _glyph(NO_CHARACTER, size, bold))


def _glyph(letter: str, size: int, bold: bool) -> bytes | None:
    """The pixels of one character, None where the font (Pillow's bitmap one, Latin-1 only) cannot even try."""
    try:
        return bytes(font(size, bold).getmask(letter))
    except (UnicodeError, ValueError):
        return None


def write(pen: Pen, place: tuple[float, float], text: str, size: int, colour: str, bold: bool = False) -> float:
    """Draw one line from its left upper corner and give its width; what has no glyph is boxed with its code point."""
    x, y = place
    for letter in text:
        x += _letter(pen, (x, y), letter, size, colour, bold)
    return x - place[0]


def write_middle(pen: Pen, centre: tuple[float, float], text: str, size: int, colour: str, bold: bool = False) -> None:
    """Draw one line around a point."""
    x, y = centre
    write(pen, (x - width(text, size, bold) / 2, y - size * 0.6), text, size, colour, bold)


def width(text: str, size: int, bold: bool = False) -> float:
    return sum(_advance(letter, size, bold) for letter in text)


def wrapped(text: str, size: int, room: float) -> list[str]:
    """The lines of a text in a column `room` pixels wide; long words are broken where they must be."""
    lines = [""]
    for letter in text:
        if letter == "\n":
            lines.append("")
        elif width(lines[-1] + letter, size) > room:
            lines += _broken(lines.pop(), letter)
        else:
            lines[-1] += letter
    return lines


def _broken(line: str, letter: str) -> tuple[str, str]:
    if letter == " ":
        return line, ""
    kept, space, word = line.rpartition(" ")
    return (kept, word + letter) if space else (line, letter)


def _silent(letter: str) -> bool:
    return unicodedata.category(letter) in ("Mn", "Cf", "Cc")


@functools.lru_cache(maxsize=4096)
def _advance(letter: str, size: int, bold: bool) -> float:
    if _silent(letter):
        return 0.0
    return float(font(size, bold).getlength(letter)) if drawable(letter, size, bold) else size * 1.3


def _letter(pen: Pen, place: tuple[float, float], letter: str, size: int, colour: str, bold: bool) -> float:
    advance = _advance(letter, size, bold)
    if advance and drawable(letter, size, bold):
        pen.text(place, letter, fill=colour, font=font(size, bold))
    elif advance:
        _boxed(pen, place, letter, size, colour)
    return advance


def _boxed(pen: Pen, place: tuple[float, float], letter: str, size: int, colour: str) -> None:
    """The code point in two short lines inside a box, so that foreign text can still be told apart."""
    x, y = place
    code = f"{ord(letter):04X}"
    half = (len(code) + 1) // 2
    pen.rectangle((x + 1, y, x + size * 1.2, y + size * 1.15), outline=colour)
    small = font(max(6, size * 9 // 20))
    for row, part in enumerate((code[:half], code[half:])):
        pen.text((x + size * 0.15, y + size * (0.04 + 0.53 * row)), part, fill=colour, font=small)
