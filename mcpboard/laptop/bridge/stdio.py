"""Messages as lines on standard input and output: UTF-8 bytes, whatever the locale says."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator
from typing import BinaryIO, Protocol

LINE_LIMIT = 1 << 20  # bytes; a board takes 320 KiB, another server perhaps more

# No JSON string holds a bare line break, so between tokens is the only place where one can stand.
_BREAKS_TO_SPACES = bytes.maketrans(b"\r\n", b"  ")


def read(stream: BinaryIO) -> Iterator[bytes | None]:
    """Yield each line without the spaces around it, empty ones left out; None for one over LINE_LIMIT."""
    while line := stream.readline(LINE_LIMIT + 1):
        if len(line) > LINE_LIMIT and not line.endswith(b"\n"):
            while (rest := stream.readline(LINE_LIMIT)) and not rest.endswith(b"\n"):
                pass  # to the end of the line, keeping nothing
            yield None
        elif stripped := line.strip():
            yield stripped


class RawStream(Protocol):
    """An unbuffered stream: nothing is held back, and no lock is left behind by a thread at exit."""

    def write(self, data: bytes | memoryview, /) -> int | None:
        """Write some of `data`; return how many bytes it was."""


class LineWriter:
    """Whole lines, one at a time from any thread; silent once nobody reads them."""

    def __init__(self, raw: RawStream) -> None:
        self._raw = raw
        self._lock = threading.Lock()
        self.gone = False  # the reader has closed its end

    def line(self, pieces: Iterable[bytes]) -> None:
        """Write `pieces` as one line; where they break off, the line ends and their error is raised."""
        with self._lock:
            try:
                for piece in pieces:
                    self._write(piece.translate(_BREAKS_TO_SPACES))
            finally:
                self._write(b"\n")

    def _write(self, data: bytes) -> None:
        view = memoryview(data)
        try:
            while view and not self.gone:
                view = view[self._raw.write(view) or 0 :]
        except OSError:  # a pipe without a reader: EPIPE here, EINVAL on Windows
            self.gone = True
