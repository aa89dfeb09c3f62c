"""The elements of an iPhone's screen, from WebDriverAgent's `/source?format=json`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mcpboard.host.drivers.base import Point
from mcpboard.host.vision.tree import UiNode
from mcpboard.host.vision.types import Box

DEEPEST = 200  # levels; a real screen has sixty, and each costs a frame of the interpreter's stack

# Type of the element -> the word for it on every kind of device; others keep their own name.
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


def tree(source: Any, picture: Point, screen: tuple[float, float]) -> UiNode:
    """The elements with their boxes in pixels of the picture; `screen` is its size in points."""
    scale = picture[0] / screen[0], picture[1] / screen[1]
    whole: Box = (0, 0, *picture)
    return UiNode("screen", whole, children=_nodes([source], scale, whole, 0))


def _nodes(elements: Any, scale: tuple[float, float], whole: Box, depth: int) -> tuple[UiNode, ...]:
    if depth == DEEPEST or not isinstance(elements, list):
        return ()
    return tuple(node for each in elements if isinstance(each, dict) for node in _shown(each, scale, whole, depth))


def _shown(element: Mapping[str, Any], scale: tuple[float, float], whole: Box, depth: int) -> tuple[UiNode, ...]:
    """The element; one that is not on the screen gives way to those in it that are."""
    children = _nodes(element.get("children"), scale, whole, depth + 1)
    box = _box(element.get("rect"), scale, whole)
    if box is None or element.get("isVisible") not in _YES:
        return children
    kind = str(element.get("type", "")).removeprefix("XCUIElementType")
    label, value = _words(element.get("label")), _words(element.get("value"))
    return (
        UiNode(
            role=ROLES.get(kind, kind.lower() or "view"),
            box=box,
            text=value or label if ROLES.get(kind) == "field" else label or value,
            desc=label,
            id=_words(element.get("rawIdentifier") or element.get("name")),
            clickable=kind in CLICKABLE and element.get("isEnabled") in _YES,
            children=children,
        ),
    )


def _words(value: Any) -> str:
    return "" if value is None else str(value)


def _box(rect: Any, scale: tuple[float, float], whole: Box) -> Box | None:
    try:
        x, y, width, height = (float(rect[name]) for name in ("x", "y", "width", "height"))
        box = (
            max(0, round(x * scale[0])), max(0, round(y * scale[1])),
            min(whole[2], round((x + width) * scale[0])), min(whole[3], round((y + height) * scale[1])),
        )  # fmt: skip
    except (KeyError, TypeError, ValueError, OverflowError):
        return None
    return box if box[0] < box[2] and box[1] < box[3] else None
