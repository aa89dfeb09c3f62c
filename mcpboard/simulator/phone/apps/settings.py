"""Settings: groups of lines that scroll, some of them switches, one of them a slider; a page behind the others."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from mcpboard.simulator.phone import moves
from mcpboard.simulator.phone.apps import bars
from mcpboard.simulator.phone.canvas import Canvas
from mcpboard.simulator.phone.elements import Element, Shape, centered, clipped, decor, label
from mcpboard.simulator.phone.sprites import wallpaper
from mcpboard.simulator.phone.view import CONTENT, HUES, Box, View

Line = tuple[str, str, str, str]  # what it is called, its kind, its sign and the color of that

SWITCH, PAGE = "switch", "page"  # kinds of lines; the one other is a slider
LINE = 58  # points of one line
GAP = 24  # between two groups
RADIUS = 16
SIDE = 16  # points left free beside the groups


GROUPS: tuple[tuple[Line, ...], ...] = tuple(tuple(map(tuple, group)) for group in CONTENT["settings"])
LINES = tuple(line for group in GROUPS for line in group)


def extent(view: View) -> float:
    """Return how far the page can be scrolled, in thousandths of the height."""
    if view.page:
        return 0
    long = len(LINES) * LINE + (len(GROUPS) - 1) * GAP + 2 * bars.FOOT
    return max(0, (long - (view.size[1] - bars.head_height(view))) * 1000 / view.size[1])


def elements(view: View) -> Iterator[Element]:
    content = PAGES.get(view.page, _nothing)(view) if view.page else _list(view)
    yield from clipped(content, bars.head_height(view), view.size[1])
    yield from bars.head(view)


def _list(view: View) -> Iterator[Element]:
    y = bars.head_height(view) + 6 - view.scroll * view.size[1] / 1000
    for group in GROUPS:
        if -len(group) * LINE < y < view.size[1]:
            yield _card(view, y, len(group))
            for index, line in enumerate(group):
                yield _line(view, line, y + LINE * index)
        y += len(group) * LINE + GAP


def _card(view: View, top: float, lines: int) -> Element:
    """Return the rounded ground of a group."""
    box, theme = (SIDE, top, view.size[0] - SIDE, top + lines * LINE), view.theme

    tops = [top + LINE * line for line in range(1, lines)]
    return decor(
        (Canvas.shadow, box, RADIUS, theme.shadow * 0.35, 8, 2),
        (Canvas.fill, box, theme.card, RADIUS),
        *((Canvas.fill, (SIDE + 62, each - 0.5, box[2], each + 0.5), theme.line) for each in tops),
    )


def _line(view: View, line: Line, top: float) -> Element:
    """Return one line: its sign in a square, its name, and at the right a switch, a slider or an arrow."""
    box: Box = (SIDE, top, view.size[0] - SIDE, top + LINE)
    (name, kind, sign, color), theme = line, view.theme
    shapes: tuple[Shape, ...] = (
        (Canvas.slope, (SIDE + 14, top + 12, SIDE + 48, top + 46), color, color, 9),
        (Canvas.sign, sign, SIDE + 20, top + 18, 22, "#ffffff"),
        (Canvas.text, SIDE + 62, top + 17, name, 19, theme.ink),
    )
    if kind == PAGE:
        shapes += ((Canvas.sign, "forward", box[2] - 32, top + 21, 15, theme.pale),)
        return Element("row", box, shapes, name, id=f"settings/{name}", tap=partial(moves.entered, page=name))
    if kind == SWITCH:
        on = name in view.on
        left, upper = box[2] - 70, top + 13
        middle, state = left + (38 if on else 16), "on" if on else "off"
        shapes += (
            (Canvas.fill, (left, upper, left + 54, upper + 32), theme.on if on else theme.off, 16),
            (Canvas.shadow, (middle - 14, upper + 2, middle + 14, upper + 30), 14, 0.25, 3, 2),
            (Canvas.disc, middle, upper + 16, 14, "#ffffff"),
        )
        return Element("switch", box, shapes, name, state, f"settings/{name}", tap=partial(moves.toggled, switch=name))
    left, right, state = SIDE + 176, box[2] - 28, f"{view.brightness} %"
    track = Element("slider", (left, top + 6, right, top + LINE - 6),
                    slider(view, (left, top + 26, right, top + 32), "#ffffff"),
                    desc=state, id="slider/Brightness", slide=moves.brightened)  # fmt: skip
    return Element("row", box, shapes, name, state, f"settings/{name}", children=(track,))


def slider(view: View, box: Box, knob_color: str) -> tuple[Shape, ...]:
    """Return the track of the brightness, filled up to its knob."""
    left, top, right, bottom = box
    at, middle = left + (right - left) * view.brightness / 100, (top + bottom) / 2
    return (
        (Canvas.fill, box, view.theme.off, 3),
        (Canvas.fill, (left, top, at, bottom), view.theme.accent, 3),
        (Canvas.shadow, (at - 13, middle - 13, at + 13, middle + 13), 13, 0.28, 4, 2),
        (Canvas.disc, at, middle, 13, knob_color),
    )


# --- the pages behind the lines --------------------------------------------------------------------------------


def _nothing(view: View) -> Iterator[Element]:
    """Yield the page behind most lines: their sign and a word."""
    name, _, sign, color = next(line for line in LINES if line[0] == view.page)
    middle, top = view.size[0] / 2, bars.head_height(view) + 40
    box = (middle - 44, top, middle + 44, top + 88)
    yield decor(
        (Canvas.shadow, box, 22, 0.2, 10, 5),
        (Canvas.fill, box, color, 22),
        (Canvas.sign, sign, middle - 29, top + 15, 58, "#ffffff"),
    )
    theme, text = view.theme, "All is set, nothing to choose here."
    yield centered(view, (middle, top + 122), name, 24, theme.ink, bold=True)
    yield centered(view, (middle, top + 154), text, 16, theme.pale)


def _about(view: View) -> Iterator[Element]:
    top, theme = bars.head_height(view) + 10, view.theme
    yield _card(view, top, len(CONTENT["about"]))
    for index, (name, value) in enumerate(CONTENT["about"].items()):
        y = top + LINE * index + 17
        yield label(view, (SIDE + 22, y), name, 18, theme.ink)
        wide = label(view, (0, y), value, 18, theme.pale).box[2]
        yield label(view, (view.size[0] - SIDE - 22 - wide, y), value, 18, theme.pale)


def _wallpapers(view: View) -> Iterator[Element]:
    """Yield four small screens to choose from."""
    wide, tall = (160, 346) if not view.landscape else (200, 92)
    size = round(wide * view.scale), round(tall * view.scale)
    for index, hue in enumerate(HUES):
        column, row = index % 2, index // 2
        x, y = view.size[0] / 2 + (column - 1) * (wide + 28) + 14, bars.head_height(view) + 20 + row * (tall + 28)
        box = (x, y, x + wide, y + tall)
        around = (x - 4, y - 4, x + wide + 4, y + tall + 4)
        yield Element("choice", box, (
            (Canvas.shadow, box, 22, 0.2, 10, 5),
            *(((Canvas.fill, around, view.theme.accent, 25),) if hue == view.hue else ()),
            (Canvas.stamp, wallpaper(*view.pixels, hue, view.dark).resize(size), x, y, 22),
        ), desc=f"Wallpaper {index + 1}", id=f"wallpaper/{hue}",
            tap=partial(moves.moving, motion="fade", hue=hue))  # fmt: skip


PAGES = {"About": _about, "Wallpaper": _wallpapers}
