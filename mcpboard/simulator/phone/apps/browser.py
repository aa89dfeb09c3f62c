"""The browser: an address bar and a page that is made up from the address."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from urllib.parse import unquote, urlsplit

from mcpboard.simulator.phone import fonts, moves
from mcpboard.simulator.phone.apps import bars, keyboard
from mcpboard.simulator.phone.apps.photos import landscape
from mcpboard.simulator.phone.canvas import Canvas
from mcpboard.simulator.phone.elements import Element, centred, clipped, decor, label
from mcpboard.simulator.phone.glyphs import sign
from mcpboard.simulator.phone.theme import theme
from mcpboard.simulator.phone.view import Box, View

SIDE = 24  # points beside the text
LINE = 27  # from line to line of the text
SHOWN = 200  # characters of an address that can matter
FAVOURITES = ("example.com", "modelcontextprotocol.io", "python.org", "wikipedia.org")
TEXT = (
    "This page was drawn for the address above; nothing was fetched, since the pretend phone has no network.",
    "It is long enough to be scrolled, and its words are real text, so that they can be read and found.",
    "Three links follow. Each leads to another page of the same site, and the address bar follows along.",
)
LINKS = ("News", "Documents", "Contact")


def bar(view: View) -> Box:
    """Where the address stands."""
    top = bars.status_height(view) + 12
    return 16, top, view.size[0] - 16, top + 50


def body_top(view: View) -> float:
    """Where a page begins below the address."""
    return bar(view)[3] + 12


def extent(view: View) -> float:
    """How far the page can be scrolled, in thousandths of the height."""
    return 420 if view.url else 0


def elements(view: View) -> Iterator[Element]:
    if view.focused:
        yield keyboard.shut(view)
    top, foot = body_top(view), keyboard.top(view) if view.focused else view.size[1]
    yield from clipped(_page(view) if view.url else _start(view), top, foot)
    width, colour = view.size[0], theme(view).paper
    yield decor(lambda canvas: canvas.fill((0, 0, width, top), colour))
    yield _address(view)
    if view.focused:
        yield from keyboard.elements(view)


def _address(view: View) -> Element:
    box, colours = bar(view), theme(view)
    left, top, right, bottom = box

    def paint(canvas: Canvas) -> None:
        canvas.shadow(box, 16, colours.shadow, blur=9, drop=3)
        edge = colours.accent if view.focused else colours.card
        canvas.outline(box, edge, 16, 2, colours.card)
        secure = "lock" if view.url.startswith("https://") else "lens"
        canvas.stamp(sign(secure, canvas.px(18), colours.pale), left + 16, top + 16)
        canvas.stamp(sign("reload", canvas.px(18), colours.pale), right - 34, top + 16)
        _line(canvas, view, (left + 44, top + 13, right - 48, bottom))

    hint = "" if view.address else "Search or enter an address"
    return Element("field", box, paint, view.address, hint or "Address", "field/Browser", tap=moves.focused)


def _line(canvas: Canvas, view: View, box: Box) -> None:
    """The address in its bar: its beginning, but its end while it is typed."""
    left, top, right, _ = box
    colours, room = theme(view), canvas.px(right - left)
    text = view.address[:SHOWN]
    if view.focused and not view.marked:
        while text and canvas.width(text, 18) > right - left:
            text = text[1:]
    shown = fonts.fitted(text, canvas.px(18), room)
    wide = canvas.width(shown, 18)
    if view.marked:
        canvas.fill((left - 2, top, left + wide + 2, top + 25), colours.accent, 4, 0.28)
    if not view.address and not view.focused:
        canvas.text(left, top, "Search or enter an address", 18, colours.pale)
    canvas.text(left, top, shown, 18, colours.ink)
    if view.focused and not view.marked:
        canvas.fill((left + wide + 1, top, left + wide + 3.2, top + 24), colours.accent, 1.1)


def _start(view: View) -> Iterator[Element]:
    """A new tab: favourites as tiles."""
    colours, top = theme(view), body_top(view) + 24
    yield label((SIDE, top), "Favourites", 22, colours.ink, bold=True, scale=view.scale, role="heading")
    pitch = (view.size[0] - 2 * SIDE) / 4
    for index, host in enumerate(FAVOURITES):
        yield _favourite(view, SIDE + pitch * (index + 0.5), top + 84, host)


def _favourite(view: View, x: float, y: float, host: str) -> Element:
    name = host.partition(".")[0]
    short = fonts.fitted(name, round(13 * view.scale), 96 * view.scale)
    tag = centred((x, y + 52), short, 13, theme(view).ink, scale=view.scale)

    def paint(canvas: Canvas) -> None:
        box = (x - 36, y - 36, x + 36, y + 36)
        canvas.shadow(box, 18, 0.18, blur=8, drop=4)
        canvas.slope(box, *_colours(host), 18)
        canvas.middle(x, y, name[0].upper(), 34, "#ffffff", bold=True)
        tag.paint(canvas)

    return Element("link", (x - 48, y - 36, x + 48, y + 62), paint, short, host, f"favourite/{name}",
                   tap=lambda view: moves.browsed(view, f"https://{host}"))  # fmt: skip


def _colours(host: str) -> tuple[str, str]:
    """Two colours that a host always has."""
    hue = _number(host) % 360
    return f"hsl({hue}, 70%, 62%)", f"hsl({(hue + 35) % 360}, 66%, 44%)"


def _number(host: str) -> int:
    """A number that a host always has, such as no other has."""
    return zlib.crc32(host.encode("utf-8", "replace"))


def title_of(url: str) -> tuple[str, str]:
    """What a page is called, and the host that it is of."""
    try:
        parts = urlsplit(url[:SHOWN])
    except ValueError:  # such as half an IPv6 address
        return url[:SHOWN], "nowhere"
    if parts.scheme == "search":
        return unquote(url[:SHOWN].removeprefix("search://")), "search"
    last = unquote(parts.path.rstrip("/").rpartition("/")[2])
    name = parts.netloc.removeprefix("www.").partition(".")[0]
    return (last or name).replace("-", " ").replace("_", " ").capitalize() or "Untitled", parts.netloc or "nowhere"


def _page(view: View) -> Iterator[Element]:
    title, host = title_of(view.url)
    width, colours = view.size[0], theme(view)
    y = body_top(view) - view.scroll * view.size[1] / 1000
    top, bottom = _colours(host)
    yield decor(lambda canvas: canvas.fill((0, body_top(view), *view.size), colours.card))
    yield decor(lambda canvas: _hero(canvas, (0, y, width, y + 190), top, bottom))
    said = fonts.fitted(title, round(36 * view.scale), (width - 2 * SIDE) * view.scale, True)
    yield label((SIDE, y + 84), said, 36, "#ffffff", bold=True, scale=view.scale, role="heading")
    where = fonts.fitted(host, round(16 * view.scale), (width - 2 * SIDE) * view.scale)
    yield label((SIDE, y + 136), where, 16, "#f2f4ff", scale=view.scale)
    yield from _article(view, y + 214, host)


def _hero(canvas: Canvas, box: Box, top: str, bottom: str) -> None:
    canvas.slope(box, top, bottom)
    right, upper = box[2], box[1]
    canvas.disc(right - 60, upper + 40, 90, "#ffffff", 0.10)
    canvas.disc(right - 130, upper + 150, 60, "#ffffff", 0.08)


def _article(view: View, y: float, host: str) -> Iterator[Element]:
    """The paragraphs, the links between them, and a picture at the end."""
    colours, room = theme(view), (view.size[0] - 2 * SIDE) * view.scale
    for text in TEXT:
        for line in fonts.wrapped(text, round(18 * view.scale), room):
            yield label((SIDE, y), line, 18, colours.ink, scale=view.scale)
            y += LINE
        y += 14
    for name in LINKS:
        yield _link(view, y, name, host)
        y += 74
    yield decor(lambda canvas: _picture(canvas, view, y + 10, host))


def _picture(canvas: Canvas, view: View, top: float, host: str) -> None:
    """A photograph that a host always has."""
    if top < view.size[1]:
        image = landscape(_number(host), canvas.px(view.size[0] - 2 * SIDE), canvas.px(320))
        canvas.stamp_round(image, SIDE, top, 20)


def _link(view: View, y: float, name: str, host: str) -> Element:
    box, colours = (SIDE, y, view.size[0] - SIDE, y + 62), theme(view)

    def paint(canvas: Canvas) -> None:
        canvas.fill(box, colours.paper, 16)
        canvas.text(SIDE + 20, y + 18, name, 19, colours.accent, bold=True)
        canvas.stamp(sign("forward", canvas.px(15), colours.pale), box[2] - 34, y + 23)

    url = f"https://{host}/{name.lower()}"
    return Element("link", box, paint, name, url, f"link/{name}", tap=lambda view: moves.browsed(view, url))
