"""How large a picture is, read from its first bytes: no picture is decoded, and none is believed."""

from __future__ import annotations

import struct

Size = tuple[int, int]  # width and height in pixels

# Start-of-frame markers of JPEG: all of C0 to CF but those for tables and arithmetic coding.
_FRAMES = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}
_BARE = frozenset(range(0xD0, 0xDA)) | {0x01}  # JPEG markers without a length


def size_of(picture: bytes) -> Size | None:
    """Width and height of a JPEG, PNG or GIF; None for anything else, and for one that is cut off."""
    try:
        if picture.startswith(b"\x89PNG\r\n\x1a\n"):
            return struct.unpack_from(">II", picture, 16)
        if picture.startswith((b"GIF87a", b"GIF89a")):
            return struct.unpack_from("<HH", picture, 6)
        return _jpeg(picture) if picture.startswith(b"\xff\xd8") else None
    except (struct.error, IndexError):
        return None


def _jpeg(picture: bytes) -> Size | None:
    at = 2
    while picture[at] == 0xFF:
        marker = picture[at + 1]
        if marker in _FRAMES:
            height, width = struct.unpack_from(">HH", picture, at + 5)
            return width, height
        if marker == 0xFF:  # a fill byte
            at += 1
        else:
            at += 2 if marker in _BARE else 2 + max(2, struct.unpack_from(">H", picture, at + 2)[0])
    return None
