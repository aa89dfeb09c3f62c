"""Values that pass between the parts of vision: boxes, lines of text, icons, and the engine that finds them.

They are plain: no array leaves an engine, so nothing here needs the vision extra.
"""

from __future__ import annotations

from collections.abc import Iterable
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


def on_screen(edges: Iterable[float], scale: tuple[float, float], whole: Box) -> Box | None:
    """Return the part of a box in a device's own units that is on the screen, in pixels; None where nothing is."""
    left, top, right, bottom = (round(edge * scale[index % 2]) for index, edge in enumerate(edges))
    box = max(left, whole[0]), max(top, whole[1]), min(right, whole[2]), min(bottom, whole[3])
    return box if box[0] < box[2] and box[1] < box[3] else None


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
