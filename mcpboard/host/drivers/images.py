"""Encoded images as devices send them: their size, the PNG among other output, and whether there is any light."""

from __future__ import annotations

import zlib

from mcpboard.errors import ToolFailed

DARKEST_BYTES = 200_000  # an image that is black all over is far smaller; larger ones are not looked into
MOST_PIXEL_BYTES = 256 << 20  # unpacked; a screen of 8K has half of that

PNG_MAGIC = b"\x89PNG\r\n\x1a\n"
_PNG_END = b"IEND\xaeB`\x82"
_JPEG_MAGIC = b"\xff\xd8"
# Start-of-frame markers hold the size; C4, C8 and CC between them are tables.
_FRAMES = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}
_COLOR_TYPE_AT = 25  # byte of a PNG
_WITH_ALPHA = 6
_CHANNELS = {0: 1, 2: 3, _WITH_ALPHA: 4}  # bytes of a pixel by color type, as `screencap` writes them


def image_size(image: bytes) -> tuple[int, int]:
    """Return width and height in pixels from the head of a PNG or JPEG; ToolFailed for what is neither, or broken."""
    if image.startswith(PNG_MAGIC) and len(image) >= 24:
        return int.from_bytes(image[16:20], "big"), int.from_bytes(image[20:24], "big")
    at = 2
    while image.startswith(_JPEG_MAGIC) and at + 4 <= len(image) and image[at] == 0xFF:
        length = int.from_bytes(image[at + 2 : at + 4], "big")
        segment = image[at + 4 : at + 2 + length]
        if image[at + 1] in _FRAMES and len(segment) >= 5:
            return int.from_bytes(segment[3:5], "big"), int.from_bytes(segment[1:3], "big")
        at += 2 + max(2, length)
    raise ToolFailed("the device sent something that is no JPEG and no PNG; take the screenshot again")


def extract_png(output: bytes) -> bytes:
    """Return the PNG alone, as some phones print a warning before it; ToolFailed where it is not whole."""
    start = output.find(PNG_MAGIC)
    end = output.rfind(_PNG_END)
    if start < 0 or end < start:
        problem = "is no PNG" if start < 0 else f"broke off after {len(output) - start} bytes"
        raise ToolFailed(f"the phone's screenshot {problem}; take it again")
    return output[start : end + len(_PNG_END)]


def is_black(png: bytes) -> bool:
    """Return true where no pixel has any light: each filter of PNG leaves such rows zero, but for full opacity."""
    if len(png) > DARKEST_BYTES:
        return False
    packed, at = bytearray(), len(PNG_MAGIC)
    while at + 8 <= len(png):
        length = int.from_bytes(png[at : at + 4], "big")
        if png[at + 4 : at + 8] == b"IDAT":
            packed += png[at + 8 : at + 8 + length]
        at += 12 + length
    try:
        rows = zlib.decompressobj().decompress(bytes(packed), MOST_PIXEL_BYTES)
    except zlib.error:
        return False
    color_type = png[_COLOR_TYPE_AT]
    stride = 1 + image_size(png)[0] * _CHANNELS.get(color_type, 1)
    for start in range(0, len(rows), stride):
        row = rows[start + 1 : start + stride]  # behind the byte that names its filter
        light = [row[0::4], row[1::4], row[2::4]] if color_type == _WITH_ALPHA else [row]
        if any(any(channel) for channel in light):
            return False
    return bool(rows)
