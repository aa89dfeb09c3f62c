"""PNG as a phone sends it: whole or refused, and whether there is anything to see on it."""

from __future__ import annotations

import zlib

from mcpboard.errors import ToolFailed
from mcpboard.host.drivers.image_size import size_of

DARKEST_BYTES = 200_000  # a picture that is black all over is far smaller; larger ones are not looked into
MOST_PIXEL_BYTES = 256 << 20  # unpacked; a screen of 8K has half of that

_MAGIC = b"\x89PNG\r\n\x1a\n"
_END = b"IEND\xaeB`\x82"
_COLOUR_AT = 25  # byte of the colour type
_WITH_ALPHA = 6
_CHANNELS = {0: 1, 2: 3, _WITH_ALPHA: 4}  # bytes of a pixel by colour type, as `screencap` writes them


def whole(output: bytes) -> bytes:
    """The PNG alone: some phones print a warning before it; ToolFailed where it is not whole."""
    start = output.find(_MAGIC)
    end = output.rfind(_END)
    if start < 0 or end < start:
        what = "is no PNG" if start < 0 else f"broke off after {len(output) - start} bytes"
        raise ToolFailed(f"the phone's picture {what}; take the screenshot again")
    return output[start : end + len(_END)]


def is_black(picture: bytes) -> bool:
    """Whether no pixel has any light: each filter of PNG leaves such rows zero, but for full opacity."""
    if len(picture) > DARKEST_BYTES:
        return False
    inflate = zlib.decompressobj()
    try:
        rows = inflate.decompress(_idat(picture), MOST_PIXEL_BYTES)
    except zlib.error:
        return False
    width, colour = size_of(picture)[0], picture[_COLOUR_AT]
    stride = 1 + width * _CHANNELS.get(colour, 1)
    return bool(rows) and all(_dark(rows[at : at + stride], colour) for at in range(0, len(rows), stride))


def _dark(row: bytes, colour: int) -> bool:
    """Whether one row, behind the byte that names its filter, has no light."""
    if colour != _WITH_ALPHA:
        return not any(row[1:])
    return not any(any(row[1 + channel :: 4]) for channel in range(3))


def _idat(picture: bytes) -> bytes:
    found, at = bytearray(), len(_MAGIC)
    while at + 8 <= len(picture):
        length = int.from_bytes(picture[at : at + 4], "big")
        if picture[at + 4 : at + 8] == b"IDAT":
            found += picture[at + 8 : at + 8 + length]
        at += 12 + length
    return bytes(found)
