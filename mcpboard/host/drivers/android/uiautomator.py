"""The elements of an Android screen, from the XML that `uiautomator dump` writes."""

from __future__ import annotations

import re
from collections.abc import Mapping
from xml.etree import ElementTree

from mcpboard.errors import ToolFailed
from mcpboard.host.drivers.base import Point
from mcpboard.host.vision.tree import UiNode
from mcpboard.host.vision.types import Box, clipped

DEEPEST = 200  # levels; a real screen has thirty, and each costs a frame of the interpreter's stack

# Class of the Android view -> the role of it on every type of device; others keep their own name.
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


def parse_tree(document: str, image: Point, screen: Point) -> UiNode:
    """Return the elements with their boxes in pixels of the screenshot, whose size is `image`.

    `screen` is the size that the dump counts in. Raises ToolFailed for what is no such document.
    """
    # A dump declares no entities; one that did could grow without end.
    if "<!" in document:
        raise ToolFailed("the phone's UI tree holds a declaration that no dump has")
    try:
        root = ElementTree.fromstring(document)
    except ElementTree.ParseError as error:
        raise ToolFailed(f"the phone's UI tree is broken ({error}); take it again") from error
    whole: Box = (0, 0, *image)
    children = _nodes(root, (image[0] / screen[0], image[1] / screen[1]), whole, 0)
    return UiNode("screen", whole, children=children)


def _nodes(parent: ElementTree.Element, scale: tuple[float, float], whole: Box, depth: int) -> tuple[UiNode, ...]:
    """Return the elements in another, without those of which nothing is on the screen."""
    if depth == DEEPEST:
        return ()
    nodes: list[UiNode] = []
    for element in parent:
        bounds = _BOUNDS.fullmatch(element.get("bounds", ""))
        if bounds is None:
            continue
        left, top, right, bottom = (round(int(each) * scale[index % 2]) for index, each in enumerate(bounds.groups()))
        box = clipped((left, top, right, bottom), whole)
        if box is None:
            continue
        view = element.get("class", "").rpartition(".")[2].rpartition("$")[2]
        nodes.append(
            UiNode(
                role=ROLES.get(view, view.lower() or "view"),
                box=box,
                text=element.get("text", ""),
                desc=element.get("content-desc", ""),
                id=element.get("resource-id", ""),
                clickable=element.get("clickable") == "true",
                children=_nodes(element, scale, whole, depth + 1),
            )
        )
    return tuple(nodes)
