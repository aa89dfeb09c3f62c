"""Tools as clients see them: the light argument check, and content that no client stumbles over."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from mcpboard.errors import DONE, NOT_SENT, UNKNOWN, BadArgument, Busy, ToolError
from mcpboard.protocol.endpoint import result_parts
from mcpboard.protocol.tools import (
    TYPES,
    Blob,
    Content,
    Image,
    Text,
    Tool,
    ToolList,
    check_arguments,
    compact,
    error_content,
    verbatim,
)
from tests.protocol.http_messages import render_parts
from tests.protocol.roles import POINT

HUGE = 10**400  # a whole number that no float can hold

# Type of property -> values that pass, values that do not.
TYPE_VALUES: Mapping[str, tuple[list[Any], list[Any]]] = {
    "string": (["", "x", "\x00", "12", "\u05e9\U0001f9d1\u200d\U0001f4bb"], [5, 1.5, True, None, {}, []]),
    "number": (
        [0, -1, 0.5, 1.0, 1e9, 2**70, HUGE, "100", "0.5", "-1", "1e3", "+5", ".5"],
        [
            True,
            False,
            None,
            "",
            "x",
            "NaN",
            "nan",
            "inf",
            "-Infinity",
            "1e400",
            "1_000",
            "\u0661",
            "0x10",
            "1,5",
            "1 2",
            {},
            [],
        ]
        + [float("inf"), float("nan")],
    ),
    "integer": (
        [0, -1, 12, 12.0, 2**70, HUGE, "12", "-3", "12.0", "1e3"],
        [0.5, True, None, "", "0.5", "x", "nan", "1e400", "\u0663", {}, [], float("inf"), float("nan")],
    ),
    "boolean": ([True, False], [0, 1, "true", "", None, {}, []]),
    "object": ([{}, {"a": 1}], [[], "{}", None, 5, True]),
    "array": ([[], [1]], [{}, "[]", None, 5, True]),
}
EVERY = [
    pytest.param(type_name, value, passes, id=f"{type_name} {'takes' if passes else 'refuses'} {value!r:.24}")
    for type_name, lists in TYPE_VALUES.items()
    for passes, values in zip((True, False), lists, strict=True)
    for value in values
]


@pytest.mark.parametrize(("type_name", "value", "passes"), EVERY)
def test_a_property_is_of_its_type(type_name: str, value: Any, passes: bool) -> None:
    schema = {"type": "object", "properties": {"a": {"type": type_name, "description": "the first one"}}}
    if passes:
        check_arguments(schema, {"a": value})
        return
    with pytest.raises(BadArgument) as caught:
        check_arguments(schema, {"a": value})
    assert caught.value.text == f"argument a must be {TYPES[type_name][1]} (the first one)"
    assert caught.value.delivery == "not_sent"


def test_the_table_of_kinds_is_the_one_that_is_checked() -> None:
    assert set(TYPE_VALUES) == set(TYPES)


NESTED = {
    "type": "object",
    "properties": {"to": POINT, "n": {"type": "integer"}, "any": {}},
    "required": ["to", "ghost"],
}
FAULTS = [
    pytest.param({}, "argument to is missing; it wants an object", id="a required property is missing"),
    pytest.param({"to": {"x": 1, "y": 2}}, "argument ghost is missing; it wants a value", id="a required property without a rule"),
    pytest.param({"ghost": 1, "to": {"x": 1}}, "argument to.y is missing; it wants a finite number", id="missing in an object"),
    pytest.param({"ghost": 1, "to": {"x": 1, "y": "far"}}, "argument to.y must be a finite number", id="a wrong type in an object"),
    pytest.param({"ghost": 1, "to": 5}, "argument to must be an object", id="a wrong type where an object belongs"),
    pytest.param({"ghost": 1, "to": None}, "argument to must be an object", id="null where an object belongs"),
]  # fmt: skip
FINE = [
    pytest.param(NESTED, {"ghost": None, "to": {"x": 1, "y": "2"}}, id="null where no type is asked for"),
    pytest.param(NESTED, {"ghost": 1, "to": {"x": 1, "y": 2, "z": None}, "any": {"a": []}}, id="unknown properties"),
    pytest.param({"type": "object"}, {"a": 1}, id="a schema without properties"),
    pytest.param({}, {"a": 1}, id="an empty schema"),
    pytest.param({"properties": {"a": {"type": "number", "maximum": 1}}}, {"a": 5}, id="a value out of range"),
    pytest.param({"properties": {"a": {"type": "moon"}}}, {"a": 5}, id="a type nobody knows"),
    pytest.param({"properties": {"a": {"enum": ["x"]}}}, {"a": "y"}, id="a choice"),
    pytest.param({"properties": {}, "additionalProperties": False}, {"a": 1}, id="more than a closed schema takes"),
]


@pytest.mark.parametrize(("arguments", "text"), FAULTS)
def test_the_fault_names_the_field_and_what_it_wants(arguments: dict[str, Any], text: str) -> None:
    with pytest.raises(BadArgument) as caught:
        check_arguments(NESTED, arguments)
    assert caught.value.text == text


@pytest.mark.parametrize(("schema", "arguments"), FINE)
def test_all_other_meaning_is_the_backends(schema: dict[str, Any], arguments: dict[str, Any]) -> None:
    check_arguments(schema, arguments)


# --- the tool list -------------------------------------------------------------------------------


def test_a_tool_is_listed_with_what_it_has() -> None:
    tool = Tool("tap", "Tap", "Touch once.", {"type": "object", "properties": {}}, {"idempotentHint": False})
    assert tool.listed() == {
        "name": "tap",
        "title": "Tap",
        "description": "Touch once.",
        "inputSchema": {"type": "object", "properties": {}},
        "annotations": {"title": "Tap", "idempotentHint": False},
    }


def test_a_listing_is_written_once_in_the_order_given() -> None:
    schema = {"type": "object", "properties": {}}
    tool_list = ToolList([Tool(name, name.title(), "A tool.", schema) for name in ("b", "a", "c")], ttl_ms=0)
    written = json.loads(b"{" + tool_list.result + b"}")
    assert [tool["name"] for tool in written["tools"]] == list(tool_list.tools) == ["b", "a", "c"]
    assert (written["ttlMs"], written["cacheScope"]) == (0, "private")
    assert set(written) == {"tools", "ttlMs", "cacheScope"}


def test_a_schema_is_listed_word_for_word() -> None:
    """Also with the keywords of JSON Schema that only a newer client reads."""
    schema = {"$schema": "x", "type": "object", "$defs": {"a": {"$anchor": "b"}}, "allOf": [{"if": {}, "then": {}}]}
    listed = json.loads(b"{" + ToolList([Tool("a", "A", "A tool.", schema)]).result + b"}")
    assert listed["tools"][0]["inputSchema"] == schema


# --- content -------------------------------------------------------------------------------


class Source:
    """Bytes that arrive over time, in pieces as given."""

    def __init__(self, *pieces: bytes) -> None:
        self.pieces = pieces
        self.length: int | None = sum(map(len, pieces))

    def __iter__(self) -> Iterator[bytes]:
        return iter(self.pieces)

    def close(self) -> None:
        """Nothing is held."""


CONTENTS = [
    pytest.param(Content(()), b'"content":[],', id="no blocks"),
    pytest.param(Content((Text('a"\n\u00e9\ud83d'),)), b'"content":[{"type":"text","text":"a\\"\\n\\u00e9\\ufffd"}],', id="text"),
    pytest.param(Content((Image("iVBORw0K+/==", "image/png"), Text("1x1"))), b'"content":[{"type":"image","data":"iVBORw0K+/==","mimeType":"image/png"},{"type":"text","text":"1x1"}],', id="an image and text"),
    pytest.param(
        Content((Text("a"), Blob("x://b", "application/gzip", Source(b"ab", b"cd")))),
        b'"content":[{"type":"text","text":"a"},'
        b'{"type":"resource","resource":{"uri":"x://b","mimeType":"application/gzip","blob":"YWJjZA=="}}],',
        id="text and a blob",
    ),
    pytest.param(Content((Text("{}"),), {}), b'"content":[{"type":"text","text":"{}"}],"structuredContent":{},', id="an empty structure"),
    pytest.param(Content((Text("a"),), {"ok": None, "n": 1.0}, is_error=True), b'"content":[{"type":"text","text":"a"}],"structuredContent":{"ok":null,"n":1.0},"isError":true,', id="a structure and a failure"),
]  # fmt: skip


@pytest.mark.parametrize(("content", "members"), CONTENTS)
def test_a_result_is_exact_to_the_byte(content: Content, members: bytes) -> None:
    written = render_parts(result_parts("id", content, b'"resultType":"complete"'))
    assert written == b'{"jsonrpc":"2.0","id":"id","result":{' + members + b'"resultType":"complete"}}'
    json.loads(written)


def test_a_source_stays_whole() -> None:
    source = Source(b"a")
    content = Content((Blob("x://a", "a/b", source), Blob("x://b", "a/b", source)))
    parts = result_parts(1, content, b'"resultType":"complete"')
    assert [part for part in parts if not isinstance(part, bytes)] == [source, source]


def test_a_picture_that_is_no_base64_is_not_let_through_as_text() -> None:
    with pytest.raises(UnicodeEncodeError):
        Image("\u00e9", "image/png").parts()


LOOK = "Whether it took place is not known; look at the screen before you repeat it."
AGAIN = "Nothing of this call reached the phone; it can be called again."
OVER = "The action took place; do not repeat it."
ERRORS = [
    pytest.param(ToolError("gone"), False, "gone", None, id="text only"),
    pytest.param(Busy("busy", structured={"n": 1}), False, "busy", {"n": 1}, id="text and a structure"),
    pytest.param(Busy("busy", structured={}), False, "busy", None, id="an empty structure is left out"),
    pytest.param(Busy("busy"), True, f"busy\n{AGAIN}", {"delivery": NOT_SENT}, id="an action that was not sent"),
    pytest.param(ToolError("gone"), True, f"gone\n{LOOK}", {"delivery": UNKNOWN}, id="an action of unknown outcome"),
    pytest.param(ToolError("no picture", delivery=DONE, structured={"n": 1}), True, f"no picture\n{OVER}", {"n": 1, "delivery": DONE}, id="an action that took place"),
]  # fmt: skip


@pytest.mark.parametrize(("error", "acts", "text", "structured"), ERRORS)
def test_a_tool_error_is_a_result_that_says_so(error: ToolError, acts: bool, text: str, structured: Any) -> None:
    assert error_content(error, acts) == Content((Text(text),), structured, True)


def test_a_tool_acts_unless_it_says_that_it_only_reads() -> None:
    hints_of = {"reads": {"readOnlyHint": True}, "acts": {"readOnlyHint": False}, "silent": {}}
    tool_list = ToolList([Tool(name, name, "A tool.", {}, hints) for name, hints in hints_of.items()])
    assert [name for name in (*hints_of, "unknown") if tool_list.acts(name)] == ["acts", "silent"]


FIRST, SECOND, LOST = "\ud83d", "\ude00", "\ufffd"
HALVES = [
    pytest.param(FIRST, LOST, id="a first half"),
    pytest.param(SECOND, LOST, id="a second half"),
    pytest.param(SECOND + FIRST, LOST * 2, id="both in the wrong order"),
    pytest.param(FIRST + FIRST + SECOND, LOST + "\U0001f600", id="a half before a whole pair"),
    pytest.param("\U0001f600" + SECOND, "\U0001f600" + LOST, id="a half behind a whole character"),
    pytest.param("\U0001f600\u4f60\n", "\U0001f600\u4f60\n", id="whole characters"),
    pytest.param("\\ud83d", "\\ud83d", id="a backslash and what looks like one"),
    pytest.param("\\" + FIRST, "\\" + LOST, id="a half behind a backslash"),
    pytest.param("\\ud83d" + SECOND, "\\ud83d" + LOST, id="a half behind what looks like its first"),
    pytest.param(FIRST + "\\ude00", LOST + "\\ude00", id="a half before what looks like its second"),
    pytest.param('"' + FIRST + '"', '"' + LOST + '"', id="in quotes"),
]


@pytest.mark.parametrize(("text", "readable"), HALVES)
def test_half_a_surrogate_pair_never_leaves(text: str, readable: str) -> None:
    """In values and names; where it is echoed it stays what it was."""
    assert json.loads(compact({text: [text]})) == {readable: [readable]}
    assert compact({text: [text]}).isascii()
    assert json.loads(verbatim([text])) == json.loads(json.dumps([text]))


def test_json_is_ascii_without_blanks_and_never_nan() -> None:
    assert compact({"a": ["\u00e9", 1.0, None]}) == b'{"a":["\\u00e9",1.0,null]}'
    with pytest.raises(ValueError, match="not JSON compliant"):
        compact(float("nan"))
