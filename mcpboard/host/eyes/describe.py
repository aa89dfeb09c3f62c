"""A screen in words: one line for each element that says something, in reading order."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass

from mcpboard.host.eyes.tree import Node

MOST_ELEMENTS = 200  # lines; the contract's limit, for a model's sake
MOST_BYTES = 20_000  # of UTF-8, the same
LONGEST_TEXT = 200  # characters of one element
LINE_PIXELS = 24  # elements whose tops differ by less stand in one line, read from left to right


@dataclass(frozen=True)
class Description:
    """The table as text, how many lines it has, and whether more would have followed."""

    text: str
    elements: int
    truncated: bool


def describe(tree: Node, width: int, height: int) -> Description:
    """The elements with words or a use, as `[n] kind "text" @x,y`."""
    worth = sorted((node for node in tree.walk() if node.label or node.clickable), key=_reading_order)
    kept = _capped([_line(number, node) for number, node in enumerate(worth, 1)])
    truncated = len(kept) < len(worth)
    head = f"screen {width}x{height}, {len(kept)} of {len(worth)} elements" + (", truncated" if truncated else "")
    return Description("\n".join([head, *kept]), len(kept), truncated)


def _reading_order(node: Node) -> tuple[int, int]:
    left, top, _, _ = node.box
    return top // LINE_PIXELS, left


def _line(number: int, node: Node) -> str:
    x, y = node.center
    return f"[{number}] {node.role} {json.dumps(node.label[:LONGEST_TEXT], ensure_ascii=False)} @{x},{y}"


def _capped(lines: Iterable[str]) -> list[str]:
    kept: list[str] = []
    size = 0
    for line in lines:
        size += len(line.encode("utf-8", "replace")) + 1
        if len(kept) == MOST_ELEMENTS or size > MOST_BYTES:
            break
        kept.append(line)
    return kept
