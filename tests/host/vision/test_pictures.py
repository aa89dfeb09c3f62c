"""What is found in a picture, once it has been read: words, icons, and a screen described from three sources."""

from __future__ import annotations

from typing import Any

import pytest

from mcpboard.host.vision.describe import describe
from mcpboard.host.vision.find import distinct, icon_in_picture, icon_in_tree, sure, text_in_picture, together
from mcpboard.host.vision.tree import UiNode
from mcpboard.host.vision.types import Icon, TextLine

LINES = (
    TextLine("Bluetooth", 0.99, (0, 0, 90, 20)),
    TextLine("蓝牙已连接", 1.0, (0, 40, 100, 60)),
    TextLine("Terms  Privacy", 1.0, (0, 80, 140, 100)),
)

TEXTS = [
    pytest.param("bluetooth", ("Bluetooth", 0.99, [0, 0, 90, 20], "exact"), id="as sure as the reader was"),
    pytest.param("bluetoth", ("Bluetooth", 0.93, [0, 0, 90, 20], "similar"), id="a slip of the pen"),
    pytest.param("已连接", ("蓝牙已连接", 0.9, [40, 40, 100, 60], "contains"), id="the box of the words in their line"),
    pytest.param("Privacy", ("Terms  Privacy", 0.9, [70, 80, 140, 100], "contains"), id="so that a tap meets them"),
]


@pytest.mark.parametrize(("query", "expected"), TEXTS)
def test_words_are_found_where_they_are(query: str, expected: Any) -> None:
    (match,) = text_in_picture(LINES, query)
    assert (match["text"], match["score"], match["box"], match["match"]) == expected
    assert match["source"] == "ocr"


def test_words_that_are_not_there_are_not_found() -> None:
    assert text_in_picture(LINES, "Wi-Fi") == []


# --- icons ---------------------------------------------------------------------------------------

GEAR = Icon((0, 0, 20, 20), (("settings", 0.97), ("sun", 0.8)))
SUN = Icon((40, 0, 60, 20), (("sun", 0.86), ("settings", 0.84)))
BACK = Icon((0, 40, 20, 60), (("chevron left", 0.99), ("arrow left", 0.7)))
SMUDGE = Icon((40, 40, 60, 60), (("settings", 0.7),))

ICONS = [
    pytest.param("gear", [("settings", 0.97, True), ("settings", 0.84, False)], id="what may be meant is not confident"),
    pytest.param("brightness", [("sun", 0.86, False)], id="what is a lot more like something else is not meant"),
    pytest.param("返回", [("chevron left", 0.99, True)], id="either shape of a meaning"),
    pytest.param("camera", [], id="not there"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "expected"), ICONS)
def test_icons_are_found_by_name(name: str, expected: Any) -> None:
    found = icon_in_picture((GEAR, SUN, BACK, SMUDGE), name)
    assert [(each["name"], each["score"], each["confident"]) for each in found] == expected


def test_an_icon_says_where_to_tap() -> None:
    """The members are `{name, score, box, center, confident}`."""
    assert icon_in_picture((BACK,), "back") == [
        {"name": "chevron left", "score": 0.99, "box": [0, 40, 20, 60], "center": [10, 50], "confident": True}
    ]


def test_an_element_is_found_by_what_its_words_mean() -> None:
    button = UiNode("button", (0, 0, 9, 9), "", "返回", clickable=True)
    assert [each["name"] for each in icon_in_tree(button, "arrow left")] == ["返回"]


def one(box: tuple[int, int, int, int], shape: str, score: float = 0.95) -> Icon:
    return Icon(box, ((shape, score),))


CIRCLE, PLUS, TILE = (0, 0, 40, 40), (10, 10, 30, 30), (0, 0, 80, 80)
WHOLES = [
    pytest.param([one(CIRCLE, "plus circle"), one(PLUS, "plus", 0.99)], ["plus circle"], id="a whole hides its parts"),
    pytest.param([one(TILE, "mail", 0.7), one(CIRCLE, "person")], ["person"], id="unless it is like nothing"),
    pytest.param([one(TILE, "stop", 1.0), one(CIRCLE, "person")], ["person"], id="a tile is what is drawn on it"),
    pytest.param([one(CIRCLE, "stop")], ["stop"], id="a square with nothing on it is a stop button"),
    pytest.param([one(TILE, "grid", 0.6), one(PLUS, "plus"), one((50, 50, 70, 70), "check")], ["plus", "check"], id="two in one"),
]  # fmt: skip


@pytest.mark.parametrize(("icons", "shapes"), WHOLES)
def test_one_icon_is_kept_for_each_place(icons: list[Icon], shapes: list[str]) -> None:
    assert [icon.best[0] for icon in distinct(icons)] == shapes


def test_the_same_match_is_not_listed_twice() -> None:
    first = [{"score": 0.8, "box": [0, 0, 50, 50], "center": [25, 25]}]
    second = [
        {"score": 0.9, "box": [5, 5, 9, 9], "center": [7, 7]},
        {"score": 1.0, "box": [60, 0, 70, 9], "center": [65, 4]},
    ]
    found = together(first, second)
    assert [match["score"] for match in found] == [1.0, 0.8]
    assert (sure(first), sure(found)) == (False, True)


# --- a screen in words ---------------------------------------------------------------------------

TREE = UiNode("screen", (0, 0, 200, 400), children=(
    UiNode("button", (0, 0, 40, 40), clickable=True, id="nav"),
    UiNode("label", (50, 0, 190, 40), "Settings"),
    UiNode("field", (0, 300, 200, 340), "", "Name", clickable=True),
))  # fmt: skip
READ = (
    TextLine("Settings", 0.9, (60, 10, 150, 30)),
    TextLine("drawn by hand", 0.9, (10, 100, 100, 120)),
    TextLine("口", 0.6, (110, 205, 120, 215)),
)
DRAWN = (
    one((8, 8, 32, 32), "arrow left"),
    one((110, 205, 120, 215), "stop"),
    one((50, 200, 80, 230), "camera"),
    one((150, 200, 180, 230), "person", 0.8),
)


def test_tree_words_and_icons_make_one_table_in_reading_order() -> None:
    """A button without words is called by its icon; what an element says is not repeated; smudges are left out."""
    assert describe(TREE, 200, 400, READ, DRAWN).text.splitlines()[1:] == [
        '[1] button "arrow left" @20,20',
        '[2] label "Settings" @120,20',
        '[3] text "drawn by hand" @55,110',
        '[4] icon "camera" @65,215',
        '[5] text "口" @115,210',
        '[6] field "Name" @100,320',
    ]


def test_a_device_without_a_tree_is_described_from_its_picture() -> None:
    assert describe(None, 200, 400, READ[:1], DRAWN[2:3]).text.splitlines() == [
        "screen 200x400, 2 of 2 elements",
        '[1] text "Settings" @105,20',
        '[2] icon "camera" @65,215',
    ]


def test_what_is_not_on_one_line_is_not_put_on_one() -> None:
    """A line is counted from its own top, not from a raster over the screen."""
    low, high = TextLine("right", 1.0, (100, 20, 140, 40)), TextLine("left", 1.0, (0, 25, 40, 45))
    assert [line.split('"')[1] for line in describe(None, 200, 400, (low, high)).text.splitlines()[1:]] == [
        "left",
        "right",
    ]
