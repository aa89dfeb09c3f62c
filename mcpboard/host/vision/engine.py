"""The vision extra behind one class: text and icons of a screenshot. Imported only by the service, at first use.

The models of RapidOCR come inside its wheel: no network is needed, ever.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

import cv2
import numpy as np
from rapidocr import RapidOCR

from mcpboard.errors import ToolFailed
from mcpboard.host.drivers.images import image_size
from mcpboard.host.vision.icons.blobs import blobs
from mcpboard.host.vision.icons.index import IconIndex, load_index
from mcpboard.host.vision.types import Icon, OwnIcons, TextLine

Array = Any  # numpy.ndarray

OCR_SETTINGS = {
    "Global.use_cls": False,  # text on a screen stands upright
    "Global.log_level": "critical",  # an empty screen is no news
    "Det.limit_type": "max",  # shrinks what is larger than the next line, and leaves the rest as it is
    "Det.limit_side_len": 1280,  # pixels; letters of a phone are still ten high
    "EngineConfig.onnxruntime.intra_op_num_threads": 2,  # more hardly helps, and the host has other work
    "EngineConfig.onnxruntime.inter_op_num_threads": 1,
}


class Engine:
    """One OCR engine and one index of icons, each loaded when it is first asked; made and used by one thread."""

    def __init__(self) -> None:
        self._index: IconIndex | None = None
        self._own: OwnIcons = ()

    @cached_property
    def _read(self) -> Any:  # the type of its result says any of four
        return RapidOCR(params=OCR_SETTINGS)

    def lines(self, image: bytes) -> tuple[TextLine, ...]:
        """Return the lines of text in an encoded image; ToolFailed for what is none."""
        result = self._read(decoded(image))
        if result.boxes is None or result.txts is None:
            return ()
        lines = []
        for text, score, corners in zip(result.txts, result.scores, result.boxes, strict=True):
            left, top, right, bottom = (round(float(each)) for each in (*corners.min(axis=0), *corners.max(axis=0)))
            lines.append(TextLine(text, round(float(score), 3), (left, top, right, bottom)))
        return tuple(lines)

    def icons(self, image: bytes, own: OwnIcons) -> tuple[Icon, ...]:
        """Return whatever may be an icon in an encoded image, with the shapes it resembles; `own` are the user's."""
        found = blobs(decoded(image))
        if self._index is None or own != self._own:
            self._index, self._own = load_index([path for path, _ in own]), own
        matches = self._index.match([mask for _, mask in found])
        return tuple(Icon(box, shapes) for (box, _), shapes in zip(found, matches, strict=True) if shapes)


def decoded(image: bytes) -> Array:
    """Decode to height x width x 3, blue first, as the device sent it: a turned photograph is not turned back."""
    image_size(image)  # refuses one that is too large before anything is unpacked
    try:
        pixels = cv2.imdecode(np.frombuffer(image, np.uint8), cv2.IMREAD_COLOR | cv2.IMREAD_IGNORE_ORIENTATION)
    except cv2.error:
        pixels = None
    if pixels is None:
        raise ToolFailed("the device sent a screenshot that cannot be read; take it again")
    return pixels
