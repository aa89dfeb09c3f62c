"""The elements on a screen in one normal form, whatever kind of device told them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

Box = tuple[int, int, int, int]  # left, top, right, bottom in pixels of the picture


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

    @property
    def center(self) -> tuple[int, int]:
        """Where to tap it."""
        left, top, right, bottom = self.box
        return (left + right) // 2, (top + bottom) // 2

    @property
    def label(self) -> str:
        """The words that a person would call it by."""
        return self.text or self.desc

    def walk(self) -> Iterator[UiNode]:
        """This element and all below it, each before its children."""
        yield self
        for child in self.children:
            yield from child.walk()

    def as_json(self) -> dict[str, Any]:
        """The normal form of the contract, with every member of it."""
        return {
            "role": self.role,
            "text": self.text,
            "desc": self.desc,
            "id": self.id,
            "box": list(self.box),
            "clickable": self.clickable,
            "children": [child.as_json() for child in self.children],
        }
