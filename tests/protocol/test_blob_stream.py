"""Long base64 taken out of a JSON text that arrives in pieces of any size."""

from __future__ import annotations

import base64
import json
import tracemalloc

import pytest

from mcpboard.errors import PeerBroken
from mcpboard.protocol.blob_stream import SHORT, BlobStream, placeholder

LONG = bytes(range(256)) * 300  # 76,800 bytes: over SHORT as base64, and no multiple of three


def streamed(text: bytes, size: int = 1 << 14, **limits: int) -> BlobStream:
    stream = BlobStream(**limits)
    for start in range(0, len(text), size):
        stream.feed(text[start : start + size])
    return stream


def document(blob: bytes, **more: object) -> bytes:
    return json.dumps({"uri": "u", "blob": base64.b64encode(blob).decode(), **more}).encode()


@pytest.mark.parametrize("size", [1, 7, 4096, 1 << 16])
def test_a_long_blob_is_taken_out_however_the_text_is_cut(size: int) -> None:
    stream = streamed(document(LONG, after="ä"), size)
    assert json.loads(stream.text) == {"uri": "u", "blob": placeholder(0), "after": "ä"}
    assert stream.blobs == [LONG]


@pytest.mark.parametrize(
    "text",
    [
        document(b"short"),
        document(b""),
        json.dumps({"text": '"blob":"' + "x" * SHORT * 2}).encode(),
        json.dumps({'a"blob': "x" * SHORT * 2}).encode(),
        json.dumps({"data": "x" * SHORT * 2}).encode(),
        b'{"blob":"cut',
        b"",
    ],
    ids=["short", "empty", "a text that quotes one", "a name that ends so", "another name", "a text that breaks off", "nothing"],
)  # fmt: skip
def test_all_else_stays_as_it_is(text: bytes) -> None:
    stream = streamed(text)
    assert (stream.text, stream.blobs) == (text, [])


def test_several_blobs_keep_their_order() -> None:
    text = b"[" + b", ".join([document(LONG), document(b"short"), document(LONG[:-1])]) + b"]"
    stream = streamed(text)
    assert [item["blob"] for item in json.loads(stream.text)] == [placeholder(0), "c2hvcnQ=", placeholder(1)]
    assert stream.blobs == [LONG, LONG[:-1]]


def test_escaped_slashes_and_blanks_are_read() -> None:
    text = document(b"\xff" * 3 * SHORT).replace(b"/", b"\\/").replace(b'"blob": ', b'"blob" :\n')
    assert streamed(text).blobs == [b"\xff" * 3 * SHORT]


def test_no_base64_and_more_than_the_limit_are_refused() -> None:
    with pytest.raises(PeerBroken, match="not base64"):
        streamed(b'{"blob":"' + b"*" * SHORT * 2)
    for limits, text in (({"text_limit": 100}, b" " * 101), ({"blob_limit": len(LONG) - 1}, document(LONG))):
        with pytest.raises(PeerBroken, match="over the limit"):
            streamed(text, **limits)


def test_a_bundle_takes_little_more_memory_than_its_own_size() -> None:
    piece, count = b"QUJD" * (SHORT // 4), 448  # 28 MiB of base64, 21 MiB of bytes
    stream = BlobStream()
    tracemalloc.start()
    try:
        stream.feed(b'{"blob":"')
        for _ in range(count):
            stream.feed(piece)
        stream.feed(b'"}')
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    size = count * len(piece) * 3 // 4
    assert len(stream.blobs[0]) == size
    assert peak < size * 1.5
