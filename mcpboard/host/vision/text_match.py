"""Likeness of two pieces of text: the same, one within the other, or nearly; in any script."""

from __future__ import annotations

import difflib
import functools
import unicodedata

SURE = 0.9  # of 1, for text within a longer one; what a model may tap without looking
ALMOST = 0.95  # of 1, the most for what differs: a reader that took O for 0, or a slip
SHORTEST_SLIP = 4  # letters; of fewer, one wrong letter makes another word
LONGEST_WITH_SLIPS = 2000  # characters; each word of a text is compared letter by letter, which takes 40 microseconds
# Characters that readers of images take for each other, whatever the font: only nearly the same, never the same.
_CONFUSED = str.maketrans("01i|!5", "olllls")


def plain(text: str) -> str:
    """Return `text` as people compare it: no case, width or accents, single spaces, none beside Chinese characters.

    Accents are those of Latin, Greek and Cyrillic letters; the marks of other scripts make other letters.
    """
    words = "".join(map(_without_accent, unicodedata.normalize("NFKC", text).casefold())).split()
    joined = words[:1]
    for word in words[1:]:
        space = "" if _wide(word[0]) or _wide(joined[-1][-1]) else " "
        joined.append(space + word)
    return "".join(joined)


@functools.lru_cache(4096)  # what a screen has of them comes again and again
def _without_accent(character: str) -> str:
    base, *marks = list(unicodedata.normalize("NFD", character))
    accented = base < "\u0530" and all(unicodedata.combining(mark) for mark in marks)
    return base if accented else character


def likeness(text: str, query: str, slips: bool = True) -> tuple[float, str]:
    """Return how much `text` is `query`, 0 to 1, and in which way: exact, contains or similar.

    Without `slips`, and in a text of more than LONGEST_WITH_SLIPS, what is only similar is not looked for.
    """
    ours, theirs = plain(text), plain(query)
    if not theirs or not ours:
        return 0.0, ""
    if ours == theirs:
        return 1.0, "exact"
    if theirs in ours:
        return SURE, "contains"
    if not slips or len(ours) > LONGEST_WITH_SLIPS:
        return 0.0, ""
    return _similarity(ours.translate(_CONFUSED), theirs.translate(_CONFUSED)), "similar"


def part(text: str, query: str) -> tuple[float, float]:
    """Return where `query` stands in a line, from 0 at its left end to 1 at its right; the whole line where it is not.

    Chinese characters are counted twice as wide as Latin letters, which is nearly true of every font.
    """
    at = text.casefold().find(query.strip().casefold())
    if at < 0 or len(text.casefold()) != len(text):
        return 0.0, 1.0
    before, within = _width(text[:at]), _width(text[at : at + len(query.strip())])
    whole = max(1, _width(text))
    return before / whole, (before + within) / whole


def _similarity(ours: str, theirs: str) -> float:
    """Allow a slip or two in the whole, or in as many words of it as were asked for."""
    if len(theirs) < SHORTEST_SLIP:
        return ALMOST if ours == theirs else 0.0
    whole = difflib.SequenceMatcher(None, ours, theirs).ratio()
    count = len(theirs.split())
    words = ours.split()
    stretches = [" ".join(words[at : at + count]) for at in range(len(words) - count + 1)] if len(words) > count else []
    inside = max((difflib.SequenceMatcher(None, each, theirs).ratio() for each in stretches), default=0.0)
    return round(min(max(whole, inside * SURE), ALMOST), 2)


def _wide(character: str) -> bool:
    return unicodedata.east_asian_width(character) in "WF"


def _width(text: str) -> int:
    return sum(2 if _wide(character) else 1 for character in text)
