"""Foreign text, made safe."""

from __future__ import annotations

import json
import random
import threading
from collections.abc import Callable

import pytest

from mcpboard.text import (
    DEEP_LIMIT,
    LINE_LIMIT,
    TooNested,
    json_object,
    nesting,
    one_line,
    printable,
    read_json,
    well_formed,
)

DECODER = json.JSONDecoder()


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("Unknown tool: x\n", "Unknown tool: x"),
        ("<p>\r\n\tone</p>", "<p> one</p>"),
        ("a\x1b[31mb\x00c", "a [31mb c"),
        ("a\u202eb", "a b"),  # a mark that turns the line around
        ("x" * (LINE_LIMIT + 1), "x" * LINE_LIMIT + "..."),
        ("你好 🎉", "你好 🎉"),
        (" \n", ""),
    ],
    ids=ascii,
)
def test_foreign_text_is_one_short_printable_line(text: str, line: str) -> None:
    assert one_line(text) == line


def test_a_terminal_is_not_steered() -> None:
    assert printable("a\x1b[2J\tb\n", keep="\n") == "a\ufffd[2J\ufffdb\n"


def test_anything_but_an_object_is_none() -> None:
    assert json_object(b'{"a": [1]}') == {"a": [1]}
    for document in (b"[]", b"null", b"{", b"", b"\xff", b'"{}"', b"[" * 100_000):
        assert json_object(document) is None


@pytest.mark.parametrize(
    ("text", "well"),
    [
        ("a\ud83d", "a\ufffd"),
        ("\ude00b", "\ufffdb"),
        ("\ude00\ud83d", "\ufffd\ufffd"),
        ("\ud83d" + "\ude00", "\U0001f600"),
        ("\U0001f600 \u00e9", "\U0001f600 \u00e9"),
    ],
    ids=["a first half", "a second half", "both in the wrong order", "both in order", "none"],
)
def test_half_a_surrogate_pair_is_replaced(text: str, well: str) -> None:
    assert well_formed(text) == well


NESTED = {
    "lists": ("[" * 70 + "]" * 70, (70, 70)),
    "objects": ('{"a":' * 70 + "1" + "}" * 70, (70, 70)),
    "side by side": ("[" + "[]," * 80 + "[]]", (2, 82)),
    "in a string": ('["' + "[" * 70 + '"]', (1, 1)),
    "behind escaped quotes": ('["\\"' + "[" * 70 + '\\\\"]', (1, 1)),
    "behind an escaped backslash": ('["\\\\",' + "[" * 70, (71, 71)),
    "a string without end": ('["' + "[" * 70, (1, 1)),
    "closed before it is opened": ("]" * 70 + "[" * 70, (0, 70)),
    "few: an upper bound": ("[]{}", (2, 2)),
}


@pytest.mark.parametrize(("document", "counted"), NESTED.values(), ids=NESTED)
def test_levels_and_containers_are_counted(document: str, counted: tuple[int, int]) -> None:
    assert nesting(document) == counted


def test_documents_are_read_up_to_the_limits() -> None:
    deep = "[" * 65 + "]" * 65
    with pytest.raises(TooNested, match="64 levels"):
        read_json(deep, DECODER)
    assert nesting(json.dumps(read_json(deep, DECODER, depth=DEEP_LIMIT))) == (65, 65)
    with pytest.raises(TooNested, match="99 lists and objects"):
        read_json("[" + "{}," * 99 + "{}]", DECODER, containers=99)


def test_deep_documents_need_no_stack() -> None:
    """A thread with the stack that musl gives reads a thousand levels, and refuses more."""
    results: list[object] = []

    def read() -> None:
        for levels in (1000, 1001, 100_000):
            try:
                inner, count = read_json("[" * levels + "]" * levels, DECODER, depth=DEEP_LIMIT), 1
                while inner:
                    inner, count = inner[0], count + 1
                results.append(count)
            except ValueError as error:
                results.append(type(error))

    before = threading.stack_size(128 * 1024)
    try:
        thread = threading.Thread(target=read)
        thread.start()
    finally:
        threading.stack_size(before)
    thread.join(30)
    assert results == [1000, TooNested, TooNested]


@pytest.mark.parametrize("seed", range(20))
def test_a_deep_document_is_read_as_any_other(seed: int) -> None:
    """Random documents, whole and with one character changed, come to what the standard library reads."""
    dice = random.Random(seed)

    def value(levels: int) -> object:
        if levels <= 0:
            return dice.choice([1, -2.5, 'a"[{\\', True, None, "\u00e9\\\\"])
        if dice.random() < 0.5:
            return [value(levels - dice.randint(1, 3)) for _ in range(dice.randint(0, 3))]
        return {f'{i}"[': value(levels - dice.randint(1, 3)) for i in range(dice.randint(0, 3))}

    for _ in range(30):
        text = json.dumps(value(10), indent=dice.choice([None, 1]))
        at = dice.randrange(len(text))
        for body in (text, text[:at] + dice.choice('[]{},:"1 x') + text[at + 1 :]):
            wrapped = "[" * 65 + body + "]" * 65
            try:
                expected = json.loads(wrapped)
            except ValueError:
                with pytest.raises(ValueError):
                    read_json(wrapped, DECODER, depth=DEEP_LIMIT)
            else:
                assert read_json(wrapped, DECODER, depth=DEEP_LIMIT) == expected


PADDING = '"' + "," * (1 << 20) + r'\",\\"'  # a string, whose commas count for nothing


@pytest.mark.parametrize("value", ['"name":1', '"a,b":"c,d"', r'"\",":1.5', '"\N{SNOWMAN}":null'])
@pytest.mark.parametrize("form", [str, str.encode])
def test_values_of_a_long_document_are_counted_before_it_is_parsed(
    value: str, form: Callable[[str], str | bytes]
) -> None:
    fits, too_many = (form('{"padding":' + PADDING + ",".join(["", *[value] * count]) + "}") for count in (98, 100))
    assert len(read_json(fits, DECODER, values=99)) == 2
    with pytest.raises(TooNested, match="more than 99 values"):
        read_json(too_many, DECODER, values=99)
