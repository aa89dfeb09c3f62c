"""Parts as pieces: the same bytes, the length announced, never a piece larger than PIECE."""

from __future__ import annotations

import base64
import os

import pytest

from mcpboard.errors import BackendBroken
from mcpboard.serving import replies
from mcpboard.serving.replies import PIECE
from tests.serving.role import Source


class Blocks(Source):
    """A source of just these blocks."""

    def __init__(self, blocks: list[bytes], length: int | None) -> None:
        super().__init__(0, length)
        self._blocks = blocks

    def __iter__(self):  # type: ignore[no-untyped-def]
        return iter(self._blocks)


@pytest.mark.parametrize("sizes", [
    pytest.param([], id="nothing"),
    pytest.param([0], id="an empty block"),
    pytest.param([1], id="one byte"),
    pytest.param([1, 1, 1, 1], id="bytes one by one"),
    pytest.param([49152, 49152, 1], id="whole blocks"),
    pytest.param([49151, 2, 49152, 4, 0, 7], id="blocks of no use to base64"),
    pytest.param([2, 500_000], id="a block larger than a piece behind a rest"),
])  # fmt: skip
@pytest.mark.parametrize("announced", [True, False])
def test_a_source_becomes_base64(sizes: list[int], announced: bool) -> None:
    blocks = [os.urandom(size) for size in sizes]
    raw = b"".join(blocks)
    parts = (b"<", Blocks(blocks, len(raw) if announced else None), b">")
    pieces = list(replies.pieces(parts))
    assert b"".join(pieces) == b"<" + base64.b64encode(raw) + b">"
    assert all(len(piece) <= PIECE for piece in pieces)
    assert replies.content_length(parts) == (len(b"".join(pieces)) if announced else None)


@pytest.mark.parametrize(("sizes", "written"), [
    pytest.param([], [], id="nothing"),
    pytest.param([0, 0], [], id="nothing twice"),
    pytest.param([1, 2, 3], [6], id="a small answer is one write"),
    pytest.param([PIECE * 3 + 5], [PIECE, PIECE, PIECE, 5], id="a large one is several"),
    pytest.param([70, 2 * PIECE, 30], [PIECE, PIECE, 100], id="a picture between small parts fills its pieces"),
    pytest.param([PIECE - 1, 1], [PIECE], id="a piece filled to the last byte"),
    pytest.param([PIECE, PIECE], [PIECE, PIECE], id="pieces as they are"),
])  # fmt: skip
def test_neighbours_go_out_together(sizes: list[int], written: list[int]) -> None:
    parts = [os.urandom(size) for size in sizes]
    pieces = list(replies.pieces(parts))
    assert b"".join(pieces) == b"".join(parts)
    assert [len(piece) for piece in pieces] == written


@pytest.mark.parametrize(("size", "announced", "words"), [
    pytest.param(100, 99, "more than the 99 bytes", id="a byte too many"),
    pytest.param(99, 100, "1 bytes before the 100", id="a byte too few"),
    pytest.param(0, 1, "1 bytes before the 1 ", id="nothing"),
])  # fmt: skip
def test_a_source_that_breaks_its_word_breaks_the_reply(size: int, announced: int, words: str) -> None:
    with pytest.raises(BackendBroken, match=words):
        list(replies.pieces([Source(size, announced)]))
