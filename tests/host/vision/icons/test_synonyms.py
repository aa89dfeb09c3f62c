"""The names of icons: who calls them what, and that every shape has drawings."""

from __future__ import annotations

import pytest

from mcpboard.host.vision.icons.synonyms import SHAPES, SHAPES_BY_WORD, meant_by, shapes_called
from tests.support import ROOT

SOURCES = ROOT / "deploy/icons/shapes.txt"

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
    assert "arrow left" in meant_by("返回")
    assert not meant_by("x y z")


def test_every_shape_has_a_row_here_and_drawings_there() -> None:
    """What is written twice: the words of `synonyms`, and the files that the builder takes."""
    rows = [line for line in SOURCES.read_text("utf-8").splitlines() if not line.startswith("#")]
    assert sorted(SHAPES) == sorted(row.split(": ")[0] for row in rows)
    assert len(set(SHAPES)) == len(SHAPES)


@pytest.mark.parametrize("shape", SHAPES)
def test_each_shape_is_called_by_its_own_name_and_in_chinese(shape: str) -> None:
    assert shape in shapes_called(shape)
    assert any(word > "\u3000" and shape in shapes for word, shapes in SHAPES_BY_WORD.items())
