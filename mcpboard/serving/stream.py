"""A reply's parts as pieces for the socket; a source of raw bytes becomes base64 on the way out."""

from __future__ import annotations

import binascii
from collections.abc import Iterable, Iterator, Sequence

from mcpboard.errors import BackendBroken
from mcpboard.protocol.tools import ByteSource, Part

PIECE = 64 * 1024  # bytes; as much as the server keeps in memory before it waits for the reader
RAW_PIECE = PIECE // 4 * 3  # bytes that base64 turns into one PIECE; a multiple of three


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
    """`parts` in order, in pieces of at most PIECE; raises when a source dies or gives another length than it said."""
    run: list[bytes] = []
    for part in parts:
        if isinstance(part, bytes):
            run.append(part)
            continue
        yield from packed(run)
        run.clear()
        yield from base64_pieces(measured(part))
    yield from packed(run)


def packed(run: Iterable[bytes], size: int = PIECE) -> Iterator[bytes]:
    """The bytes of `run` in full pieces of `size` and a last one: as few as can be, each byte copied once at most."""
    piece: list[memoryview] = []
    room = size
    for part in run:
        if room == len(part) == size:
            yield part
            continue
        rest = memoryview(part)
        while len(rest) >= room:
            yield b"".join((*piece, rest[:room]))
            rest, piece, room = rest[room:], [], size
        piece.append(rest)
        room -= len(rest)
    if room < size:
        yield b"".join(piece)


def measured(source: ByteSource) -> Iterator[bytes]:
    """The blocks of `source`; raises BackendBroken, before the surplus, when they are not as many as announced.

    The announced length went out with the head, so a body of another length would either be
    taken for whole or leave its reader waiting.
    """
    left = source.length
    for block in source:
        if left is not None:
            left -= len(block)
            if left < 0:
                raise BackendBroken(f"the source gave more than the {source.length} bytes it announced")
        yield block
    if left:
        raise BackendBroken(f"the source ended {left} bytes before the {source.length} it announced")


def base64_pieces(blocks: Iterable[bytes]) -> Iterator[bytes]:
    """Base64 of all `blocks` together, in pieces of at most PIECE, each cut at a multiple of three bytes."""
    for run in packed(blocks, RAW_PIECE):
        yield binascii.b2a_base64(run, newline=False)
