"""The elements on a screen: each knows how it looks, what it says and what a touch does.

Painting, the tree and the finger all read the same elements, so that they cannot disagree.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from mcpboard.simulator.phone import fonts
from mcpboard.simulator.phone.canvas import LEADING, Canvas
from mcpboard.simulator.phone.view import Box, Move, Place, Slide, View

# A method of Canvas, or a function that takes one, and its further arguments. Data and no closure, since a closure
# made in a loop would be painted with the values of the loop's end.
Shape = tuple[Any, ...]


@dataclass(frozen=True)
class Element:
    """One thing on the screen; `box` is where it is seen and touched, in points.

    An element without a role is decoration: it is painted and cannot be found.
    """

    role: str
    box: Box
    shapes: tuple[Shape, ...] = ()
    text: str = ""
    desc: str = ""
    id: str = ""
    tap: Move | None = None
    slide: Slide | None = None
    children: tuple[Element, ...] = ()

    def paint(self, canvas: Canvas) -> None:
        """Draw the shapes, in their order."""
        for draw, *arguments in self.shapes:
            draw(canvas, *arguments)

    @property
    def clickable(self) -> bool:
        """True when a touch changes the view."""
        return self.tap is not None or self.slide is not None

    def covers(self, x: float, y: float) -> bool:
        """Return True for a point in the box."""
        left, top, right, bottom = self.box
        return left <= x <= right and top <= y <= bottom

    def touched(self, x: float) -> Move | None:
        """Return the move that a touch at that x makes."""
        if self.slide is None:
            return self.tap
        slide, share = self.slide, (x - self.box[0]) / (self.box[2] - self.box[0])
        return lambda view: slide(view, max(0.0, min(1.0, share)))


def decor(*shapes: Shape) -> Element:
    """Return an element that is only looked at."""
    return Element("", (0, 0, 0, 0), shapes)


def width(view: View, text: str, size: int, bold: bool = False) -> float:
    """Return the width of a line of text in points."""
    return fonts.width(text, round(size * view.scale), bold) / view.scale


def label(
    view: View, place: Place, text: str, size: int, color: str, bold: bool = False, role: str = "text"
) -> Element:
    """Return a line of text, its box as wide as its letters; `place` is its left upper corner."""
    x, y = place
    box = (x - 1, y, x + width(view, text, size, bold) + 1, y + size * LEADING)
    return Element(role, box, ((Canvas.text, x, y, text, size, color, bold),), text)


def centered(
    view: View, place: Place, text: str, size: int, color: str, bold: bool = False, role: str = "text"
) -> Element:
    """Return a line of text around a point."""
    corner = place[0] - width(view, text, size, bold) / 2, place[1] - size * LEADING / 2
    return label(view, corner, text, size, color, bold, role)


def floating_icon(view: View, app: str, center: Place, side: float, *shadow: float) -> tuple[Shape, ...]:
    """Return the shapes of an app's icon above its shadow: round corners, strength, blur and drop of that."""
    x, y = center[0] - side / 2, center[1] - side / 2
    box = x, y, x + side, y + side
    return (Canvas.shadow, box, *shadow), (Canvas.icon, app, x, y, side, view.moment.day)


def clipped(elements: Iterable[Element], top: float, bottom: float) -> Iterator[Element]:
    """Yield the elements of a page that scrolls, cut to what is seen between two heights.

    What is seen by less than half is still painted, but neither listed nor touched.
    """
    for element in elements:
        left, upper, right, lower = element.box
        box = left, max(upper, top), right, min(lower, bottom)
        if not element.role:
            yield element
        elif box[3] - box[1] >= (lower - upper) / 2:
            yield replace(element, box=box, children=tuple(clipped(element.children, top, bottom)))
        elif lower > top and upper < bottom:
            yield Element("", box, element.shapes, children=tuple(clipped(element.children, top, bottom)))


def flat(elements: Iterable[Element]) -> Iterator[Element]:
    """Yield every element, a parent before its children."""
    for element in elements:
        yield element
        yield from flat(element.children)


# --- the tree ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Node:
    """One node of the tree that `Phone.tree()` gives; `box` in pixels of the picture, as left, top, right, bottom."""

    role: str
    text: str
    desc: str
    id: str
    box: tuple[int, int, int, int]
    clickable: bool
    children: tuple[Node, ...] = ()

    def walk(self) -> Iterator[Node]:
        """Yield this node and every one below it, in the order they are painted."""
        yield self
        for child in self.children:
            yield from child.walk()

    def as_json(self) -> dict[str, Any]:
        """Return the node as plain values, its children inside."""
        return {**vars(self), "box": list(self.box), "children": [child.as_json() for child in self.children]}


def node(element: Element, scale: float, size: tuple[int, int]) -> Node:
    """Return the node of an element, on a screen of that size in pixels."""
    left, top, right, bottom = (round(part * scale) for part in element.box)
    box = max(0, left), max(0, top), min(size[0], right), min(size[1], bottom)
    children = tuple(node(child, scale, size) for child in element.children if child.role)
    return Node(element.role, element.text, element.desc, element.id, box, element.clickable, children)
