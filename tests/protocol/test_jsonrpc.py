"""Body bytes to messages and back: what is read, what is echoed, and which status carries what."""

from __future__ import annotations

import json
from typing import Any

import pytest

from mcpboard import errors
from mcpboard.errors import InvalidRequest, MissingCapability, ParseError, ProtocolError
from mcpboard.protocol import jsonrpc
from mcpboard.protocol.jsonrpc import Notification, Request, Response
from tests.protocol.http_messages import UNSENT, message

BROKEN = {
    "nothing": b"",
    "spaces": b"  \n",
    "a mark and nothing": b"\xef\xbb\xbf",
    "two marks": b"\xef\xbb\xbf\xef\xbb\xbf{}",
    "half an object": b'{"a":',
    "an object and more": b"{} {}",
    "a comma too many": b'{"a":1,}',
    "single quotes": b"{'a':1}",
    "a control character in text": b'"a\nb"',
    "a leading nought": b"01",
    "a plus sign": b"+1",
    "NaN": b"NaN",
    "NaN inside": b'{"a":[NaN]}',
    "Infinity": b"Infinity",
    "minus Infinity": b"-Infinity",
    "UTF-16 with its mark": '{"a":1}'.encode("utf-16"),
    "UTF-16 little end first": '{"a":1}'.encode("utf-16-le"),
    "UTF-16 big end first": '{"a":1}'.encode("utf-16-be"),
    "UTF-32": '{"a":1}'.encode("utf-32"),
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
    "a NUL": b"\x00",
}

READ = [
    pytest.param(b"\xef\xbb\xbf{}", {}, id="a byte order mark"),
    pytest.param(b' \t\r\n{"a":1}\n', {"a": 1}, id="spaces around"),
    pytest.param(b'{"a":1,"a":2}', {"a": 2}, id="the last of two members counts"),
    pytest.param(b"[" * 64 + b"]" * 64, json.loads("[" * 64 + "]" * 64), id="64 levels"),
    pytest.param(b"[" + b"{}," * 9_998 + b"{}]", [{}] * 9_999, id="10,000 lists and objects"),
    pytest.param(b'["' + b"[{" * 50_000 + b'"]', ["[{" * 50_000], id="brackets in text"),
    pytest.param(b"9" * 4_300, int("9" * 4_300), id="an integer of 4,300 digits"),
    pytest.param(b'"\\ud83d"', "\ud83d", id="half a surrogate pair"),
    pytest.param(b'"\\u0000"', "\x00", id="an escaped NUL"),
    pytest.param(b"1e400", float("inf"), id="a number beyond every float"),
    pytest.param('"\u05e9\U0001f9d1\u200d\U0001f4bb"'.encode(), "\u05e9\U0001f9d1\u200d\U0001f4bb", id="text beyond ASCII"),
]  # fmt: skip


@pytest.mark.parametrize("body", BROKEN.values(), ids=BROKEN)
def test_broken_json_is_a_parse_error_that_shows_no_internals(body: bytes) -> None:
    with pytest.raises(ParseError) as caught:
        jsonrpc.load(body)
    assert caught.value.message.startswith("the body is n")
    assert len(caught.value.message) < 100


@pytest.mark.parametrize(("body", "document"), READ)
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


IDS = [
    pytest.param(0, True, id="nought"),
    pytest.param(-1, True, id="a negative number"),
    pytest.param(2**70, True, id="a number beyond 64 bits"),
    pytest.param("", True, id="empty text"),
    pytest.param("0", True, id="a digit as text"),
    pytest.param("\ud83d", True, id="half a surrogate pair"),
    pytest.param(1.0, True, id="a whole float"),
    pytest.param(-0.0, True, id="minus nought"),
    pytest.param(1.5, False, id="a fraction"),
    pytest.param(float("inf"), False, id="a number beyond every float"),
    pytest.param(None, False, id="null"),
    pytest.param(True, False, id="true"),
    pytest.param(False, False, id="false"),
    pytest.param({}, False, id="an object"),
    pytest.param("x" * 1024, True, id="as long as it may be"),
    pytest.param("x" * 1025, False, id="longer than anybody needs"),
    pytest.param([1], False, id="a list"),
]


@pytest.mark.parametrize(("value", "valid"), IDS)
def test_an_id_is_text_or_a_whole_number(value: Any, valid: bool) -> None:
    assert jsonrpc.valid_id(value) is valid
    assert jsonrpc.readable_id({"id": value, "method": "x"}) == (value if valid else None)
    document = {"jsonrpc": "2.0", "id": value, "method": "x"}
    if valid:
        assert jsonrpc.parse_message(document) == Request(value, "x", {})
    else:
        with pytest.raises(InvalidRequest, match="id"):
            jsonrpc.parse_message(document)


@pytest.mark.parametrize("value", [param.values[0] for param in IDS if param.values[1]])
def test_an_id_comes_back_as_it_was_sent(value: Any) -> None:
    """As result and as error, in the same JSON type."""
    for written in (jsonrpc.result(value, b"{}"), jsonrpc.error(InvalidRequest("x"), value)):
        assert repr(json.loads(written)["id"]) == repr(value)


@pytest.mark.parametrize(
    "document",
    [None, 5, "x", [], [{"id": 1}], {}, {"id": 1, "result": {}}, {"id": 1, "error": {}}],
    ids=["null", "a number", "text", "an empty batch", "a batch", "an empty object", "a result", "an error"],
)
def test_there_is_no_id_to_echo(document: Any) -> None:
    assert jsonrpc.readable_id(document) is None


SHAPES = [
    pytest.param(message("x"), Request(1, "x", {}), id="a request"),
    pytest.param(message("x", {"a": None}), Request(1, "x", {"a": None}), id="a request with params"),
    pytest.param(message("x", {"a": 1}, extra=[]), Request(1, "x", {"a": 1}), id="an extra member"),
    pytest.param(message("x", result=1), Request(1, "x", {}), id="a result beside the method"),
    pytest.param(message("x", id=UNSENT), Notification("x"), id="a notification"),
    pytest.param(message("x", None, id=UNSENT), Notification("x"), id="a notification with params of null"),
    pytest.param(message("x", {}, id=UNSENT), Notification("x"), id="a notification with params"),
    pytest.param(message(UNSENT, result=None), Response(), id="a result of null"),
    pytest.param(message(UNSENT, id=None, error={}), Response(), id="an error without an id"),
]


@pytest.mark.parametrize(("body", "wanted"), SHAPES)
def test_a_message_is_one_of_three(body: bytes, wanted: jsonrpc.Message) -> None:
    assert jsonrpc.parse_message(jsonrpc.load(body)) == wanted


def test_error_bytes_are_exact() -> None:
    fault = InvalidRequest('say "please" \u00e9')
    assert jsonrpc.error(fault, "a") == (
        b'{"jsonrpc":"2.0","id":"a","error":{"code":-32600,"message":"say \\"please\\" \\u00e9"}}'
    )
    assert jsonrpc.error(fault, None).startswith(b'{"jsonrpc":"2.0","id":null,"error":')
    assert jsonrpc.error(fault, None, with_id=False).startswith(b'{"jsonrpc":"2.0","error":')
    assert jsonrpc.error(MissingCapability("sampling"), 0).endswith(
        b',"data":{"requiredCapabilities":{"sampling":{}}}}}'
    )


STATUSES = [
    pytest.param(errors.ParseError("x"), -32700, 400, id="parse error"),
    pytest.param(errors.InvalidRequest("x"), -32600, 400, id="invalid request"),
    pytest.param(errors.SessionGone("x"), -32600, 404, id="session gone"),
    pytest.param(errors.MethodNotFound("x"), -32601, 404, id="method not found"),
    pytest.param(errors.InvalidParams("x"), -32602, 200, id="invalid params"),
    pytest.param(errors.InvalidEnvelope("x"), -32602, 400, id="invalid envelope"),
    pytest.param(errors.UnknownDevice("x"), -32602, 200, id="unknown device"),
    pytest.param(errors.InternalError("x"), -32603, 200, id="internal error"),
    pytest.param(errors.ToolFailed("x"), -32000, 200, id="tool failed"),
    pytest.param(errors.DeviceBusy("x", "cloud_assignment", 5), -32000, 200, id="device busy"),
    pytest.param(errors.Unanswered("no answer", "unknown"), -32603, 200, id="a bridge without an answer"),
    pytest.param(errors.HeaderMismatch("x"), -32020, 400, id="header mismatch"),
    pytest.param(errors.MissingCapability("x"), -32021, 400, id="missing capability"),
    pytest.param(errors.UnsupportedVersion("x"), -32022, 400, id="unsupported version"),
]


@pytest.mark.parametrize(("fault", "code", "status"), STATUSES)
def test_each_error_rides_on_its_status(fault: ProtocolError, code: int, status: int) -> None:
    assert (fault.code, jsonrpc.status(fault)) == (code, status)


def test_no_error_of_the_tree_is_left_out_of_the_table() -> None:
    def subclasses(root: type[ProtocolError]) -> set[type[ProtocolError]]:
        return {root} | {found for error in root.__subclasses__() for found in subclasses(error)}

    ours = {each for each in subclasses(ProtocolError) if each.__module__ == errors.__name__}
    assert ours - {ProtocolError} == {type(param.values[0]) for param in STATUSES}
    assert {each.code for each in ours} <= set(jsonrpc.HTTP_STATUS)
