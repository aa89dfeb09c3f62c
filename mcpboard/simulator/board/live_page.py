"""The page that shows the phone in a browser, and the switches behind its buttons."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from mcpboard.simulator.phone import display, frames
from mcpboard.simulator.phone.phone import Phone
from mcpboard.simulator.phone.view import View

PAGE = Path(__file__).with_suffix(".html").read_bytes()
TURNS: Mapping[str, str] = {"landscape": "Landscape", "dark": "Dark Mode"}  # name in a request -> switch


def picture(phone: Phone) -> bytes:
    """Return the screen as JPEG, with a ring that fades where it was touched last."""
    view, touch = phone.view(), phone.touched()
    if touch is None:
        return _plain(view)
    place, share = touch  # the ring gets wider and paler as its time passes
    image = frames.rippled(display.picture(view), *place, radius=14 + 26 * share, strength=0.8 * (1 - share))
    return frames.jpeg(image)


@functools.lru_cache(maxsize=2)
def _plain(view: View) -> bytes:
    return frames.jpeg(display.picture(view))


def state(phone: Phone) -> dict[str, Any]:
    """Return the state of the phone as JSON: its app, the text in its field, how it lies, and the tree."""
    view, tree = phone.view(), phone.tree().as_json()
    return {"app": view.app, "text": view.text, "landscape": view.landscape, "dark": view.dark, "tree": tree}


def turn(phone: Phone, post: object) -> None:
    """Set the switches that are named; ValueError for a name or a value that is none."""
    if not isinstance(post, dict) or not post or not all(isinstance(value, bool) for value in post.values()):
        raise ValueError('expected an object of booleans such as {"landscape": true}')
    if unknown := sorted(set(post) - set(TURNS)):
        raise ValueError(f"no switch is called {unknown[0]!r}; there are: {', '.join(TURNS)}")
    for name, on in post.items():
        phone.turn(TURNS[name], on)
