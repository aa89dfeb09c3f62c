"""Names of icons by what they show and what people call them, in English and Chinese: `synonyms.txt`, one row a shape.

One word may mean several shapes: "back" is an arrow here and a chevron there.
"""

from __future__ import annotations

import difflib
from pathlib import Path

from mcpboard.host.vision.text_match import plain

NEAREST = 0.8  # of 1; a slip of the pen, no other word

_ROWS = [row.split(", ") for row in Path(__file__).with_suffix(".txt").read_text("utf-8").splitlines()[1:]]
SHAPES = tuple(row[0] for row in _ROWS)
SHAPES_BY_WORD: dict[str, set[str]] = {}
for _row in _ROWS:
    for _word in _row:
        SHAPES_BY_WORD.setdefault(plain(_word), set()).add(_row[0])


def shapes_called(name: str) -> frozenset[str]:
    """Return the shapes that people mean by `name`, or by the word nearest to it.

    A word that nobody uses stands for itself: it may name an icon of the user's own.
    """
    wanted = plain(name).removesuffix(" icon").removesuffix("图标").strip()
    if wanted in SHAPES_BY_WORD:
        return frozenset(SHAPES_BY_WORD[wanted])
    nearest = difflib.get_close_matches(wanted, SHAPES_BY_WORD, 1, NEAREST)
    return frozenset({wanted}.union(*(SHAPES_BY_WORD[word] for word in nearest)))


def meant_by(text: str) -> frozenset[str]:
    """Return the shapes that exactly this text names or means; none for words that nobody uses."""
    return frozenset(SHAPES_BY_WORD.get(plain(text), ()))
