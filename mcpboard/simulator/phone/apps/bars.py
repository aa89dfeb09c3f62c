"""The frame around every page: the bar above, the home line below, a page's header."""

from __future__ import annotations

from collections.abc import Iterator

from mcpboard.simulator.phone import moves
from mcpboard.simulator.phone.canvas import Canvas
from mcpboard.simulator.phone.elements import Element, centered, decor, label
from mcpboard.simulator.phone.view import HOME, View

STATUS = 54  # points that the bar above takes of an upright phone
FLAT_STATUS = 36  # and of one on its side
DIM = (HOME, "Calculator", "Weather")  # pages that are dark or a picture, by day too
FOOT = 26  # points kept free for the home line


def status_height(view: View) -> float:
    """Return the points that the bar above takes."""
    return FLAT_STATUS if view.landscape else STATUS


def frame(view: View) -> Iterator[Element]:
    """Yield the status bar, the island and the home line."""
    color, (width, height) = "#ffffff" if view.app in DIM or view.layer else view.theme.ink, view.size
    top = status_height(view) / 2 - (9 if view.landscape else 12)
    middle, left = width / 2, width - 122
    if not view.landscape:
        yield decor(
            (Canvas.fill, (middle - 58, 12, middle + 58, 44), "#000000", 16),
            (Canvas.disc, middle + 40, 28, 6, "#10131c"),
            (Canvas.disc, middle + 40, 28, 2.5, "#1d2a4a"),
        )
    plane, upper = "Airplane Mode" in view.on, top + 2
    shapes = (
        (Canvas.sign, "plane", left + 2, upper, 18, color) if plane else (Canvas.sign, "mast", left, upper, 18, color),
        *(((Canvas.sign, "wifi", left + 24, upper, 18, color),) if "Wi-Fi" in view.on else ()),
        (Canvas.fill, (left + 48, upper + 2, left + 77, upper + 16), color, 4.5, 0.38),
        (Canvas.fill, (left + 50, upper + 4, left + 50 + 25 * view.battery / 100, upper + 14), color, 2.5),
        (Canvas.fill, (left + 78, upper + 6.5, left + 80.5, upper + 11.5), color, 1, 0.5),
    )
    clock = label(view, (46, top), view.clock, 17, color, bold=True, role="clock")
    battery = Element("battery", (width - 76, top, width - 34, top + 22), desc=f"{view.battery} % charged")
    yield Element("status bar", (0, 0, width, status_height(view)), shapes, id="status", children=(clock, battery))
    yield decor((Canvas.fill, (middle - 70, height - 12, middle + 70, height - 7), color, 2.5))


def toast(view: View) -> Element:
    """Return a word in a dark capsule, for what would otherwise happen unseen."""
    x, y = view.size[0] / 2, view.size[1] * 0.62
    word = centered(view, (x, y), view.toast, 17, "#ffffff", bold=True)
    half = (word.box[2] - word.box[0]) / 2 + 24
    box = (x - half, y - 24, x + half, y + 24)

    shapes = ((Canvas.shadow, box, 24, 0.3, 10, 5), (Canvas.fill, box, "#22242b", 24, 0.94), *word.shapes)
    return Element("toast", box, shapes, view.toast, id="toast")


def head_height(view: View) -> float:
    """Return the height at which a page begins below its title."""
    return status_height(view) + 48


def head(view: View, title: str = "") -> Iterator[Element]:
    """Yield the bar with a title, opaque so that a list can pass below it; on a page inside an app with the way back.

    Without a `title` it is the name of the page, or of the app.
    """
    theme, bottom, width = view.theme, head_height(view), view.size[0]
    middle = status_height(view) + 22
    yield decor((Canvas.fill, (0, 0, width, bottom), theme.paper))
    if view.page:
        name = label(view, (36, middle - 11), view.app, 18, theme.accent)
        shapes = ((Canvas.sign, "back", 12, middle - 10.5, 21, theme.accent), *name.shapes)
        box = (8, middle - 20, name.box[2] + 8, middle + 20)
        yield Element("button", box, shapes, view.app, "back", "back", tap=moves.back)
        yield centered(view, (width / 2, middle), view.page, 18, theme.ink, bold=True, role="title")
    else:
        yield label(view, (24, middle - 21), title or view.app, 32, theme.ink, bold=True, role="title")
