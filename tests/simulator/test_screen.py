"""The pictures of the simulated phone."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from PIL import Image

from mcpboard.simulator.phone import display, fonts, frames, sprites
from mcpboard.simulator.phone.view import FRAMES, NAMES, View, app_named
from tests.simulator.views import LYING, MOVING, STILL, params


def _forget() -> None:
    """Empty every cache that holds letters or pictures."""
    for module in (fonts, sprites, display):
        for value in vars(module).values():
            if hasattr(value, "cache_clear"):
                value.cache_clear()


@pytest.mark.parametrize("view", params(STILL | LYING))
def test_every_screen_can_be_drawn(view: View) -> None:
    picture = display.picture(view)
    assert picture.size == ((1920, 886) if view.landscape else (498, 1080))
    assert 5_000 < len(frames.jpeg(picture)) < 150_000


@pytest.mark.parametrize("view", params(MOVING))
def test_a_motion_leads_from_the_one_screen_to_the_other(view: View) -> None:
    """It is on its way in the middle, and what it leads to at its end."""
    assert view.before is not None
    first, middle, last = (display.picture(replace(view, frame=frame)) for frame in (1, FRAMES // 3, FRAMES))
    assert last.tobytes() == display.picture(view.still()).tobytes()
    assert len({first.tobytes(), middle.tobytes(), last.tobytes()}) == 3


SCRIPTS = {
    "Latin": "Ça va? Größe, żółw 21°", "Greek": "Καλημέρα", "Cyrillic": "Привет, ёж", "kana": "こんにちは カメラ",
    "Han": "你好 今天天气很好 手机屏幕", "emoji": "\U0001f389\u2764\ufe0f\U0001f600", "signs": "€ → × ÷ − … “„«",
}  # fmt: skip


@pytest.mark.parametrize("text", SCRIPTS.values(), ids=SCRIPTS)
@pytest.mark.parametrize("bold", [False, True])
def test_no_letter_that_people_write_is_a_box(text: str, bold: bool) -> None:
    for by, letters in fonts.runs(text, bold):
        if by != fonts.PICTURED:
            boxes = bytes(fonts.font(by, 40).getmask("\U0010fffe"))  # never assigned
            assert boxes not in [bytes(fonts.font(by, 40).getmask(letter)) for letter in letters]


def test_what_no_font_has_is_a_box_that_takes_room() -> None:
    """Half a surrogate pair, too, while marks and controls take none."""
    assert fonts.runs("a\ud83d\u0301\u200b\x07b", False) == (("regular", "a"), ("asian", "\ufffd"), ("regular", "b"))
    assert fonts.width("\u0e01", 20) > 5


def test_screens_are_equal_on_every_machine() -> None:
    """Gray levels of blocks; releases of Pillow smooth edges in their own ways, which no block shows."""
    for name, expected in json.loads(LOOKS.read_text("utf-8")).items():
        found = look(display.picture(STILL[name]))
        assert max(abs(one - other) for one, other in zip(found, expected, strict=True)) <= 4, name


LOOKS = Path(__file__).with_name("looks.json")


def look(picture: Image.Image) -> list[int]:
    return list(picture.convert("L").resize((12, 26), Image.Resampling.BOX).tobytes())


@pytest.mark.parametrize("name", ["the home grid", "a list by night", "text", "a web page", "the cards"])
def test_equal_views_give_equal_bytes(name: str) -> None:
    first = frames.jpeg(display.picture(STILL[name]))
    _forget()
    assert frames.jpeg(display.picture(replace(STILL[name]))) == first


def test_every_app_has_an_icon() -> None:
    assert sprites.INDEX["icons"]["names"] == list(NAMES)


def test_apps_answer_to_other_names() -> None:
    assert app_named(" SAFARI ") == "Browser"
    assert app_named("chess") == ""


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
