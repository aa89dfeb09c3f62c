"""Settings: groups of lines that scroll, some of them switches, one of them a slider; a page behind the others."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from mcpboard.simulator.phone import moves
from mcpboard.simulator.phone.apps import bars
from mcpboard.simulator.phone.canvas import Canvas
from mcpboard.simulator.phone.elements import Element, centred, clipped, decor, label
from mcpboard.simulator.phone.glyphs import sign
from mcpboard.simulator.phone.theme import theme
from mcpboard.simulator.phone.view import HUES, Box, View
from mcpboard.simulator.phone.wallpaper import wallpaper

SWITCH, SLIDER, PAGE = "switch", "slider", "page"
LINE = 58  # points of one line
GAP = 24  # between two groups
RADIUS = 16
SIDE = 16  # points left free beside the groups


@dataclass(frozen=True)
class SettingsLine:
    """One line: what it is called, how it works, its sign and the colour of that."""

    name: str
    kind: str
    sign: str
    colour: str


GROUPS = (
    (
        SettingsLine("Airplane Mode", SWITCH, "plane", "#ff9500"),
        SettingsLine("Wi-Fi", SWITCH, "wifi", "#0a84ff"),
        SettingsLine("Bluetooth", SWITCH, "bluetooth", "#0a6cff"),
        SettingsLine("Mobile Data", SWITCH, "mast", "#34c759"),
        SettingsLine("Personal Hotspot", SWITCH, "link", "#30b566"),
    ),
    (
        SettingsLine("Dark Mode", SWITCH, "moon", "#5e5ce6"),
        SettingsLine("Brightness", SLIDER, "sun", "#1f93ff"),
        SettingsLine("Landscape", SWITCH, "turn", "#00a3a3"),
        SettingsLine("Wallpaper", PAGE, "picture", "#35b6e6"),
    ),
    (
        SettingsLine("Notifications", PAGE, "bell", "#ff3b30"),
        SettingsLine("Sounds", PAGE, "speaker", "#ff2d55"),
        SettingsLine("Focus", SWITCH, "moon", "#5856d6"),
        SettingsLine("Screen Time", PAGE, "hourglass", "#7a5cf0"),
    ),
    (
        SettingsLine("General", PAGE, "gear", "#8e8e93"),
        SettingsLine("Accessibility", PAGE, "hand", "#0a84ff"),
        SettingsLine("Battery", PAGE, "battery", "#34c759"),
        SettingsLine("Privacy", PAGE, "hand", "#3478f6"),
        SettingsLine("Storage", PAGE, "disk", "#8e8e93"),
    ),
    (
        SettingsLine("Accounts", PAGE, "person", "#5b8def"),
        SettingsLine("Passwords", PAGE, "key", "#6d6d72"),
        SettingsLine("Language & Region", PAGE, "globe", "#0fa3b1"),
        SettingsLine("About", PAGE, "info", "#8e8e93"),
    ),
)
LINES = tuple(line for group in GROUPS for line in group)
ABOUT = (
    ("Name", "Pretend phone"), ("Model", "Simulated Phone"), ("Screen", "1179 x 2556"), ("Cable", "HDMI and USB"),
    ("Seen by", "any MCP client"),
)  # fmt: skip


def extent(view: View) -> float:
    """How far the page can be scrolled, in thousandths of the height."""
    if view.page:
        return 0
    long = len(LINES) * LINE + (len(GROUPS) - 1) * GAP + 2 * bars.FOOT
    return max(0, (long - (view.size[1] - bars.head_height(view))) * 1000 / view.size[1])


def elements(view: View) -> Iterator[Element]:
    top = bars.head_height(view)
    content = PAGES.get(view.page, _nothing)(view) if view.page else _list(view)
    yield from clipped(content, top, view.size[1])
    yield from bars.head(view, view.page or "Settings", large=True)


def _list(view: View) -> Iterator[Element]:
    y = bars.head_height(view) + 6 - view.scroll * view.size[1] / 1000
    for group in GROUPS:
        yield from _group(view, group, y)
        y += len(group) * LINE + GAP


def _card(view: View, top: float, lines: int) -> Element:
    """The rounded ground of a group."""
    box, colours = (SIDE, top, view.size[0] - SIDE, top + lines * LINE), theme(view)

    def paint(canvas: Canvas) -> None:
        canvas.shadow(box, RADIUS, colours.shadow * 0.35, blur=8, drop=2)
        canvas.fill(box, colours.card, RADIUS)
        for line in range(1, lines):
            canvas.fill((SIDE + 62, top + LINE * line - 0.5, box[2], top + LINE * line + 0.5), colours.line)

    return decor(paint)


def _group(view: View, group: tuple[SettingsLine, ...], top: float) -> Iterator[Element]:
    if -len(group) * LINE < top < view.size[1]:
        yield _card(view, top, len(group))
        for index, line in enumerate(group):
            yield DRAWN[line.kind](view, line, top + LINE * index)


def _badge(canvas: Canvas, line: SettingsLine, top: float) -> None:
    canvas.slope((SIDE + 14, top + 12, SIDE + 48, top + 46), line.colour, line.colour, 9)
    canvas.stamp(sign(line.sign, canvas.px(22), "#ffffff"), SIDE + 20, top + 18)


def _row(view: View, top: float) -> Box:
    return SIDE, top, view.size[0] - SIDE, top + LINE


def _name(view: View, canvas: Canvas, text: str, top: float) -> None:
    canvas.text(SIDE + 62, top + 17, text, 19, theme(view).ink)


def _switch(view: View, line: SettingsLine, top: float) -> Element:
    box, on = _row(view, top), line.name in view.on

    def paint(canvas: Canvas) -> None:
        _badge(canvas, line, top)
        _name(view, canvas, line.name, top)
        knob(canvas, view, box[2] - 70, top + 13, on=on)

    return Element("switch", box, paint, line.name, "on" if on else "off", f"settings/{line.name}",
                   tap=lambda view: moves.toggled(view, line.name))  # fmt: skip


def knob(canvas: Canvas, view: View, left: float, top: float, *, on: bool) -> None:
    """A switch from its left upper corner."""
    colours = theme(view)
    canvas.fill((left, top, left + 54, top + 32), colours.on if on else colours.off, 16)
    middle = left + (38 if on else 16)
    canvas.shadow((middle - 14, top + 2, middle + 14, top + 30), 14, 0.25, blur=3, drop=2)
    canvas.disc(middle, top + 16, 14, "#ffffff")


def _slider(view: View, line: SettingsLine, top: float) -> Element:
    box = _row(view, top)
    left, right = SIDE + 176, box[2] - 28
    said = f"{view.brightness} %"

    def paint(canvas: Canvas) -> None:
        _badge(canvas, line, top)
        _name(view, canvas, line.name, top)

    track = Element("slider", (left, top + 6, right, top + LINE - 6),
                    lambda canvas: slider(canvas, view, (left, top + 26, right, top + 32), "#ffffff"),
                    desc=said, id="slider/Brightness", slide=moves.brightened)  # fmt: skip
    return Element("row", box, paint, line.name, said, f"settings/{line.name}", children=(track,))


def slider(canvas: Canvas, view: View, box: Box, knob_colour: str) -> None:
    """The track of the brightness, filled up to its knob."""
    left, top, right, bottom = box
    at, middle = left + (right - left) * view.brightness / 100, (top + bottom) / 2
    canvas.fill(box, theme(view).off, 3)
    canvas.fill((left, top, at, bottom), theme(view).accent, 3)
    canvas.shadow((at - 13, middle - 13, at + 13, middle + 13), 13, 0.28, blur=4, drop=2)
    canvas.disc(at, middle, 13, knob_colour)


def _link(view: View, line: SettingsLine, top: float) -> Element:
    box = _row(view, top)

    def paint(canvas: Canvas) -> None:
        _badge(canvas, line, top)
        _name(view, canvas, line.name, top)
        canvas.stamp(sign("forward", canvas.px(15), theme(view).pale), box[2] - 32, top + 21)

    return Element("row", box, paint, line.name, id=f"settings/{line.name}",
                   tap=lambda view: moves.entered(view, line.name))  # fmt: skip


DRAWN = {SWITCH: _switch, SLIDER: _slider, PAGE: _link}


# --- the pages behind the lines --------------------------------------------------------------------------------


def _nothing(view: View) -> Iterator[Element]:
    """What most lines lead to: their sign and a word."""
    line = next(line for line in LINES if line.name == view.page)
    middle, top = view.size[0] / 2, bars.head_height(view) + 40

    def paint(canvas: Canvas) -> None:
        box = (middle - 44, top, middle + 44, top + 88)
        canvas.shadow(box, 22, 0.2, blur=10, drop=5)
        canvas.fill(box, line.colour, 22)
        canvas.stamp(sign(line.sign, canvas.px(58), "#ffffff"), middle - 29, top + 15)

    yield decor(paint)
    colours = theme(view)
    yield centred((middle, top + 122), line.name, 24, colours.ink, bold=True, scale=view.scale)
    yield centred((middle, top + 154), "All is set, nothing to choose here.", 16, colours.pale, scale=view.scale)


def _about(view: View) -> Iterator[Element]:
    top, colours = bars.head_height(view) + 10, theme(view)
    yield _card(view, top, len(ABOUT))
    for index, (name, value) in enumerate(ABOUT):
        y = top + LINE * index + 17
        yield label((SIDE + 22, y), name, 18, colours.ink, scale=view.scale)
        wide = label((0, y), value, 18, colours.pale, scale=view.scale).box[2]
        yield label((view.size[0] - SIDE - 22 - wide, y), value, 18, colours.pale, scale=view.scale)


def _wallpapers(view: View) -> Iterator[Element]:
    """Four small screens to choose from."""
    wide, tall = (160, 346) if not view.landscape else (200, 92)
    for index, hue in enumerate(HUES):
        column, row = index % 2, index // 2
        x = view.size[0] / 2 + (column - 1) * (wide + 28) + 14
        yield _thumbnail(view, (x, bars.head_height(view) + 20 + row * (tall + 28)), (wide, tall), hue)


def _thumbnail(view: View, corner: tuple[float, float], size: tuple[int, int], hue: int) -> Element:
    box, colours = (*corner, corner[0] + size[0], corner[1] + size[1]), theme(view)

    def paint(canvas: Canvas) -> None:
        canvas.shadow(box, 22, 0.2, blur=10, drop=5)
        if hue == view.hue:
            canvas.fill((box[0] - 4, box[1] - 4, box[2] + 4, box[3] + 4), colours.accent, 25)
        small = wallpaper(*view.pixels, hue, view.dark).resize((canvas.px(size[0]), canvas.px(size[1])))
        canvas.stamp_round(small, *corner, 22)

    return Element("choice", box, paint, desc=f"Wallpaper {HUES.index(hue) + 1}", id=f"wallpaper/{hue}",
                   tap=lambda view: moves.papered(view, hue))  # fmt: skip


PAGES = {"About": _about, "Wallpaper": _wallpapers}
