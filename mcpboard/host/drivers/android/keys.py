"""Text as commands of an Android phone's `input`, each character once and as it is."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator

from mcpboard.host.drivers import characters

PIECE = 400  # characters for one `input text`: the phone makes key events of them one by one
KEYS = {"\n": "66", "\t": "61"}  # KEYCODE_ENTER and KEYCODE_TAB

WHY = "an Android phone's `input text` knows US-ASCII alone"


def script(text: str) -> str:
    """A shell script that types `text`; ToolFailed names what it could not.

    The first command that fails ends it, so a piece is never typed behind a gap.
    """
    characters.refuse(text, _typeable, WHY)
    return " && ".join(_commands(text))


def _typeable(character: str) -> bool:
    return character in KEYS or " " <= character <= "~"


def _commands(text: str) -> Iterator[str]:
    for run in re.findall(r"[\n\t]|[^\n\t]+", text):
        if run in KEYS:
            yield f"input keyevent {KEYS[run]}"
        else:
            yield from (f"input text {shlex.quote(piece.replace(' ', '%s'))}" for piece in _pieces(run))


def _pieces(run: str) -> Iterator[str]:
    """Pieces in which `%s` does not occur: `input` takes that for a blank."""
    for part in re.split(r"(?<=%)(?=s)", run):
        yield from (part[at : at + PIECE] for at in range(0, len(part), PIECE))
