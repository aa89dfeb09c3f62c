"""A screen as text: one line for each element that says something, in reading order."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from mcpboard.host.vision.find import LEAST_SCORE, distinct
from mcpboard.host.vision.text_match import likeness
from mcpboard.host.vision.tree import UiNode
from mcpboard.host.vision.types import Box, Icon, TextLine, center, inside

MOST_ELEMENTS = 200  # lines; a model reads no more of a screen
MOST_BYTES = 20_000  # of UTF-8, for the same reason
LONGEST_TEXT = 200  # characters of one element
LINE_PIXELS = 24  # elements whose tops differ by less stand in one line, read from left to right
CLEAR_ICON = 0.85  # of 1; what is less like an icon than that may be anything
MOST_AROUND = 20  # elements that a line of text is compared with: the innermost, which a tree tells last
FACE = 4  # times as long as its icon may a button be


@dataclass(frozen=True)
class Description:
    """The table as text, the number of its lines, and `truncated` where more would have followed."""

    text: str
    elements: int
    truncated: bool


def describe(
    tree: UiNode | None, width: int, height: int, lines: Sequence[TextLine] = (), icons: Iterable[Icon] = ()
) -> Description:
    """List everything with text or a use, as `[n] kind "text" @x,y`: elements, and what the screenshot adds."""
    elements = _in_reading_order(_merged(tree, lines, icons))
    kept: list[str] = []
    size = 0
    for number, element in enumerate(elements, 1):
        x, y = center(element.box)
        text = json.dumps(element.text[:LONGEST_TEXT], ensure_ascii=False)
        line = f"[{number}] {element.role} {text} @{x},{y}"
        size += len(line.encode("utf-8", "replace")) + 1
        if len(kept) == MOST_ELEMENTS or size > MOST_BYTES:
            break
        kept.append(line)
    truncated = len(kept) < len(elements)
    head = f"screen {width}x{height}, {len(kept)} of {len(elements)} elements" + (", truncated" if truncated else "")
    return Description("\n".join([head, *kept]), len(kept), truncated)


def _merged(tree: UiNode | None, lines: Sequence[TextLine], icons: Iterable[Icon]) -> list[UiNode]:
    """Return the elements, the text that no element there says, and the icons that are neither.

    An element without text is called by the icon that it is the face of: the smallest element at the icon's place,
    unless that holds more than an icon.
    """
    named = [replace(node, text=node.text or node.desc) for node in (tree.walk() if tree else ())]
    elements = [node for node in named if node.text or node.clickable]
    read = []
    for line in lines:
        here = [element for element in elements if inside(center(line.box), element.box)][-MOST_AROUND:]
        if not any(likeness(element.text, line.text)[0] >= LEAST_SCORE for element in here):
            read.append(UiNode("text", line.box, line.text))
    alone = []
    for icon in distinct(icons):
        point, shape = center(icon.box), icon.best[0]
        if icon.best[1] < CLEAR_ICON or any(inside(point, line.box) for line in lines):
            continue
        around = [index for index, element in enumerate(elements) if inside(point, element.box)]
        smallest = min(around, key=lambda index: _side(elements[index].box), default=None)
        if smallest is None or _side(elements[smallest].box) > FACE * _side(icon.box):
            alone.append(UiNode("icon", icon.box, shape))
        elif not elements[smallest].text:
            elements[smallest] = replace(elements[smallest], text=shape)
    return [*elements, *read, *alone]


def _side(box: Box) -> int:
    left, top, right, bottom = box
    return max(right - left, bottom - top)


def _in_reading_order(elements: Iterable[UiNode]) -> list[UiNode]:
    """Return lines from the top down, and each from left to right."""
    rows: list[list[UiNode]] = []
    for element in sorted(elements, key=lambda element: element.box[1]):
        if not rows or element.box[1] - rows[-1][0].box[1] >= LINE_PIXELS:
            rows.append([])
        rows[-1].append(element)
    return [element for row in rows for element in sorted(row, key=lambda element: element.box[0])]
