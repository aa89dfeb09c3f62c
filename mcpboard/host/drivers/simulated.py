"""A phone in memory, the simulator's, for tests and demonstrations: the one door to it.

It has what the drawn phone lacks: a tree of the elements on its screen.
"""

from __future__ import annotations

import time
import unicodedata
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from mcpboard.errors import NOT_SENT, ToolFailed
from mcpboard.host.drivers.base import OFFLINE, READY, Point, Probe, Shot
from mcpboard.host.eyes.tree import Box, Node
from mcpboard.simulator import pages, screen
from mcpboard.simulator.phone import (
    APPS,
    DOCK,
    FIELDS,
    HOME,
    LIST_TOP,
    ROW_HEIGHT,
    SETTINGS,
    Phone,
    View,
    app_named,
    icon_place,
)

SCALE = 1000  # the phone's own unit: a thousandth of its width and height
LIST_BOTTOM = 990  # where the drawn list ends, in thousandths
ICON_REACH = (95, 50)  # how far from its centre an icon can be touched, in thousandths


class Simulated:
    """The driver of one phone in memory; `phone` may be watched and unplugged by a test."""

    def __init__(self, clock: Callable[[], float] = time.time, seed: int = 0) -> None:
        self.phone = Phone(clock, seed)
        self.plugged_in = True

    def size(self) -> Point:
        return screen.WIDTH, screen.HEIGHT

    def take_screenshot(self) -> Shot:
        self._reach()
        return Shot(screen.jpeg(pages.picture(self.phone.view())), "image/jpeg", *self.size())

    def tap(self, at: Point) -> None:
        self._reach()
        self.phone.tap(*_units(at))

    def swipe(self, start: Point, end: Point, duration_ms: int) -> None:
        self._reach()
        self.phone.swipe(_units(start), _units(end))

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

    def ui_tree(self) -> Node | None:
        self._reach()
        view = self.phone.view()
        elements = _shade(view) if view.shade else PAGES.get(view.app, _plain)(view)
        return Node("screen", (0, 0, *self.size()), id=f"screen/{view.app}", children=tuple(elements))

    def app_info(self) -> Mapping[str, Any]:
        return {"id": self.phone.app, "name": self.phone.app}

    def probe(self) -> Probe:
        if not self.plugged_in:
            return Probe(OFFLINE, {"error": "the phone is unplugged"})
        width, height = self.size()
        return Probe(READY, {"app": self.phone.app, "width": width, "height": height})

    def new_holder(self) -> None:
        """A phone in memory keeps nothing of its holder."""

    def close(self) -> None:
        """There is nothing to let go of."""

    def _reach(self) -> None:
        if not self.plugged_in:
            raise ToolFailed("device offline: the phone is unplugged", delivery=NOT_SENT)


def _check_typeable(text: str) -> None:
    """Refuse control characters by name; none is ever dropped."""
    odd = sorted({c for c in text if unicodedata.category(c) in ("Cc", "Cs") and c not in "\n\t"})
    if odd:
        names = ", ".join(f"U+{ord(c):04X} {unicodedata.name(c, 'control character')}" for c in odd)
        raise ToolFailed(f"this phone cannot type {names}; nothing was typed", delivery=NOT_SENT)


# --- places ------------------------------------------------------------------------------------


def _units(at: Point) -> tuple[float, float]:
    return at[0] * SCALE / (screen.WIDTH - 1), at[1] * SCALE / (screen.HEIGHT - 1)


def _pixels(left: float, top: float, right: float, bottom: float) -> Box:
    (x1, y1), (x2, y2) = screen.px(left, top), screen.px(right, bottom)
    return round(x1), round(y1), round(x2), round(y2)


# --- what is on the screen -----------------------------------------------------------------------


def _home(view: View) -> Iterator[Node]:
    reach_x, reach_y = ICON_REACH
    for index, app in enumerate(APPS):
        x, y = icon_place(index)
        box = _pixels(x - reach_x, y - reach_y, x + reach_x, y + reach_y)
        in_dock = index >= len(APPS) - DOCK  # drawn without a name
        yield Node("icon", box, "" if in_dock else app.name, app.name, f"app/{app.name}", clickable=True)


def _settings(view: View) -> Iterator[Node]:
    yield _title("Settings")
    for line, name in enumerate(SETTINGS):
        top = LIST_TOP + line * ROW_HEIGHT - view.scroll
        if LIST_TOP - ROW_HEIGHT < top < LIST_BOTTOM:
            box = _pixels(40, max(top, LIST_TOP), 960, min(top + ROW_HEIGHT, SCALE))
            yield Node("row", box, name, id=f"settings/{name}", clickable=True)


def _field(view: View) -> Iterator[Node]:
    text = view.notes if view.app == "Notes" else view.url
    yield Node("field", _pixels(*FIELDS[view.app]), text, f"{view.app} text field", f"field/{view.app}", clickable=True)


def _plain(view: View) -> Iterator[Node]:
    yield _title(view.app)
    yield Node("label", _pixels(100, 495, 900, 525), f"{view.app} has nothing to show")


def _shade(view: View) -> Iterator[Node]:
    for row, text in enumerate(("Calendar: nothing planned", "Weather: sunny, 21 degrees")):
        yield Node("notification", _pixels(50, 240 + 89 * row, 950, 315 + 89 * row), text)


def _title(text: str) -> Node:
    return Node("title", _pixels(60, 60, 600, 95), text)


PAGES: Mapping[str, Callable[[View], Iterator[Node]]] = {
    HOME: _home, "Settings": _settings, "Notes": _field, "Browser": _field,
}  # fmt: skip
