"""The frame around every page: the bar above, the home line below, a page's header."""

from __future__ import annotations

from collections.abc import Iterator

from mcpboard.simulator.phone import moves
from mcpboard.simulator.phone.canvas import Canvas
from mcpboard.simulator.phone.elements import Element, centred, decor, label
from mcpboard.simulator.phone.glyphs import sign
from mcpboard.simulator.phone.theme import theme
from mcpboard.simulator.phone.view import HOME, View

STATUS = 54  # points that the bar above takes of an upright phone
FLAT_STATUS = 36  # and of one on its side
DIM = (HOME, "Calculator", "Weather")  # pages that are dark or a picture, by day too
FOOT = 26  # points kept free for the home line


def status_height(view: View) -> float:
    """Points that the bar above takes."""
    return FLAT_STATUS if view.landscape else STATUS


def ink(view: View) -> str:
    """The colour of the bar: light over pictures, else the theme's."""
    return "#ffffff" if view.app in DIM or view.layer else theme(view).ink


def frame(view: View) -> Iterator[Element]:
    """Status bar, island and home line."""
    colour, (width, height) = ink(view), view.size
    top = status_height(view) / 2 - (9 if view.landscape else 12)
    yield decor(lambda canvas: _island(canvas, view))
    clock = label((46, top), view.clock, 17, colour, bold=True, scale=view.scale, role="clock")
    battery = (width - 76, top, width - 34, top + 22)
    yield Element(
        "status bar", (0, 0, width, status_height(view)),
        lambda canvas: _signs(canvas, view, width - 122, top + 2, colour), id="status",
        children=(clock, Element("battery", battery, desc=f"{view.battery} % charged")),
    )  # fmt: skip
    line = (width / 2 - 70, height - 12, width / 2 + 70, height - 7)
    yield decor(lambda canvas: canvas.fill(line, colour, 2.5))


def _island(canvas: Canvas, view: View) -> None:
    if not view.landscape:
        middle = view.size[0] / 2
        canvas.fill((middle - 58, 12, middle + 58, 44), "#000000", 16)
        canvas.disc(middle + 40, 28, 6, "#10131c")
        canvas.disc(middle + 40, 28, 2.5, "#1d2a4a")


def _signs(canvas: Canvas, view: View, left: float, top: float, colour: str) -> None:
    """Reception, Wi-Fi and the battery."""
    side = canvas.px(18)
    if "Airplane Mode" in view.on:
        canvas.stamp(sign("plane", side, colour), left + 2, top)
    else:
        canvas.stamp(sign("mast", side, colour), left, top)
    if "Wi-Fi" in view.on:
        canvas.stamp(sign("wifi", side, colour), left + 24, top)
    canvas.fill((left + 48, top + 2, left + 77, top + 16), colour, 4.5, 0.38)
    canvas.fill((left + 50, top + 4, left + 50 + 25 * view.battery / 100, top + 14), colour, 2.5)
    canvas.fill((left + 78, top + 6.5, left + 80.5, top + 11.5), colour, 1, 0.5)


def toast(view: View) -> Element:
    """A word in a dark capsule, for what would otherwise happen unseen."""
    x, y = view.size[0] / 2, view.size[1] * 0.62
    word = centred((x, y), view.toast, 17, "#ffffff", bold=True, scale=view.scale)
    half = (word.box[2] - word.box[0]) / 2 + 24
    box = (x - half, y - 24, x + half, y + 24)

    def paint(canvas: Canvas) -> None:
        canvas.shadow(box, 24, 0.3, blur=10, drop=5)
        canvas.fill(box, "#22242b", 24, 0.94)
        word.paint(canvas)

    return Element("toast", box, paint, view.toast, id="toast")


def head_height(view: View) -> float:
    """Where a page begins below its title."""
    return status_height(view) + 48


def head(view: View, title: str, *, large: bool = False) -> Iterator[Element]:
    """The bar with the page's title, opaque so that a list can pass below it; inside an app with its way back."""
    colours, bottom, width = theme(view), head_height(view), view.size[0]
    middle = status_height(view) + 22
    yield decor(lambda canvas: canvas.fill((0, 0, width, bottom), colours.paper))
    if view.page:
        yield _way_back(view, middle)
        yield centred((width / 2, middle), title, 18, colours.ink, bold=True, scale=view.scale, role="title")
    elif large:
        yield label((24, middle - 21), title, 32, colours.ink, bold=True, scale=view.scale, role="title")
    else:
        yield centred((width / 2, middle), title, 18, colours.ink, bold=True, scale=view.scale, role="title")


def _way_back(view: View, middle: float) -> Element:
    colours = theme(view)
    name = label((36, middle - 11), view.app, 18, colours.accent, scale=view.scale)

    def paint(canvas: Canvas) -> None:
        canvas.stamp(sign("back", canvas.px(21), colours.accent), 12, middle - 10.5)
        name.paint(canvas)

    box = (8, middle - 20, name.box[2] + 8, middle + 20)
    return Element("button", box, paint, view.app, "back", "back", tap=moves.back)
