"""The browser: an address bar and a page that is made up from the address."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from functools import partial
from urllib.parse import unquote, urlsplit

from mcpboard.simulator.phone import fonts, moves
from mcpboard.simulator.phone.apps import bars, keyboard
from mcpboard.simulator.phone.apps.writing import field_line
from mcpboard.simulator.phone.canvas import Canvas
from mcpboard.simulator.phone.elements import Element, centered, clipped, decor, label
from mcpboard.simulator.phone.landscapes import landscape
from mcpboard.simulator.phone.view import CONTENT, Box, View

SIDE = 24  # points beside the text
LINE = 27  # from line to line of the text
SHOWN = 200  # characters of an address that can matter
HINT = "Search or enter an address"


def extent(view: View) -> float:
    """Return how far the page can be scrolled, in thousandths of the height."""
    return 420 if view.url else 0


def elements(view: View) -> Iterator[Element]:
    (width, height), upper = view.size, bars.status_height(view) + 12
    bar = (16, upper, width - 16, upper + 50)
    top = bar[3] + 12
    bottom = keyboard.top(view) if view.focused else height
    yield from clipped(_page(view, top) if view.url else _new_tab(view, top), top, bottom)
    yield decor((Canvas.fill, (0, 0, width, top), view.theme.paper))
    description = "Address" if view.address else HINT
    yield Element("field", bar, ((_address, view, bar),), view.address, description, "field/Browser",
                  tap=moves.focused)  # fmt: skip


def _address(canvas: Canvas, view: View, box: Box) -> None:
    """Paint the bar with the address: its beginning, but its end while it is typed."""
    theme = view.theme
    canvas.shadow(box, 16, theme.shadow, blur=9, drop=3)
    canvas.outline(box, theme.accent if view.focused else theme.card, 16, 2, theme.card)
    secure = "lock" if view.url.startswith("https://") else "lens"
    canvas.sign(secure, box[0] + 16, box[1] + 16, 18, theme.pale)
    canvas.sign("reload", box[2] - 34, box[1] + 16, 18, theme.pale)
    text = view.address[:SHOWN]
    field_line(canvas, view, (box[0] + 44, box[1] + 13), box[2] - box[0] - 92, text, HINT)


def _number(host: str) -> int:
    """Return a number that a host always has, such as no other has."""
    return zlib.crc32(host.encode("utf-8", "replace"))


def _colors(host: str) -> tuple[str, str]:
    """Return two colors that a host always has."""
    hue = _number(host) % 360
    return f"hsl({hue}, 70%, 62%)", f"hsl({(hue + 35) % 360}, 66%, 44%)"


# --- a new tab: favorites as tiles ---------------------------------------------------------------------------------


def _new_tab(view: View, top: float) -> Iterator[Element]:
    yield label(view, (SIDE, top + 24), "Favourites", 22, view.theme.ink, bold=True, role="heading")
    pitch, y = (view.size[0] - 2 * SIDE) / 4, top + 108
    for index, host in enumerate(CONTENT["favorites"]):
        x, name = SIDE + pitch * (index + 0.5), host.partition(".")[0]
        short = fonts.fitted(name, round(13 * view.scale), 96 * view.scale)
        box = (x - 36, y - 36, x + 36, y + 36)
        shapes = (
            (Canvas.shadow, box, 18, 0.18, 8, 4),
            (Canvas.slope, box, *_colors(host), 18),
            (Canvas.middle, x, y, name[0].upper(), 34, "#ffffff", True),
            *centered(view, (x, y + 52), short, 13, view.theme.ink).shapes,
        )
        yield Element("link", (x - 48, y - 36, x + 48, y + 62), shapes, short, host, f"favourite/{name}",
                      tap=partial(moves.browsed, url=f"https://{host}"))  # fmt: skip


# --- the page of an address ----------------------------------------------------------------------------------------


def title_of(url: str) -> tuple[str, str]:
    """Return the title of a page, and the host that it is of."""
    try:
        parts = urlsplit(url[:SHOWN])
    except ValueError:  # such as half an IPv6 address
        return url[:SHOWN], "nowhere"
    if parts.scheme == "search":
        return unquote(url[:SHOWN].removeprefix("search://")), "search"
    last = unquote(parts.path.rstrip("/").rpartition("/")[2])
    name = parts.netloc.removeprefix("www.").partition(".")[0]
    return (last or name).replace("-", " ").replace("_", " ").capitalize() or "Untitled", parts.netloc or "nowhere"


def _page(view: View, body: float) -> Iterator[Element]:
    """Yield a hero, the paragraphs, the links between them, and a photograph at the end."""
    title, host = title_of(view.url)
    (width, height), theme = view.size, view.theme
    room, top = (width - 2 * SIDE) * view.scale, body - view.scroll * height / 1000

    yield decor(
        (Canvas.fill, (0, body, *view.size), theme.card),
        (Canvas.slope, (0, top, width, top + 190), *_colors(host)),
        (Canvas.disc, width - 60, top + 40, 90, "#ffffff", 0.10),
        (Canvas.disc, width - 130, top + 150, 60, "#ffffff", 0.08),
    )
    headline = fonts.fitted(title, round(36 * view.scale), room, True)
    yield label(view, (SIDE, top + 84), headline, 36, "#ffffff", bold=True, role="heading")
    yield label(view, (SIDE, top + 136), fonts.fitted(host, round(16 * view.scale), room), 16, "#f2f4ff")
    y = top + 214
    for text in CONTENT["web page"]:
        for line in fonts.wrapped(text, round(18 * view.scale), room):
            yield label(view, (SIDE, y), line, 18, theme.ink)
            y += LINE
        y += 14
    for name in CONTENT["links"]:
        box, url = (SIDE, y, width - SIDE, y + 62), f"https://{host}/{name.lower()}"
        shapes = (
            (Canvas.fill, box, theme.paper, 16),
            (Canvas.text, SIDE + 20, y + 18, name, 19, theme.accent, True),
            (Canvas.sign, "forward", box[2] - 34, y + 23, 15, theme.pale),
        )
        yield Element("link", box, shapes, name, url, f"link/{name}", tap=partial(moves.browsed, url=url))
        y += 74
    yield decor((_photo, view, y + 10, host))


def _photo(canvas: Canvas, view: View, top: float, host: str) -> None:
    """Paint a photograph that a host always has."""
    if top < view.size[1]:
        image = landscape(_number(host), canvas.px(view.size[0] - 2 * SIDE), canvas.px(320))
        canvas.stamp(image, SIDE, top, 20)
