"""Reading the text of an image with RapidOCR, whose models come inside its wheel: no network is needed, ever."""

from __future__ import annotations

from typing import Any

from rapidocr import RapidOCR

from mcpboard.host.vision.types import TextLine

Array = Any  # numpy.ndarray

SETTINGS = {
    "Global.use_cls": False,  # text on a screen stands upright
    "Global.log_level": "critical",  # an empty screen is no news
    "Det.limit_type": "max",  # shrinks what is larger than the next line, and leaves the rest as it is
    "Det.limit_side_len": 1280,  # pixels; letters of a phone are still ten high
    "EngineConfig.onnxruntime.intra_op_num_threads": 2,  # more hardly helps, and the host has other work
    "EngineConfig.onnxruntime.inter_op_num_threads": 1,
}


class TextReader:
    """One OCR engine; not to be shared between threads."""

    def __init__(self) -> None:
        self._engine: Any = RapidOCR(params=SETTINGS)  # its type says any of four results

    def read(self, pixels: Array) -> tuple[TextLine, ...]:
        """Return the lines of text in an image (height x width x 3, uint8, blue first)."""
        result = self._engine(pixels)
        if result.boxes is None or result.txts is None:
            return ()
        lines = []
        for text, score, corners in zip(result.txts, result.scores, result.boxes, strict=True):
            (left, top), (right, bottom) = corners.min(axis=0), corners.max(axis=0)
            box = round(float(left)), round(float(top)), round(float(right)), round(float(bottom))
            lines.append(TextLine(text, round(float(score), 3), box))
        return tuple(lines)
