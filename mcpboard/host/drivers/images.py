"""Encoded images as devices send them: their size, the PNG among other output, and whether there is any light."""

from __future__ import annotations

import zlib

from mcpboard.errors import ToolFailed

DARKEST_BYTES = 200_000  # an image that is black all over is far smaller; larger ones are not looked into
MOST_PIXELS = 40_000_000  # of one image; a screen of 8K has 33 million, and each takes three bytes or four unpacked
LONGEST_SIDE = 20_000  # pixels
MOST_SEGMENTS = 1000  # before the size of a JPEG; a camera writes some ten, a color profile 255 at most
UNPACKED_AT_ONCE = 1 << 16  # bytes; what is black is known row by row

PNG_MAGIC = b"\x89PNG\r\n\x1a\n"
_PNG_FIRST = b"\0\0\0\rIHDR"  # length and name of the chunk that has the size
_PNG_HEAD = 33  # bytes up to the end of that chunk
_PNG_END = b"IEND\xaeB`\x82"
_JPEG_MAGIC = b"\xff\xd8"
# Start-of-frame markers hold the size; C4, C8 and CC between them are tables.
_FRAMES = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}
_BARE = frozenset({0x01, *range(0xD0, 0xD8), 0xFF})  # markers without a length behind them
_ENDS = frozenset({0xD9, 0xDA})  # end of image, start of scan: the frame has to stand before
_COLOR_TYPE_AT = 25  # byte of a PNG
_WITH_ALPHA = 6
_CHANNELS = {0: 1, 2: 3, _WITH_ALPHA: 4}  # bytes of a pixel by color type, as `screencap` writes them


def image_size(image: bytes) -> tuple[int, int]:
    """Return width and height in pixels from the head of a PNG or JPEG, without unpacking anything.

    ToolFailed for what is neither, is broken, or has more than MOST_PIXELS. Every reader of a PNG or
    JPEG takes the size from the same place, so one that passes here costs no more than that.
    """
    size = _png_size(image) if image.startswith(PNG_MAGIC) else _jpeg_size(image)
    if size is None or 0 in size:
        raise ToolFailed("the device sent something that is no JPEG and no PNG; take the screenshot again")
    if size[0] * size[1] > MOST_PIXELS or max(size) > LONGEST_SIDE:
        raise ToolFailed(
            f"the device sent a screenshot of {size[0]}x{size[1]} pixels; "
            f"more than {MOST_PIXELS // 1_000_000} million, or than {LONGEST_SIDE} in a row, are not taken"
        )
    return size


def mime_type(image: bytes) -> str:
    """Return the media type of a PNG or JPEG by its first bytes: what a device says of it may be anything."""
    return "image/png" if image.startswith(PNG_MAGIC) else "image/jpeg"


def _png_size(image: bytes) -> tuple[int, int] | None:
    if image[8:16] != _PNG_FIRST or len(image) < _PNG_HEAD:
        return None
    return int.from_bytes(image[16:20], "big"), int.from_bytes(image[20:24], "big")


def _jpeg_size(image: bytes) -> tuple[int, int] | None:
    at = 2 if image.startswith(_JPEG_MAGIC) else len(image)
    for _ in range(MOST_SEGMENTS):
        if at + 4 > len(image) or image[at] != 0xFF:
            break
        marker = image[at + 1]
        if marker in _BARE:
            at += 1 if marker == 0xFF else 2  # any number of FF may stand before a marker
            continue
        length = int.from_bytes(image[at + 2 : at + 4], "big")
        segment = image[at + 4 : at + 2 + length]
        if marker in _FRAMES and len(segment) >= 5:
            return int.from_bytes(segment[3:5], "big"), int.from_bytes(segment[1:3], "big")
        if marker in _ENDS:
            break
        at += 2 + max(2, length)
    return None


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
    if not _PNG_HEAD <= len(png) <= DARKEST_BYTES:
        return False
    packed, at = b"", len(PNG_MAGIC)
    while at + 8 <= len(png):
        length = int.from_bytes(png[at : at + 4], "big")
        if png[at + 4 : at + 8] == b"IDAT":
            packed += png[at + 8 : at + 8 + length]
        at += 12 + length
    color_type = png[_COLOR_TYPE_AT]
    width, height = image_size(png)
    stride = 1 + width * _CHANNELS.get(color_type, 1)
    unpacker, rows, seen = zlib.decompressobj(), bytearray(), 0
    try:
        while seen < height and (fresh := unpacker.decompress(packed, UNPACKED_AT_ONCE)):
            packed, rows = unpacker.unconsumed_tail, rows + fresh
            whole = len(rows) // stride
            if _has_light(rows[: whole * stride], stride, color_type == _WITH_ALPHA):
                return False
            seen, rows = seen + whole, rows[whole * stride :]
    except zlib.error:
        return False
    return seen > 0


def _has_light(rows: bytearray, stride: int, alpha: bool) -> bool:
    """Return true where a pixel of these whole rows has any light; each begins with the name of its filter."""
    for start in range(0, len(rows), stride):
        row = rows[start + 1 : start + stride]
        light = [row[0::4], row[1::4], row[2::4]] if alpha else [row]
        if any(channel.count(0) < len(channel) for channel in light):
            return True
    return False
