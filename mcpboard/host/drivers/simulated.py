"""A phone in memory, the simulator's, for tests and demonstrations: the one door to it."""

from __future__ import annotations

import time
import unicodedata
from collections.abc import Callable, Mapping
from typing import Any

from mcpboard import simulator
from mcpboard.errors import NOT_SENT, ToolFailed
from mcpboard.host.drivers.base import OFFLINE, READY, Point, Probe, Screenshot
from mcpboard.host.vision.tree import UiNode
from mcpboard.simulator.phone import display, frames
from mcpboard.simulator.phone.phone import APPS, Phone, app_named

SCALE = 1000  # the phone's own unit: a thousandth of its width and height


class SimulatedDriver:
    """The driver of one phone in memory; `phone` may be watched and unplugged by a test."""

    def __init__(self, clock: Callable[[], float] = time.time, seed: int = 0) -> None:
        self.phone = Phone(clock, seed)
        self.plugged_in = True
        self._size: Point | None = None

    def size(self) -> Point:
        return self._size or self.phone.view().pixels

    def take_screenshot(self) -> Screenshot:
        shot = self.peek()
        self._size = shot.width, shot.height
        return shot

    def peek(self) -> Screenshot:
        self._reach()
        view = self.phone.view()
        return Screenshot(frames.jpeg(display.picture(view)), "image/jpeg", *view.pixels)

    def tap(self, at: Point) -> None:
        self._reach()
        self.phone.tap(*self._place(at))

    def swipe(self, start: Point, end: Point, duration_ms: int) -> None:
        self._reach()
        self.phone.swipe(self._place(start), self._place(end))

    def input_text(self, text: str) -> None:
        self._reach()
        _check_typeable(text)
        if not self.phone.write(text):
            raise ToolFailed("no text field has the focus: tap into one first", delivery=NOT_SENT)

    def launch_app(self, app_id: str) -> None:
        self._reach()
        app = app_named(app_id)
        if app is None:
            known = ", ".join(app.name for app in APPS)
            raise ToolFailed(f"no app is called {app_id[:80]!r}; there are {known}", delivery=NOT_SENT)
        self.phone.show(app.name)

    def ui_tree(self) -> UiNode | None:
        self._reach()
        tree = self.phone.tree()
        self._size = tree.box[2], tree.box[3]  # what the client taps next, it has from here
        return _node(tree)

    def app_info(self) -> Mapping[str, Any]:
        return {"id": self.phone.app, "name": self.phone.app}

    def probe(self) -> Probe:
        if not self.plugged_in:
            return Probe(OFFLINE, {"error": "the phone is unplugged"})
        width, height = self.phone.view().pixels
        return Probe(READY, {"app": self.phone.app, "width": width, "height": height})

    def new_owner(self) -> None:
        self._size = None

    def close(self) -> None:
        """There is nothing to let go of."""

    def _reach(self) -> None:
        if not self.plugged_in:
            raise ToolFailed("device offline: the phone is unplugged", delivery=NOT_SENT)

    def _place(self, at: Point) -> tuple[float, float]:
        width, height = self.size()
        return at[0] * SCALE / (width - 1), at[1] * SCALE / (height - 1)


def _node(found: simulator.Node) -> UiNode:
    children = tuple(_node(child) for child in found.children)
    return UiNode(found.role, found.box, found.text, found.desc, found.id, found.clickable, children)


def _check_typeable(text: str) -> None:
    """Refuse control characters by name; none is ever dropped."""
    odd = sorted({c for c in text if unicodedata.category(c) in ("Cc", "Cs") and c not in "\n\t"})
    if odd:
        names = ", ".join(f"U+{ord(c):04X} {unicodedata.name(c, 'control character')}" for c in odd)
        raise ToolFailed(f"this phone cannot type {names}; nothing was typed", delivery=NOT_SENT)
