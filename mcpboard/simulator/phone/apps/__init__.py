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
class Page:
    """The elements of an app in the order they are painted, and the extent of its scrolling."""

    elements: Callable[[View], Iterator[Element]]
    extent: Callable[[View], float] = _fixed


PAGES: Mapping[str, Page] = {
    HOME: Page(home_screen.elements),
    "Settings": Page(settings.elements, settings.extent),
    "Notes": Page(notes.elements),
    "Browser": Page(browser.elements, browser.extent),
    "Photos": Page(photos.elements, photos.extent),
    "Clock": Page(clock.elements),
    "Calculator": Page(calculator.elements),
    "Calendar": Page(calendar.elements),
    "Messages": Page(messages.elements),
    "Weather": Page(weather.elements),
}
PLAIN = Page(plain.elements)


def page(view: View) -> Page:
    """The page of the app on the screen."""
    return PAGES.get(view.app, PLAIN)
