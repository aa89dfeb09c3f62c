"""The pictures of the simulated phone, and the tree: it lists what is drawn, where it is drawn, and what a touch there does."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from PIL import Image, ImageChops

from mcpboard.simulator.phone import display, fonts, frames, sprites
from mcpboard.simulator.phone.canvas import Canvas
from mcpboard.simulator.phone.elements import flat
from mcpboard.simulator.phone.view import FRAMES, NAMES, View, app_named
from tests.simulator.views import LYING, MOVING, STILL, params

LOOKS = Path(__file__).with_name("looks.json")
EDGE = 3  # points; soft edges, the border of what is chosen and overhanging letters reach that far out of their box


@pytest.mark.parametrize("view", params(STILL | LYING))
def test_every_screen_can_be_drawn_and_every_node_lies_on_it(view: View) -> None:
    picture, root = display.picture(view), display.tree(view)
    width, height = picture.size
    assert (width, height) == ((1920, 886) if view.landscape else (498, 1080))
    assert 5_000 < len(frames.jpeg(picture)) < 150_000
    assert (root.role, root.id, root.box) == ("screen", f"screen/{view.app}", (0, 0, width, height))
    for node in root.walk():
        left, top, right, bottom = node.box
        assert 0 <= left < right <= width and 0 <= top < bottom <= height, node


@pytest.mark.parametrize("view", params(MOVING))
def test_a_motion_leads_from_the_one_screen_to_the_other(view: View) -> None:
    """It is on its way in the middle, and what it leads to at its end."""
    assert view.before is not None
    first, middle, last = (display.picture(replace(view, frame=frame)) for frame in (1, FRAMES // 3, FRAMES))
    assert last.tobytes() == display.picture(view.still()).tobytes()
    assert len({first.tobytes(), middle.tobytes(), last.tobytes()}) == 3


@pytest.mark.parametrize("view", params(STILL | LYING))
def test_a_box_lies_where_its_element_is_drawn(view: View, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing that has text is drawn beside its box, but for a shadow, and for cards that hide behind others."""
    monkeypatch.setattr(Canvas, "shadow", lambda *_, **__: None)
    for element in [each for each in flat(display.elements(view)) if each.text and each.shapes]:
        under, over = (Image.new("RGB", view.pixels, "#7f3fbf") for _ in range(2))
        for each in flat([element]):
            each.paint(Canvas(over, view.scale))
        ink = ImageChops.difference(under, over).getbbox()
        assert ink is not None, element
        left, top, right, bottom = (part / view.scale for part in ink)
        assert element.box[0] - EDGE <= left, element
        assert right <= element.box[2] + EDGE or element.role == "card", element
        cut = bool(view.scroll) or view.focused  # by the edge of the page, or by the keyboard
        assert cut or (element.box[1] - EDGE <= top and bottom <= element.box[3] + EDGE), element
        assert top < element.box[3] and element.box[1] < bottom, element


@pytest.mark.parametrize("view", params(STILL))
def test_a_touch_in_the_middle_of_a_node_reaches_it(view: View) -> None:
    """Unless something lies over it, which then comes later in the tree."""
    elements = [each for each in flat(display.elements(view)) if each.clickable and each.role]
    for index, element in enumerate(elements):
        left, top, right, bottom = element.box
        middle = (left + right) / 2, (top + bottom) / 2
        over = [other for other in elements[index + 1 :] if other.covers(*middle)]
        place = middle[0] * 1000 / (view.size[0] - 1), middle[1] * 1000 / (view.size[1] - 1)
        assert display.element_at(view, place) is (over[-1] if over else element)


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


def test_lines_are_broken_and_cut_to_their_room() -> None:
    assert fonts.wrapped("one two\n" + "x" * 3, 20, fonts.width("one tw", 20)) == ["one", "two", "xxx"]
    assert len(fonts.wrapped("x" * 30, 20, fonts.width("x" * 10, 20))) == 3
    assert fonts.fitted("short", 20, 200) == "short"
    cut = fonts.fitted("far too long to fit", 20, 80)
    assert cut.endswith("...") and fonts.width(cut, 20) <= 80


def test_screens_are_equal_on_every_machine() -> None:
    """Gray levels of blocks; releases of Pillow smooth edges in their own ways, which no block shows."""
    for name, expected in json.loads(LOOKS.read_text("utf-8")).items():
        found = display.picture(STILL[name]).convert("L").resize((12, 26), Image.Resampling.BOX).tobytes()
        assert max(abs(one - other) for one, other in zip(found, expected, strict=True)) <= 4, name


@pytest.mark.parametrize("name", ["the home grid", "a list by night", "text", "a web page", "the cards"])
def test_equal_views_give_equal_bytes(name: str) -> None:
    first = frames.jpeg(display.picture(STILL[name]))
    for cached in (each for module in (fonts, sprites, display) for each in vars(module).values()):
        if hasattr(cached, "cache_clear"):
            cached.cache_clear()
    assert frames.jpeg(display.picture(replace(STILL[name]))) == first


def test_every_app_has_an_icon_and_answers_to_its_other_names() -> None:
    assert sprites.INDEX["icons"]["names"] == list(NAMES)
    assert [app_named(name) for name in (" SAFARI ", "notes", "chess")] == ["Browser", "Notes", ""]


def test_a_screen_has_changed_when_more_than_its_clock_has() -> None:
    """The status bar is not what `screen_changed` is about; a phone that was turned has changed wholly."""
    first, later = (display.picture(View(app="Maps", minute=minute)) for minute in (1, 2))
    assert first.tobytes() != later.tobytes()
    assert frames.changed(first, later) is False
    upright, lying = (display.picture(each) for each in (STILL["a list"], LYING["a list, on its side"]))
    assert frames.changed(first, upright) is frames.changed(upright, lying) is True
    assert frames.difference(upright, lying) == 255
