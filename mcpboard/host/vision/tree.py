"""The elements on a screen in one normal form for every type of device.

A tree is as deep as a device says, up to a thousand levels, so nothing here recurses: each level of
a recursion costs a frame, and a thread of musl has 128 KiB for all of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from mcpboard.errors import ToolFailed
from mcpboard.host.vision.types import Box
from mcpboard.text import DEEP_LIMIT

MOST_LEVELS = DEEP_LIMIT  # of elements within elements; a real screen has sixty
MOST_ELEMENTS = 10_000  # of one screen; a real one has some hundred, a long web page some thousand
# Levels that `get_ui_tree` sends. Each is two of JSON, and with those around the tree it stays below the 127 at
# which parsers of Rust give up, as that of the official Python client does at 200.
LEVELS_SENT = 60


class UnreadableTree(ToolFailed):
    """The UI tree that a device sent is broken, or more than is read here; its screenshot may still be had."""


def refuse_excess(levels: int, elements: int) -> None:
    """Raise UnreadableTree beyond MOST_LEVELS or MOST_ELEMENTS."""
    if levels > MOST_LEVELS:
        raise UnreadableTree(f"the device's UI tree is nested deeper than {MOST_LEVELS} levels; use take_screenshot")
    if elements > MOST_ELEMENTS:
        raise UnreadableTree(f"the device's UI tree has more than {MOST_ELEMENTS} elements; use take_screenshot")


@dataclass(frozen=True)
class UiNode:
    """One element: `role` in lower case, `text` as shown, `desc` as read aloud, `id` of the app's own."""

    role: str
    box: Box
    text: str = ""
    desc: str = ""
    id: str = ""
    clickable: bool = False
    children: tuple[UiNode, ...] = ()

    def walk(self) -> Iterator[UiNode]:
        """Yield this element and all below it, each before its children."""
        return (node for node, _ in self._walk())

    @property
    def levels(self) -> int:
        """The number of levels of elements, this one included."""
        return max(level for _, level in self._walk())

    def as_json(self) -> dict[str, Any]:
        """Return the element as `get_ui_tree` sends it, with every member even where it is empty.

        Elements below LEVELS_SENT stand beside those at that level, in the same order.
        """
        whole: list[dict[str, Any]] = []
        lists = [whole]  # of the children of whatever is open, by level
        for node, level in self._walk():
            del lists[min(level, LEVELS_SENT) :]
            members: dict[str, Any] = {"role": node.role, "text": node.text, "desc": node.desc, "id": node.id}
            members |= {"box": list(node.box), "clickable": node.clickable, "children": []}
            lists[-1].append(members)
            lists.append(members["children"])
        return whole[0]

    def _walk(self) -> Iterator[tuple[UiNode, int]]:
        """Yield each element with its level, which is 1 for this one."""
        pending = [(self, 1)]
        while pending:
            node, level = pending.pop()
            yield node, level
            pending += [(child, level + 1) for child in reversed(node.children)]
