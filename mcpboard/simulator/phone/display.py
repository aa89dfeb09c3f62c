"""The screen of the simulated phone now: the picture, the tree, and the element that a finger meets."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace

from PIL import Image

from mcpboard.simulator.phone import masks
from mcpboard.simulator.phone.apps import bars, home_screen, keyboard, layers, page
from mcpboard.simulator.phone.canvas import Canvas
from mcpboard.simulator.phone.elements import Element, Node, decor, flat, node
from mcpboard.simulator.phone.frames import Picture
from mcpboard.simulator.phone.sprites import wallpaper
from mcpboard.simulator.phone.view import FRAMES, HOME, Place, View

FINGER = 23  # points of the radius of a finger that lies on the screen


@functools.lru_cache(maxsize=8)
def elements(view: View) -> tuple[Element, ...]:
    """Return what is on the screen once it stands still, in the order it is painted."""
    shown: Iterable[Element]
    if view.layer == "shade":
        shown = layers.shade(view)
    elif view.layer == "cards":
        shown = layers.cards(view, still)
    else:
        shown = page(view)
        if view.focused:
            shown = keyboard.shut(view), *shown, *keyboard.elements(view)
    over = [bars.toast(view)] if view.toast else []
    if view.pressed and not view.lifted:
        x, y = view.point(view.pressed)
        outer, inner = (Canvas.disc, x, y, FINGER, "#ffffff", 0.75), (Canvas.disc, x, y, FINGER - 2, "#8fa6cc", 0.8)
        over.append(decor(outer, inner))
    return (*shown, *bars.frame(view), *over)


def element_at(view: View, place: Place) -> Element | None:
    """Return the uppermost element that a touch at this place (0 to 1000) meets."""
    x, y = view.point(place)
    under = [each for each in flat(elements(view.still())) if each.clickable and each.covers(x, y)]
    return under[-1] if under else None


def tree(view: View) -> Node:
    """Return the screen as a tree under one node `screen`, boxes in pixels of `picture(view)`."""
    width, height = view.pixels
    children = tuple(node(each, view.scale, view.pixels) for each in elements(view.still()) if each.role)
    return Node("screen", "", "", f"screen/{view.app}", (0, 0, width, height), False, children)


# --- pictures --------------------------------------------------------------------------------------------------


@functools.lru_cache(maxsize=6)
def picture(view: View) -> Picture:
    """Draw the phone's screen; the same view gives the same picture. Not to be drawn upon."""
    if view.before is None or view.frame >= FRAMES:
        return still(view.still())
    before, after, share = view.before, view.still(), 1 - (1 - view.frame / FRAMES) ** 3
    if before.pixels != after.pixels:
        return Image.blend(Image.new("RGB", after.pixels, "black"), still(after), share)
    if view.motion == "scroll":
        return still(replace(after, scroll=round(before.scroll + (after.scroll - before.scroll) * share)))
    if view.motion not in MOTIONS:
        return Image.blend(still(before), still(after), share)
    draw, forward = MOTIONS[view.motion]
    ends = (still(before), still(after), share) if forward else (still(after), still(before), 1 - share)
    return draw(view, *ends)


@functools.lru_cache(maxsize=8)
def still(view: View) -> Picture:
    """Draw the screen of a view that does not move. Not to be drawn upon."""
    home = view.app == HOME
    image = wallpaper(*view.wall).copy() if home else Image.new("RGB", view.pixels, view.theme.paper)
    canvas = Canvas(image, view.scale)
    for element in flat(elements(view)):
        element.paint(canvas)
    return image


def _open(view: View, ground: Picture, screen: Picture, share: float) -> Picture:
    """Let a screen grow out of its icon, or out of the middle where it has none."""
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


def _fall(view: View, ground: Picture, screen: Picture, share: float) -> Picture:
    """Let a screen come down over another one."""
    image = ground.copy()
    image.paste(screen, (0, round(-screen.height * (1 - share))))
    return image


def _forth(view: View, before: Picture, after: Picture, share: float) -> Picture:
    """Let a page come in from the right while the old one leaves more slowly."""
    ground = before.copy()
    ground.paste(before, (round(-before.width * 0.3 * share), 0))
    image = masks.veiled(ground, "black", 0.15 * share)
    image.paste(after, (round(after.width * (1 - share)), 0))
    return image


def _lift(view: View, ground: Picture, screen: Picture, share: float) -> Picture:
    """Let the keyboard come up from below."""
    top = round(keyboard.top(view) * view.scale)
    piece = screen.crop((0, top, screen.width, screen.height))
    image = Image.blend(ground, screen, share)
    image.paste(ground.crop((0, top, ground.width, ground.height)), (0, top))
    image.paste(piece, (0, round(top + piece.height * (1 - share))))
    return image


Motion = Callable[[View, Picture, Picture, float], Picture]  # the view, the two screens, the share of the way

# Name -> how it is drawn, and False where it runs backwards: from the new screen to the old one.
MOTIONS: Mapping[str, tuple[Motion, bool]] = {
    "open": (_open, True), "close": (_open, False), "fall": (_fall, True), "rise": (_fall, False),
    "forth": (_forth, True), "back": (_forth, False), "lift": (_lift, True), "drop": (_lift, False),
}  # fmt: skip
