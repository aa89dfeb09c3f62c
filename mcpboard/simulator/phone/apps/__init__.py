"""The pages of the pretend phone, one module each: what is on them, and how far they scroll."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from mcpboard.simulator.phone.apps import (
    browser,
    calculator,
    calendar,
    clock,
    home_screen,
    messages,
    notes,
    photos,
    plain,
    settings,
    weather,
)
from mcpboard.simulator.phone.elements import Element
from mcpboard.simulator.phone.view import HOME, View


def _fixed(view: View) -> float:
    return 0


@dataclass(frozen=True)
class AppPage:
    """The elements of an app in the order they are painted, and the extent of its scrolling."""

    elements: Callable[[View], Iterator[Element]]
    extent: Callable[[View], float] = _fixed


PAGES: Mapping[str, AppPage] = {
    HOME: AppPage(home_screen.elements),
    "Settings": AppPage(settings.elements, settings.extent),
    "Notes": AppPage(notes.elements),
    "Browser": AppPage(browser.elements, browser.extent),
    "Photos": AppPage(photos.elements, photos.extent),
    "Clock": AppPage(clock.elements),
    "Calculator": AppPage(calculator.elements),
    "Calendar": AppPage(calendar.elements),
    "Messages": AppPage(messages.elements),
    "Weather": AppPage(weather.elements),
}
PLAIN = AppPage(plain.elements)


def page(view: View) -> AppPage:
    """The page of the app on the screen."""
    return PAGES.get(view.app, PLAIN)
