"""What a touch and a stroke make of the screen they meet."""

from __future__ import annotations

from mcpboard.simulator.phone import display, moves
from mcpboard.simulator.phone.apps import home_screen, page
from mcpboard.simulator.phone.view import HOME, Place, View

LOWER_EDGE, UPPER_EDGE, LEFT_EDGE = 950, 40, 30  # thousandths; strokes from there belong to the system
THROW = 100  # thousandths that a card must climb to be thrown away


def tapped(view: View, place: Place) -> View:
    """A finger touches and lets go."""
    element = display.element_at(view, place)
    move = element.touched(view.point(place)[0]) if element else None
    return move(view) if move else view


def stroked(view: View, start: Place, end: Place) -> View:
    """A finger is drawn across: the system's edges first, then what lies under it, then the page scrolls."""
    climb = start[1] - end[1]
    if start[1] >= LOWER_EDGE and climb > 0:
        return moves.home(view)
    if start[1] <= UPPER_EDGE and climb < 0:
        return moves.shade(view)
    if abs(start[0] - end[0]) > abs(climb):
        return _across(view, start, end)
    if view.layer:
        return _layer(view, start, climb)
    return moves.scrolled(view, climb, page(view).extent(view))


def _across(view: View, start: Place, end: Place) -> View:
    """Sideways: a slider follows, and from the left edge it leads back."""
    element = display.element_at(view, start)
    if element is not None and element.slide is not None:
        return slid(view, start, end)
    back = start[0] <= LEFT_EDGE and end[0] > start[0] and (view.app != HOME or view.layer)
    return moves.back(view) if back else view


def slid(view: View, start: Place, end: Place) -> View:
    """The slider under `start`, if there is one, set to where the finger is now."""
    element = display.element_at(view, start)
    move = element.touched(view.point(end)[0]) if element is not None and element.slide is not None else None
    return move(view) if move else view


def _layer(view: View, start: Place, climb: float) -> View:
    """Upwards the shade goes away, and the card that was touched."""
    if view.layer == "shade":
        return moves.dismissed(view) if climb > 0 else view
    card = display.element_at(view, start)
    if card is not None and card.role == "card" and climb > THROW:
        return moves.forgotten(view, card.text)
    return view


def lifted(view: View, place: Place) -> str:
    """The icon that a resting finger lifts, "" for none."""
    return home_screen.icon_under(view, place) if view.app == HOME and not view.layer else ""


def dropped(view: View, app: str, place: Place) -> View:
    """A lifted icon is put down; beside all places it goes back to its own."""
    slot = home_screen.slot_at(view, place)
    return moves.reordered(view, app, view.order.index(app) if slot is None else slot)
