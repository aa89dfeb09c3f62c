"""Characters that a device cannot type, refused by name before anything is sent."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable

from mcpboard.errors import NOT_SENT, ToolFailed

MOST_NAMED = 8  # more names would not help the reader


def refuse(text: str, typeable: Callable[[str], bool], why: str) -> None:
    """Raise ToolFailed naming what is not `typeable`, `why` being how that comes; nothing is ever dropped."""
    odd = list(dict.fromkeys(character for character in text if not typeable(character)))
    if odd:
        names = ", ".join(map(_named, odd[:MOST_NAMED])) + (" and more" if len(odd) > MOST_NAMED else "")
        raise ToolFailed(f"cannot type {names}: {why}; nothing was typed", delivery=NOT_SENT)


def is_control(character: str) -> bool:
    """Whether it is a control character or half of a surrogate pair: no keyboard has it."""
    return unicodedata.category(character) in ("Cc", "Cs")


def _named(character: str) -> str:
    name = unicodedata.name(character, "control character" if is_control(character) else "")
    shown = f" ({character})" if character.isprintable() and not unicodedata.combining(character) else ""
    return f"U+{ord(character):04X} {name}".rstrip() + shown
