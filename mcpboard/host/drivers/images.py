"""Encoded images as devices send them: their size, the PNG among other output, and whether there is any light."""

from __future__ import annotations

import io
import math
from typing import TYPE_CHECKING

from mcpboard.errors import ToolFailed

if TYPE_CHECKING:
    from PIL.ImageFile import ImageFile

DARKEST_BYTES = 200_000  # an image that is black all over is far smaller; larger ones are not looked into
MOST_UNPACKED = 16_000_000  # pixels of those; more would take a tenth of a second and 64 MB to tell
MOST_PIXELS = 40_000_000  # of one image; a screen of 8K has 33 million, and each takes three bytes or four unpacked
LONGEST_SIDE = 20_000  # pixels
MOST_READS = 10_000  # of the head, some four a piece; a color profile alone may have 255 pieces

PNG_MAGIC = b"\x89PNG\r\n\x1a\n"
_PNG_END = b"IEND\xaeB`\x82"

NO_PILLOW = "the host agent reads screenshots with Pillow: pip install 'mcpboard[host]' where it runs, then restart it"


def image_size(image: bytes) -> tuple[int, int]:
    """Return width and height in pixels from the head of a PNG or JPEG, without unpacking anything.

    ToolFailed for what is neither, is broken, or has more than MOST_PIXELS.
    """
    return _opened(image).size


def _opened(image: bytes) -> ImageFile:
    """Return an image whose head has been read and whose pixels have not."""
    try:
        # The two readers by name: `Image.open` warns of large images in a way that is the whole process's to choose.
        from PIL.JpegImagePlugin import JpegImageFile
        from PIL.PngImagePlugin import PngImageFile
    except ImportError:
        raise ToolFailed(NO_PILLOW) from None
    reader, head = PngImageFile if image.startswith(PNG_MAGIC) else JpegImageFile, _Head(image)
    try:
        found = reader(head)
        head.reads = math.inf  # those of the pixels are bounded by their number
    except (OSError, SyntaxError, ValueError):
        raise ToolFailed("the device sent something that is no JPEG and no PNG; take the screenshot again") from None
    width, height = found.size
    if width * height > MOST_PIXELS or max(width, height) > LONGEST_SIDE:
        raise ToolFailed(
            f"the device sent a screenshot of {width}x{height} pixels; "
            f"more than {MOST_PIXELS // 1_000_000} million, or than {LONGEST_SIDE} in a row, are not taken"
        )
    return found


class _Head(io.BytesIO):
    """An image that is not read when its head has more pieces than a camera writes: each takes time, in Python."""

    reads: float = MOST_READS

    def read(self, size: int | None = -1) -> bytes:
        self.reads -= 1
        if self.reads < 0:
            raise ValueError
        return super().read(size)


def mime_type(image: bytes) -> str:
    """Return the media type of a PNG or JPEG by its first bytes: what a device says of it may be anything."""
    return "image/png" if image.startswith(PNG_MAGIC) else "image/jpeg"


def extract_png(output: bytes) -> bytes:
    """Return the PNG alone, as some phones print a warning before it; ToolFailed where it is not whole."""
    start = output.find(PNG_MAGIC)
    end = output.rfind(_PNG_END)
    if start < 0 or end < start:
        problem = "is no PNG" if start < 0 else f"broke off after {len(output) - start} bytes"
        raise ToolFailed(f"the phone's screenshot {problem}; take it again")
    return output[start : end + len(_PNG_END)]


def is_black(image: bytes) -> bool:
    """Return true where no pixel has any light, whatever its opacity."""
    if len(image) > DARKEST_BYTES:
        return False
    found = _opened(image)
    if found.width * found.height > MOST_UNPACKED:
        return False
    try:
        return found.convert("RGB").getbbox() is None
    except (OSError, SyntaxError, ValueError):  # its pixels are broken, which is for whoever looks at them
        return False
