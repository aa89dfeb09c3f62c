"""What is found on a screen, in its tree and in its picture once that has been read, and a screen in words."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from mcpboard.host.vision import find
from mcpboard.host.vision.describe import LONGEST_TEXT, MOST_BYTES, MOST_ELEMENTS, describe
from mcpboard.host.vision.tree import UiNode
from mcpboard.host.vision.types import Icon, TextLine

Finder = Callable[[Any, str], list[find.Match]]

GEAR = UiNode("icon", (10, 10, 30, 40), "Settings", "Settings", "app/settings", clickable=True)
ROW = UiNode("row", (0, 100, 90, 120), "Wi-Fi  Settings")
NOTE = UiNode("label", (0, 50, 90, 60), "", "Battery nearly empty")
BACK = UiNode("button", (0, 0, 8, 8), "", "返回", "back", clickable=True)
SCREEN = UiNode(
    "screen", (0, 0, 100, 200), children=(GEAR, UiNode("group", (0, 50, 100, 200), children=(ROW, NOTE)), BACK)
)
LINES = (
    TextLine("Bluetooth", 0.99, (0, 0, 90, 20)),
    TextLine("蓝牙已连接", 1.0, (0, 40, 100, 60)),
    TextLine("Terms  Privacy", 1.0, (0, 80, 140, 100)),
)
ICONS = (
    Icon((0, 0, 20, 20), (("settings", 0.97), ("sun", 0.8))),
    Icon((40, 0, 60, 20), (("sun", 0.86), ("settings", 0.84))),
    Icon((0, 40, 20, 60), (("chevron left", 0.99), ("arrow left", 0.7))),
    Icon((40, 40, 60, 60), (("settings", 0.7),)),
)

FOUND = [
    pytest.param(find.text_in_tree, SCREEN, "settings", [("Settings", 1.0, "exact"), ("Wi-Fi  Settings", 0.9, "contains")], id="best first"),
    pytest.param(find.text_in_tree, SCREEN, "setings", [("Settings", 0.93, "similar"), ("Wi-Fi  Settings", 0.84, "similar")], id="a slip of the pen"),
    pytest.param(find.text_in_tree, SCREEN, "battery", [("Battery nearly empty", 0.9, "contains")], id="in what is read aloud"),
    pytest.param(find.text_in_tree, SCREEN, "bluetooth", [], id="no such text"),
    pytest.param(find.text_in_tree, SCREEN, "", [], id="nothing matches nothing"),
    pytest.param(find.icon_in_tree, SCREEN, "Settings", [("Settings", 1.0, True)], id="an icon by its name"),
    pytest.param(find.icon_in_tree, SCREEN, "gear", [("Settings", 1.0, True)], id="by what it shows"),
    pytest.param(find.icon_in_tree, SCREEN, "setings", [("Settings", 1.0, True)], id="by nearly its name"),
    pytest.param(find.icon_in_tree, SCREEN, "sittinks", [("Settings", 0.75, False)], id="just alike enough to be listed, and not to be sure"),
    pytest.param(find.icon_in_tree, SCREEN, "back", [("返回", 1.0, True)], id="by its id"),
    pytest.param(find.icon_in_tree, SCREEN, "arrow left", [("返回", 0.9, True)], id="by what its words mean"),
    pytest.param(find.icon_in_tree, SCREEN, "Wi-Fi", [], id="text that is no icon"),
    pytest.param(find.text_in_picture, LINES, "bluetooth", [("Bluetooth", 0.99, "exact")], id="as sure as the reader was"),
    pytest.param(find.text_in_picture, LINES, "bluetoth", [("Bluetooth", 0.93, "similar")], id="a slip, in the picture"),
    pytest.param(find.text_in_picture, LINES, "Wi-Fi", [], id="no such line"),
    pytest.param(find.icon_in_picture, ICONS, "gear", [("settings", 0.97, True), ("settings", 0.84, False)], id="what may be meant is not confident"),
    pytest.param(find.icon_in_picture, ICONS, "brightness", [("sun", 0.86, False)], id="what is a lot more like something else is not meant"),
    pytest.param(find.icon_in_picture, (Icon((0, 0, 9, 9), (("sun", 0.95), ("settings", 0.93))),), "gear", [("settings", 0.93, False)], id="however alike it is"),
    pytest.param(find.icon_in_picture, ICONS, "返回", [("chevron left", 0.99, True)], id="either shape of a meaning"),
    pytest.param(find.icon_in_picture, ICONS, "camera", [], id="no such icon"),
]  # fmt: skip


@pytest.mark.parametrize(("finder", "where", "query", "expected"), FOUND)
def test_matches_say_how_sure_they_are(finder: Finder, where: Any, query: str, expected: list[Any]) -> None:
    named = [(match.get("text") or match["name"], match) for match in finder(where, query)]
    assert [(name, match["score"], match.get("match", match.get("confident"))) for name, match in named] == expected


PLACES = [
    pytest.param(find.text_in_tree, SCREEN, "settings", {"text": "Settings", "score": 1.0, "box": [10, 10, 30, 40], "center": [20, 25], "match": "exact", "source": "tree"}, id="an element"),
    pytest.param(find.text_in_picture, LINES, "已连接", {"text": "蓝牙已连接", "score": 0.9, "box": [40, 40, 100, 60], "center": [70, 50], "match": "contains", "source": "ocr"}, id="words within their line"),
    pytest.param(find.text_in_picture, LINES, "Privacy", {"text": "Terms  Privacy", "score": 0.9, "box": [70, 80, 140, 100], "center": [105, 90], "match": "contains", "source": "ocr"}, id="Latin words within theirs"),
    pytest.param(find.icon_in_picture, ICONS, "back", {"name": "chevron left", "score": 0.99, "box": [0, 40, 20, 60], "center": [10, 50], "confident": True}, id="an icon"),
]  # fmt: skip


@pytest.mark.parametrize(("finder", "where", "query", "expected"), PLACES)
def test_a_match_says_where_to_tap(finder: Finder, where: Any, query: str, expected: find.Match) -> None:
    assert finder(where, query)[0] == expected


def test_matches_are_counted() -> None:
    crowd = UiNode("screen", (0, 0, 9, 9), children=(ROW,) * 100)
    assert len(find.text_in_tree(crowd, "settings")) == find.MOST_MATCHES


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
    assert [icon.best[0] for icon in find.distinct(icons)] == shapes


def test_the_same_match_is_not_listed_twice() -> None:
    first = [{"score": 0.8, "box": [0, 0, 50, 50], "center": [25, 25]}]
    again = {"score": 0.9, "box": [5, 5, 9, 9], "center": [7, 7]}
    other = {"score": 1.0, "box": [60, 0, 70, 9], "center": [65, 4]}
    found = find.together(first, [again, other])
    assert found == [other, *first]
    assert (find.sure(first), find.sure(found)) == (False, True)


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
LARGE = UiNode("view", (0, 0, 200, 400), clickable=True, children=(UiNode("button", (0, 0, 40, 40), "Go"),))
SLANTED = (TextLine("right", 1.0, (100, 20, 140, 40)), TextLine("left", 1.0, (0, 25, 40, 45)))

WORDS = [
    # A button without words is called by its icon; what an element says is not repeated; smudges are left out.
    pytest.param(TREE, READ, DRAWN, ['button "arrow left" @20,20', 'label "Settings" @120,20', 'text "drawn by hand" @55,110',
                                     'icon "camera" @65,215', 'text "口" @115,210', 'field "Name" @100,320'], id="tree, words and icons"),
    pytest.param(SCREEN, (), (), ['button "返回" @4,4', 'icon "Settings" @20,25', 'label "Battery nearly empty" @45,55',
                                  'row "Wi-Fi  Settings" @45,110'], id="a tree alone"),
    pytest.param(None, READ[:1], DRAWN[2:3], ['text "Settings" @105,20', 'icon "camera" @65,215'], id="a picture alone"),
    pytest.param(LARGE, (), (one((8, 8, 32, 32), "check"), one((100, 200, 130, 230), "camera")),
                 ['view "" @100,200', 'button "Go" @20,20', 'icon "camera" @115,215'], id="icons on a named button and in a large view"),
    # A line is counted from its own top, not from a raster over the screen.
    pytest.param(None, SLANTED, (), ['text "left" @20,35', 'text "right" @120,30'], id="what is nearly on one line"),
    pytest.param(UiNode("field", (0, 0, 9, 9), 'one\n[2] button "buy"'), (), (), [r'field "one\n[2] button \"buy\"" @4,4'], id="a line break in a text"),
]  # fmt: skip


@pytest.mark.parametrize(("tree", "lines", "icons", "expected"), WORDS)
def test_a_screen_is_described_in_reading_order(tree: UiNode, lines: Any, icons: Any, expected: list[str]) -> None:
    description = describe(tree, 200, 400, lines, icons)
    count = len(expected)
    assert description.text.splitlines() == [
        f"screen 200x400, {count} of {count} elements",
        *(f"[{number}] {line}" for number, line in enumerate(expected, 1)),
    ]
    assert (description.elements, description.truncated) == (count, False)


LONG = UiNode("label", (0, 0, 9, 9), "ü" * 1000)
CAPS = [
    pytest.param(ROW, MOST_ELEMENTS + 1, MOST_ELEMENTS, id="more elements than a model wants"),
    pytest.param(ROW, MOST_ELEMENTS, MOST_ELEMENTS, id="just as many"),
    pytest.param(LONG, 100, MOST_BYTES // (2 * LONGEST_TEXT + 20), id="more bytes than a model wants"),
]


@pytest.mark.parametrize(("node", "count", "kept"), CAPS)
def test_a_description_is_capped_and_says_so(node: UiNode, count: int, kept: int) -> None:
    description = describe(UiNode("screen", (0, 0, 9, 9), children=(node,) * count), 9, 9)
    assert (description.elements, description.truncated) == (kept, kept < count)
    assert (", truncated" in description.text) == description.truncated
    assert len(description.text.encode()) <= MOST_BYTES + 100


def test_the_normal_form_has_every_member() -> None:
    (group,) = [each for each in SCREEN.as_json()["children"] if each["role"] == "group"]
    assert list(group) == ["role", "text", "desc", "id", "box", "clickable", "children"]
    assert json.loads(json.dumps(group))["children"][1]["desc"] == "Battery nearly empty"
