"""The client's half against the server's half, with no socket between, and against scripted responses."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest

from mcpboard.errors import NOT_SENT, UNKNOWN, ClientError, NotMcp, PeerBroken, PeerError, PeerRefused, Refused
from mcpboard.protocol.client_session import ClientSession, HttpRequest, run
from mcpboard.protocol.endpoint import Endpoint
from mcpboard.protocol.headers import StandardHeaders, decoded_name, encoded_name
from mcpboard.protocol.limits import PAGES_LIMIT
from mcpboard.protocol.messages import (
    CloseSession,
    ListTools,
    OpenSession,
    Policy,
    Reply,
    RequestHead,
    Step,
    ToolCall,
)
from mcpboard.protocol.results import HttpResponse, result_of
from mcpboard.protocol.tools import Blob, Content, Image, Text, Tool, ToolList
from mcpboard.protocol.versions import LEGACY, MODERN

SERVER = {"name": "fixture", "title": "A fixture", "version": "7"}
JSON = {"content-type": "application/json"}
NAMES = ("echo", "tööl", " edge ", "=?base64?eA==?=")
TOOLS = [Tool(name, name.title(), "Says it back.", {"type": "object", "properties": {}}) for name in NAMES]


class Bytes:
    """A ByteSource that is here already."""

    def __init__(self, content: bytes) -> None:
        self.content = content
        self.length: int | None = len(content)

    def __iter__(self) -> Iterator[bytes]:
        return iter([self.content])

    def close(self) -> None:
        return None


class Pair:
    """One ClientSession and one Endpoint, and every request that went between them."""

    def __init__(self, content: Content | None = None, **policy: Any) -> None:
        self.session = ClientSession({"name": "test", "version": "1"})
        self.endpoint = Endpoint(Policy(SERVER, "Tap gently.", **policy), ToolList(TOOLS))
        self.content = content or Content((Text("said"),), {"said": True})
        self.requests: list[HttpRequest] = []
        self.calls: list[ToolCall] = []
        self.ended: list[str] = []

    @property
    def methods(self) -> list[str]:
        return [json.loads(request.body)["method"] if request.body else request.method for request in self.requests]

    def run(self, flow: Any) -> Any:
        return run(flow, self.send)

    def send(self, request: HttpRequest) -> HttpResponse:
        self.requests.append(request)
        try:
            admitted = self.endpoint.admit(_head(request))
        except Refused as refused:
            return HttpResponse(refused.status, JSON, json.dumps(refused.body).encode())
        return _response(self._reply(self.endpoint.receive(admitted, request.body)))

    def _reply(self, step: Step) -> Reply:
        if isinstance(step, ToolCall):
            self.calls.append(step)
            return self.endpoint.reply(step, self.content)
        if isinstance(step, ListTools):
            return self.endpoint.listed(step)
        if isinstance(step, OpenSession):
            return self.endpoint.opened(step, "s-1")
        if isinstance(step, CloseSession):
            self.ended.append(step.session)
            return self.endpoint.closed()
        return step


def _head(request: HttpRequest) -> RequestHead:
    sent = {name.lower(): value for name, value in request.headers.items()}
    standard = StandardHeaders(sent.get("mcp-protocol-version"), sent.get("mcp-method"), sent.get("mcp-name"))
    return RequestHead(
        request.method,
        content_type=sent.get("content-type"),
        content_length=len(request.body),
        session=sent.get("mcp-session-id"),
        standard=standard,
    )


def _response(reply: Reply) -> HttpResponse:
    body = b"".join(part if isinstance(part, bytes) else base64.b64encode(b"".join(part)) for part in reply.parts)
    return HttpResponse(reply.status, {name.lower(): value for name, value in reply.headers}, body)


def legacy_only(pair: Pair) -> Pair:
    """The pair's endpoint as a server that never heard of the modern revision."""
    modern = pair.send

    def send(request: HttpRequest) -> HttpResponse:
        if "Mcp-Method" in request.headers:
            pair.requests.append(request)
            return HttpResponse(400, {"content-type": "text/plain"}, b"Bad Request: no session")
        return modern(request)

    pair.send = send  # type: ignore[method-assign]
    return pair


# --- both halves -----------------------------------------------------------------------------


def test_a_server_of_both_revisions_is_spoken_to_in_the_modern_one() -> None:
    pair = Pair()
    tools = pair.run(pair.session.list_tools())
    result = pair.run(pair.session.call("echo", {"text": "hello"}))
    assert pair.session.version == MODERN
    assert pair.session.server == SERVER
    assert pair.session.instructions == "Tap gently."
    assert [tool["name"] for tool in tools] == list(NAMES)
    assert (result.text, result.structured, result.is_error) == ("said", {"said": True}, False)
    assert pair.methods == ["server/discover", "tools/list", "tools/call"]
    assert pair.calls[0].request_version.enveloped
    assert pair.calls[0].arguments == {"text": "hello"}


def test_a_strict_server_finds_nothing_to_object_to() -> None:
    pair = Pair(strict_meta=True)
    pair.run(pair.session.ping())
    pair.run(pair.session.call("echo", {}))
    assert pair.session.version == MODERN


def test_a_server_of_the_legacy_revision_gets_its_handshake() -> None:
    pair = legacy_only(Pair())
    pair.run(pair.session.list_tools())
    pair.run(pair.session.ping())
    result = pair.run(pair.session.call("echo", {}))
    assert pair.session.version == LEGACY
    assert pair.session.server == SERVER
    assert result.text == "said"
    steps = ["server/discover", "initialize", "notifications/initialized", "tools/list", "ping", "tools/call"]
    assert pair.methods == steps
    assert "MCP-Protocol-Version" not in pair.requests[1].headers
    assert all(request.headers["MCP-Protocol-Version"] == LEGACY for request in pair.requests[2:])
    assert "params" not in json.loads(pair.requests[3].body)


def test_a_session_is_carried_and_ended() -> None:
    pair = legacy_only(Pair(knows_session=lambda session, _: session == "s-1"))
    pair.run(pair.session.call("echo", {}))
    assert pair.calls[0].session == "s-1"
    pair.run(pair.session.close())
    assert pair.ended == ["s-1"]
    assert pair.session.version is None


def test_without_a_session_there_is_nothing_to_end() -> None:
    pair = Pair()
    pair.run(pair.session.open())
    pair.run(pair.session.close())
    assert pair.methods == ["server/discover"]


def test_a_call_in_a_dead_session_fails_once_and_the_next_one_opens_another() -> None:
    alive = {"s-1"}
    pair = legacy_only(Pair(knows_session=lambda session, _: session in alive))
    pair.run(pair.session.open())
    alive.clear()
    with pytest.raises(PeerError) as caught:
        pair.run(pair.session.call("echo", {}))
    assert (caught.value.status, caught.value.delivery) == (404, NOT_SENT)
    assert pair.methods.count("tools/call") == 1
    alive.add("s-1")
    assert pair.run(pair.session.call("echo", {})).text == "said"
    assert pair.methods.count("initialize") == 2


@pytest.mark.parametrize("name", NAMES)
def test_every_name_reaches_the_server_whole(name: str) -> None:
    pair = Pair()
    pair.run(pair.session.call(name, {}))
    assert pair.calls[0].name == name


@pytest.mark.parametrize(
    ("name", "plain"),
    [
        pytest.param("screenshot", True, id="a plain word"),
        pytest.param("a b", True, id="a space inside"),
        pytest.param("=?base64?x", True, id="half a sentinel"),
        pytest.param("", False, id="nothing at all"),
        pytest.param("a\tb", False, id="a control character"),
        pytest.param("手机", False, id="another script"),
        pytest.param("=?base64??=", False, id="what looks like a sentinel"),
    ],
)
def test_names_are_encoded_only_where_a_header_needs_it(name: str, plain: bool) -> None:
    assert (encoded_name(name) == name) is plain
    assert decoded_name(encoded_name(name)) == name


def test_images_and_files_come_back_as_bytes() -> None:
    blob = Blob("mcpboard://support-bundle/1.tar.gz", "application/gzip", Bytes(b"\x1f\x8b\0"))
    pair = Pair(Content((Text("a"), Image("/9j/", "image/jpeg"), blob, Text("b"))))
    result = pair.run(pair.session.call("echo", {}))
    assert result.text == "a\nb"
    assert [(p.content, p.mime) for p in result.images] == [(b"\xff\xd8\xff", "image/jpeg")]
    assert [(b.content, b.mime, b.uri) for b in result.blobs] == [(b"\x1f\x8b\0", blob.mime, blob.uri)]


def test_an_unknown_tool_is_an_error_that_says_nothing_was_done() -> None:
    pair = Pair()
    with pytest.raises(PeerError, match="unknown tool: nope") as caught:
        pair.run(pair.session.call("nope", {}))
    assert (caught.value.code, caught.value.status, caught.value.delivery) == (-32602, 200, NOT_SENT)


def test_a_board_with_mcp_switched_off_says_so() -> None:
    pair = Pair(disabled="MCP is disabled on this board (mcp_enabled = false)")
    with pytest.raises(PeerError, match="mcp_enabled = false") as caught:
        pair.run(pair.session.list_tools())
    assert caught.value.status == 404


def test_a_wrong_token_is_final() -> None:
    pair = Pair(authorize=lambda header: None)
    with pytest.raises(PeerRefused, match=r"invalid token.*--token-file"):
        pair.run(pair.session.list_tools())
    assert pair.methods == ["server/discover"]


# --- scripted servers ------------------------------------------------------------------------


def error(code: int, status: int = 400, **more: Any) -> Callable[[Any], HttpResponse]:
    def response(request_id: Any) -> HttpResponse:
        document = {"jsonrpc": "2.0", "id": request_id, "error": {"code": code, "message": "no", **more}}
        return HttpResponse(status, JSON, json.dumps(document).encode())

    return response


def result(**members: Any) -> Callable[[Any], HttpResponse]:
    return lambda number: HttpResponse(
        200, JSON, json.dumps({"jsonrpc": "2.0", "id": number, "result": members}).encode()
    )


def plain(status: int, body: bytes = b"", /, **headers: str) -> Callable[[Any], HttpResponse]:
    return lambda number: HttpResponse(status, headers, body)


def unsupported(*versions: str) -> Callable[[Any], HttpResponse]:
    return error(-32022, data={"supported": list(versions), "requested": MODERN})


DISCOVERED = result(supportedVersions=[MODERN, LEGACY], capabilities={})
INITIALIZED = result(protocolVersion=LEGACY, capabilities={}, serverInfo=SERVER)


class Script:
    """A server that answers each method from a list, and the methods it was asked."""

    def __init__(self, **responses: Any) -> None:
        self.responses = {name.replace("_", "/"): list(given) for name, given in responses.items()}
        self.methods: list[str] = []

    def __call__(self, request: HttpRequest) -> HttpResponse:
        message: Mapping[str, Any] = json.loads(request.body)
        self.methods.append(message["method"])
        if "id" not in message:
            return HttpResponse(202, {}, b"")
        response: HttpResponse = self.responses[message["method"]].pop(0)(message["id"])
        return response


def new_session() -> ClientSession:
    return ClientSession({"name": "test", "version": "1"})


FALLBACKS = [
    pytest.param(plain(400), id="400 and nothing else"),
    pytest.param(plain(400, b"Bad Request"), id="400 as text"),
    *[pytest.param(error(code), id=f"400 with {code}") for code in (-32000, -32600, -32602, -32020)],
    pytest.param(unsupported(LEGACY), id="400 with -32022 that lists the legacy revision only"),
    pytest.param(unsupported("2025-06-18"), id="400 with -32022 that lists a tolerated version"),
    pytest.param(error(-32022), id="400 with -32022 that lists nothing"),
    pytest.param(plain(404, b"Not Found"), id="404 as text"),
    pytest.param(error(-32601, 404), id="404 with -32601"),
    pytest.param(plain(405), id="405"),
    pytest.param(error(-32601, 200), id="200 with an error"),
    pytest.param(plain(500), id="a server that breaks on what it does not know"),
    pytest.param(result(supportedVersions=[LEGACY], capabilities={}), id="a discovery without a modern version"),
    pytest.param(result(supportedVersions="all"), id="a discovery that makes no sense"),
    pytest.param(plain(200, b"<html>"), id="200 that is no JSON"),
    pytest.param(plain(200, b'{"jsonrpc":"2.0","id":999,"result":{}}'), id="a response to somebody else"),
    pytest.param(plain(202), id="202 to a request"),
]


@pytest.mark.parametrize("response", FALLBACKS)
def test_the_handshake_follows_on(response: Any) -> None:
    script, session = Script(server_discover=[response], initialize=[INITIALIZED]), new_session()
    run(session.open(), script)
    assert session.version == LEGACY
    assert script.methods == ["server/discover", "initialize", "notifications/initialized"]


@pytest.mark.parametrize(
    ("response", "expected"),
    [
        pytest.param(plain(401), PeerRefused, id="401"),
        pytest.param(plain(403), PeerRefused, id="403"),
        pytest.param(error(-32600, 403), PeerError, id="403 with a JSON-RPC error"),
        pytest.param(plain(307, location="http://elsewhere/"), PeerRefused, id="a redirect"),
        pytest.param(plain(429), PeerRefused, id="429"),
        pytest.param(plain(503), PeerRefused, id="503"),
        pytest.param(unsupported("2031-01-01"), PeerError, id="-32022 without a version in common"),
    ],
)
def test_no_handshake_is_tried_on(response: Any, expected: type[ClientError]) -> None:
    script, session = Script(server_discover=[response]), new_session()
    with pytest.raises(expected):
        run(session.open(), script)
    assert session.version is None
    assert script.methods == ["server/discover"]


@pytest.mark.parametrize(
    ("second", "version", "asked"),
    [
        pytest.param(DISCOVERED, MODERN, ["server/discover"] * 2, id="and then answers"),
        pytest.param(unsupported(MODERN, LEGACY), LEGACY, ["server/discover", "server/discover", "initialize", "notifications/initialized"], id="and then does it again"),
    ],
)  # fmt: skip
def test_a_second_probe_for_a_server_that_lists_what_it_refuses(second: Any, version: str, asked: list[str]) -> None:
    script = Script(server_discover=[unsupported(MODERN, LEGACY), second], initialize=[INITIALIZED])
    session = new_session()
    run(session.open(), script)
    assert (session.version, script.methods) == (version, asked)


def test_a_modern_only_server_that_refuses_twice_is_given_up() -> None:
    script = Script(server_discover=[unsupported(MODERN)] * 2)
    with pytest.raises(PeerError):
        run(new_session().open(), script)
    assert script.methods == ["server/discover"] * 2


def test_an_older_version_is_taken_as_it_is_offered() -> None:
    script, session = (
        Script(server_discover=[plain(404)], initialize=[result(protocolVersion="2025-06-18")]),
        new_session(),
    )
    run(session.open(), script)
    assert session.version == "2025-06-18"


@pytest.mark.parametrize(
    ("response", "expected"),
    [
        pytest.param(result(protocolVersion="1999-01-01"), NotMcp, id="a version that nobody speaks"),
        pytest.param(result(protocolVersion=[]), NotMcp, id="a version that is none"),
        pytest.param(result(), NotMcp, id="no version"),
        pytest.param(plain(200, b"<html>"), NotMcp, id="a web page"),
        pytest.param(plain(404), PeerRefused, id="404"),
        pytest.param(error(-32603, 200), PeerError, id="a JSON-RPC error"),
    ],
)
def test_a_handshake_fails_with(response: Any, expected: type[ClientError]) -> None:
    session = new_session()
    with pytest.raises(expected):
        run(session.open(), Script(server_discover=[plain(404)], initialize=[response]))
    assert session.version is None


@pytest.mark.parametrize(
    ("response", "expected", "delivery"),
    [
        pytest.param(unsupported(MODERN), PeerError, NOT_SENT, id="-32022, even one that lists our version"),
        pytest.param(error(-32020), PeerError, NOT_SENT, id="-32020"),
        pytest.param(error(-32603, 200), PeerError, UNKNOWN, id="-32603"),
        pytest.param(error(-32000, 200, data={"delivery": "done"}), PeerError, "done", id="an error that tells the fate"),
        pytest.param(error(True), PeerRefused, NOT_SENT, id="an error whose code is none"),
        pytest.param(plain(401), PeerRefused, NOT_SENT, id="401"),
        pytest.param(plain(503), PeerRefused, UNKNOWN, id="503"),
        pytest.param(plain(200), NotMcp, UNKNOWN, id="200 and nothing"),
        pytest.param(result(content=7), NotMcp, UNKNOWN, id="content that is no list"),
        pytest.param(result(), NotMcp, UNKNOWN, id="no content"),
        pytest.param(result(content=[{"type": "image", "data": "*", "mimeType": "x"}]), NotMcp, UNKNOWN, id="no base64"),
        pytest.param(result(content=[{"type": "resource", "resource": 1}]), NotMcp, UNKNOWN, id="no resource"),
    ],
)  # fmt: skip
def test_a_call_is_never_repeated_on(response: Any, expected: type[ClientError], delivery: str) -> None:
    script = Script(server_discover=[DISCOVERED], tools_call=[response, result(content=[])])
    with pytest.raises(expected) as caught:
        run(new_session().call("tap", {}), script)
    assert caught.value.delivery == delivery
    assert script.methods == ["server/discover", "tools/call"]


def test_a_server_that_no_longer_speaks_our_revision_is_asked_anew_next_time() -> None:
    session = new_session()
    script = Script(
        server_discover=[DISCOVERED, plain(404)],
        initialize=[INITIALIZED],
        tools_call=[unsupported(LEGACY), result(content=[])],
    )
    with pytest.raises(PeerError):
        run(session.call("tap", {}), script)
    run(session.call("tap", {}), script)
    assert session.version == LEGACY


def test_the_list_follows_cursors_an_empty_one_included() -> None:
    pages = [
        result(tools=[{"name": "a"}], nextCursor=""),
        result(tools=[{"name": "b"}], nextCursor="2"),
        result(tools=[{"name": "c"}], nextCursor=None),
    ]
    cursors: list[Any] = []
    script = Script(server_discover=[DISCOVERED], tools_list=pages)

    def send(request: HttpRequest) -> HttpResponse:
        cursors.append(json.loads(request.body)["params"].get("cursor"))
        return script(request)

    assert [tool["name"] for tool in run(new_session().list_tools(), send)] == ["a", "b", "c"]
    assert cursors[1:] == [None, "", "2"]


def test_a_list_without_end_is_given_up() -> None:
    page = result(tools=[], nextCursor="again")
    script = Script(server_discover=[DISCOVERED], tools_list=[page] * (PAGES_LIMIT + 1))
    with pytest.raises(PeerBroken, match="did not end"):
        run(new_session().list_tools(), script)
    assert script.methods.count("tools/list") == PAGES_LIMIT


@pytest.mark.parametrize("tools", [None, {}, ["name"], [{"name": 1}]], ids=repr)
def test_a_list_that_is_malformed_is_refused(tools: Any) -> None:
    with pytest.raises(NotMcp):
        run(new_session().list_tools(), Script(server_discover=[DISCOVERED], tools_list=[result(tools=tools)]))


def test_a_session_id_that_no_header_could_carry_is_ignored() -> None:
    session = new_session()
    odd = HttpResponse(200, {"mcp-session-id": "a\r\nb"}, INITIALIZED(2).body)
    run(session.open(), Script(server_discover=[plain(404)], initialize=[lambda number: odd]))
    assert session.session is None


# --- responses -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(b'event: message\ndata: {"jsonrpc":"2.0","id":1,"result":{"a":1}}\n\n', id="one event"),
        pytest.param(b'data: {"jsonrpc":"2.0",\r\ndata: "id":1,"result":{"a":1}}\r\n\r\n', id="one over two lines"),
        pytest.param(b': hi\n\ndata: {"method":"n"}\n\ndata:{"id":1,"result":{"a":1}}', id="after another message"),
    ],
)
def test_a_response_may_come_as_an_event_stream(body: bytes) -> None:
    assert result_of(HttpResponse(200, {"content-type": "text/event-stream; charset=utf-8"}, body), 1) == {"a": 1}


@pytest.mark.parametrize(
    ("response", "message"),
    [
        pytest.param(plain(404, b'{"error": "MCP is at /mcp"}'), r"\(MCP is at /mcp\).*usually /mcp", id="404 in JSON"),
        pytest.param(plain(405), "takes no POST", id="405"),
        pytest.param(plain(302, location="http://x/\x1b[2J"), r"redirects to http://x/ \[2J;", id="a redirect"),
        pytest.param(plain(418), "HTTP 418: it is not MCP", id="an unusual status"),
        pytest.param(plain(500), "its log has the reason", id="500"),
        pytest.param(plain(200, b"", **{"content-type": "text/html"}), "text/html.*check address and path", id="HTML"),
        pytest.param(error(-32000, 200, message="x" * 500), r"x{200}\.\.\. \(JSON-RPC error -32000\)", id="a long one"),
    ],
)
def test_an_error_is_one_line_that_teaches(response: Any, message: str) -> None:
    with pytest.raises(ClientError, match=message) as caught:
        result_of(response(1), 1)
    assert str(caught.value).isprintable()
