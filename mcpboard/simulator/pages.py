"""What is on the pretend phone's screen: the home grid, the pages of the apps, the bar, the shade."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from dataclasses import replace

from . import screen
from .phone import APPS, DOCK, FIELDS, FRAMES, HOME, LIST_TOP, ROW_HEIGHT, SETTINGS, App, View, icon_place
from .screen import HEIGHT, WIDTH, Pen, Picture, around, px, write, write_middle

INK, PALE, PAPER, LINE, ACCENT = "#1c1c1e", "#8a8a8e", "#f2f2f7", "#d8d8dc", "#2f7df6"
ICON = 39  # pixels from the centre of an icon to its edge
KEYBOARD_TOP = 690  # normalised
VISIBLE = 1200  # characters that a field can show at most; the rest need not be measured
KEY_ROWS = ("qwertyuiop", "asdfghjkl", "zxcvbnm")


@functools.lru_cache(maxsize=6)
def picture(view: View) -> Picture:
    """The phone's screen; the same view gives the same picture. Not to be drawn upon."""
    if view.frame >= FRAMES or view.app == view.previous:
        return _still(view)
    return _opening(view)


def _opening(view: View) -> Picture:
    """The new screen growing over the old one."""
    below, above = (_still(replace(view, app=app, focused=False)) for app in (view.previous, view.app))
    grown = 0.3 + 0.7 * view.frame / FRAMES
    size = int(WIDTH * grown), int(HEIGHT * grown)
    below.paste(above.resize(size), ((WIDTH - size[0]) // 2, (HEIGHT - size[1]) // 2))
    return below


def _still(view: View) -> Picture:
    image = screen.wallpaper(view.hue).copy() if view.app == HOME else screen.blank(PAPER)[0]
    pen = screen.pen_on(image)
    PAGES.get(view.app, _plain)(pen, view)
    _status_bar(pen, view)
    if view.shade:
        _shade(pen, view)
    if view.pressed:
        pen.ellipse(around(px(*view.pressed), 22), fill="#c9d6ea", outline="white", width=2)
    pen.rounded_rectangle((WIDTH / 2 - 68, HEIGHT - 13, WIDTH / 2 + 68, HEIGHT - 8), 3, fill=_bar_ink(view))
    return image


def _bar_ink(view: View) -> str:
    return "white" if view.app == HOME or view.shade else INK


def _clock(view: View) -> str:
    return f"{view.minute // 60:02d}:{view.minute % 60:02d}"


def _status_bar(pen: Pen, view: View) -> None:
    ink = _bar_ink(view)
    write(pen, (44, 20), _clock(view), 19, ink, bold=True)
    for step in range(4):
        pen.rectangle((372 + 7 * step, 36 - 4 * step, 376 + 7 * step, 40), fill=ink)
    pen.rounded_rectangle((412, 23, 448, 41), 5, outline=ink, width=2)
    pen.rounded_rectangle((415, 26, 415 + 30 * view.battery / 100, 38), 3, fill=ink)
    pen.rectangle((450, 29, 452, 35), fill=ink)


def _home(pen: Pen, view: View) -> None:
    write_middle(pen, (WIDTH / 2, 168), _clock(view), 84, "white")
    write_middle(pen, (WIDTH / 2, 238), "Pretend phone", 20, "white")
    left, top = px(30, 868)
    right, bottom = px(970, 975)
    pen.rounded_rectangle((left, top, right, bottom), 34, fill=_tint(view.hue))
    for index, app in enumerate(APPS):
        _icon(pen, px(*icon_place(index)), app)
        if index < len(APPS) - DOCK:
            x, y = px(*icon_place(index))
            write_middle(pen, (x, y + ICON + 16), app.name, 14, "white")


def _tint(hue: int) -> str:
    return f"hsl({hue}, 38%, 72%)"


def _icon(pen: Pen, centre: tuple[float, float], app: App) -> None:
    pen.rounded_rectangle(around(centre, ICON), 18, fill=app.colour)
    GLYPHS[app.glyph](pen, *centre)


def _gear(pen: Pen, x: float, y: float) -> None:
    for tooth in range(8):
        angle = math.pi * tooth / 4
        pen.ellipse(around((x + 19 * math.cos(angle), y + 19 * math.sin(angle)), 5), fill="white")
    pen.ellipse(around((x, y), 18), fill="white")
    pen.ellipse(around((x, y), 8), fill="#8e9196")


def _lines(pen: Pen, x: float, y: float) -> None:
    pen.rounded_rectangle(around((x, y), 23), 5, fill="white")
    for row in (-10, 0, 10):
        pen.line((x - 15, y + row, x + (15 if row < 10 else 4), y + row), fill="#b9b9be", width=3)


def _globe(pen: Pen, x: float, y: float) -> None:
    pen.ellipse(around((x, y), 23), outline="white", width=3)
    pen.ellipse((x - 10, y - 23, x + 10, y + 23), outline="white", width=3)
    pen.line((x - 22, y, x + 22, y), fill="white", width=3)


def _bubble(pen: Pen, x: float, y: float) -> None:
    pen.polygon(((x - 14, y + 10), (x - 17, y + 25), (x, y + 14)), fill="white")
    pen.ellipse((x - 24, y - 20, x + 24, y + 17), fill="white")


def _flower(pen: Pen, x: float, y: float) -> None:
    for petal, colour in enumerate(("#ffd166", "#ffe9f0", "#9be7c4", "#8ecbff", "#cdb4ff", "#ffffff")):
        angle = math.pi * petal / 3
        pen.ellipse(around((x + 13 * math.cos(angle), y + 13 * math.sin(angle)), 10), fill=colour)


def _pin(pen: Pen, x: float, y: float) -> None:
    pen.polygon(((x - 15, y - 2), (x + 15, y - 2), (x, y + 25)), fill="white")
    pen.ellipse(around((x, y - 7), 17), fill="white")
    pen.ellipse(around((x, y - 7), 7), fill="#e5534b")


def _sun(pen: Pen, x: float, y: float) -> None:
    pen.ellipse(around((x + 6, y - 8), 14), fill="#ffd166")
    pen.ellipse((x - 24, y - 2, x + 2, y + 18), fill="white")
    pen.ellipse((x - 8, y - 8, x + 22, y + 18), fill="white")


def _dial(pen: Pen, x: float, y: float) -> None:
    pen.ellipse(around((x, y), 25), fill="white")
    pen.line((x, y, x, y - 17), fill=INK, width=3)
    pen.line((x, y, x + 12, y + 6), fill="#ff9500", width=3)


def _calendar(pen: Pen, x: float, y: float) -> None:
    pen.rounded_rectangle(around((x, y), 24), 6, fill="white")
    pen.rectangle((x - 24, y - 16, x + 24, y - 9), fill="#e5534b")
    write_middle(pen, (x, y + 7), "18", 22, INK, bold=True)


def _note(pen: Pen, x: float, y: float) -> None:
    pen.line((x - 8, y + 14, x - 8, y - 18, x + 16, y - 23, x + 16, y + 9), fill="white", width=5)
    pen.ellipse(around((x - 14, y + 15), 8), fill="white")
    pen.ellipse(around((x + 10, y + 10), 8), fill="white")


def _lens(pen: Pen, x: float, y: float) -> None:
    pen.rounded_rectangle((x - 26, y - 16, x + 26, y + 19), 7, fill="white")
    pen.rectangle((x - 10, y - 22, x + 10, y - 14), fill="white")
    pen.ellipse(around((x, y + 2), 12), fill="#5b5f67")
    pen.ellipse(around((x, y + 2), 6), fill="#a9d3ff")


def _letter(pen: Pen, x: float, y: float) -> None:
    pen.rounded_rectangle((x - 25, y - 17, x + 25, y + 17), 5, fill="white")
    pen.line((x - 23, y - 14, x, y + 4, x + 23, y - 14), fill="#3c8df5", width=3)


GLYPHS: dict[str, Callable[[Pen, float, float], None]] = {
    "gear": _gear, "lines": _lines, "globe": _globe, "bubble": _bubble, "flower": _flower, "pin": _pin,
    "sun": _sun, "clock": _dial, "calendar": _calendar, "note": _note, "lens": _lens, "letter": _letter,
}  # fmt: skip


def _title(pen: Pen, text: str) -> None:
    write(pen, (30, 66), text, 30, INK, bold=True)


def _settings(pen: Pen, view: View) -> None:
    for line, name in enumerate(SETTINGS):
        place = LIST_TOP + line * ROW_HEIGHT - view.scroll
        if LIST_TOP - ROW_HEIGHT < place < 990:
            _setting(pen, px(0, place)[1], name, selected=line == view.selected)
    pen.rectangle((0, 0, WIDTH, px(0, LIST_TOP)[1] - 1), fill=PAPER)
    _title(pen, "Settings")


def _setting(pen: Pen, top: float, name: str, *, selected: bool) -> None:
    height = px(0, ROW_HEIGHT)[1]
    pen.rectangle((20, top, WIDTH - 20, top + height), fill="#d3e3fd" if selected else "white")
    hue = sum(map(ord, name)) * 37 % 360
    pen.rounded_rectangle((34, top + 16, 66, top + 48), 8, fill=f"hsl({hue}, 55%, 55%)")
    write_middle(pen, (50, top + 33), name[0], 17, "white", bold=True)
    write(pen, (82, top + 20), name, 19, INK)
    pen.line((WIDTH - 44, top + 24, WIDTH - 36, top + 32, WIDTH - 44, top + 40), fill=PALE, width=2)
    pen.line((82, top + height, WIDTH - 20, top + height), fill=LINE)


def _notes(pen: Pen, view: View) -> None:
    left, top, right, bottom = FIELDS["Notes"]
    corners = (*px(left, top), *px(right, bottom))
    pen.rounded_rectangle(corners, 14, fill="white", outline=ACCENT if view.focused else LINE, width=2)
    lines = screen.wrapped(view.notes[-VISIBLE:], 21, corners[2] - corners[0] - 36)[-18:]
    if not view.notes and not view.focused:
        write(pen, (corners[0] + 18, corners[1] + 18), "Tap to write", 21, PALE)
    for row, line in enumerate(lines):
        end = write(pen, (corners[0] + 18, corners[1] + 18 + 29 * row), line, 21, INK)
    if view.focused:
        x, y = corners[0] + 20 + end, corners[1] + 18 + 29 * (len(lines) - 1)
        pen.rectangle((x, y, x + 2, y + 24), fill=ACCENT)
        _keyboard(pen)


def _keyboard(pen: Pen) -> None:
    top = px(0, KEYBOARD_TOP)[1]
    pen.rectangle((0, top, WIDTH, HEIGHT), fill="#d1d4db")
    for row, letters in enumerate(KEY_ROWS):
        left = (WIDTH - 48 * len(letters)) / 2
        for column, letter in enumerate(letters):
            x, y = left + 48 * column, top + 14 + 66 * row
            pen.rounded_rectangle((x + 3, y, x + 45, y + 54), 7, fill="white")
            write_middle(pen, (x + 24, y + 27), letter, 23, INK)
    pen.rounded_rectangle((110, top + 212, 388, top + 266), 7, fill="white")
    write_middle(pen, (WIDTH / 2, top + 239), "space", 18, INK)


def _browser(pen: Pen, view: View) -> None:
    left, top, right, bottom = FIELDS["Browser"]
    corners = (*px(left, top), *px(right, bottom))
    pen.rounded_rectangle(corners, 18, fill="white", outline=ACCENT if view.focused else LINE, width=2)
    shown = screen.wrapped(view.url[:VISIBLE], 18, corners[2] - corners[0] - 60)[0] or "Search or enter an address"
    write(pen, (corners[0] + 20, corners[1] + 21), shown, 18, INK if view.url else PALE)
    if view.url:
        _web_page(pen, view.url)
    if view.focused:
        _keyboard(pen)


def _web_page(pen: Pen, url: str) -> None:
    host = url.partition("://")[2].partition("/")[0]
    pen.rectangle((0, 160, WIDTH, 300), fill=f"hsl({sum(map(ord, host)) * 7 % 360}, 45%, 62%)")
    write(pen, (30, 212), host[:24], 30, "white", bold=True)
    for row in range(14):
        pen.rounded_rectangle((30, 340 + 38 * row, 468 - (row * 83) % 190, 354 + 38 * row), 6, fill=LINE)


def _plain(pen: Pen, view: View) -> None:
    """A page for the apps that only open."""
    _title(pen, view.app)
    app = next(app for app in APPS if app.name == view.app)
    _icon(pen, (WIDTH / 2, 470), app)
    write_middle(pen, (WIDTH / 2, 550), f"{view.app} has nothing to show", 19, PALE)


def _shade(pen: Pen, view: View) -> None:
    pen.rectangle((0, 0, WIDTH, HEIGHT), fill="#23324a")
    _status_bar(pen, view)
    write_middle(pen, (WIDTH / 2, 150), _clock(view), 80, "white")
    for row, text in enumerate(("Calendar: nothing planned", "Weather: sunny, 21 degrees")):
        top = 260 + 96 * row
        pen.rounded_rectangle((24, top, WIDTH - 24, top + 80), 20, fill="#3a4a66")
        write(pen, (48, top + 28), text, 18, "white")


PAGES: dict[str, Callable[[Pen, View], None]] = {
    HOME: _home, "Settings": _settings, "Notes": _notes, "Browser": _browser,
}  # fmt: skip
