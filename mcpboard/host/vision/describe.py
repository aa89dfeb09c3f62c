"""A screen in words: one line for each element that says something, in reading order."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from mcpboard.host.vision.find import LEAST_SCORE, distinct
from mcpboard.host.vision.text_match import likeness
from mcpboard.host.vision.tree import Box, UiNode
from mcpboard.host.vision.types import Icon, TextLine, centre, inside

MOST_ELEMENTS = 200  # lines; the contract's limit, for a model's sake
MOST_BYTES = 20_000  # of UTF-8, the same
LONGEST_TEXT = 200  # characters of one element
LINE_PIXELS = 24  # elements whose tops differ by less stand in one line, read from left to right
CLEAR_ICON = 0.85  # of 1; what is less like an icon than that may be anything
FACE = 4  # times as long as its icon may a button be


@dataclass(frozen=True)
class Description:
    """The table as text, how many lines it has, and whether more would have followed."""

    text: str
    elements: int
    truncated: bool


@dataclass(frozen=True)
class ScreenElement:
    """One line of the table."""

    kind: str
    text: str
    box: Box


def describe(
    tree: UiNode | None, width: int, height: int, lines: Sequence[TextLine] = (), icons: Iterable[Icon] = ()
) -> Description:
    """Everything with words or a use, as `[n] kind "text" @x,y`: elements, and what the picture shows besides."""
    worth = list(_in_reading_order(_merged(tree, lines, icons)))
    kept = _capped([_line(number, element) for number, element in enumerate(worth, 1)])
    truncated = len(kept) < len(worth)
    head = f"screen {width}x{height}, {len(kept)} of {len(worth)} elements" + (", truncated" if truncated else "")
    return Description("\n".join([head, *kept]), len(kept), truncated)


# --- one from three ------------------------------------------------------------------------------


def _merged(tree: UiNode | None, lines: Sequence[TextLine], icons: Iterable[Icon]) -> list[ScreenElement]:
    """The elements, the words that no element says, the icons that are neither."""
    nodes = () if tree is None else tree.walk()
    told = [ScreenElement(node.role, node.label, node.box) for node in nodes if node.label or node.clickable]
    clear = [icon for icon in distinct(icons) if icon.best[1] >= CLEAR_ICON]
    drawn = [icon for icon in clear if not any(inside(centre(icon.box), line.box) for line in lines)]
    named, others = _with_icons(told, drawn)
    words = [ScreenElement("text", line.text, line.box) for line in lines if not _said(line, told)]
    return [*named, *words, *others]


def _said(line: TextLine, told: Iterable[ScreenElement]) -> bool:
    """Whether an element at that place says the same."""
    here = [element for element in told if inside(centre(line.box), element.box)]
    return any(likeness(element.text, line.text)[0] >= LEAST_SCORE for element in here)


def _with_icons(
    told: Sequence[ScreenElement], icons: Iterable[Icon]
) -> tuple[list[ScreenElement], list[ScreenElement]]:
    """The elements, those without words called by the icon they show; and the icons on no element of their size."""
    named, others = list(told), []
    for icon in icons:
        shape, place = icon.best[0], _smallest_around(icon, named)
        if place is None:
            others.append(ScreenElement("icon", shape, icon.box))
        elif not named[place].text:
            named[place] = replace(named[place], text=shape)
    return named, others


def _smallest_around(icon: Icon, elements: Sequence[ScreenElement]) -> int | None:
    """Which element an icon is the face of: the smallest one at its place, unless that holds more than an icon."""
    around = [index for index, element in enumerate(elements) if inside(centre(icon.box), element.box)]
    smallest = min(around, key=lambda index: _side(elements[index].box), default=None)
    if smallest is None or _side(elements[smallest].box) > FACE * _side(icon.box):
        return None
    return smallest


def _side(box: Box) -> int:
    left, top, right, bottom = box
    return max(right - left, bottom - top)


# --- one line each -------------------------------------------------------------------------------


def _in_reading_order(elements: Iterable[ScreenElement]) -> Iterator[ScreenElement]:
    """Lines from the top down, and each from left to right."""
    row: list[ScreenElement] = []
    for element in sorted(elements, key=lambda element: element.box[1]):
        if row and element.box[1] - row[0].box[1] >= LINE_PIXELS:
            yield from sorted(row, key=lambda element: element.box[0])
            row = []
        row.append(element)
    yield from sorted(row, key=lambda element: element.box[0])


def _line(number: int, element: ScreenElement) -> str:
    x, y = centre(element.box)
    return f"[{number}] {element.kind} {json.dumps(element.text[:LONGEST_TEXT], ensure_ascii=False)} @{x},{y}"


def _capped(lines: Iterable[str]) -> list[str]:
    kept: list[str] = []
    size = 0
    for line in lines:
        size += len(line.encode("utf-8", "replace")) + 1
        if len(kept) == MOST_ELEMENTS or size > MOST_BYTES:
            break
        kept.append(line)
    return kept
