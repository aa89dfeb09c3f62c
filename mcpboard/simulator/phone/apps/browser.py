"""The browser: an address bar and a page that is made up from the address."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from urllib.parse import unquote, urlsplit

from mcpboard.simulator.phone import fonts, moves
from mcpboard.simulator.phone.apps import bars, keyboard
from mcpboard.simulator.phone.canvas import Canvas
from mcpboard.simulator.phone.drawings import sign
from mcpboard.simulator.phone.elements import Element, centered, clipped, decor, label
from mcpboard.simulator.phone.scenery import landscape
from mcpboard.simulator.phone.view import Box, View

SIDE = 24  # points beside the text
LINE = 27  # from line to line of the text
SHOWN = 200  # characters of an address that can matter
HINT = "Search or enter an address"
FAVORITES = ("example.com", "modelcontextprotocol.io", "python.org", "wikipedia.org")
TEXT = (
    "This page was drawn for the address above; nothing was fetched, since the pretend phone has no network.",
    "It is long enough to be scrolled, and its words are real text, so that they can be read and found.",
    "Three links follow. Each leads to another page of the same site, and the address bar follows along.",
)
LINKS = ("News", "Documents", "Contact")


def extent(view: View) -> float:
    """Return how far the page can be scrolled, in thousandths of the height."""
    return 420 if view.url else 0


def elements(view: View) -> Iterator[Element]:
    if view.focused:
        yield keyboard.shut(view)
    (width, height), upper = view.size, bars.status_height(view) + 12
    bar = (16, upper, width - 16, upper + 50)
    top = bar[3] + 12
    yield from clipped(
        _page(view, top) if view.url else _new_tab(view, top), top, keyboard.top(view) if view.focused else height
    )
    yield decor(lambda canvas: canvas.fill((0, 0, width, top), view.theme.paper))
    description = "Address" if view.address else HINT
    yield Element("field", bar, lambda canvas: _address(canvas, view, bar), view.address, description, "field/Browser",
                  tap=moves.focused)  # fmt: skip
    if view.focused:
        yield from keyboard.elements(view)


def _address(canvas: Canvas, view: View, box: Box) -> None:
    """Paint the bar with the address: its beginning, but its end while it is typed."""
    theme = view.theme
    canvas.shadow(box, 16, theme.shadow, blur=9, drop=3)
    canvas.outline(box, theme.accent if view.focused else theme.card, 16, 2, theme.card)
    secure = "lock" if view.url.startswith("https://") else "lens"
    canvas.stamp(sign(secure, canvas.px(18), theme.pale), box[0] + 16, box[1] + 16)
    canvas.stamp(sign("reload", canvas.px(18), theme.pale), box[2] - 34, box[1] + 16)
    left, top, right = box[0] + 44, box[1] + 13, box[2] - 48
    text = view.address[:SHOWN]
    if view.focused and not view.marked:
        while text and canvas.width(text, 18) > right - left:
            text = text[1:]
    shown = fonts.fitted(text, canvas.px(18), canvas.px(right - left))
    wide = canvas.width(shown, 18)
    if view.marked:
        canvas.fill((left - 2, top, left + wide + 2, top + 25), theme.accent, 4, 0.28)
    if not view.address and not view.focused:
        canvas.text(left, top, HINT, 18, theme.pale)
    canvas.text(left, top, shown, 18, theme.ink)
    if view.focused and not view.marked:
        canvas.fill((left + wide + 1, top, left + wide + 3.2, top + 24), theme.accent, 1.1)


def _number(host: str) -> int:
    """Return a number that a host always has, such as no other has."""
    return zlib.crc32(host.encode("utf-8", "replace"))


def _colors(host: str) -> tuple[str, str]:
    """Return two colors that a host always has."""
    hue = _number(host) % 360
    return f"hsl({hue}, 70%, 62%)", f"hsl({(hue + 35) % 360}, 66%, 44%)"


# --- a new tab: favorites as tiles ---------------------------------------------------------------------------------


def _new_tab(view: View, top: float) -> Iterator[Element]:
    yield label((SIDE, top + 24), "Favourites", 22, view.theme.ink, bold=True, scale=view.scale, role="heading")
    pitch = (view.size[0] - 2 * SIDE) / 4
    for index, host in enumerate(FAVORITES):
        yield _favorite(view, SIDE + pitch * (index + 0.5), top + 108, host)


def _favorite(view: View, x: float, y: float, host: str) -> Element:
    name = host.partition(".")[0]
    short = fonts.fitted(name, round(13 * view.scale), 96 * view.scale)
    tag = centered((x, y + 52), short, 13, view.theme.ink, scale=view.scale)

    def paint(canvas: Canvas) -> None:
        box = (x - 36, y - 36, x + 36, y + 36)
        canvas.shadow(box, 18, 0.18, blur=8, drop=4)
        canvas.slope(box, *_colors(host), 18)
        canvas.middle(x, y, name[0].upper(), 34, "#ffffff", bold=True)
        tag.paint(canvas)

    return Element("link", (x - 48, y - 36, x + 48, y + 62), paint, short, host, f"favourite/{name}",
                   tap=lambda view: moves.browsed(view, f"https://{host}"))  # fmt: skip


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
    (width, height), theme, room = view.size, view.theme, (view.size[0] - 2 * SIDE) * view.scale
    top = body - view.scroll * height / 1000

    def paint_hero(canvas: Canvas) -> None:
        canvas.fill((0, body, *view.size), theme.card)
        canvas.slope((0, top, width, top + 190), *_colors(host))
        canvas.disc(width - 60, top + 40, 90, "#ffffff", 0.10)
        canvas.disc(width - 130, top + 150, 60, "#ffffff", 0.08)

    yield decor(paint_hero)
    headline = fonts.fitted(title, round(36 * view.scale), room, True)
    yield label((SIDE, top + 84), headline, 36, "#ffffff", bold=True, scale=view.scale, role="heading")
    yield label((SIDE, top + 136), fonts.fitted(host, round(16 * view.scale), room), 16, "#f2f4ff", scale=view.scale)
    y = top + 214
    for text in TEXT:
        for line in fonts.wrapped(text, round(18 * view.scale), room):
            yield label((SIDE, y), line, 18, theme.ink, scale=view.scale)
            y += LINE
        y += 14
    for name in LINKS:
        yield _link(view, y, name, host)
        y += 74

    def paint_photo(canvas: Canvas) -> None:
        if y + 10 < height:
            image = landscape(_number(host), canvas.px(width - 2 * SIDE), canvas.px(320))
            canvas.stamp_round(image, SIDE, y + 10, 20)

    yield decor(paint_photo)


def _link(view: View, y: float, name: str, host: str) -> Element:
    box, theme = (SIDE, y, view.size[0] - SIDE, y + 62), view.theme

    def paint(canvas: Canvas) -> None:
        canvas.fill(box, theme.paper, 16)
        canvas.text(SIDE + 20, y + 18, name, 19, theme.accent, bold=True)
        canvas.stamp(sign("forward", canvas.px(15), theme.pale), box[2] - 34, y + 23)

    url = f"https://{host}/{name.lower()}"
    return Element("link", box, paint, name, url, f"link/{name}", tap=lambda view: moves.browsed(view, url))
