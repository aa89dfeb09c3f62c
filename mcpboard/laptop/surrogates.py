"""Half surrogate pairs in what passes: handed on as they came, with one warning.

A half, such as one half of an emoji that was cut, is valid in JSON, and yet some clients drop the
whole answer for it. To change it here would hide the fault of the server that writes it.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator

from mcpboard.text import surrogate_halves

log = logging.getLogger(__name__)

_PAIR = 12  # bytes of two escapes; what is nearer to the end of a piece is judged with the next


class SurrogateWarning:
    """Warns once of all that passes from the server at `url`."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._given = False

    def watched(self, pieces: Iterable[bytes]) -> Iterator[bytes]:
        """Yield the pieces of one JSON text unchanged."""
        kept = b""
        for piece in pieces:
            window = kept + piece
            self._look(window, max(0, len(kept) - _PAIR), len(window) - _PAIR)
            kept = window[-2 * _PAIR :]
            yield piece
        self._look(kept, max(0, len(kept) - _PAIR), len(kept))

    def _look(self, text: bytes, start: int, end: int) -> None:
        if not self._given and any(start <= half < end for half in surrogate_halves(text)):
            self._given = True
            consequence = "some clients cannot read it, and the server should write U+FFFD instead"
            log.warning("%s: an answer holds half a surrogate pair, passed on as it is: %s", self._url, consequence)
