"""Parts as pieces, and a support bundle on its way: exact, in flat memory, in no file, never half a one for a whole."""

from __future__ import annotations

import base64
import os
import tempfile
import tracemalloc
from concurrent.futures import ThreadPoolExecutor
from unittest.mock import Mock

import pytest

from mcpboard.errors import BackendBroken
from mcpboard.serving import replies
from mcpboard.serving.replies import PIECE
from tests.serving.conftest import Lines
from tests.serving.role import Source
from tests.serving.served import Served
from tests.support.http import InvalidResponse, call, request


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


# --- a bundle --------------------------------------------------------------------------------

MIB = 1 << 20
LARGE = 28 * MIB  # bytes; base64 of it is the largest that a client can be expected to take


@pytest.fixture
def no_files(monkeypatch: pytest.MonkeyPatch) -> None:
    """Any temporary file would be an error, and one in the log besides."""
    monkeypatch.setattr(tempfile, "TemporaryFile", Mock(side_effect=AssertionError("a temporary file")))


@pytest.mark.parametrize(("length", "header"), [
    pytest.param(LARGE, "content-length", id="announced"),
    pytest.param(None, "transfer-encoding", id="not announced"),
])  # fmt: skip
def test_a_large_bundle_comes_whole_in_flat_memory(served: Served, no_files: None, lines: Lines, length: int | None, header: str) -> None:  # fmt: skip
    served.post(call("file", size=10))
    with served.client() as client:
        tracemalloc.start()
        client.send(request(call("file", size=LARGE, length=length)))
        status, headers = client.head()
        total = 0
        while total < LARGE:  # a reader that keeps nothing, so that all growth is the server's
            total += len(client.file.read(32 * 1024))
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    assert status == 200
    assert header in headers
    assert peak < MIB


def test_a_slow_reader_costs_no_memory_and_no_file(served: Served, no_files: None) -> None:
    """While it stalls the server holds a few pieces, not the rest of the reply."""
    served.post(call("file", size=10))
    tracemalloc.start()
    with served.client(4096) as client:
        client.send(request(call("file", size=LARGE)))
        served.limit.wait_for(1)
        assert served.pings()
        _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < MIB
    served.limit.wait_for(0)
    assert [source.closed for source in served.role.sources] == [1, 1]


@pytest.mark.parametrize("error", [BackendBroken("the source died"), ZeroDivisionError("a bug")])
@pytest.mark.parametrize("length", [pytest.param(MIB, id="announced"), pytest.param(None, id="not announced")])
def test_a_source_that_dies_midway_breaks_the_connection_off(served: Served, lines: Lines, error: Exception, length: int | None) -> None:  # fmt: skip
    served.role.dies_with = error
    with pytest.raises((InvalidResponse, ValueError)):
        served.post(call("file", size=500_000, length=length))
    first = lines.next()
    assert (first.levelname, "reply broken off after" in first.getMessage()) == ("WARNING", True)
    assert lines.next().getMessage().endswith("not handed over whole")
    assert lines.none_left()
    served.limit.wait_for(0)
    assert served.role.sources[0].closed == 1
    assert served.role.lost.get_nowait() == "file"
    assert served.pings()


@pytest.mark.parametrize("length", [1_000_000, 400_000])
def test_a_source_of_another_length_than_announced_is_never_taken_for_whole(served: Served, lines: Lines, length: int) -> None:  # fmt: skip
    with pytest.raises(InvalidResponse):
        served.post(call("file", size=500_000, length=length))
    served.limit.wait_for(0)
    assert served.role.sources[0].closed == 1


def test_eight_bundles_read_at_once(served: Served, no_files: None) -> None:
    """More than there are slots: each is whole, to the byte, or is told at once that all slots are taken."""
    with ThreadPoolExecutor(8) as pool:
        results = list(pool.map(lambda _: served.post(call("file", size=2 * MIB + 1)).result, range(8)))
    whole = [base64.b64decode(each["content"][0]["resource"]["blob"]) for each in results if not each.get("isError")]
    assert whole
    assert set(whole) == {bytes(2 * MIB + 1)}
    served.limit.wait_for(0)
    assert all(source.closed == 1 for source in served.role.sources)
