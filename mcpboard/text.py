"""Foreign text: made safe to print, read as JSON, compared with what was meant."""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterable
from typing import Any

LINE_LIMIT = 200  # characters of a foreign text that a message repeats: a sentence, not a page


def one_line(text: str, limit: int = LINE_LIMIT) -> str:
    """Return foreign text for a message: one line of printable characters, single spaces, cut with `...`."""
    line = " ".join("".join(c if c.isprintable() else " " for c in text).split())
    return line if len(line) <= limit else f"{line[:limit]}..."


def printable(text: str, keep: str = "") -> str:
    """Return `text` with U+FFFD for every character that could steer a terminal, except those in `keep`."""
    return "".join(c if c.isprintable() or c in keep else "\N{REPLACEMENT CHARACTER}" for c in text)


def json_object(document: str | bytes | bytearray) -> dict[str, Any] | None:
    """Return the JSON object that `document` is; None for anything else, nesting too deep for the parser included."""
    try:
        value = json.loads(document)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """Return a hint for a mistyped word: the closest known one, or all of them."""
    names = list(known)
    close = difflib.get_close_matches(word, names, 1)
    return f"did you mean {close[0]}?" if close else f"known there: {', '.join(names)}"
