"""A phone in memory, the simulator's, for tests and demonstrations: the one door to it."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

from mcpboard import simulator
from mcpboard.errors import NOT_SENT, ToolFailed
from mcpboard.host.drivers.base import READY, UNTYPEABLE, Point, Probe, Screenshot, ScreenshotMixin, refuse_untypeable
from mcpboard.host.vision.tree import UiNode
from mcpboard.simulator.phone import display, frames
from mcpboard.simulator.phone.phone import Phone
from mcpboard.simulator.phone.view import NAMES, app_named

SCALE = 1000  # the phone's own unit: a thousandth of its width and height


class SimulatedDriver(ScreenshotMixin):
    """The driver of one phone in memory; `phone` may be watched by a test."""

    def __init__(self, clock: Callable[[], float] = time.time, seed: int = 0) -> None:
        self.phone = Phone(clock, seed)

    def size(self) -> Point:
        return self._size or self.phone.view().pixels  # which it tells without drawing them

    def peek(self) -> Screenshot:
        view = self.phone.view()
        return Screenshot(frames.jpeg(display.picture(view)), "image/jpeg", *view.pixels)

    def tap(self, at: Point) -> None:
        self.phone.tap(*self._scaled(at))

    def swipe(self, start: Point, end: Point, duration_ms: int) -> None:
        self.phone.swipe(self._scaled(start), self._scaled(end))

    def input_text(self, text: str) -> None:
        refuse_untypeable(text, UNTYPEABLE, "no key of this phone's keyboard does that")
        if not self.phone.write(text):
            raise ToolFailed("no text field has the focus: tap into one first", delivery=NOT_SENT)

    def launch_app(self, app_id: str) -> None:
        app = app_named(app_id)
        if not app:
            raise ToolFailed(f"no app is called {app_id[:80]!r}; there are {', '.join(NAMES)}", delivery=NOT_SENT)
        self.phone.show(app)

    def ui_tree(self) -> UiNode | None:
        tree = self.phone.tree()
        self._size = tree.box[2], tree.box[3]  # what the client taps next, it has from here
        return _converted(tree)

    def app_info(self) -> Mapping[str, Any]:
        return {"id": self.phone.app, "name": self.phone.app}

    def probe(self) -> Probe:
        width, height = self.phone.view().pixels
        return Probe(READY, {"app": self.phone.app, "width": width, "height": height})

    def new_owner(self) -> None:
        self._size = None

    def _scaled(self, at: Point) -> tuple[float, float]:
        width, height = self.size()
        return at[0] * SCALE / (width - 1), at[1] * SCALE / (height - 1)


def _converted(node: simulator.Node) -> UiNode:
    children = tuple(_converted(child) for child in node.children)
    return UiNode(node.role, node.box, node.text, node.desc, node.id, node.clickable, children)
