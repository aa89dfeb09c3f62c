"""The moves of the screen: each is a calculation from one view to the next.

A move that is seen to happen keeps the view it came from and names its motion; `display` draws the way between them.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from mcpboard.simulator.phone.view import CONTENT, FIELDS, HOME, View

CARDS = 6  # apps that the switcher remembers
THREAD = 40  # messages that are kept
LONGEST_SUM = 18  # characters that the calculator takes


def moving(view: View, motion: str, **changes: Any) -> View:
    """Return the view with these changes, reached in a visible motion."""
    return replace(view, before=replace(view.still(), pressed=None, lifted=""), motion=motion, **changes)


def shown(view: View, app: str) -> View:
    """Bring an app to the front, growing out of its icon; HOME lets the current one shrink into it."""
    rest = {"app": app, "page": "", "layer": "", "scroll": 0, "focused": False, "marked": False}
    if app == HOME:
        return moving(view, "close" if view.app != HOME else "fade", **rest)
    recent = (app, *(name for name in view.recent if name != app))[:CARDS]
    return moving(view, "open", recent=recent, **rest)


def home(view: View) -> View:
    """Put away whatever is open, down to the icons."""
    return shown(view, HOME)


def back(view: View) -> View:
    """Go one step back: from a layer, a page inside an app, the app itself."""
    if view.layer:
        return dismissed(view)
    if view.page:
        return moving(view, "back", page="", scroll=view.under)
    return home(view)


def entered(view: View, page: str) -> View:
    """Slide in a page inside the app."""
    return moving(view, "forth", page=page, scroll=0, under=view.scroll)


def shade(view: View) -> View:
    """Bring the notification shade down."""
    return moving(view, "fall", layer="shade", focused=False) if view.layer != "shade" else view


def switcher(view: View) -> View:
    """Show the cards of the open apps; asked for again, the app before this one."""
    if view.layer == "cards" and view.recent:
        return shown(view, view.recent[1 if len(view.recent) > 1 and view.app == view.recent[0] else 0])
    return moving(view, "fade", layer="cards", focused=False)


def forgotten(view: View, app: str) -> View:
    """Throw away the card of an app; the app on the screen goes with it."""
    rest = tuple(name for name in view.recent if name != app)
    gone = {"app": HOME, "page": "", "scroll": 0} if view.app == app else {}
    return moving(view, "fade", recent=rest, **gone)


def dismissed(view: View) -> View:
    """Put away the layer or the keyboard."""
    if view.layer:
        return moving(view, "rise" if view.layer == "shade" else "fade", layer="")
    return moving(view, "drop", focused=False, marked=False) if view.focused else view


def toggled(view: View, switch: str) -> View:
    """Turn a switch; some of them change more than themselves."""
    return moving(view, "fade", on=view.on ^ {switch}, scroll=0 if switch == "Landscape" else view.scroll)


def brightened(view: View, share: float) -> View:
    """Set the brightness to that share of the most."""
    return replace(view, brightness=round(100 * share))


def scrolled(view: View, climb: float, extent: float) -> View:
    """Scroll the page by `climb`, within its extent (both in thousandths of the height)."""
    return moving(view, "scroll", scroll=max(0, min(round(extent), round(view.scroll + climb))))


def reordered(view: View, app: str, slot: int) -> View:
    """Put an icon down in a slot of the home screen; the one that stood there takes its place."""
    order = list(view.order)
    here = order.index(app)
    order[here], order[slot] = order[slot], order[here]
    return moving(view, "fade", order=tuple(order))


# --- text --------------------------------------------------------------------------------------------------


def focused(view: View) -> View:
    """Give the keys to the app's field; an address is selected whole, so that typing replaces it."""
    if view.focused:
        return replace(view, marked=False)
    return moving(view, "lift", focused=True, marked=view.app == "Browser" and bool(view.address), keys="abc")


def filled(view: View, text: str) -> View:
    """Set the text of the app's field."""
    changes: dict[str, Any] = {FIELDS[view.app]: text}
    return replace(view, marked=False, **changes)


def typed(view: View, text: str) -> View:
    """Write text into the focused field, in place of what is selected; without field or text nothing happens."""
    if not view.focused or not text:
        return view
    keys = "abc" if view.keys == "ABC" else view.keys
    return replace(filled(view, text if view.marked else view.text + text), keys=keys)


def erased(view: View) -> View:
    """Delete the last character, or all that is selected."""
    return filled(view, "" if view.marked else view.text[:-1]) if view.focused else view


def all_marked(view: View) -> View:
    """Select all of the focused field's text."""
    return replace(view, marked=bool(view.text)) if view.focused else view


def returned(view: View) -> View:
    """Press the return key: a new line, the page of the address, or the message on its way."""
    if view.app == "Browser" and view.focused:
        return browsed(view, view.address)
    return sent(view) if view.app == "Messages" and view.focused else typed(view, "\n")


def sent(view: View) -> View:
    """Add the draft to the thread, with an answer; a blank one stays where it is."""
    text = view.draft.strip()
    if not text:
        return view
    answers = CONTENT["answers"]
    thread = (*view.thread, (True, text), (False, answers[len(view.thread) // 2 % len(answers)]))
    return moving(view, "fade", draft="", marked=False, thread=thread[-THREAD:])


def browsed(view: View, url: str) -> View:
    """Show an address in the browser; words that are none are looked up."""
    words = url.strip()
    if words and "://" not in words:
        words = f"https://{words}" if "." in words and " " not in words else f"search://{words}"
    changes: dict[str, Any] = {"address": url.strip(), "url": words, "focused": False, "marked": False, "scroll": 0}
    if view.app == "Browser" and not view.layer:
        return moving(view, "fade", **changes)
    return replace(shown(view, "Browser"), **changes)


def reloaded(view: View) -> View:
    """Draw the browser's page again, from its top."""
    return moving(view, "fade", scroll=0) if view.app == "Browser" else view


# --- the calculator ----------------------------------------------------------------------------------------


def counted(view: View, key: str) -> View:
    """Press a key of the calculator."""
    if key == "=":
        return replace(view, figures=result(view.figures))
    if key == "C":
        return replace(view, figures="")
    return replace(view, figures=(view.figures.removesuffix("Error") + key)[:LONGEST_SUM])


def result(line: str) -> str:
    """Return the value of a line of numbers and the four signs, or `Error`."""
    try:
        value = _value(line.replace("\u2212", "-"))
    except (ValueError, ZeroDivisionError, OverflowError):
        return "Error" if line else ""
    return f"{value:.10g}".replace("-", "\u2212")


def _value(line: str, signs: str = "+-") -> float:
    """Calculate additions of products; a sign at the front belongs to the first number."""
    for at in range(len(line) - 1, 0, -1):
        sign = line[at]
        if sign in signs and (sign in "\u00d7\u00f7" or line[at - 1] not in "\u00d7\u00f7+-e"):
            left = _value(line[:at], signs)
            if sign in "+-":
                right = _value(line[at + 1 :], "\u00d7\u00f7")
                return left + right if sign == "+" else left - right
            right = float(line[at + 1 :])
            return left * right if sign == "\u00d7" else left / right
    return _value(line, "\u00d7\u00f7") if signs == "+-" else float(line)
