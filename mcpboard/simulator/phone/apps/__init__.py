"""The pages of the simulated phone: the elements of each app, and how far it scrolls."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from mcpboard.simulator.phone.apps import browser, home_screen, photos, settings, simple_apps, writing
from mcpboard.simulator.phone.elements import Element
from mcpboard.simulator.phone.view import HOME, View

Elements = Callable[[View], Iterator[Element]]  # in the order they are painted
Extent = Callable[[View], float]  # of the scrolling, in thousandths of the height

PAGES: Mapping[str, tuple[Elements, Extent]] = {
    "Settings": (settings.elements, settings.extent),
    "Browser": (browser.elements, browser.extent),
    "Photos": (photos.elements, photos.extent),
}
STILL: Mapping[str, Elements] = {
    HOME: home_screen.elements, "Notes": writing.notes, "Messages": writing.messages, "Clock": simple_apps.clock,
    "Calculator": simple_apps.calculator, "Calendar": simple_apps.calendar, "Weather": simple_apps.weather,
}  # fmt: skip


def page(view: View) -> tuple[Elements, Extent]:
    """Return the page of the app on the screen."""
    return PAGES.get(view.app) or (STILL.get(view.app, simple_apps.front), lambda view: 0)
