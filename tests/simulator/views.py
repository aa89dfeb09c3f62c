"""Screens of the simulated phone that several tests draw."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from mcpboard.simulator.phone import moves
from mcpboard.simulator.phone.view import USUALLY_ON, View

TURNED = USUALLY_ON | {"Landscape"}
NIGHT = USUALLY_ON | {"Dark Mode"}
TEXT = "\u65e5\u672c \U0001f600 caf\u00e9\n\ud83d" + "x" * 400  # with half a surrogate pair and a very long word
SHOPS = View(app="Browser", url="https://shop.example/new-shoes", address="https://shop.example/new-shoes")

STILL: dict[str, View] = {
    "the home grid": View(minute=29_651_000),
    "the home grid by night": View(on=NIGHT, hue=18),
    "a list": View(app="Settings", scroll=130),
    "a list by night": View(app="Settings", scroll=400, on=NIGHT),
    "a page of a list": View(app="Settings", page="About"),
    "a page with nothing": View(app="Settings", page="Sounds"),
    "wallpapers": View(app="Settings", page="Wallpaper"),
    "no text": View(app="Notes"),
    "text": View(app="Notes", focused=True, notes=TEXT),
    "selected text": View(app="Notes", focused=True, notes="all of it", marked=True, keys="ABC"),
    "more text than fits": View(app="Notes", notes="a" * 300_000),
    "a new tab": View(app="Browser"),
    "a web page": SHOPS,
    "a web page further down": replace(SHOPS, scroll=200),
    "an address that is typed": replace(SHOPS, focused=True, keys="123", address="x" * 90),
    "an address that is none": View(app="Browser", url="https://[half/", address="https://[half/"),
    "photos": View(app="Photos", scroll=90),
    "one photo": View(app="Photos", page="Ridge 3"),
    "the clock": View(app="Clock", minute=29_651_000),
    "the calculator": View(app="Calculator", figures="12\u00d73"),
    "messages": View(app="Messages", draft="on my way", focused=True, thread=((False, "Where?"), (True, "x" * 90))),
    "the weather": View(app="Weather", minute=29_651_000),
    "the calendar": View(app="Calendar", minute=29_651_000),
    "an app that is a front": View(app="Maps"),
    "a finger on the screen": View(app="Maps", pressed=(300, 300)),
    "an icon in the air": View(lifted="Maps", pressed=(300, 700)),
    "the shade": View(layer="shade"),
    "the cards": View(app="Notes", notes="hello", layer="cards", recent=("Notes", "Settings", "Clock")),
    "no cards": View(layer="cards"),
    "a short message": View(app="Notes", toast="Copied", notes="hello"),
}
LYING = {
    f"{name}, on its side": replace(view, on=view.on | {"Landscape"})
    for name, view in STILL.items()
    if name in ("the home grid", "a list", "wallpapers", "text", "a web page", "photos", "the clock", "the shade",
                "the cards", "the calculator", "one photo", "messages", "the weather", "the calendar")
}  # fmt: skip

IN_NOTES = View(app="Notes", recent=("Notes",), notes="hello")
MOVING: dict[str, View] = {
    "an app opens": moves.shown(View(), "Notes"),
    "an app opens over another": moves.shown(IN_NOTES, "Maps"),
    "an app closes": moves.home(IN_NOTES),
    "the shade falls": moves.shade(View()),
    "the shade rises": moves.dismissed(View(layer="shade")),
    "a page slides in": moves.entered(View(app="Settings"), "About"),
    "a page slides out": moves.back(View(app="Settings", page="About")),
    "the keyboard comes": moves.focused(IN_NOTES),
    "the keyboard goes": moves.dismissed(replace(IN_NOTES, focused=True)),
    "a list scrolls": moves.scrolled(View(app="Settings"), 200, 400),
    "a switch is turned": moves.toggled(View(app="Settings"), "Wi-Fi"),
    "the colours turn": moves.toggled(View(app="Settings"), "Dark Mode"),
    "the phone is turned": moves.toggled(View(app="Settings"), "Landscape"),
    "the cards come": moves.switcher(IN_NOTES),
    "an icon falls into place": moves.reordered(View(), "Maps", 0),
}


def params(views: dict[str, View]) -> list[Any]:
    return [pytest.param(view, id=name) for name, view in views.items()]
