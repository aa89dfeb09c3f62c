"""The pictures of the simulated phone, with whatever fonts there are."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from PIL import ImageFont

from mcpboard.simulator.phone import display, drawings, fonts, frames
from mcpboard.simulator.phone.drawings import ICONS
from mcpboard.simulator.phone.view import APPS, FRAMES, View, app_named
from tests.simulator.views import LYING, MOVING, STILL, params


def _nowhere(wanted: Any, *_: Any, **__: Any) -> Any:
    raise OSError(f"no font {wanted}")


def _forget() -> None:
    """Empty every cache that holds letters or pictures."""
    for module in (fonts, drawings, display):
        for value in vars(module).values():
            if hasattr(value, "cache_clear"):
                value.cache_clear()


@pytest.fixture(params=["the system's fonts", "Pillow's own font", "the bitmap font"])
def some_fonts(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    own = fonts.font("", 20)
    bitmap = getattr(ImageFont, "load_default_imagefont", ImageFont.load_default)()  # so named since Pillow 11
    if request.param != "the system's fonts":
        monkeypatch.setattr(ImageFont, "truetype", _nowhere)
        chosen = own if request.param == "Pillow's own font" else bitmap
        monkeypatch.setattr(ImageFont, "load_default", lambda *_: chosen)
    _forget()
    yield request.param
    _forget()


@pytest.mark.parametrize("view", params(STILL | LYING))
def test_every_screen_can_be_drawn(view: View) -> None:
    picture = display.picture(view)
    assert picture.size == ((1920, 886) if view.landscape else (498, 1080))
    assert 5_000 < len(frames.jpeg(picture)) < 150_000


@pytest.mark.parametrize("name", ["the home grid", "a list", "text", "a web page", "the shade", "the calculator"])
def test_every_font_will_do(some_fonts: str, name: str) -> None:
    assert 5_000 < len(frames.jpeg(display.picture(STILL[name]))) < 120_000


@pytest.mark.parametrize("view", params(MOVING))
def test_a_motion_leads_from_the_one_screen_to_the_other(view: View) -> None:
    """It is on its way in the middle, and what it leads to at its end."""
    assert view.before is not None
    first, middle, last = (display.picture(replace(view, frame=frame)) for frame in (1, FRAMES // 3, FRAMES))
    assert last.tobytes() == display.picture(view.still()).tobytes()
    assert len({first.tobytes(), middle.tobytes(), last.tobytes()}) == 3


def test_text_without_a_glyph_can_still_be_told_apart(some_fonts: str) -> None:
    first, second = (display.picture(View(app="Notes", notes=text)) for text in ("\U000f1234", "\U000f5678"))
    assert fonts.drawn_by("\U000f1234") == fonts.BOXED
    assert fonts.drawn_by("a") != fonts.BOXED
    assert first.tobytes() != second.tobytes()


def test_a_letter_comes_from_the_first_font_that_has_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs of letters of one font are drawn at once; marks that take no room belong to none."""
    monkeypatch.setattr(fonts, "chain", lambda bold: ("Latin", "Greek"))
    monkeypatch.setattr(fonts, "has", lambda name, letter: letter.isascii() if name == "Latin" else letter == "\u03b1")
    fonts.drawn_by.cache_clear()
    made = fonts.runs.__wrapped__("ab\u03b1\u200b\u03b1\U000f1234c", False)
    fonts.drawn_by.cache_clear()
    assert made == (
        ("Latin", "ab"), ("Greek", "\u03b1\u03b1"), (fonts.BOXED, "\U000f1234"), ("Latin", "c"),
    )  # fmt: skip


@pytest.mark.parametrize("name", ["the home grid", "a list by night", "text", "a web page", "the cards"])
def test_equal_views_give_equal_bytes(name: str) -> None:
    first = frames.jpeg(display.picture(STILL[name]))
    _forget()
    assert frames.jpeg(display.picture(replace(STILL[name]))) == first


def test_every_app_has_an_icon() -> None:
    assert list(ICONS) == sorted(ICONS, key=[app.name for app in APPS].index)
    assert len(ICONS) == len(APPS)


def test_apps_answer_to_other_names() -> None:
    assert app_named(" SAFARI ") is app_named("Browser")
    assert app_named("chess") is None


def test_words_are_kept_whole_where_they_fit() -> None:
    assert fonts.wrapped("one two\n" + "x" * 3, 20, fonts.width("one tw", 20)) == ["one", "two", "xxx"]
    assert len(fonts.wrapped("x" * 30, 20, fonts.width("x" * 10, 20))) == 3


def test_what_does_not_fit_ends_in_dots() -> None:
    assert fonts.fitted("short", 20, 200) == "short"
    assert fonts.fitted("far too long to fit", 20, 80).endswith("...")
    assert fonts.width(fonts.fitted("far too long to fit", 20, 80), 20) <= 80


def test_a_small_change_is_no_change() -> None:
    """A clock that goes on, up in the status bar, is not what `screen_changed` is about."""
    first, later = (display.picture(View(app="Maps", minute=minute)) for minute in (1, 2))
    assert first.tobytes() != later.tobytes()
    assert frames.changed(first, later) is False
    assert frames.changed(first, display.picture(View(app="Settings"))) is True


def test_a_turned_phone_has_changed() -> None:
    upright, lying = (display.picture(each) for each in (STILL["a list"], LYING["a list, on its side"]))
    assert frames.changed(upright, lying) is True
    assert frames.difference(upright, lying) == 255
