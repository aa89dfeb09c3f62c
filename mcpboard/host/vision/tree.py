"""The elements on a screen in one normal form for every type of device."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from mcpboard.host.vision.types import Box


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
        yield self
        for child in self.children:
            yield from child.walk()

    def as_json(self) -> dict[str, Any]:
        """Return the element as `get_ui_tree` sends it, with every member even where it is empty."""
        return {
            "role": self.role,
            "text": self.text,
            "desc": self.desc,
            "id": self.id,
            "box": list(self.box),
            "clickable": self.clickable,
            "children": [child.as_json() for child in self.children],
        }
