"""Replies to the byte, in both revisions and from both roles."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from mcpboard.errors import Busy
from mcpboard.protocol.endpoint import Endpoint
from mcpboard.protocol.headers import SERVER_KEY
from mcpboard.protocol.messages import ListTools, OpenSession, ToolCall
from mcpboard.protocol.tools import Content, Image, Text
from mcpboard.protocol.versions import LEGACY, MODERN
from tests.protocol.http_messages import RenderedReply, enveloped, head, message, meta, modern
from tests.protocol.roles import ALICE, BOARD, HOST, OFF, SERVER, TOOL_LIST, TOOLS, Outcome, Role

WHO = b'{"name":"fixture","title":"Fixture","version":"1.2.3"}'
SIGNATURE = b'"resultType":"complete","_meta":{"io.modelcontextprotocol/serverInfo":' + WHO + b"}"
BARE = b'"resultType":"complete"'
ABILITIES = b'"capabilities":{"tools":{}}'
HANDSHAKE = b'"protocolVersion":"%s",' + ABILITIES + b',"serverInfo":' + WHO + b',"instructions":"Look first.",'
DISCOVER = (
    b'"supportedVersions":["2026-07-28","2025-11-25"],' + ABILITIES + b',"instructions":"Look first.",'
    b'"ttlMs":300000,"cacheScope":"private",' + SIGNATURE
)
LISTED = b'"tools":' + json.dumps([tool.listed() for tool in TOOLS], separators=(",", ":")).encode()
LIST = LISTED + b',"ttlMs":60000,"cacheScope":"private",'
CALL = b'"content":[{"type":"text","text":"done"}],'
ASKED = {version: message("initialize", {"protocolVersion": version}) for version in (MODERN, LEGACY, "2025-03-26")}
STATUS = message("tools/call", {"name": "status"})

EXACT = [
    pytest.param(head(), ASKED[LEGACY], HANDSHAKE % LEGACY.encode() + BARE, id="initialize"),
    pytest.param(head(), ASKED[MODERN], HANDSHAKE % MODERN.encode() + BARE, id="initialize asking for the modern version"),
    pytest.param(head(), ASKED["2025-03-26"], HANDSHAKE % LEGACY.encode() + BARE, id="initialize asking for an older one"),
    pytest.param(modern(), ASKED[LEGACY], HANDSHAKE % LEGACY.encode() + BARE, id="initialize under the modern header"),
    pytest.param(modern("initialize"), ASKED[MODERN], HANDSHAKE % MODERN.encode() + SIGNATURE, id="initialize as modern traffic"),
    pytest.param(head(), message("server/discover"), DISCOVER, id="discover out of nowhere"),
    pytest.param(head(LEGACY), message("server/discover"), DISCOVER, id="discover in the legacy revision"),
    pytest.param(modern(), message("server/discover"), DISCOVER, id="discover by header alone"),
    pytest.param(modern("server/discover"), enveloped("server/discover"), DISCOVER, id="discover with an envelope"),
    pytest.param(modern(), message("ping"), BARE, id="ping by the modern header alone"),
    pytest.param(modern("ping"), message("ping"), BARE, id="ping by both modern headers"),
    pytest.param(head(LEGACY), message("ping"), b"", id="ping in the legacy revision"),
    pytest.param(head("2024-11-05"), message("ping"), b"", id="ping in an older revision"),
    pytest.param(head(), message("ping"), BARE, id="ping out of nowhere"),
    pytest.param(head(), message("tools/list"), LIST + BARE, id="tools/list out of nowhere"),
    pytest.param(head(LEGACY), message("tools/list", {}), LIST + BARE, id="tools/list in the legacy revision"),
    pytest.param(head(LEGACY), enveloped("tools/list", meta(LEGACY)), LIST + BARE, id="an enveloped legacy tools/list"),
    pytest.param(modern(), message("tools/list"), LIST + SIGNATURE, id="tools/list by header alone"),
    pytest.param(modern("tools/list"), enveloped("tools/list"), LIST + SIGNATURE, id="tools/list with an envelope"),
    pytest.param(head(), STATUS, CALL + BARE, id="tools/call out of nowhere"),
    pytest.param(head(LEGACY), STATUS, CALL + BARE, id="tools/call in the legacy revision"),
    pytest.param(modern(), STATUS, CALL + SIGNATURE, id="tools/call by header alone"),
    pytest.param(modern("tools/call", "status"), enveloped("tools/call", name="status"), CALL + SIGNATURE, id="tools/call with an envelope"),
]  # fmt: skip


@pytest.mark.parametrize(("sent", "body", "members"), EXACT)
def test_an_answer_is_exact_to_the_byte(sent: Any, body: bytes, members: bytes) -> None:
    got = Role(BOARD).post(sent, body)
    assert got == RenderedReply(
        200, {"Content-Type": "application/json"}, b'{"jsonrpc":"2.0","id":1,"result":{' + members + b"}}"
    )


def test_a_ping_with_an_envelope_is_gone_and_its_words_say_where_to() -> None:
    got = Role(BOARD).post(modern("ping"), enveloped("ping", id="p"))
    assert got.status == 404
    assert got.body == (
        b'{"jsonrpc":"2.0","id":"p","error":{"code":-32601,"message":'
        b"\"method not found: 'ping'; this is 2026-07-28 traffic, ping belongs to 2025-11-25\"}}"
    )


def test_an_acknowledgement_is_nothing_at_all() -> None:
    assert Role(BOARD).post(head(), b'{"jsonrpc":"2.0","method":"notifications/initialized"}') == RenderedReply(
        202, {}, None
    )


def test_a_refusal_while_switched_off_is_exact() -> None:
    got = Role(replace(BOARD, disabled=OFF)).post(head(), message("tools/list", id=0))
    assert got.body == b'{"jsonrpc":"2.0","id":0,"error":{"code":-32601,"message":"' + OFF.encode() + b'"}}'


MODERN_CALLS = [
    pytest.param("server/discover", {}, id="discover"),
    pytest.param("tools/list", {}, id="tools/list"),
    pytest.param("tools/call", {"name": "status"}, id="tools/call"),
    pytest.param("tools/call", {"name": "tap"}, id="a fault in the arguments"),
]
OUTCOMES = [
    pytest.param(Content((Text("a"),)), id="text"),
    pytest.param(Content((Text("a"),), {"a": 1}), id="a structure"),
    pytest.param(Content((Image("AAAA", "image/png"),)), id="an image"),
    pytest.param(Busy("busy"), id="a failure"),
]


@pytest.mark.parametrize("outcome", OUTCOMES)
@pytest.mark.parametrize(("method", "params"), MODERN_CALLS)
def test_every_modern_result_says_who_answers(method: str, params: dict[str, Any], outcome: Outcome) -> None:
    bodies = (message(method, params), enveloped(method, **params))
    for sent, body in zip((modern(), modern(method, params.get("name"))), bodies, strict=True):
        result = Role(BOARD, outcome).post(sent, body).result
        assert result["_meta"] == {SERVER_KEY: SERVER}
        assert result["resultType"] == "complete"


def nulls(value: Any) -> bool:
    """True when a null stands anywhere in `value`."""
    if isinstance(value, dict):
        return any(map(nulls, value.values()))
    return any(map(nulls, value)) if isinstance(value, list) else value is None


@pytest.mark.parametrize(("sent", "body", "members"), EXACT)
def test_no_result_holds_a_null_or_a_number_with_a_fraction(sent: Any, body: bytes, members: bytes) -> None:
    got = Role(BOARD).post(sent, body)
    assert not nulls(got.json)
    assert all(type(got.result[key]) is int for key in ("ttlMs",) if key in got.result)
    assert got.result.get("capabilities", {"tools": {}}) == {"tools": {}}
    assert "nextCursor" not in got.result


def test_the_list_is_the_same_every_time_and_follows_a_new_endpoint() -> None:
    role = Role(BOARD)
    first = role.post(head(), message("tools/list"))
    assert role.post(head(), message("tools/list")) == first
    step = role.steps[0]
    assert isinstance(step, ListTools)
    newer = Endpoint(BOARD, replace_listing("b"))
    assert (
        json.loads(b"".join(p for p in newer.listed(step).parts if isinstance(p, bytes)))["result"]["tools"][0]["name"]
        == "b"
    )


def replace_listing(name: str) -> Any:
    return type(TOOL_LIST)([replace(TOOLS[0], name=name)])


# --- what is left to the role --------------------------------------------------------------


def called(arguments: Any, policy: Any = BOARD, sent: Any = None, name: str = "tap") -> ToolCall:
    role = Role(policy)
    role.post(sent or head(), message("tools/call", {"name": name, "arguments": arguments}, id="c"))
    (call,) = role.calls
    return call


FORWARDED = [
    pytest.param({"x": 0.5, "y": 1.0}, b'{"x":0.5,"y":1.0}', id="floats"),
    pytest.param({"x": -1, "y": 1e9}, b'{"x":-1,"y":1000000000.0}', id="numbers out of range"),
    pytest.param({"x": "100", "y": " 7"}, b'{"x":"100","y":" 7"}', id="numbers as text"),
    pytest.param({"x": 10**400, "y": 0}, b'{"x":1' + b"0" * 400 + b',"y":0}', id="a number no float can hold"),
    pytest.param(
        {"x": 1, "y": 2, "label": "\u05e9\u05dc \U0001f469\u200d\U0001f467 e\u0301 '\"\\$;|`\n\t\x00"},
        '{"x":1,"y":2,"label":"\u05e9\u05dc \U0001f469\u200d\U0001f467 e\u0301 \'\\"\\\\$;|`\\n\\t\\u0000"}'.encode(),
        id="text beyond ASCII",
    ),
    pytest.param({"y": 1, "x": 2, "z": {"b": None, "a": []}}, b'{"y":1,"x":2,"z":{"b":null,"a":[]}}', id="order and nulls"),
]  # fmt: skip


@pytest.mark.parametrize(("arguments", "written"), FORWARDED)
def test_arguments_go_on_as_they_came(arguments: dict[str, Any], written: bytes) -> None:
    call = called(arguments)
    assert (call.arguments, call.arguments_json) == (arguments, written)


@pytest.mark.parametrize("arguments", [None, {}], ids=["null", "empty"])
def test_no_arguments_are_an_empty_object(arguments: Any) -> None:
    call = called(arguments, name="status")
    assert (call.arguments, call.arguments_json) == ({}, b"{}")


UNSENDABLE = [
    pytest.param(b'{"x":1,"y":2,"label":"\\ud83d"}', "half a surrogate pair", id="half a surrogate pair"),
    pytest.param(b'{"x":1,"y":2,"\\udc00":0}', "half a surrogate pair", id="half a surrogate pair as a name"),
    pytest.param(b'{"x":1e400,"y":2}', "not finite", id="a number beyond every float"),
    pytest.param(b'{"x":1,"y":2,"z":[-1e999]}', "not finite", id="the same, deep inside"),
    pytest.param(b'{"x":1,"y":2,"z":"' + b"z" * 262_144 + b'"}', "limit of 262144 bytes", id="too many bytes"),
]


@pytest.mark.parametrize(("arguments", "says"), UNSENDABLE)
def test_what_no_backend_could_read_is_refused(arguments: bytes, says: str) -> None:
    role = Role(BOARD)
    got = role.post(head(), STATUS.replace(b'{"name": "status"}', b'{"name":"tap","arguments":' + arguments + b"}"))
    assert (got.status, got.code, role.calls) == (200, -32602, [])
    assert says in got.json["error"]["message"]


def test_arguments_of_exactly_the_limit_pass() -> None:
    frame = len(b'{"x":1,"y":2,"label":""}')
    assert len(called({"x": 1, "y": 2, "label": "a" * (262_144 - frame)}).arguments_json) == 262_144


@pytest.mark.parametrize(("depth", "code"), [(61, None), (62, -32700), (1000, -32700), (10_000, -32700)])
def test_no_depth_of_nesting_escapes_as_a_crash(depth: int, code: int | None) -> None:
    """The arguments stand three levels deep in a request, which may have 64."""
    role = Role(BOARD)
    deep = b'{"x":1,"y":2,"z":' + b"[" * depth + b"]" * depth + b"}"
    got = role.post(head(), STATUS.replace(b'{"name": "status"}', b'{"name":"tap","arguments":' + deep + b"}"))
    assert got.code == code


def test_a_call_carries_who_asks_and_how() -> None:
    body = enveloped("tools/call", meta(capabilities={"sampling": {}}), id=0, name="status")
    role = Role(HOST)
    role.post(modern("tools/call", "status", authorization=ALICE, session="s-1"), body)
    (call,) = role.calls
    assert (call.id, call.name, call.principal, call.session) == (0, "status", "alice", None)
    assert (call.request_version.modern, call.request_version.enveloped, dict(call.request_version.capabilities)) == (
        True,
        True,
        {"sampling": {}},
    )


def test_a_legacy_call_carries_its_session() -> None:
    call = called({"x": 1, "y": 2}, HOST, head(LEGACY, authorization=ALICE, session="s-1"))
    assert (call.session, call.principal, dict(call.request_version.capabilities)) == ("s-1", "alice", {})


CLIENTS = [
    pytest.param({"name": "inspector", "version": "1.2"}, "inspector 1.2", id="a name and a version"),
    pytest.param({"name": "inspector"}, "inspector", id="a name alone"),
    pytest.param({"version": "1"}, "1", id="a version alone"),
    pytest.param({"name": 5, "version": ["1"]}, "", id="neither is text"),
    pytest.param({"name": "a\nb\x1b[1m\ud83d", "version": "\u05e9"}, "a b [1m \u05e9", id="signs that no person reads"),
    pytest.param({"name": "x" * 200, "version": "1"}, "x" * 80, id="a very long name"),
    pytest.param("inspector", "", id="text"),
    pytest.param(None, "", id="null"),
    pytest.param([], "", id="a list"),
]


@pytest.mark.parametrize(("info", "client"), CLIENTS)
def test_a_session_is_opened_with_the_clients_name(info: Any, client: str) -> None:
    role = Role(HOST)
    params = {"protocolVersion": LEGACY, "clientInfo": info}
    role.post(head(authorization=ALICE), message("initialize", params, id="i"))
    assert role.steps == [OpenSession("i", LEGACY, client, "alice")]


def test_our_own_bug_is_told_without_details() -> None:
    got = Role(BOARD, None).post(head(), STATUS)
    assert got.body == (
        b'{"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":'
        b'"internal error; the server\'s log has the details"}}'
    )
    assert b'"id":null' in b"".join(p for p in Endpoint(BOARD, TOOL_LIST).crashed(None).parts if isinstance(p, bytes))
