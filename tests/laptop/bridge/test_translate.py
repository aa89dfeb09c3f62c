"""Headers and body that a client's message gets; and lines, without a process around them."""

from __future__ import annotations

import io
import json
from typing import Any

import pytest

from mcpboard.errors import ProtocolError
from mcpboard.laptop.bridge import stdio, translate
from mcpboard.laptop.bridge.stdio import LINE_LIMIT, LineWriter
from mcpboard.protocol.client_session import ClientSession
from mcpboard.protocol.jsonrpc import Request
from tests.support.piped import ENVELOPE

CLIENT = {"name": "old", "version": "1"}


@pytest.mark.parametrize(("method", "params", "named"), [
    pytest.param("tools/call", {"name": "tap"}, "tap", id="a tool"),
    pytest.param("tools/call", {"name": "tööl"}, "=?base64?dMO2w7Zs?=", id="a tool beyond ASCII"),
    pytest.param("prompts/get", {"name": "p"}, "p", id="a prompt"),
    pytest.param("resources/read", {"uri": "x://y"}, "x://y", id="a resource"),
    pytest.param("tools/list", {"name": "tap"}, None, id="a method without name"),
])  # fmt: skip
def test_a_modern_request_goes_as_it_came_under_its_headers(
    method: str, params: dict[str, Any], named: str | None
) -> None:
    sent = translate.unchanged(Request(1, method, {**params, "_meta": ENVELOPE}), b"the line")
    assert sent.body == b"the line"
    assert sent.headers["MCP-Protocol-Version"] == "2026-07-28"
    assert sent.headers["Mcp-Method"] == method
    assert sent.headers.get("Mcp-Name") == named


@pytest.mark.parametrize(("method", "meta", "params", "code"), [
    pytest.param("ping", {"io.modelcontextprotocol/protocolVersion": 7}, {}, -32602, id="a version that is none"),
    pytest.param("ping", {"io.modelcontextprotocol/protocolVersion": "a\nb"}, {}, -32602, id="a line break"),
    pytest.param("a\nb", ENVELOPE, {}, -32601, id="a method with a line break"),
    pytest.param("tools/call", ENVELOPE, {}, -32602, id="no name"),
])  # fmt: skip
def test_what_no_header_can_carry_is_refused(method: str, meta: Any, params: dict[str, Any], code: int) -> None:
    with pytest.raises(ProtocolError) as refused:
        translate.unchanged(Request(1, method, {**params, "_meta": meta}), b"")
    assert refused.value.code == code


@pytest.mark.parametrize("text", ["a\ud83d", "\udc00\ud83d", "\N{GRINNING FACE}"])
def test_arguments_reach_the_server_to_the_character(text: str) -> None:
    """Half a surrogate pair, too: the server refuses it, where U+FFFD in its place would be typed."""
    sent = translate.with_envelope(Request(1, "tools/call", {"name": "type", "arguments": {text: text}}), CLIENT)
    assert json.loads(sent.body)["params"]["arguments"] == {text: text}


def test_an_older_clients_request_gets_an_envelope_and_keeps_the_rest() -> None:
    request = Request("x", "tools/call", {"name": "tap", "arguments": {"x": 1.5}, "_meta": {"progressToken": 3}})
    sent = translate.with_envelope(request, CLIENT)
    body = json.loads(sent.body)
    assert (body["id"], body["params"]["arguments"], body["params"]["_meta"]["progressToken"]) == ("x", {"x": 1.5}, 3)
    assert body["params"]["_meta"]["io.modelcontextprotocol/clientInfo"] == CLIENT
    assert body["params"]["_meta"]["io.modelcontextprotocol/clientCapabilities"] == {}
    bare = json.loads(translate.with_envelope(Request(1, "tools/list", {"_meta": None}), CLIENT).body)
    assert bare["params"]["_meta"]["io.modelcontextprotocol/clientInfo"] == CLIENT, "null is what is left out"


def test_a_handshake_promises_nothing_that_the_bridge_cannot_carry() -> None:
    session = ClientSession(CLIENT)
    session.capabilities = {"tools": {"listChanged": True}, "resources": {"subscribe": True}, "logging": {}}
    answer = json.loads(translate.initialize_result(Request(0, "initialize", {}), "2025-06-18", session))["result"]
    assert answer["capabilities"] == {"tools": {}, "resources": {}, "logging": {}}
    assert answer["serverInfo"]["name"] == "mcpboard bridge"  # the server gave no name of its own
    assert "instructions" not in answer


@pytest.mark.parametrize(("info", "known"), [
    pytest.param(CLIENT, CLIENT, id="name and version"),
    pytest.param({"name": "x"}, translate.BRIDGE, id="no version"),
    pytest.param("x", translate.BRIDGE, id="no object"),
    pytest.param(None, translate.BRIDGE, id="nothing"),
])  # fmt: skip
def test_who_an_older_client_is(info: Any, known: Any) -> None:
    assert translate.client_info(Request(0, "initialize", {"clientInfo": info})) == known


# --- lines ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(("written", "found"), [
    pytest.param(b"a\nb\r\n\n  \nc", [b"a", b"b", b"c"], id="line ends of all systems, and none at the end"),
    pytest.param(b"x" * LINE_LIMIT + b"\ny\n", [b"x" * LINE_LIMIT, b"y"], id="just within the limit"),
    pytest.param(b"x" * 3 * LINE_LIMIT + b"\ny\n", [None, b"y"], id="over the limit"),
    pytest.param(b"x" * 3 * LINE_LIMIT, [None], id="over the limit, and then the end"),
    pytest.param(b"", [], id="nothing"),
])  # fmt: skip
def test_lines_are_read_within_a_limit(written: bytes, found: list[bytes | None]) -> None:
    assert list(stdio.read(io.BytesIO(written))) == found


class Narrow(io.BytesIO):
    """Takes three bytes at a time, as a pipe that is nearly full."""

    def write(self, data: Any, /) -> int:
        return super().write(bytes(data[:3]))


def test_a_message_is_one_line_however_little_the_pipe_takes() -> None:
    raw = Narrow()
    LineWriter(raw).line([b'{"a":\n1,\r\n', b'"b":2}'])
    assert raw.getvalue() == b'{"a": 1,  "b":2}\n'


def test_nobody_reading_is_noted_and_silent() -> None:
    class Gone(io.BytesIO):
        def write(self, data: Any, /) -> int:
            raise BrokenPipeError

    output = LineWriter(Gone())
    output.line([b"{}"])
    output.line([b"{}"])
    assert output.gone
