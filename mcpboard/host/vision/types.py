"""What the eyes tell of a picture, in plain values: no array leaves them."""

from __future__ import annotations

from dataclasses import dataclass

from mcpboard.host.vision.tree import Box


@dataclass(frozen=True)
class TextLine:
    """One line of text as read: `score` is the reader's own certainty, 0 to 1."""

    text: str
    score: float
    box: Box


@dataclass(frozen=True)
class Icon:
    """Something that may be an icon; `likes` are the shapes it is like, 0 to 1 each, best first."""

    box: Box
    likes: tuple[tuple[str, float], ...]

    @property
    def best(self) -> tuple[str, float]:
        """The shape it is most like."""
        return self.likes[0]


def centre(box: Box) -> tuple[int, int]:
    """The middle of a box, where a finger would tap."""
    left, top, right, bottom = box
    return (left + right) // 2, (top + bottom) // 2


def inside(point: tuple[int, int], box: Box) -> bool:
    """Whether a point is within a box, its edge included."""
    left, top, right, bottom = box
    return left <= point[0] <= right and top <= point[1] <= bottom
