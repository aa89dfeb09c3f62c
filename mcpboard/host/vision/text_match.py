"""How alike two pieces of text are: the same, one within the other, or nearly; in any script."""

from __future__ import annotations

import difflib
import unicodedata

SURE = 0.9  # of 1, for words within a longer text; what a model may tap without looking
ALMOST = 0.95  # of 1, the most for what differs: a reader that took O for 0, or a slip
SHORTEST_SLIP = 4  # letters; of fewer, one wrong letter makes another word
# What readers of pictures take for each other, whatever the font: only nearly the same, never the same.
_CONFUSED = str.maketrans("01i|!5", "olllls")


def plain(text: str) -> str:
    """`text` as people compare it: no case, no width, no accents, single blanks, none beside Chinese characters."""
    folded = unicodedata.normalize("NFKC", text).casefold()
    bare = "".join(_without_accent(character) for character in folded)
    words = bare.split()
    joined = words[:1]
    for word in words[1:]:
        apart = "" if _wide(word[0]) or _wide(joined[-1][-1]) else " "
        joined.append(apart + word)
    return "".join(joined)


def likeness(words: str, query: str) -> tuple[float, str]:
    """How much `words` are `query`, 0 to 1, and in which way: exact, contains or similar."""
    ours, theirs = plain(words), plain(query)
    if not theirs or not ours:
        return 0.0, ""
    if ours == theirs:
        return 1.0, "exact"
    if theirs in ours:
        return SURE, "contains"
    return _similar(ours.translate(_CONFUSED), theirs.translate(_CONFUSED)), "similar"


def part(words: str, query: str) -> tuple[float, float]:
    """Where `query` stands within a line, from 0 at its left end to 1 at its right; the whole line where it does not.

    Chinese characters are counted twice as wide as Latin letters, which is nearly true of every font.
    """
    at = words.casefold().find(query.strip().casefold())
    if at < 0 or len(words.casefold()) != len(words):
        return 0.0, 1.0
    before, within = _width(words[:at]), _width(words[at : at + len(query.strip())])
    whole = max(1, _width(words))
    return before / whole, (before + within) / whole


def _similar(ours: str, theirs: str) -> float:
    """A slip or two in the whole, or in as many words of it as were asked for."""
    if len(theirs) < SHORTEST_SLIP:
        return ALMOST if ours == theirs else 0.0
    whole = difflib.SequenceMatcher(None, ours, theirs).ratio()
    count = len(theirs.split())
    words = ours.split()
    stretches = [" ".join(words[at : at + count]) for at in range(len(words) - count + 1)] if len(words) > count else []
    inside = max((difflib.SequenceMatcher(None, each, theirs).ratio() for each in stretches), default=0.0)
    return round(min(max(whole, inside * SURE), ALMOST), 2)


def _without_accent(character: str) -> str:
    """Latin, Greek and Cyrillic letters without their marks; the marks of other scripts make other letters."""
    base, *marks = list(unicodedata.normalize("NFD", character))
    european = base < "\u0530" and all(unicodedata.combining(mark) for mark in marks)
    return base if european else character


def _wide(character: str) -> bool:
    return unicodedata.east_asian_width(character) in "WF"


def _width(text: str) -> int:
    return sum(2 if _wide(character) else 1 for character in text)
