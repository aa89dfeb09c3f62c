"""A tool reply on its way out: its parts as pieces for the socket, a source of raw bytes as base64."""

from __future__ import annotations

import binascii
import logging
from collections.abc import Iterable, Iterator, Sequence

from waitress.channel import ClientDisconnected

from mcpboard.errors import BackendBroken, McpboardError
from mcpboard.protocol.messages import Arrived
from mcpboard.protocol.tools import ByteSource, Part

log = logging.getLogger("mcpboard")

PIECE = 64 * 1024  # bytes; as much as the server keeps in memory before it waits for the reader
RAW_PIECE = PIECE // 4 * 3  # bytes that base64 turns into one PIECE; a multiple of three


def on_trust() -> Arrived:
    """Return the receipt of a server that gives none: what it took has arrived."""
    return lambda: True


class ReplyBody:
    """The bytes of one tool reply in pieces for the socket; tells how many have been taken, and if that is all.

    Iterated once, by the response that it is the body of.
    """

    def __init__(self, parts: Sequence[Part]) -> None:
        self.length = content_length(parts)  # bytes; None when a source does not know its own length
        self.held = sum(len(part) for part in parts if isinstance(part, bytes))  # bytes in memory
        self.sent = 0  # bytes
        self.is_whole = False
        self._pieces = pieces(parts)

    def __iter__(self) -> Iterator[bytes]:
        return self

    def __next__(self) -> bytes:
        try:
            piece = next(self._pieces)
        except StopIteration:
            self.is_whole = True
            raise
        except Exception as error:
            # The head is out, so the only honest answer left is to break off: the reader then
            # knows that what it has is not the whole.
            ours = isinstance(error, McpboardError)
            log.warning("reply broken off after %d bytes: %s", self.sent, error, exc_info=not ours)
            raise ClientDisconnected from error
        self.sent += len(piece)
        return piece


# --- parts -> pieces -------------------------------------------------------------------------


def content_length(parts: Sequence[Part]) -> int | None:
    """Return the bytes that `pieces(parts)` will yield, None when a source does not know its own length."""
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
    """Yield `parts` in order, in pieces of at most PIECE; raises when a source dies or its length is another."""
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
    """Yield the bytes of `run` in pieces of `size` and a last one: as few as can be, each byte copied once at most."""
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
    """Yield the blocks of `source`; raises BackendBroken, before the surplus, when they are not as many as announced.

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
    """Yield base64 of all `blocks` together, in pieces of at most PIECE, each cut at a multiple of three bytes."""
    for run in packed(blocks, RAW_PIECE):
        yield binascii.b2a_base64(run, newline=False)
