"""The size of an encoded picture, read from its head: coordinates are counted in its pixels."""

from __future__ import annotations

from collections.abc import Iterator

from mcpboard.errors import ToolFailed

_PNG = b"\x89PNG\r\n\x1a\n"
_JPEG = b"\xff\xd8"
# Start-of-frame markers hold the size; C4, C8 and CC between them are tables.
_FRAMES = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}


def size_of(picture: bytes) -> tuple[int, int]:
    """Width and height in pixels of a PNG or JPEG; ToolFailed for what is neither, or broken."""
    if picture.startswith(_PNG) and len(picture) >= 24:
        return int.from_bytes(picture[16:20], "big"), int.from_bytes(picture[20:24], "big")
    if picture.startswith(_JPEG):
        for marker, segment in _segments(picture):
            if marker in _FRAMES and len(segment) >= 5:
                return int.from_bytes(segment[3:5], "big"), int.from_bytes(segment[1:3], "big")
    raise ToolFailed("the device sent something that is no JPEG and no PNG; take the screenshot again")


def _segments(jpeg: bytes) -> Iterator[tuple[int, bytes]]:
    at = 2
    while at + 4 <= len(jpeg) and jpeg[at] == 0xFF:
        length = int.from_bytes(jpeg[at + 2 : at + 4], "big")
        yield jpeg[at + 1], jpeg[at + 4 : at + 2 + length]
        at += 2 + max(2, length)
