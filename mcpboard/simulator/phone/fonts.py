"""Letters: which font has them, how wide they are, where a line breaks.

The fonts are the system's, or the one that Pillow brings. What no font can draw is boxed with its code point.
"""

from __future__ import annotations

import functools
import unicodedata
from typing import Any

from PIL import ImageFont

# Regular and bold, the handsomest first; the first family that is installed is the phone's.
FAMILIES = (
    ("Inter-Regular.ttf", "Inter-SemiBold.ttf"),
    ("Roboto-Regular.ttf", "Roboto-Medium.ttf"),
    ("NotoSans-Regular.ttf", "NotoSans-SemiBold.ttf"),
    ("LiberationSans-Regular.ttf", "LiberationSans-Bold.ttf"),
    ("DejaVuSans.ttf", "DejaVuSans-Bold.ttf"),
)
# Asked in turn for a letter that the family lacks.
FALLBACKS = (
    "DejaVuSans.ttf", "NotoSansCJK-Regular.ttc", "NotoSansCJKsc-Regular.otf", "wqy-microhei.ttc",
    "DroidSansFallbackFull.ttf", "NotoSansSymbols2-Regular.ttf",
)  # fmt: skip
EMOJI = "NotoColorEmoji.ttf"
EMOJI_SIZE = 109  # pixels, the only size that font has
PROBE = 20  # pixels at which fonts are asked whether they have a letter
NO_CHARACTER = "\U0010fffe"  # never assigned, so that its glyph is the font's sign for "I have none"
PICTURED, BOXED = "emoji", "box"  # runs that no outline font draws

Font = Any  # FreeTypeFont, or ImageFont where Pillow came without FreeType


@functools.lru_cache(maxsize=64)
def _installed(name: str, size: int) -> Font | None:
    try:
        return ImageFont.truetype(name, size, layout_engine=ImageFont.Layout.BASIC)
    except (OSError, ImportError):
        return None


@functools.lru_cache(maxsize=2)
def chain(bold: bool) -> tuple[str, ...]:
    """Return the names of the fonts to ask for a letter, in order; empty where Pillow's own is all there is."""
    family = next((pair[bold] for pair in FAMILIES if all(_installed(name, PROBE) for name in pair)), None)
    names = [name for name in FALLBACKS if name != family and _installed(name, PROBE)]
    return (family, *names) if family else tuple(names)


@functools.lru_cache(maxsize=128)
def font(name: str, size: int) -> Font:
    """Return a font in a size in pixels; the empty name is Pillow's own."""
    if name and (installed := _installed(name, size)):
        return installed
    try:
        return ImageFont.load_default(size)
    except (TypeError, OSError, ImportError):
        return ImageFont.load_default()  # before Pillow 10.1, or without FreeType: one size only


@functools.lru_cache(maxsize=4096)
def has(name: str, letter: str) -> bool:
    """Return True when the font has a glyph of its own for this character."""
    glyph = _glyph(name, letter)
    return glyph is not None and (letter.isspace() or glyph != _glyph(name, NO_CHARACTER))


def _glyph(name: str, letter: str) -> bytes | None:
    """Return the pixels of one character, None where the font (Pillow's bitmap one, Latin-1 only) cannot even try."""
    try:
        return bytes(font(name, PROBE).getmask(letter))
    except (UnicodeError, ValueError):
        return None


@functools.lru_cache(maxsize=4096)
def drawn_by(letter: str, bold: bool = False) -> str:
    """Return the font that draws a letter, PICTURED or BOXED where none does."""
    names = chain(bold) or ("",)
    if ord(letter) >= 0x1F000 and pictured(letter):
        return PICTURED
    return next((name or "own" for name in names if has(name, letter)), PICTURED if pictured(letter) else BOXED)


@functools.lru_cache(maxsize=256)
def pictured(letter: str) -> bool:
    """Return True when the font with colored pictures has this character."""
    emoji = _installed(EMOJI, EMOJI_SIZE)
    try:
        return emoji is not None and emoji.getbbox(letter) != emoji.getbbox(NO_CHARACTER)
    except (UnicodeError, ValueError, OSError):
        return False


@functools.lru_cache(maxsize=2048)
def runs(text: str, bold: bool) -> tuple[tuple[str, str], ...]:
    """Return the text in pieces that one font draws, each as (font, letters)."""
    pieces: list[tuple[str, str]] = []
    for letter in text:
        if unicodedata.category(letter) in ("Mn", "Cf", "Cc"):  # marks and controls take no room of their own here
            continue
        by = drawn_by(letter, bold)
        if pieces and pieces[-1][0] == by:
            pieces[-1] = by, pieces[-1][1] + letter
        else:
            pieces.append((by, letter))
    return tuple(pieces)


def run_width(by: str, letters: str, size: int) -> float:
    """Return the width of a run in pixels."""
    if by in (PICTURED, BOXED):
        return size * 1.3 * len(letters)
    return float(font("" if by == "own" else by, size).getlength(letters))


@functools.lru_cache(maxsize=4096)
def width(text: str, size: int, bold: bool = False) -> float:
    """Return the width of a line in pixels."""
    return sum(run_width(by, letters, size) for by, letters in runs(text, bold))


def wrapped(text: str, size: int, room: float) -> list[str]:
    """Break a text into lines for a column `room` pixels wide; long words are broken where they must be."""
    lines, used = [""], 0.0
    for letter in text:
        step = width(letter, size)
        if letter == "\n":
            lines.append("")
            used = 0.0
        elif used + step > room:
            line = lines.pop()
            kept, space, word = line.rpartition(" ")
            if letter == " ":
                lines += [line, ""]
            else:
                lines += [kept, word + letter] if space else [line, letter]
            used = width(lines[-1], size)
        else:
            lines[-1] += letter
            used += step
    return lines


def fitted(text: str, size: int, room: float, bold: bool = False) -> str:
    """Return the text, or as much of its beginning as fits beside three dots."""
    if width(text, size, bold) <= room:
        return text
    kept = text[: int(room / size * 4)]  # no letter is narrower than a quarter of the size
    while kept and width(kept + "...", size, bold) > room:
        kept = kept[:-1]
    return kept + "..."
