"""Text against text: what a person calls the same, in every script; and what people call an icon."""

from __future__ import annotations

import pytest

from mcpboard.host.vision.icons.synonyms import SHAPES, SHAPES_BY_WORD, meant_by, shapes_called
from mcpboard.host.vision.text_match import ALMOST, SURE, likeness, part, plain
from tests.support import ROOT

LIKENESSES = [
    pytest.param("Settings", "settings", 1.0, "exact", id="case does not matter"),
    pytest.param("  Sign \n in ", "sign in", 1.0, "exact", id="blanks do not matter"),
    pytest.param("设 置", "设置", 1.0, "exact", id="blanks between Chinese characters are the reader's"),
    pytest.param("查看全部 >", "查看全部>", 1.0, "exact", id="beside them, too"),
    pytest.param("ＷｉＦｉ", "wifi", 1.0, "exact", id="full-width letters"),
    pytest.param("Réglages", "reglages", 1.0, "exact", id="accents of Latin letters"),
    pytest.param("Настройки", "НАСТРОЙКИ", 1.0, "exact", id="Cyrillic"),
    pytest.param("Straße", "STRASSE", 1.0, "exact", id="a letter whose capitals are two"),
    pytest.param("ガ", "カ", 0.0, "similar", id="marks that make another Japanese letter"),
    pytest.param("蓝牙 Bluetooth", "蓝牙", SURE, "contains", id="part of a line in two scripts"),
    pytest.param("Order 2026-11-30", "2026", SURE, "contains", id="digits within"),
    pytest.param("0K", "OK", ALMOST, "similar", id="a zero read for an O"),
    pytest.param("Sett1ngs", "Settings", ALMOST, "similar", id="a one read for an i"),
    pytest.param("Personal Hotspet", "hotspot", 0.77, "similar", id="a slip in one word of several"),
    pytest.param("On", "Off", 0.0, "similar", id="short words that merely begin alike"),
    pytest.param("设备", "设置", 0.0, "similar", id="Chinese words that share a character"),
    pytest.param("", "x", 0.0, "", id="no words"),
    pytest.param("x", " ", 0.0, "", id="no query"),
]


@pytest.mark.parametrize(("words", "query", "score", "match"), LIKENESSES)
def test_likeness(words: str, query: str, score: float, match: str) -> None:
    assert likeness(words, query) == (score, match)
    assert plain(plain(words)) == plain(words)


PARTS = [
    pytest.param("Sign in", "sign in", (0.0, 1.0), id="all of it"),
    pytest.param("Privacy  Terms", "Terms", (9 / 14, 1.0), id="its end"),
    pytest.param("蓝牙 ab", "ab", (5 / 7, 1.0), id="Chinese characters are twice as wide"),
    pytest.param("Réglages wifi", "reglages", (0.0, 1.0), id="what is only found without accents is the whole line"),
]


@pytest.mark.parametrize(("words", "query", "expected"), PARTS)
def test_where_words_stand_in_their_line(words: str, query: str, expected: tuple[float, float]) -> None:
    assert part(words, query) == pytest.approx(expected)


# --- the names of icons --------------------------------------------------------------------------

CALLED = [
    pytest.param("settings", {"settings"}, id="its own name"),
    pytest.param("gear", {"settings"}, id="what it shows"),
    pytest.param("设置", {"settings"}, id="in Chinese"),
    pytest.param("Gear icon", {"settings"}, id="with the word icon"),
    pytest.param("返回图标", {"arrow left", "chevron left"}, id="in Chinese, with the word for icon"),
    pytest.param("back", {"arrow left", "chevron left", "undo"}, id="a meaning of several shapes"),
    pytest.param("magnifing glass", {"magnifing glass", "search"}, id="a slip of the pen"),
    pytest.param("e-mail", {"mail"}, id="with a hyphen"),
    pytest.param("my own app", {"my own app"}, id="a word that nobody uses"),
]


@pytest.mark.parametrize(("name", "expected"), CALLED)
def test_what_people_mean_by_a_name(name: str, expected: set[str]) -> None:
    assert shapes_called(name) == expected


def test_a_meaning_is_exact() -> None:
    assert meant_by("Navigate") == {"navigation"}
    assert not meant_by("x y z")


def test_every_shape_has_a_name_in_chinese_and_drawings() -> None:
    """What is written twice: the words of `synonyms`, and the files that the builder takes."""
    rows = (ROOT / "deploy/icons/shapes.txt").read_text("utf-8").splitlines()
    assert sorted(SHAPES) == sorted(row.split(": ")[0] for row in rows if not row.startswith("#"))
    assert all(shape in SHAPES_BY_WORD[plain(shape)] for shape in SHAPES)
    chinese = [shapes for word, shapes in SHAPES_BY_WORD.items() if word > "\u3000"]
    assert set(SHAPES) == set().union(*chinese)
