"""Tools as clients and backends see them: arguments, the tool list, results to the byte."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from mcpboard.errors import DONE, NOT_SENT, UNKNOWN, BadArgument, Busy, ToolError
from mcpboard.protocol import tools
from mcpboard.protocol.endpoint import Endpoint, result_parts
from mcpboard.protocol.messages import OpenSession, ToolCall
from mcpboard.protocol.tools import (
    TYPES,
    Blob,
    Content,
    Image,
    Text,
    Tool,
    ToolList,
    check_arguments,
    normalize_arguments,
)
from mcpboard.protocol.versions import LEGACY
from tests.protocol.http_messages import PLAIN, enveloped, head, message, meta, modern, odd, render, render_parts
from tests.protocol.roles import ALICE, BOARD, HOST, POINT, SERVER, TOOLS, Outcome, Role

# --- the argument check ------------------------------------------------------------------------

HUGE = 10**400  # a whole number that no float can hold
NO_FLOATS = [float("inf"), float("nan"), "NaN", "nan", "inf", "-Infinity", "1e400"]

# Type of property -> values that pass, values that do not.
TYPE_VALUES: Mapping[str, tuple[list[Any], list[Any]]] = {
    "string": (["", "x", "\x00", "12", "\u05e9\U0001f9d1\u200d\U0001f4bb"], [5, 1.5, True, None, {}, []]),
    "number": (
        [0, -1, 0.5, 1.0, 1e9, 2**70, HUGE, "100", "0.5", "-1", "1e3", "+5", ".5"],
        [*NO_FLOATS, True, False, None, "", "x", "1_000", "\u0661", "0x10", "1,5", "1 2", {}, []],
    ),
    "integer": (
        [0, -1, 12, 12.0, 2**70, HUGE, "12", "-3", "12.0", "1e3"],
        [*NO_FLOATS, 0.5, True, None, "", "0.5", "x", "\u0663", {}, []],
    ),
    "boolean": ([True, False], [0, 1, "true", "", None, {}, []]),
    "object": ([{}, {"a": 1}], [[], "{}", None, 5, True]),
    "array": ([[], [1]], [{}, "[]", None, 5, True]),
}


@pytest.mark.parametrize("type_name", TYPES)
def test_a_property_is_of_its_type(type_name: str) -> None:
    good, bad = TYPE_VALUES[type_name]
    schema = {"type": "object", "properties": {"a": {"type": type_name, "description": "the first one"}}}
    for value in good:
        check_arguments(schema, {"a": value})
    for value in bad:
        with pytest.raises(BadArgument) as caught:
            check_arguments(schema, {"a": value})
        assert caught.value.text == f"argument a must be {TYPES[type_name][1]} (the first one)", value


NESTED = {"type": "object", "properties": {"to": POINT, "any": {}}, "required": ["to", "ghost"]}


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({}, "argument to is missing; it wants an object"),
        ({"to": {"x": 1, "y": 2}}, "argument ghost is missing; it wants a value"),
        ({"ghost": 1, "to": {"x": 1}}, "argument to.y is missing; it wants a finite number"),
        ({"ghost": 1, "to": {"x": 1, "y": "far"}}, "argument to.y must be a finite number"),
        ({"ghost": 1, "to": None}, "argument to must be an object"),
    ],
)
def test_the_fault_names_the_field_and_what_it_wants(arguments: dict[str, Any], text: str) -> None:
    with pytest.raises(BadArgument) as caught:
        check_arguments(NESTED, arguments)
    assert (caught.value.text, caught.value.delivery) == (text, NOT_SENT)


@pytest.mark.parametrize(
    ("schema", "arguments"),
    [
        (NESTED, {"ghost": None, "to": {"x": 1, "y": "2", "z": None}, "any": {"a": []}}),
        *((schema, {"a": 1}) for schema in ({}, {"type": "object"}, {"properties": {}, "additionalProperties": False})),
        *(({"properties": {"a": rule}}, {"a": 5}) for rule in ({"type": "number", "maximum": 1}, {"type": "moon"}, {"enum": ["x"]})),
    ],
)  # fmt: skip
def test_all_other_meaning_is_the_backends(schema: dict[str, Any], arguments: dict[str, Any]) -> None:
    check_arguments(schema, arguments)


def brackets(levels: int) -> str:
    return "[" * levels + "]" * levels


NUMBER = {"type": "number"}
STEP = {"type": "object", "properties": {"x": NUMBER, "y": NUMBER, "ms": NUMBER}, "required": ["x", "y"]}
MANY = {"type": "object", "properties": {
    "to": POINT, "label": {"type": "string"}, "any": {}, "all": {"type": "array", "items": STEP}, "list": {"type": "array"}, "other": {"type": "array"},
}, "required": ["label"]}  # fmt: skip


@pytest.mark.parametrize(("given", "meant"), [
    ({"to": '{"x":500,"y":"5"}'}, {"to": {"x": 500, "y": "5"}}),
    ({"to": ' {"x": 1.0}\n'}, {"to": {"x": 1.0}}),
    ({"all": '[{"x":1},{"x":2}]'}, {"all": [{"x": 1}, {"x": 2}]}),
    ({"all": '["{\\"x\\":1}"]'}, {"all": [{"x": 1}]}),
    ({"all": [{"x": 1, "ms": None}, None, "x"]}, {"all": [{"x": 1}, None, "x"]}),
    ({"all": '[{"ms":null,"y":null}]'}, {"all": [{"y": None}]}),
    ({"to": None, "label": None, "any": None, "new": None}, {"label": None, "new": None}),
    ({"to": {"x": None, "z": None}}, {"to": {"x": None, "z": None}}),
    *(({name: text},) * 2 for name in ("label", "any", "new") for text in ('{"x":1}', "[1]", "null")),
    *(({"to": text},) * 2 for text in ("[]", "5", "null", '"{}"', "", "{", "{'x':1}", '{"x":NaN}', '{"x":1%s}' % ("0" * 4300), '{"\ud83d":')),
    *(({"all": text},) * 2 for text in ("{}", "[1", "[] []")),
    pytest.param({"list": brackets(61)}, {"list": json.loads(brackets(61))}, id="61 levels"),
    *(pytest.param({"list": brackets(levels)}, {"list": brackets(levels)}, id=f"{levels} levels") for levels in (62, 10_000)),
    pytest.param({"list": "[%s[]]" % ("[]," * 9998)}, {"list": [[]] * 9999}, id="10,000 lists"),
    pytest.param({"list": "[%s[]]" % ("[]," * 9998), "other": "[]"}, {"list": [[]] * 9999, "other": "[]"}, id="10,001 lists in two texts"),
])  # fmt: skip
def test_null_is_left_out_and_json_text_stands_for_what_it_spells(given: dict[str, Any], meant: dict[str, Any]) -> None:
    assert normalize_arguments(MANY, given) == meant


# --- what is left to the role ------------------------------------------------------------------


def called(arguments: Any, policy: Any = BOARD, sent: Any = PLAIN, name: str = "tap") -> ToolCall:
    role = Role(policy)
    role.post(sent, message("tools/call", {"name": name, "arguments": arguments}, id="c"))
    (call,) = role.calls
    return call


ODD_TEXT = "\u05e9\u05dc \U0001f469\u200d\U0001f467 e\u0301 '\"\\$;|`\n\t\x00"


@pytest.mark.parametrize(
    ("arguments", "written"),
    [
        ({"x": 0.5, "y": 1.0}, b'{"x":0.5,"y":1.0}'),
        ({"x": -1, "y": 1e9}, b'{"x":-1,"y":1000000000.0}'),
        ({"x": "100", "y": " 7"}, b'{"x":"100","y":" 7"}'),
        ({"x": HUGE, "y": 0}, b'{"x":1' + b"0" * 400 + b',"y":0}'),
        ({"x": 1, "y": 2, "label": ODD_TEXT}, '{"x":1,"y":2,"label":"\u05e9\u05dc \U0001f469\u200d\U0001f467 e\u0301 \'\\"\\\\$;|`\\n\\t\\u0000"}'.encode()),
        ({"y": 1, "x": 2, "z": {"b": None, "a": []}}, b'{"y":1,"x":2,"z":{"b":null,"a":[]}}'),
    ],
    ids=["floats", "out of range", "numbers as text", "beyond floats", "beyond ASCII", "order and nulls"],
)  # fmt: skip
def test_arguments_go_on_as_they_came(arguments: dict[str, Any], written: bytes) -> None:
    call = called(arguments)
    assert (call.arguments, call.arguments_json) == (arguments, written)
    assert called(None, name="status").arguments_json == called({}, name="status").arguments_json == b"{}"


def test_a_call_carries_who_asks_and_how() -> None:
    body = enveloped("tools/call", meta(capabilities={"sampling": {}}), id=0, name="status")
    role = Role(HOST)
    role.post(modern("tools/call", "status", authorization=ALICE, session="s-1"), body)
    (call,) = role.calls
    assert (call.id, call.name, call.principal, call.session) == (0, "status", "alice", None)
    assert (call.request_version.modern, call.request_version.capabilities) == (True, {"sampling": {}})
    call = called({"x": 1, "y": 2}, HOST, head(LEGACY, authorization=ALICE, session="s-1"))
    assert (call.session, call.principal, call.request_version.capabilities) == ("s-1", "alice", {})


@pytest.mark.parametrize(
    ("info", "client"),
    [
        ({"name": "inspector", "version": "1.2"}, "inspector 1.2"),
        ({"name": "inspector"}, "inspector"),
        ({"version": "1"}, "1"),
        ({"name": 5, "version": ["1"]}, ""),
        ({"name": "a\nb\x1b[1m\ud83d", "version": "\u05e9"}, "a b [1m \u05e9"),
        ({"name": "x" * 200, "version": "1"}, "x" * 80),
        *((info, "") for info in odd("inspector", None, [])),
    ],
)
def test_a_session_is_opened_with_the_clients_name(info: Any, client: str) -> None:
    role = Role(HOST)
    role.post(head(authorization=ALICE), message("initialize", {"protocolVersion": LEGACY, "clientInfo": info}, id="i"))
    assert role.steps == [OpenSession("i", LEGACY, client, "alice")]


# --- the tool list -----------------------------------------------------------------------------


def test_a_tool_is_listed_word_for_word_in_the_order_given() -> None:
    """Also with the keywords of JSON Schema that only a newer client reads."""
    schema = {"$schema": "x", "type": "object", "$defs": {"a": {"$anchor": "b"}}, "allOf": [{"if": {}, "then": {}}]}
    hints = {"idempotentHint": False}
    tool_list = ToolList([Tool(name, name.title(), "A tool.", schema, hints) for name in ("b", "a", "c")], ttl_ms=0)
    written = json.loads(b"{" + tool_list.result + b"}")
    assert [tool["name"] for tool in written["tools"]] == list(tool_list.tools) == ["b", "a", "c"]
    annotations = {"title": "B", **hints}
    listed = {"name": "b", "title": "B", "description": "A tool.", "inputSchema": schema, "annotations": annotations}
    assert written == {"tools": [listed, *written["tools"][1:]], "ttlMs": 0, "cacheScope": "private"}


def test_a_tool_acts_unless_it_says_that_it_only_reads() -> None:
    hints_of = {"reads": {"readOnlyHint": True}, "acts": {"readOnlyHint": False}, "silent": {}}
    tool_list = ToolList([Tool(name, name, "A tool.", {}, hints) for name, hints in hints_of.items()])
    assert [name for name in (*hints_of, "unknown") if tool_list.acts(name)] == ["acts", "silent"]


# --- results -----------------------------------------------------------------------------------


class Source:
    """Bytes that arrive over time, in pieces as given."""

    length: int | None = None

    def __init__(self, *pieces: bytes) -> None:
        self.pieces = pieces

    def __iter__(self) -> Iterator[bytes]:
        return iter(self.pieces)

    def close(self) -> None:
        """Nothing is held."""


CONTENTS = {
    "no blocks": (Content(()), b'"content":[],'),
    "text": (Content((Text('a"\n\u00e9\ud83d'),)), b'"content":[{"type":"text","text":"a\\"\\n\\u00e9\\ufffd"}],'),
    "an image and text": (Content((Image("iVBORw0K+/==", "image/png"), Text("1x1"))), b'"content":[{"type":"image","data":"iVBORw0K+/==","mimeType":"image/png"},{"type":"text","text":"1x1"}],'),
    "text and a blob": (Content((Text("a"), Blob("x://b", "application/gzip", Source(b"ab", b"cd")))), b'"content":[{"type":"text","text":"a"},{"type":"resource","resource":{"uri":"x://b","mimeType":"application/gzip","blob":"YWJjZA=="}}],'),
    "an empty structure": (Content((Text("{}"),), {}), b'"content":[{"type":"text","text":"{}"}],"structuredContent":{},'),
    "a structure and a failure": (Content((Text("a"),), {"ok": None, "n": 1.0}, is_error=True), b'"content":[{"type":"text","text":"a"}],"structuredContent":{"ok":null,"n":1.0},"isError":true,'),
}  # fmt: skip


@pytest.mark.parametrize(("content", "members"), CONTENTS.values(), ids=CONTENTS)
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


@pytest.mark.parametrize(
    "outcome", [Content((Text("a"),), {"a": 1}), Content((Image("AAAA", "image/png"),)), Busy("busy")]
)
@pytest.mark.parametrize("name", ["status", "tap"])
def test_every_modern_result_says_who_answers(name: str, outcome: Outcome) -> None:
    """Also where the arguments are at fault, as those of the tap."""
    result = Role(BOARD, outcome).post(modern("tools/call", name), enveloped("tools/call", name=name)).json["result"]
    assert (result["_meta"], result["resultType"]) == ({"io.modelcontextprotocol/serverInfo": SERVER}, "complete")


def test_our_own_bug_is_told_without_an_id_that_nobody_read() -> None:
    assert render(Endpoint(BOARD, ToolList(TOOLS)).crashed(None)).json["id"] is None


LOOK = "Whether it took place is not known; look at the screen before you repeat it."
AGAIN = "Nothing of this call reached the phone; it can be called again."
OVER = "The action took place; do not repeat it."


@pytest.mark.parametrize(
    ("error", "acts", "text", "structured"),
    [
        (ToolError("gone"), False, "gone", None),
        (Busy("busy", structured={"n": 1}), False, "busy", {"n": 1}),
        (Busy("busy"), True, f"busy\n{AGAIN}", {"delivery": NOT_SENT}),
        (ToolError("gone"), True, f"gone\n{LOOK}", {"delivery": UNKNOWN}),
        (ToolError("no picture", delivery=DONE, structured={"n": 1}), True, f"no picture\n{OVER}", {"n": 1, "delivery": DONE}),
    ],
)  # fmt: skip
def test_a_tool_error_is_a_result_that_says_so(error: ToolError, acts: bool, text: str, structured: Any) -> None:
    assert tools.error_content(error, acts) == Content((Text(text),), structured, True)


FIRST, SECOND, LOST, WHOLE = "\ud83d", "\ude00", "\ufffd", "\U0001f600"


@pytest.mark.parametrize(
    ("text", "readable"),
    [
        *((FIRST, LOST), (SECOND, LOST), (SECOND + FIRST, LOST * 2), (FIRST + FIRST + SECOND, LOST + WHOLE)),
        *((WHOLE + SECOND, WHOLE + LOST), (f"{WHOLE}\u4f60\n", f"{WHOLE}\u4f60\n"), (f'"{FIRST}"', f'"{LOST}"')),
        # Backslashes, and what looks like an escape behind them.
        *(("\\ud83d", "\\ud83d"), ("\\" + FIRST, "\\" + LOST), ("\\ud83d" + SECOND, "\\ud83d" + LOST)),
        (FIRST + "\\ude00", LOST + "\\ude00"),
    ],
    ids=ascii,
)
def test_half_a_surrogate_pair_never_leaves(text: str, readable: str) -> None:
    """In values and names; where it is echoed it stays what it was."""
    assert json.loads(tools.compact({text: [text]})) == {readable: [readable]}
    assert json.loads(tools.verbatim([text])) == json.loads(json.dumps([text]))


def test_json_is_ascii_without_spaces_and_never_nan() -> None:
    assert tools.compact({"a": ["\u00e9", 1.0, None]}) == b'{"a":["\\u00e9",1.0,null]}'
    with pytest.raises(ValueError, match="not JSON compliant"):
        tools.compact(float("nan"))
