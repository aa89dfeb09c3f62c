"""What the vision extra brings, joined: words and icons of one picture. Imported by `sight` alone, at first use."""

from __future__ import annotations

from typing import Any

import cv2
import numpy as np

from mcpboard.errors import ToolFailed
from mcpboard.host.vision.icons import index
from mcpboard.host.vision.icons.blobs import blobs
from mcpboard.host.vision.ocr import TextReader
from mcpboard.host.vision.service import OwnIcons
from mcpboard.host.vision.types import Icon, TextLine

Array = Any  # numpy.ndarray

MOST_PIXELS = 40_000_000  # of one picture; no screen has more, and a reader of more would fill the memory


class Engine:
    """One OCR engine and one album, each loaded when it is first asked; made and used by one thread."""

    def __init__(self) -> None:
        self._reader: TextReader | None = None
        self._album: index.IconIndex | None = None
        self._own: OwnIcons = ()

    def lines(self, picture: bytes) -> tuple[TextLine, ...]:
        """The lines of text in an encoded picture; ToolFailed for what is none."""
        pixels = decoded(picture)
        if self._reader is None:
            self._reader = TextReader()
        return self._reader.read(pixels)

    def icons(self, picture: bytes, own: OwnIcons) -> tuple[Icon, ...]:
        """Whatever may be an icon in an encoded picture, with the shapes it is like; `own` are the user's."""
        found = blobs(decoded(picture))
        likes = self._drawings(own).likes([mask for _, mask in found])
        return tuple(Icon(box, likes) for (box, _), likes in zip(found, likes, strict=True) if likes)

    def _drawings(self, own: OwnIcons) -> index.IconIndex:
        if self._album is None or own != self._own:
            self._album, self._own = index.opened([path for path, _ in own]), own
        return self._album


def decoded(picture: bytes) -> Array:
    """Height x width x 3, blue first, as the device sent it: a turned photograph is not turned back."""
    try:
        pixels = cv2.imdecode(np.frombuffer(picture, np.uint8), cv2.IMREAD_COLOR | cv2.IMREAD_IGNORE_ORIENTATION)
    except cv2.error:  # of no bytes at all
        pixels = None
    if pixels is None or pixels.shape[0] * pixels.shape[1] > MOST_PIXELS:
        raise ToolFailed("the device sent a picture that cannot be read; take the screenshot again")
    return pixels
