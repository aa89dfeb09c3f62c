"""How the pretend phone looks, with whatever fonts there are."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from PIL import ImageFont

from mcpboard.simulator import pages, screen
from mcpboard.simulator.phone import APPS, FRAMES, HOME, View, app_at, app_named, icon_place

VIEWS = [
    pytest.param(View(), id="the home grid"),
    pytest.param(View(app="Settings", selected=2, scroll=130), id="a list"),
    pytest.param(
        View(app="Notes", focused=True, notes="\u65e5\u672c \U0001f600 caf\u00e9\n\ud83d" + "x" * 400), id="text"
    ),
    pytest.param(View(app="Notes", notes="a" * 300_000), id="more text than fits"),
    pytest.param(View(app="Browser", url="https://example.com/a", focused=True), id="a web page"),
    pytest.param(View(app="Maps", pressed=(300, 300)), id="a finger on the screen"),
    pytest.param(View(shade=True), id="the shade"),
    pytest.param(View(app="Notes", previous=HOME, frame=FRAMES // 2), id="an app that opens"),
]


def _nowhere(wanted: Any, *_: Any, **__: Any) -> Any:
    raise OSError(f"no font {wanted}")


def _forget() -> None:
    for cached in (screen.font, screen.drawable, screen._advance, pages.picture):
        cached.cache_clear()


@pytest.fixture(params=["the system's fonts", "Pillow's own font", "the bitmap font"])
def fonts(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    own = screen._own_font(20)
    bitmap = getattr(ImageFont, "load_default_imagefont", ImageFont.load_default)()  # so named since Pillow 11
    if request.param != "the system's fonts":
        monkeypatch.setattr(ImageFont, "truetype", _nowhere)
        chosen = own if request.param == "Pillow's own font" else bitmap
        monkeypatch.setattr(ImageFont, "load_default", lambda *_: chosen)
    _forget()
    yield request.param
    _forget()


@pytest.mark.parametrize("view", VIEWS)
def test_every_page_can_be_drawn(fonts: str, view: View) -> None:
    assert pages.picture(view).size == (screen.WIDTH, screen.HEIGHT)
    assert 5_000 < len(screen.jpeg(pages.picture(view))) < 120_000


def test_text_without_a_glyph_can_still_be_told_apart(fonts: str) -> None:
    first, second = (pages.picture(View(app="Notes", notes=text)) for text in ("\U000f1234", "\U000f5678"))
    assert not screen.drawable("\U000f1234", 20)
    assert screen.drawable("a", 20)
    assert first.tobytes() != second.tobytes()


def test_equal_views_give_equal_bytes() -> None:
    first = screen.jpeg(pages.picture(View(app="Settings")))
    _forget()
    assert screen.jpeg(pages.picture(View(app="Settings"))) == first


@pytest.mark.parametrize("index", range(len(APPS)))
def test_an_icon_is_touched_where_it_is_drawn(index: int) -> None:
    assert app_at(*icon_place(index)) is APPS[index]


def test_between_the_icons_is_nothing() -> None:
    assert app_at(500, 800) is None


def test_apps_answer_to_other_names() -> None:
    assert app_named(" SAFARI ") is app_named("Browser")
    assert app_named("chess") is None


def test_words_are_kept_whole_where_they_fit() -> None:
    assert screen.wrapped("one two\n" + "x" * 3, 20, screen.width("one tw", 20)) == ["one", "two", "xxx"]
    assert len(screen.wrapped("x" * 30, 20, screen.width("x" * 10, 20))) == 3


def test_a_small_change_is_no_change() -> None:
    """A clock that goes on, up in the status bar, is not what `screen_changed` is about."""
    first, later = (pages.picture(View(app="Maps", minute=minute)) for minute in (1, 2))
    assert first.tobytes() != later.tobytes()
    assert screen.changed(first, later) is False
    assert screen.changed(first, pages.picture(View(app="Settings"))) is True
