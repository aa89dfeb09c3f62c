"""The elements of an Android screen, from the XML that `uiautomator dump` writes."""

from __future__ import annotations

import re
from collections.abc import Mapping
from xml.etree import ElementTree

from mcpboard.host.drivers.base import Point, table
from mcpboard.host.vision.tree import UiNode, UnreadableTree, refuse_excess
from mcpboard.host.vision.types import Box, on_screen
from mcpboard.text import well_formed, without_base64

MOST_BYTES = 4 << 20  # of a dump; a real one has some hundred KiB, and each attribute of it takes 100 bytes of memory

# Class of the Android view -> the role of it on every type of device; others keep their own name.
ROLES = table("roles", "android")
_BOUNDS = re.compile(r"\[(-?\d{1,9}),(-?\d{1,9})\]\[(-?\d{1,9}),(-?\d{1,9})\]")

# What a dump may hold and XML may not: control characters, and halves of surrogate pairs, which older phones write as
# two references for one emoji.
_NOT_XML = re.compile("[\0-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]")
_REFERENCE = re.compile(r"&#(?:x([0-9a-fA-F]{1,6})|([0-9]{1,7}));")


def parse_tree(document: str, image: Point, screen: tuple[float, float]) -> UiNode:
    """Return the elements with their boxes in pixels of the screenshot, whose size is `image`.

    `screen` is the size that the dump counts in. Raises UnreadableTree for what is no such document,
    or one of more levels or elements than are read. A character that XML does not allow is U+FFFD.
    """
    # A dump declares no entities; one that did could grow without end.
    if "<!" in document:
        raise UnreadableTree("the phone's UI tree holds a declaration that no dump has")
    whole: Box = (0, 0, *image)
    builder = _TreeBuilder((image[0] / screen[0], image[1] / screen[1]), whole)
    parser = ElementTree.XMLParser(target=builder)
    try:
        parser.feed(_NOT_XML.sub("\N{REPLACEMENT CHARACTER}", well_formed(_REFERENCE.sub(_character, document))))
        parser.close()
    except ElementTree.ParseError as error:
        raise UnreadableTree(f"the phone's UI tree is broken ({error}); take it again") from error
    return UiNode("screen", whole, children=tuple(builder.outermost))


def _character(reference: re.Match[str]) -> str:
    """Return the character that a reference means, where XML would not take the reference; else the reference."""
    code = int(reference[1], 16) if reference[1] else int(reference[2])
    if 0xD800 <= code < 0xE000:
        return chr(code)
    allowed = code in (0x9, 0xA, 0xD) or 0x20 <= code < 0xFFFE or 0xFFFF < code <= 0x10FFFF
    return reference[0] if allowed else "\N{REPLACEMENT CHARACTER}"


class _TreeBuilder:
    """The elements that the parser reads, without those of which nothing is on the screen."""

    def __init__(self, scale: tuple[float, float], whole: Box) -> None:
        self._scale = scale
        self._whole = whole
        self._count = 0
        self._open: list[tuple[Mapping[str, str], list[UiNode]]] = []  # attributes, and the children that are whole
        self.outermost: list[UiNode] = []  # within the root of the document, which is no element of the screen

    def start(self, tag: str, attributes: Mapping[str, str]) -> None:
        self._count += 1
        refuse_excess(len(self._open) + 1, self._count)
        self._open.append((attributes, []))

    def end(self, tag: str) -> None:
        attributes, children = self._open.pop()
        if not self._open:
            self.outermost = children
            return
        bounds = _BOUNDS.fullmatch(attributes.get("bounds", ""))
        if bounds is None:
            return
        box = on_screen(map(int, bounds.groups()), self._scale, self._whole)
        if box is None:
            return
        view = attributes.get("class", "").rpartition(".")[2].rpartition("$")[2]
        self._open[-1][1].append(
            UiNode(
                role=ROLES.get(view, view.lower() or "view"),
                box=box,
                text=without_base64(attributes.get("text", "")),
                desc=without_base64(attributes.get("content-desc", "")),
                id=attributes.get("resource-id", ""),
                clickable=attributes.get("clickable") == "true",
                children=tuple(children),
            )
        )
