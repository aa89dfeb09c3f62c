"""Body bytes to documents and errors to bytes; what a message is, the rows of the table say."""

from __future__ import annotations

import json
from typing import Any

import pytest

from mcpboard import errors
from mcpboard.errors import InvalidRequest, ParseError, ProtocolError
from mcpboard.protocol import jsonrpc

BROKEN = {
    "nothing": b"",
    "a mark and nothing": b"\xef\xbb\xbf",
    "two marks": b"\xef\xbb\xbf\xef\xbb\xbf{}",
    "half an object": b'{"a":',
    "NaN inside": b'{"a":[NaN]}',
    "minus Infinity": b"-Infinity",
    **{f"text of {encoding}": '{"a":1}'.encode(encoding) for encoding in ("utf-16", "utf-16-le", "utf-16-be", "utf-32")},
    "Latin-1": '"\u00e9"'.encode("latin-1"),
    "an overlong NUL": b'"\xc0\x80"',
    "a surrogate as bytes": b'"\xed\xa0\xbd"',
    "a lone continuation byte": b'"\x80"',
    "lists without end": b"[" * 200_000,
    "objects without end": b'{"a":' * 200_000,
    "deep but closed": b"[" * 200_000 + b"]" * 200_000,
    "65 levels": b"[" * 65 + b"]" * 65,
    "65 levels of both": b'[{"a":' * 33 + b"1" + b"}]" * 33,
    "10,001 lists": b"[" + b"[]," * 9_999 + b"[]]",
    "10,001 objects": b"[" + b'{"a":0},' * 9_999 + b"{}]",
    "an integer of 4,301 digits": b"9" * 4_301,
}  # fmt: skip

READ: dict[str, tuple[bytes, Any]] = {
    "a byte order mark": (b"\xef\xbb\xbf{}", {}),
    "the last of two members counts": (b'{"a":1,"a":2}', {"a": 2}),
    "64 levels": (b"[" * 64 + b"]" * 64, json.loads("[" * 64 + "]" * 64)),
    "10,000 lists and objects": (b"[" + b"{}," * 9_998 + b"{}]", [{}] * 9_999),
    "brackets in text": (b'["' + b"[{" * 50_000 + b'"]', ["[{" * 50_000]),
    "an integer of 4,300 digits": (b"9" * 4_300, int("9" * 4_300)),
    "half a surrogate pair": (b'"\\ud83d"', "\ud83d"),
    "a number beyond every float": (b"1e400", float("inf")),
    "text beyond ASCII": ('"\u05e9\U0001f9d1\u200d\U0001f4bb"'.encode(), "\u05e9\U0001f9d1\u200d\U0001f4bb"),
}


@pytest.mark.parametrize("body", BROKEN.values(), ids=BROKEN)
def test_broken_json_is_a_parse_error_that_shows_no_internals(body: bytes) -> None:
    with pytest.raises(ParseError) as caught:
        jsonrpc.load(body)
    assert caught.value.message.startswith("the body is n")
    assert len(caught.value.message) < 100


@pytest.mark.parametrize(("body", "document"), READ.values(), ids=READ)
def test_json_is_read_as_it_stands(body: bytes, document: Any) -> None:
    assert jsonrpc.load(body) == document


def test_what_a_server_answers_may_be_deep() -> None:
    """A tree of a screen has hundreds of levels and thousands of nodes; who passes it on reads all of them."""
    found = jsonrpc.load_response(b'{"a":[' * 500 + b"]}" * 500)
    for _ in range(499):
        (found,) = found["a"]
    assert found == {"a": []}
    assert len(jsonrpc.load_response(b"[" + b"{}," * 20_000 + b"{}]")) == 20_001
    for broken in (b"[" * 1001 + b"]" * 1001, b"[" * 100_000, b"\xff", b"{"):
        with pytest.raises(ParseError):
            jsonrpc.load_response(broken)


@pytest.mark.parametrize(
    "value", [0, -1, 2**70, "", "0", "\ud83d", 1.0, -0.0, "x" * 1024], ids=lambda value: f"{value!a:.20}"
)
def test_an_id_comes_back_as_it_was_sent(value: Any) -> None:
    """As result and as error, in the same JSON type."""
    for written in (jsonrpc.result(value, b"{}"), jsonrpc.error(InvalidRequest("x"), value)):
        assert repr(json.loads(written)["id"]) == repr(value)


def test_error_bytes_are_exact() -> None:
    fault = InvalidRequest('say "please" \u00e9', data={"a": 1})
    members = b'"error":{"code":-32600,"message":"say \\"please\\" \\u00e9","data":{"a":1}}}'
    assert jsonrpc.error(fault, "a") == b'{"jsonrpc":"2.0","id":"a",' + members
    assert jsonrpc.error(fault, None) == b'{"jsonrpc":"2.0","id":null,' + members
    assert jsonrpc.error(fault, None, with_id=False) == b'{"jsonrpc":"2.0",' + members


# Each error -> its JSON-RPC code and HTTP status.
STATUSES: dict[ProtocolError, tuple[int, int]] = {
    errors.ParseError("x"): (-32700, 400),
    errors.InvalidRequest("x"): (-32600, 400),
    errors.UnsupportedMediaType("x"): (-32600, 415),
    errors.SessionGone("x"): (-32600, 404),
    errors.MethodNotFound("x"): (-32601, 404),
    errors.InvalidParams("x"): (-32602, 200),
    errors.InvalidEnvelope("x"): (-32602, 400),
    errors.UnknownDevice("x"): (-32602, 200),
    errors.InternalError("x"): (-32603, 200),
    errors.Unanswered("no answer", "unknown"): (-32603, 200),
    errors.ToolFailed("x"): (-32000, 200),
    errors.DeviceBusy("x", "cloud_assignment", 5): (-32000, 200),
    errors.HeaderMismatch("x"): (-32020, 400),
    errors.UnsupportedVersion("x"): (-32022, 400),
}


def test_each_error_rides_on_its_status() -> None:
    assert {each: (each.code, jsonrpc.status(each)) for each in STATUSES} == STATUSES


def test_no_error_of_the_tree_is_left_out_of_the_table() -> None:
    def subclasses(root: type[ProtocolError]) -> set[type[ProtocolError]]:
        return {root} | {found for error in root.__subclasses__() for found in subclasses(error)}

    ours = {each for each in subclasses(ProtocolError) if each.__module__ == errors.__name__}
    assert ours - {ProtocolError} == {type(each) for each in STATUSES}
