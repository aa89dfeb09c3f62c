"""Values that pass between the parts of vision: boxes, lines of text, icons, and the engine that finds them.

They are plain: no array leaves an engine, so nothing here needs the vision extra.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

Box = tuple[int, int, int, int]  # left, top, right, bottom in pixels of the screenshot

OwnIcons = tuple[tuple[Path, int], ...]  # files of the user's own icons, each with the time of its last change


def center(box: Box) -> tuple[int, int]:
    """Return the middle of a box, where a finger would tap."""
    left, top, right, bottom = box
    return (left + right) // 2, (top + bottom) // 2


def inside(point: tuple[int, int], box: Box) -> bool:
    """Return true for a point within a box, its edge included."""
    left, top, right, bottom = box
    return left <= point[0] <= right and top <= point[1] <= bottom


def clipped(box: Box, whole: Box) -> Box | None:
    """Return the part of a box that is within another, None where nothing of it is."""
    left, top = max(box[0], whole[0]), max(box[1], whole[1])
    right, bottom = min(box[2], whole[2]), min(box[3], whole[3])
    return (left, top, right, bottom) if left < right and top < bottom else None


@dataclass(frozen=True)
class TextLine:
    """One line of text as read: `score` is the reader's own certainty, 0 to 1."""

    text: str
    score: float
    box: Box


@dataclass(frozen=True)
class Icon:
    """Something that may be an icon; `shapes` are those it resembles, each with its likeness 0 to 1, best first."""

    box: Box
    shapes: tuple[tuple[str, float], ...]

    @property
    def best(self) -> tuple[str, float]:
        """The shape that it resembles most."""
        return self.shapes[0]


class VisionEngine(Protocol):
    """Reader of encoded screenshots; made and used by one thread."""

    def lines(self, image: bytes) -> tuple[TextLine, ...]: ...

    def icons(self, image: bytes, own: OwnIcons) -> tuple[Icon, ...]: ...
