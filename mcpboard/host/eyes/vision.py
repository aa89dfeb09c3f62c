"""What the vision extra brings, joined: words and icons of one picture. Imported by `sight` alone, at first use."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import cv2
import numpy as np

from mcpboard.errors import ToolFailed
from mcpboard.host.eyes import album
from mcpboard.host.eyes.blobs import blobs
from mcpboard.host.eyes.ocr import Reader
from mcpboard.host.eyes.seen import Icon, Line

Array = Any  # numpy.ndarray

MOST_PIXELS = 40_000_000  # of one picture; no screen has more, and a reader of more would fill the memory


class Vision:
    """One OCR engine and one album; made and used in one thread.

    `icons` is the user's folder of PNGs, which need not exist.
    """

    def __init__(self, icons: Path) -> None:
        self._folder = icons
        self._stamp: object = None
        self._album: album.Album | None = None
        self._reader: Reader | None = None

    def lines(self, picture: bytes) -> tuple[Line, ...]:
        """The lines of text in an encoded picture; ToolFailed for what is none."""
        pixels = decoded(picture)
        if self._reader is None:  # 30 MB of models
            self._reader = Reader()
        return self._reader.read(pixels)

    def icons(self, picture: bytes) -> tuple[Icon, ...]:
        """Whatever may be an icon in an encoded picture, with the shapes it is like."""
        found = blobs(decoded(picture))
        likes = self._known().likes([mask for _, mask in found])
        return tuple(Icon(box, likes) for (box, _), likes in zip(found, likes, strict=True) if likes)

    def stamp(self) -> object:
        """Differs when the user's folder has changed."""
        try:
            return sorted((each.name, each.stat().st_mtime_ns) for each in self._folder.glob("*.png"))
        except OSError:  # a file that went while we looked
            return None

    def _known(self) -> album.Album:
        stamp = self.stamp()
        if self._album is None or stamp != self._stamp:
            shapes, pictures = album.built_in()
            names, own = album.own(self._folder)
            self._album, self._stamp = album.Album(shapes + names, np.concatenate([pictures * 17, own])), stamp
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
