"""The pages of the simulated phone: the elements of each app, and how far it scrolls."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from mcpboard.simulator.phone.apps import browser, home_screen, photos, settings, simple_apps, writing
from mcpboard.simulator.phone.elements import Element
from mcpboard.simulator.phone.view import HOME, View


@dataclass(frozen=True)
class AppPage:
    """The elements of an app in the order they are painted, and the extent of its scrolling in thousandths."""

    elements: Callable[[View], Iterator[Element]]
    extent: Callable[[View], float] = lambda view: 0


PAGES: Mapping[str, AppPage] = {
    HOME: AppPage(home_screen.elements),
    "Settings": AppPage(settings.elements, settings.extent),
    "Notes": AppPage(writing.notes),
    "Browser": AppPage(browser.elements, browser.extent),
    "Photos": AppPage(photos.elements, photos.extent),
    "Clock": AppPage(simple_apps.clock),
    "Calculator": AppPage(simple_apps.calculator),
    "Calendar": AppPage(simple_apps.calendar),
    "Messages": AppPage(writing.messages),
    "Weather": AppPage(simple_apps.weather),
}
FRONT = AppPage(simple_apps.front)


def page(view: View) -> AppPage:
    """Return the page of the app on the screen."""
    return PAGES.get(view.app, FRONT)
