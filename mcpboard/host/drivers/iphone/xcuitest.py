"""The elements of an iPhone's screen, from WebDriverAgent's `/source?format=json`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mcpboard.host.drivers.base import Point, table
from mcpboard.host.vision.tree import MOST_ELEMENTS, MOST_LEVELS, UiNode, refuse_excess
from mcpboard.host.vision.types import Box, on_screen
from mcpboard.text import without_base64

MOST_BYTES = 8 << 20  # of the JSON; that of a full screen has a megabyte
JSON_LEVELS = 2 * MOST_LEVELS + 4  # an element within another is two, and its rectangle one more
JSON_CONTAINERS = 4 * MOST_ELEMENTS  # an element, its rectangle, its children

# Type of the element -> the role of it on every type of device; others keep their own name.
ROLES = table("roles", "iphone")

# Types that do something when they are tapped; XCTest does not tell it of an element.
CLICKABLE = frozenset(
    {"Button", "Cell", "Icon", "Key", "Link", "MenuItem", "SearchField", "SecureTextField", "Slider", "Switch", "Tab",
     "TextField", "TextView", "Toggle"}
)  # fmt: skip

_YES = ("1", 1, None)  # of a flag; an element that does not say is taken for visible and usable


def parse_tree(source: Any, image: Point, screen: tuple[float, float]) -> UiNode:
    """Return the elements with their boxes in pixels of the screenshot, whose size is `image`.

    `screen` is the size of the screen in points. An element that is not on the screen gives way to
    those in it that are. Raises UnreadableTree for more levels or elements than are read.
    """
    scale = image[0] / screen[0], image[1] / screen[1]
    whole: Box = (0, 0, *image)
    elements: list[tuple[dict[str, Any], int]] = []  # each with the index of its parent, which stands before it
    pending = [(source, -1, 1)]
    while pending:
        element, parent, level = pending.pop()
        if not isinstance(element, dict):
            continue
        elements.append((element, parent))
        refuse_excess(level, len(elements))
        inner: Any = element.get("children")
        if isinstance(inner, list):
            pending += [(each, len(elements) - 1, level + 1) for each in reversed(inner)]
    # From the last to the first, so that the children of each are there before it: in this order, too.
    children: list[list[UiNode]] = [[] for _ in elements]
    outermost: list[UiNode] = []
    for (element, parent), found in zip(reversed(elements), reversed(children), strict=True):
        siblings = outermost if parent < 0 else children[parent]
        box = _box(element.get("rect"), scale, whole)
        if box is None or element.get("isVisible") not in _YES:
            siblings += found
        else:
            siblings.append(_node(element, box, tuple(reversed(found))))
    return UiNode("screen", whole, children=tuple(reversed(outermost)))


def _node(element: Mapping[str, Any], box: Box, children: tuple[UiNode, ...]) -> UiNode:
    kind = _text(element.get("type")).removeprefix("XCUIElementType")
    label, value = _text(element.get("label")), _text(element.get("value"))
    return UiNode(
        role=ROLES.get(kind, kind.lower() or "view"),
        box=box,
        text=value or label if ROLES.get(kind) == "field" else label or value,
        desc=label,
        id=_text(element.get("rawIdentifier") or element.get("name")),
        clickable=kind in CLICKABLE and element.get("isEnabled") in _YES,
        children=children,
    )


def _text(value: Any) -> str:
    return without_base64(str(value)) if isinstance(value, (str, int, float)) else ""


def _box(rect: Any, scale: tuple[float, float], whole: Box) -> Box | None:
    """Return the part of an element's rectangle that is on the screen, in pixels; None for none, or for nonsense."""
    try:
        x, y, width, height = (float(rect[name]) for name in ("x", "y", "width", "height"))
        return on_screen((x, y, x + width, y + height), scale, whole)
    except (KeyError, TypeError, ValueError, OverflowError):
        return None
