"""What is on the pretend phone's screen now: the picture, the tree, and what a finger meets there."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace

from PIL import Image

from mcpboard.simulator.phone import masks
from mcpboard.simulator.phone.app_icons import icon
from mcpboard.simulator.phone.apps import bars, cards, home_screen, keyboard, page, shade
from mcpboard.simulator.phone.canvas import Canvas
from mcpboard.simulator.phone.elements import Element, Node, decor, node
from mcpboard.simulator.phone.elements import at as _at
from mcpboard.simulator.phone.frames import Picture
from mcpboard.simulator.phone.theme import theme
from mcpboard.simulator.phone.view import FRAMES, HOME, Place, View

FINGER = 23  # points of the radius of a finger that lies on the screen


@functools.lru_cache(maxsize=8)
def elements(view: View) -> tuple[Element, ...]:
    """What is on the screen once it stands still, in the order it is painted."""
    return tuple(_elements(view))


def _elements(view: View) -> Iterator[Element]:
    if view.layer == "shade":
        yield from shade.elements(view)
    elif view.layer == "cards":
        yield from cards.elements(view, still)
    else:
        yield from page(view).elements(view)
    yield from bars.frame(view)
    if view.toast:
        yield bars.toast(view)
    if view.pressed and not view.lifted:
        yield decor(lambda canvas: _finger(canvas, view))


def _finger(canvas: Canvas, view: View) -> None:
    if view.pressed:
        x, y = view.point(view.pressed)
        canvas.disc(x, y, FINGER, "#ffffff", 0.75)
        canvas.disc(x, y, FINGER - 2, "#8fa6cc", 0.8)


def element_at(view: View, place: Place) -> Element | None:
    """The uppermost element that a touch at this place (0 to 1000) meets."""
    return _at(elements(view.still()), view.point(place))


def tree(view: View) -> Node:
    """What is on the screen as a tree under one node `screen`, boxes in pixels of `picture(view)`."""
    width, height = view.pixels
    children = tuple(node(each, view.scale, view.pixels) for each in elements(view.still()) if each.role)
    return Node("screen", "", "", f"screen/{view.app}", (0, 0, width, height), False, children)


# --- pictures --------------------------------------------------------------------------------------------------


@functools.lru_cache(maxsize=6)
def picture(view: View) -> Picture:
    """The phone's screen; the same view gives the same picture. Not to be drawn upon."""
    if view.before is None or view.frame >= FRAMES:
        return still(view.still())
    before, after, share = view.before, view.still(), 1 - (1 - view.frame / FRAMES) ** 3
    if before.pixels != after.pixels:
        return _fade(view, Image.new("RGB", after.pixels, "black"), still(after), share)
    if view.motion == "scroll":
        return still(replace(after, scroll=round(before.scroll + (after.scroll - before.scroll) * share)))
    return MOTIONS.get(view.motion, _fade)(view, still(before), still(after), share)


@functools.lru_cache(maxsize=8)
def still(view: View) -> Picture:
    """The screen of a view that does not move. Not to be drawn upon."""
    image = (
        Image.new("RGB", view.pixels, theme(view).paper) if view.app != HOME else home_screen.background(view).copy()
    )
    canvas = Canvas(image, view.scale)
    _paint(canvas, elements(view))
    return image


def _paint(canvas: Canvas, all_of_them: tuple[Element, ...]) -> None:
    for element in all_of_them:
        element.paint(canvas)
        _paint(canvas, element.children)


Motion = Callable[[View, Picture, Picture, float], Picture]  # the view, its two ends, the share of the way


def _fade(view: View, before: Picture, after: Picture, share: float) -> Picture:
    return Image.blend(before, after, share)


def _close(view: View, before: Picture, after: Picture, share: float) -> Picture:
    """The old screen shrinks into its icon."""
    return _open(view, after, before, 1 - share)


def _open(view: View, ground: Picture, screen: Picture, share: float) -> Picture:
    """A screen grows out of its icon, or out of the middle where it has none."""
    name = view.app if view.app != HOME else (view.before.app if view.before else HOME)
    place = home_screen.slot(view, view.order.index(name)) if name in view.order else (500.0, 500.0)
    x, y = (part * view.scale for part in view.point(place))
    wide, tall = (round(home_screen.ICON * view.scale * (1 - share) + full * share) for full in ground.size)
    middle = x + (ground.width / 2 - x) * share, y + (ground.height / 2 - y) * share
    corner = round(middle[0] - wide / 2), round(middle[1] - tall / 2)
    image = masks.veiled(ground, "black", 0.3 * share)
    small = screen.resize((wide, tall), Image.Resampling.BILINEAR, reducing_gap=1.5)
    image.paste(small, corner, masks.rounded(wide, tall, round(38 * view.scale * (1 - share * share))))
    return image


def _fall(view: View, before: Picture, after: Picture, share: float) -> Picture:
    """The new screen comes down over the old one."""
    return _shifted(before, after, (0, round(-after.height * (1 - share))))


def _rise(view: View, before: Picture, after: Picture, share: float) -> Picture:
    """The old screen goes up and uncovers the new one."""
    return _shifted(after, before, (0, round(-before.height * share)))


def _forth(view: View, before: Picture, after: Picture, share: float) -> Picture:
    """The new page comes in from the right, the old one leaves more slowly."""
    ground = _shifted(before, before, (round(-before.width * 0.3 * share), 0))
    return _shifted(masks.veiled(ground, "black", 0.15 * share), after, (round(after.width * (1 - share)), 0))


def _back(view: View, before: Picture, after: Picture, share: float) -> Picture:
    return _forth(view, after, before, 1 - share)


def _drop(view: View, before: Picture, after: Picture, share: float) -> Picture:
    return _lift(view, after, before, 1 - share)


def _lift(view: View, ground: Picture, screen: Picture, share: float) -> Picture:
    """The keyboard comes up from below."""
    top = round(keyboard.top(view) * view.scale)
    piece = screen.crop((0, top, screen.width, screen.height))
    image = Image.blend(ground, screen, share)
    lower = ground.crop((0, top, ground.width, ground.height))
    image.paste(lower, (0, top))
    image.paste(piece, (0, round(top + piece.height * (1 - share))))
    return image


def _shifted(ground: Picture, screen: Picture, corner: tuple[int, int]) -> Picture:
    image = ground.copy()
    image.paste(screen, corner)
    return image


MOTIONS: Mapping[str, Motion] = {
    "open": _open, "close": _close, "fall": _fall, "rise": _rise, "forth": _forth, "back": _back, "lift": _lift,
    "drop": _drop,
}  # fmt: skip


def forget() -> None:
    """Draw everything afresh."""
    for cached in (elements, picture, still, icon):
        cached.cache_clear()
