"""A reply's parts as pieces for the socket; a source of raw bytes becomes base64 on the way out."""

from __future__ import annotations

import binascii
from collections.abc import Iterable, Iterator, Sequence

from mcpboard.protocol.tools import ByteSource, Part

PIECE = 64 * 1024  # bytes; as much as the server keeps in memory before it waits for the reader


def content_length(parts: Sequence[Part]) -> int | None:
    """Bytes that `pieces(parts)` will yield, None when a source does not know its own length."""
    total = 0
    for part in parts:
        if isinstance(part, bytes):
            total += len(part)
        elif part.length is None:
            return None
        else:
            total += (part.length + 2) // 3 * 4
    return total


def pieces(parts: Sequence[Part]) -> Iterator[bytes]:
    """`parts` in order, in pieces that never grow with the reply."""
    for part in parts:
        yield from _cut(part) if isinstance(part, bytes) else base64_pieces(part)


def sources(parts: Sequence[Part]) -> list[ByteSource]:
    """The parts that must be closed, whatever became of the reply."""
    return [part for part in parts if not isinstance(part, bytes)]


def _cut(whole: bytes) -> Iterator[bytes]:
    if len(whole) <= PIECE:
        yield whole
        return
    view = memoryview(whole)
    for start in range(0, len(whole), PIECE):
        yield bytes(view[start : start + PIECE])


def base64_pieces(blocks: Iterable[bytes]) -> Iterator[bytes]:
    """Base64 of all `blocks` together: each piece is cut at a multiple of three bytes."""
    rest = b""
    for block in blocks:
        whole = rest + block if rest else block
        keep = len(whole) % 3
        cut = len(whole) - keep
        rest = whole[cut:]
        if cut:
            yield binascii.b2a_base64(whole[:cut] if keep else whole, newline=False)
    if rest:
        yield binascii.b2a_base64(rest, newline=False)
