"""The elements of an iPhone's screen, from WebDriverAgent's `/source?format=json`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mcpboard.host.drivers.base import Point
from mcpboard.host.vision.tree import UiNode
from mcpboard.host.vision.types import Box, clipped

DEEPEST = 200  # levels; a real screen has sixty, and each costs a frame of the interpreter's stack

# Type of the element -> the role of it on every type of device; others keep their own name.
ROLES: Mapping[str, str] = {
    "StaticText": "text",
    "TextField": "field",
    "SecureTextField": "field",
    "SearchField": "field",
    "TextView": "field",
    "Cell": "row",
    "Table": "list",
    "CollectionView": "list",
    "ScrollView": "list",
    "Other": "view",
}

# Types that do something when they are tapped; XCTest does not tell it of an element.
CLICKABLE = frozenset(
    {"Button", "Cell", "Icon", "Key", "Link", "MenuItem", "SearchField", "SecureTextField", "Slider", "Switch", "Tab",
     "TextField", "TextView", "Toggle"}
)  # fmt: skip

_YES = ("1", 1, None)  # of a flag; an element that does not say is taken for visible and usable


def parse_tree(source: Any, image: Point, screen: tuple[float, float]) -> UiNode:
    """Return the elements with their boxes in pixels of the screenshot, whose size is `image`.

    `screen` is the size of the screen in points.
    """
    scale = image[0] / screen[0], image[1] / screen[1]
    whole: Box = (0, 0, *image)
    return UiNode("screen", whole, children=_nodes([source], scale, whole, 0))


def _nodes(elements: Any, scale: tuple[float, float], whole: Box, depth: int) -> tuple[UiNode, ...]:
    """Return the elements; one that is not on the screen gives way to those in it that are."""
    if depth == DEEPEST or not isinstance(elements, list):
        return ()
    nodes: list[UiNode] = []
    for element in elements:
        if not isinstance(element, dict):
            continue
        children = _nodes(element.get("children"), scale, whole, depth + 1)
        box = _box(element.get("rect"), scale, whole)
        if box is None or element.get("isVisible") not in _YES:
            nodes += children
            continue
        kind = str(element.get("type", "")).removeprefix("XCUIElementType")
        label, value = _text(element.get("label")), _text(element.get("value"))
        nodes.append(
            UiNode(
                role=ROLES.get(kind, kind.lower() or "view"),
                box=box,
                text=value or label if ROLES.get(kind) == "field" else label or value,
                desc=label,
                id=_text(element.get("rawIdentifier") or element.get("name")),
                clickable=kind in CLICKABLE and element.get("isEnabled") in _YES,
                children=children,
            )
        )
    return tuple(nodes)


def _text(value: Any) -> str:
    return "" if value is None else str(value)


def _box(rect: Any, scale: tuple[float, float], whole: Box) -> Box | None:
    """Return the part of an element's rectangle that is on the screen, in pixels; None for none, or for nonsense."""
    try:
        x, y, width, height = (float(rect[name]) for name in ("x", "y", "width", "height"))
        left, right = round(x * scale[0]), round((x + width) * scale[0])
        top, bottom = round(y * scale[1]), round((y + height) * scale[1])
    except (KeyError, TypeError, ValueError, OverflowError):
        return None
    return clipped((left, top, right, bottom), whole)
