"""Letters: their font, their widths, where a line breaks.

Three files in `art` draw all of them, whatever the machine has; 60 emoji are sprites. A character of neither is the
box that its font has for it.
"""

from __future__ import annotations

import functools
import itertools
import unicodedata

from PIL import ImageFont

from mcpboard.simulator.phone.sprites import ART, EMOJI

# First and last character of what `regular` and `bold` have: Latin, Greek and Cyrillic, then punctuation and signs.
WESTERN = (("\0", "\u052f"), ("\u1e00", "\u22ff"))
PICTURED = "emoji"  # runs that no font draws


@functools.lru_cache(maxsize=128)
def font(name: str, size: int) -> ImageFont.FreeTypeFont:
    """Return the font of that name, `regular`, `bold` or `asian`, in a size in pixels."""
    return ImageFont.truetype(str(ART / f"{name}.otf"), size, layout_engine=ImageFont.Layout.BASIC)


def _drawn_by(letter: str, bold: bool) -> str:
    if letter in EMOJI:
        return PICTURED
    if any(first <= letter <= last for first, last in WESTERN):
        return "bold" if bold else "regular"
    return "asian"


@functools.lru_cache(maxsize=2048)
def runs(text: str, bold: bool) -> tuple[tuple[str, str], ...]:
    """Return the text in pieces that one font draws, each as (font, letters).

    Marks and controls take no room of their own; half a surrogate pair is U+FFFD.
    """
    kinds = ((unicodedata.category(letter), letter) for letter in text)
    seen = ("\ufffd" if kind == "Cs" else letter for kind, letter in kinds if kind not in ("Mn", "Cf", "Cc"))
    return tuple((by, "".join(run)) for by, run in itertools.groupby(seen, lambda letter: _drawn_by(letter, bold)))


def run_width(by: str, letters: str, size: int) -> float:
    """Return the width of a run in pixels."""
    return size * 1.3 * len(letters) if by == PICTURED else font(by, size).getlength(letters)


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
