"""Finding and describing what is on a screen, from trees as devices give them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from mcpboard.host.vision.describe import LONGEST_TEXT, MOST_BYTES, MOST_ELEMENTS, describe
from mcpboard.host.vision.find import MOST_MATCHES, icon_in_tree, text_in_tree
from mcpboard.host.vision.tree import UiNode

GEAR = UiNode("icon", (10, 10, 30, 40), "Settings", "Settings", "app/settings", clickable=True)
ROW = UiNode("row", (0, 100, 90, 120), "Wi-Fi  Settings")
NOTE = UiNode("label", (0, 50, 90, 60), "", "Battery nearly empty")
BACK = UiNode("button", (0, 0, 8, 8), "", "", "back", clickable=True)
SCREEN = UiNode(
    "screen", (0, 0, 100, 200), children=(GEAR, UiNode("group", (0, 50, 100, 200), children=(ROW, NOTE)), BACK)
)

TEXTS = [
    pytest.param("settings", [("Settings", 1.0, "exact"), ("Wi-Fi  Settings", 0.9, "contains")], id="best first"),
    pytest.param(" WI-FI settings ", [("Wi-Fi  Settings", 1.0, "exact")], id="blanks and case do not matter"),
    pytest.param("setings", [("Settings", 0.93, "similar"), ("Wi-Fi  Settings", 0.84, "similar")], id="a slip of the pen"),
    pytest.param("battery", [("Battery nearly empty", 0.9, "contains")], id="in what is read aloud"),
    pytest.param("bluetooth", [], id="not there"),
    pytest.param("", [], id="nothing matches nothing"),
]  # fmt: skip


@pytest.mark.parametrize(("query", "expected"), TEXTS)
def test_words_are_found_with_how_sure_that_is(query: str, expected: list[Any]) -> None:
    assert [(each["text"], each["score"], each["match"]) for each in text_in_tree(SCREEN, query)] == expected


def test_a_match_says_where_to_tap() -> None:
    """The members are `{text, score, box, center, match, source}`."""
    assert text_in_tree(SCREEN, "settings")[0] == {
        "text": "Settings",
        "score": 1.0,
        "box": [10, 10, 30, 40],
        "center": [20, 25],
        "match": "exact",
        "source": "tree",
    }


ICONS = [
    pytest.param("Settings", [("Settings", 1.0, True)], id="by its name"),
    pytest.param("gear", [("Settings", 1.0, True)], id="by what it shows"),
    pytest.param("setings", [("Settings", 1.0, True)], id="nearly"),
    pytest.param("sittinks", [("Settings", 0.75, False)], id="just alike enough to be listed, and not to be sure"),
    pytest.param("back", [("back", 1.0, True)], id="by its id"),
    pytest.param("Wi-Fi", [], id="no icon"),
]


@pytest.mark.parametrize(("name", "expected"), ICONS)
def test_icons_are_found_by_what_people_call_them(name: str, expected: list[Any]) -> None:
    assert [(each["name"], each["score"], each["confident"]) for each in icon_in_tree(SCREEN, name)] == expected


def test_matches_are_counted() -> None:
    crowd = UiNode("screen", (0, 0, 9, 9), children=(ROW,) * 100)
    assert len(text_in_tree(crowd, "settings")) == MOST_MATCHES


def test_a_screen_is_described_in_reading_order() -> None:
    description = describe(SCREEN, 100, 200)
    assert description.text.splitlines() == [
        "screen 100x200, 4 of 4 elements",
        '[1] button "" @4,4',
        '[2] icon "Settings" @20,25',
        '[3] label "Battery nearly empty" @45,55',
        '[4] row "Wi-Fi  Settings" @45,110',
    ]
    assert (description.elements, description.truncated) == (4, False)


LONG = UiNode("label", (0, 0, 9, 9), "ü" * 1000)
CAPS = [
    pytest.param(ROW, MOST_ELEMENTS + 1, MOST_ELEMENTS, id="more elements than a model wants"),
    pytest.param(ROW, MOST_ELEMENTS, MOST_ELEMENTS, id="just as many"),
    pytest.param(LONG, 100, MOST_BYTES // (2 * LONGEST_TEXT + 20), id="more bytes than a model wants"),
]


@pytest.mark.parametrize(("node", "count", "kept"), CAPS)
def test_a_description_is_capped_and_says_so(node: UiNode, count: int, kept: int) -> None:
    description = describe(UiNode("screen", (0, 0, 9, 9), children=(node,) * count), 9, 9)
    assert description.elements == kept
    assert description.truncated == (kept < count)
    assert (", truncated" in description.text) == description.truncated
    assert len(description.text.encode()) <= MOST_BYTES + 100


def test_a_line_break_in_a_text_stays_on_its_line() -> None:
    description = describe(UiNode("field", (0, 0, 9, 9), 'one\n[2] button "buy"'), 9, 9)
    assert len(description.text.splitlines()) == 2


def test_the_normal_form_has_every_member() -> None:
    """The members are `{role,text,desc,id,box,clickable,children}`."""
    (group,) = [each for each in SCREEN.as_json()["children"] if each["role"] == "group"]
    assert list(group) == ["role", "text", "desc", "id", "box", "clickable", "children"]
    assert json.loads(json.dumps(group))["children"][1]["desc"] == "Battery nearly empty"
