"""The pages of the simulated phone: the elements of each app, and how far it scrolls."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from mcpboard.simulator.phone.apps import browser, home_screen, photos, settings, simple_apps, writing
from mcpboard.simulator.phone.elements import Element
from mcpboard.simulator.phone.view import HOME, View

PAGES: Mapping[str, Callable[[View], Iterator[Element]]] = {
    HOME: home_screen.elements, "Settings": settings.elements, "Browser": browser.elements, "Photos": photos.elements,
    "Notes": writing.notes, "Messages": writing.messages, "Clock": simple_apps.clock,
    "Calculator": simple_apps.calculator, "Calendar": simple_apps.calendar, "Weather": simple_apps.weather,
}  # fmt: skip
EXTENTS = {"Settings": settings.extent, "Browser": browser.extent, "Photos": photos.extent}


def page(view: View) -> Iterator[Element]:
    """Yield the page of the app on the screen, in the order it is painted."""
    return PAGES.get(view.app, simple_apps.front)(view)


def extent(view: View) -> float:
    """Return how far the page can be scrolled, in thousandths of the height."""
    return EXTENTS[view.app](view) if view.app in EXTENTS else 0
