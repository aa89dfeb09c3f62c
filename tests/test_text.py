"""Foreign text, made safe."""

from __future__ import annotations

import pytest

from mcpboard.text import LINE_LIMIT, did_you_mean, json_object, one_line, printable

LINES = [
    pytest.param("Unknown tool: x\n", "Unknown tool: x", id="a line"),
    pytest.param("<p>\r\n\tone</p>", "<p> one</p>", id="spaces become one"),
    pytest.param("a\x1b[31mb\x00c", "a [31mb c", id="control characters"),
    pytest.param("a\u202eb", "a b", id="a mark that turns the line around"),
    pytest.param("x" * (LINE_LIMIT + 1), "x" * LINE_LIMIT + "...", id="too long"),
    pytest.param("你好 🎉", "你好 🎉", id="any script"),
    pytest.param(" \n", "", id="nothing"),
]


@pytest.mark.parametrize(("text", "line"), LINES)
def test_foreign_text_is_one_short_printable_line(text: str, line: str) -> None:
    assert one_line(text) == line


def test_a_terminal_is_not_steered() -> None:
    assert printable("a\x1b[2J\tb\n", keep="\n") == "a\ufffd[2J\ufffdb\n"


NO_OBJECTS = [b"[]", b"null", b"{", b"", b"\xff", b'"{}"', b"[" * 100_000]


@pytest.mark.parametrize("document", NO_OBJECTS, ids=range(len(NO_OBJECTS)))
def test_anything_but_an_object_is_none(document: bytes) -> None:
    assert json_object(document) is None


def test_an_object_is_returned() -> None:
    assert json_object(b'{"a": [1]}') == {"a": [1]}


@pytest.mark.parametrize(
    ("word", "hint"), [("lissen", "did you mean listen?"), ("zzz", "known there: listen, log")], ids=["close", "far"]
)
def test_a_mistyped_word_gets_a_hint(word: str, hint: str) -> None:
    assert did_you_mean(word, ["listen", "log"]) == hint
