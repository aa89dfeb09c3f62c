"""Reading the words of a picture with RapidOCR, whose models come inside its wheel: no network is needed, ever."""

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
    """One engine; not to be shared between threads."""

    def __init__(self) -> None:
        self._engine: Any = RapidOCR(params=SETTINGS)  # its type says any of four results

    def read(self, picture: Array) -> tuple[TextLine, ...]:
        """The lines of text in a picture (height x width x 3, uint8, blue first)."""
        found = self._engine(picture)
        if found.boxes is None or found.txts is None:
            return ()
        lines = zip(found.txts, found.scores, found.boxes, strict=True)
        return tuple(TextLine(text, round(float(score), 3), _box(corners)) for text, score, corners in lines)


def _box(corners: Array) -> tuple[int, int, int, int]:
    (left, top), (right, bottom) = corners.min(axis=0), corners.max(axis=0)
    return round(float(left)), round(float(top)), round(float(right)), round(float(bottom))
