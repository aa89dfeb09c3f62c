"""The elements of an Android screen, from the XML that `uiautomator dump` writes."""

from __future__ import annotations

import re
from collections.abc import Mapping
from xml.etree import ElementTree

from mcpboard.errors import ToolFailed
from mcpboard.host.drivers.base import Point
from mcpboard.host.vision.tree import UiNode
from mcpboard.host.vision.types import Box

DEEPEST = 200  # levels; a real screen has thirty, and each costs a frame of the interpreter's stack

# Class of the Android view -> the word for it on every kind of device; others keep their own name.
ROLES: Mapping[str, str] = {
    "TextView": "text",
    "EditText": "field",
    "AutoCompleteTextView": "field",
    "ImageView": "image",
    "ImageButton": "button",
    "View": "view",
    "ViewGroup": "view",
    "FrameLayout": "view",
    "LinearLayout": "view",
    "RelativeLayout": "view",
    "RecyclerView": "list",
    "ListView": "list",
    "ScrollView": "list",
}

_BOUNDS = re.compile(r"\[(-?\d+),(-?\d+)\]\[(-?\d+),(-?\d+)\]")


def tree(document: str, picture: Point, screen: Point) -> UiNode:
    """The elements with their boxes in pixels of the picture; `screen` is the size that the dump counts in.

    Raises ToolFailed for what is no such document.
    """
    root = _parsed(document)
    whole: Box = (0, 0, *picture)
    children = _below(root, (picture[0] / screen[0], picture[1] / screen[1]), whole, 0)
    return UiNode("screen", whole, children=children)


def _parsed(document: str) -> ElementTree.Element:
    # A dump declares no entities; one that did could grow without end.
    if "<!" in document:
        raise ToolFailed("the phone's UI tree holds a declaration that no dump has")
    try:
        return ElementTree.fromstring(document)
    except ElementTree.ParseError as error:
        raise ToolFailed(f"the phone's UI tree is broken ({error}); take it again") from error


def _below(element: ElementTree.Element, scale: tuple[float, float], whole: Box, depth: int) -> tuple[UiNode, ...]:
    if depth == DEEPEST:
        return ()
    made = (_node(child, scale, whole, depth) for child in element)
    return tuple(node for node in made if node is not None)


def _node(element: ElementTree.Element, scale: tuple[float, float], whole: Box, depth: int) -> UiNode | None:
    """The element, None for one of which nothing is on the screen."""
    box = _box(element.get("bounds", ""), scale, whole)
    if box is None:
        return None
    return UiNode(
        role=_role(element.get("class", "")),
        box=box,
        text=element.get("text", ""),
        desc=element.get("content-desc", ""),
        id=element.get("resource-id", ""),
        clickable=element.get("clickable") == "true",
        children=_below(element, scale, whole, depth + 1),
    )


def _role(view: str) -> str:
    name = view.rpartition(".")[2].rpartition("$")[2]
    return ROLES.get(name, name.lower() or "view")


def _box(bounds: str, scale: tuple[float, float], whole: Box) -> Box | None:
    found = _BOUNDS.fullmatch(bounds)
    if found is None:
        return None
    left, top, right, bottom = (round(int(number) * scale[index % 2]) for index, number in enumerate(found.groups()))
    box = max(left, 0), max(top, 0), min(right, whole[2]), min(bottom, whole[3])
    return box if box[0] < box[2] and box[1] < box[3] else None
