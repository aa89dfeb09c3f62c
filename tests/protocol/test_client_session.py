"""The client's half against the server's half, with no socket between, and against scripted responses."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest

from mcpboard.errors import DONE, NOT_SENT, UNKNOWN, ClientError, NotMcp, PeerBroken, PeerError, PeerRefused
from mcpboard.protocol.client_session import ClientSession, HttpRequest, run
from mcpboard.protocol.headers import StandardHeaders
from mcpboard.protocol.limits import PAGES_LIMIT
from mcpboard.protocol.messages import CloseSession, RequestHead
from mcpboard.protocol.results import HttpResponse, result_of, until_answer
from mcpboard.protocol.tools import Blob, Content, Image, Text, Tool, ToolList
from mcpboard.protocol.versions import LEGACY, MODERN
from tests.protocol.http_messages import odd
from tests.protocol.roles import BOARD, SERVER, Role

JSON = {"content-type": "application/json"}
NAMES = ("echo", "tööl")
TOOLS = ToolList([Tool(name, name.title(), "Says it back.", {"type": "object", "properties": {}}) for name in NAMES])
PROBE, HANDSHAKE = ["server/discover"], ["initialize", "notifications/initialized"]


class Bytes:
    """A ByteSource that is here already."""

    length: int | None = 3

    def __iter__(self) -> Iterator[bytes]:
        return iter([b"\x1f\x8b\0"])

    def close(self) -> None:
        return None


class Pair(Role):
    """One ClientSession and one Endpoint, and every request that went between them.

    `legacy` makes the endpoint one that never heard of the modern revision.
    """

    def __init__(self, policy: Any = BOARD, content: Content | None = None, *, legacy: bool = False) -> None:
        super().__init__(policy, content or Content((Text("said"),), {"said": True}), TOOLS)
        self.session = ClientSession({"name": "test", "version": "1"})
        self.legacy = legacy
        self.requests: list[HttpRequest] = []

    @property
    def methods(self) -> list[str]:
        return [json.loads(request.body)["method"] if request.body else request.method for request in self.requests]

    def run(self, flow: Any) -> Any:
        return run(flow, self.send)

    def call(self, name: str = "echo", **arguments: Any) -> Any:
        return self.run(self.session.call(name, arguments))

    def send(self, request: HttpRequest) -> HttpResponse:
        self.requests.append(request)
        sent = {name.lower(): value for name, value in request.headers.items()}
        if self.legacy and "mcp-method" in sent:
            return HttpResponse(400, {"content-type": "text/plain"}, b"Bad Request: no session")
        standard = StandardHeaders(sent.get("mcp-protocol-version"), sent.get("mcp-method"), sent.get("mcp-name"))
        session = sent.get("mcp-session-id")
        head = RequestHead(request.method, content_type=sent.get("content-type"), session=session, standard=standard)
        got = self.post(head, request.body)
        return HttpResponse(got.status, {name.lower(): value for name, value in got.headers.items()}, got.body or b"")


# --- both halves -----------------------------------------------------------------------------


def test_a_server_of_both_revisions_is_spoken_to_in_the_modern_one() -> None:
    pair = Pair()
    tools = pair.run(pair.session.list_tools())
    result = pair.call("tööl", text="hello")
    session = pair.session
    assert (session.version, session.server, session.instructions) == (MODERN, SERVER, "Look first.")
    assert [tool["name"] for tool in tools] == list(NAMES)
    assert (result.text, result.structured, result.is_error) == ("said", {"said": True}, False)
    assert pair.calls[0].request_version.enveloped
    assert (pair.calls[0].name, pair.calls[0].arguments) == ("tööl", {"text": "hello"})
    pair.run(session.close())
    assert pair.methods == [*PROBE, "tools/list", "tools/call"], "there is no session to end"


def test_a_server_of_the_legacy_revision_gets_its_handshake() -> None:
    pair = Pair(legacy=True)
    pair.run(pair.session.list_tools())
    pair.run(pair.session.ping())
    assert pair.call().text == "said"
    assert (pair.session.version, pair.session.server) == (LEGACY, SERVER)
    assert pair.methods == [*PROBE, *HANDSHAKE, "tools/list", "ping", "tools/call"]
    assert "MCP-Protocol-Version" not in pair.requests[1].headers
    assert all(request.headers["MCP-Protocol-Version"] == LEGACY for request in pair.requests[2:])
    assert "params" not in json.loads(pair.requests[3].body)


def with_sessions(alive: set[str]) -> Pair:
    return Pair(replace(BOARD, knows_session=lambda session, _: session in alive), legacy=True)


def test_a_session_is_carried_and_ended() -> None:
    pair = with_sessions({"minted"})
    pair.call()
    assert pair.calls[0].session == "minted"
    pair.run(pair.session.close())
    assert pair.steps[-1] == CloseSession("minted", "")
    assert pair.session.version is None


def test_a_call_in_a_dead_session_fails_once_and_the_next_one_opens_another() -> None:
    alive = {"minted"}
    pair = with_sessions(alive)
    with pytest.raises(PeerError, match="unknown tool"):
        pair.call("nope")
    assert pair.session.session == "minted", "any other error leaves the session alone"
    alive.clear()
    with pytest.raises(PeerError) as caught:
        pair.call()
    assert (caught.value.status, caught.value.delivery) == (404, NOT_SENT)
    assert pair.methods.count("tools/call") == 2
    alive.add("minted")
    assert pair.call().text == "said"
    assert pair.methods.count("initialize") == 2


def test_images_and_files_come_back_as_bytes() -> None:
    blob = Blob("mcpboard://support-bundle/1.tar.gz", "application/gzip", Bytes())
    result = Pair(content=Content((Text("a"), Image("/9j/", "image/jpeg"), blob, Text("b")))).call()
    assert result.text == "a\nb"
    assert [(p.content, p.mime) for p in result.images] == [(b"\xff\xd8\xff", "image/jpeg")]
    assert [(b.content, b.mime, b.uri) for b in result.blobs] == [(b"\x1f\x8b\0", blob.mime, blob.uri)]


# --- scripted servers ------------------------------------------------------------------------

Response = Callable[[Any], HttpResponse]  # to the request of that id


def answer(status: int, **members: Any) -> Response:
    return lambda number: HttpResponse(status, JSON, json.dumps({"jsonrpc": "2.0", "id": number, **members}).encode())


def error(code: int, status: int = 400, **more: Any) -> Response:
    return answer(status, error={"code": code, "message": "no", **more})


def result(**members: Any) -> Response:
    return answer(200, result=members)


def plain(status: int, body: bytes = b"", /, **headers: str) -> Response:
    return lambda number: HttpResponse(status, headers, body)


def unsupported(*versions: str) -> Response:
    return error(-32022, data={"supported": list(versions), "requested": MODERN})


DISCOVERED = result(supportedVersions=[MODERN, LEGACY], capabilities={})
INITIALIZED = result(protocolVersion=LEGACY, capabilities={}, serverInfo=SERVER)


class Script:
    """A server that answers each method from a list, what it was asked, and a client that has not yet asked it."""

    def __init__(self, *probes: Response, **responses: list[Response]) -> None:
        self.responses = {"server/discover": list(probes), "initialize": [INITIALIZED]}
        self.responses |= {name.replace("_", "/"): list(given) for name, given in responses.items()}
        self.methods: list[str] = []
        self.cursors: list[Any] = []
        self.session = ClientSession({"name": "test", "version": "1"})

    def run(self, flow: Any) -> Any:
        return run(flow, self.send)

    def send(self, request: HttpRequest) -> HttpResponse:
        message = json.loads(request.body)
        self.methods.append(message["method"])
        self.cursors.append(message.get("params", {}).get("cursor"))
        return HttpResponse(202, {}, b"") if "id" not in message else self.responses[message["method"]].pop(0)(message["id"])  # fmt: skip


FALLBACKS = {
    "400 and nothing else": plain(400),
    "400 as text": plain(400, b"Bad Request"),
    **{f"400 with {code}": error(code) for code in (-32000, -32600, -32602, -32020)},
    "400 with -32022 that lists the legacy revision only": unsupported(LEGACY),
    "400 with -32022 that lists a tolerated version": unsupported("2025-06-18"),
    "400 with -32022 that lists nothing": error(-32022),
    "404 as text": plain(404, b"Not Found"),
    "404 with -32601": error(-32601, 404),
    "405": plain(405),
    "200 with an error": error(-32601, 200),
    "a server that breaks on what it does not know": plain(500),
    "a discovery without a modern version": result(supportedVersions=[LEGACY], capabilities={}),
    "a discovery that makes no sense": result(supportedVersions="all"),
    "200 that is no JSON": plain(200, b"<html>"),
    "a response to somebody else": plain(200, b'{"jsonrpc":"2.0","id":999,"result":{}}'),
    "202 to a request": plain(202),
}


@pytest.mark.parametrize("response", FALLBACKS.values(), ids=FALLBACKS)
def test_the_handshake_follows_on(response: Response) -> None:
    script = Script(response)
    script.run(script.session.open())
    assert (script.session.version, script.methods) == (LEGACY, PROBE + HANDSHAKE)


@pytest.mark.parametrize(
    ("response", "expected"),
    [
        *((plain(status), PeerRefused) for status in (401, 403, 429, 503)),
        (error(-32600, 403), PeerError),
        (plain(307, location="http://elsewhere/"), PeerRefused),
        (unsupported("2031-01-01"), PeerError),
    ],
    ids=["401", "403", "429", "503", "403 with an error", "a redirect", "no version in common"],
)
def test_no_handshake_is_tried_on(response: Response, expected: type[ClientError]) -> None:
    script = Script(response)
    with pytest.raises(expected):
        script.run(script.session.open())
    assert (script.session.version, script.methods) == (None, PROBE)


def test_a_second_probe_for_a_server_that_lists_what_it_refuses() -> None:
    odd = unsupported(MODERN, LEGACY)
    for second, version, asked in ((DISCOVERED, MODERN, PROBE * 2), (odd, LEGACY, PROBE * 2 + HANDSHAKE)):
        script = Script(odd, second)
        script.run(script.session.open())
        assert (script.session.version, script.methods) == (version, asked)


def test_a_modern_only_server_that_refuses_twice_is_given_up() -> None:
    script = Script(*[unsupported(MODERN)] * 2)
    with pytest.raises(PeerError):
        script.run(script.session.open())
    assert script.methods == PROBE * 2


def test_an_older_version_is_taken_as_it_is_offered() -> None:
    script = Script(plain(404), initialize=[result(protocolVersion="2025-06-18")])
    script.run(script.session.open())
    assert script.session.version == "2025-06-18"


@pytest.mark.parametrize(
    ("response", "expected"),
    [
        *((result(protocolVersion=version), NotMcp) for version in odd("1999-01-01", [], None)),
        *((plain(200, b"<html>"), NotMcp), (plain(404), PeerRefused), (error(-32603, 200), PeerError)),
    ],
    ids=["an unknown version", "no version", "null", "a web page", "404", "a JSON-RPC error"],
)
def test_a_handshake_fails_with(response: Response, expected: type[ClientError]) -> None:
    script = Script(plain(404), initialize=[response])
    with pytest.raises(expected):
        script.run(script.session.open())
    assert script.session.version is None


# What a call is answered with -> the error, and what became of the call.
FAILURES = {
    "-32022, even one that lists our version": (unsupported(MODERN), PeerError, NOT_SENT),
    "-32020": (error(-32020), PeerError, NOT_SENT),
    "-32603": (error(-32603, 200), PeerError, UNKNOWN),
    "an error that tells the outcome": (error(-32000, 200, data={"delivery": "done"}), PeerError, DONE),
    "an error whose code is none": (error(True), PeerRefused, NOT_SENT),
    "401": (plain(401), PeerRefused, NOT_SENT),
    "503": (plain(503), PeerRefused, UNKNOWN),
    "a result under HTTP 500": (answer(500, result={"content": []}), NotMcp, UNKNOWN),
    "200 and nothing": (plain(200), NotMcp, UNKNOWN),
    "content that is no list": (result(content=7), NotMcp, UNKNOWN),
    "no content": (result(), NotMcp, UNKNOWN),
    "no base64": (result(content=[{"type": "image", "data": "*", "mimeType": "x"}]), NotMcp, UNKNOWN),
    "no resource": (result(content=[{"type": "resource", "resource": 1}]), NotMcp, UNKNOWN),
}


@pytest.mark.parametrize(("response", "expected", "delivery"), FAILURES.values(), ids=FAILURES)
def test_a_call_is_never_repeated_on(response: Response, expected: type[ClientError], delivery: str) -> None:
    script = Script(DISCOVERED, tools_call=[response, result(content=[])])
    with pytest.raises(expected) as caught:
        script.run(script.session.call("tap", {}))
    assert (caught.value.delivery, script.methods) == (delivery, [*PROBE, "tools/call"])


def test_a_text_resource_is_a_file_and_other_blocks_are_left_raw() -> None:
    content = [{"type": "resource", "resource": {"uri": "u", "text": "ä"}}, {"type": "audio"}]
    script = Script(DISCOVERED, tools_call=[result(content=content)])
    (file,) = script.run(script.session.call("tap", {})).blobs
    assert (file.content, file.mime, file.uri) == ("ä".encode(), "application/octet-stream", "u")


def test_a_server_that_no_longer_speaks_our_revision_is_asked_anew_next_time() -> None:
    script = Script(DISCOVERED, plain(404), tools_call=[unsupported(LEGACY), result(content=[])])
    with pytest.raises(PeerError):
        script.run(script.session.call("tap", {}))
    script.run(script.session.call("tap", {}))
    assert script.session.version == LEGACY


def test_the_list_follows_cursors_an_empty_one_included() -> None:
    pages = [result(tools=[{"name": name}], nextCursor=cursor) for name, cursor in (("a", ""), ("b", "2"), ("c", None))]
    script = Script(DISCOVERED, tools_list=pages)
    assert [tool["name"] for tool in script.run(script.session.list_tools())] == ["a", "b", "c"]
    assert script.cursors[1:] == [None, "", "2"]


def test_a_list_without_end_is_given_up() -> None:
    script = Script(DISCOVERED, tools_list=[result(tools=[], nextCursor="again")] * (PAGES_LIMIT + 1))
    with pytest.raises(PeerBroken, match="did not end"):
        script.run(script.session.list_tools())
    assert script.methods.count("tools/list") == PAGES_LIMIT


@pytest.mark.parametrize("tools", [None, {}, ["name"], [{"name": 1}]])
def test_a_list_that_is_malformed_is_refused(tools: Any) -> None:
    script = Script(DISCOVERED, tools_list=[result(tools=tools)])
    with pytest.raises(NotMcp):
        script.run(script.session.list_tools())


def test_a_session_id_that_no_header_could_carry_is_ignored() -> None:
    for session_id in ("a\r\nb", "ä", ""):
        opened = plain(200, INITIALIZED(2).body, **{"mcp-session-id": session_id})
        script = Script(plain(404), initialize=[opened])
        script.run(script.session.open())
        assert script.session.session is None


# --- responses -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "body",
    [
        b'event: message\ndata: {"jsonrpc":"2.0","id":1,"result":{"a":1}}\n\n',
        b'data: {"jsonrpc":"2.0",\r\ndata: "id":1,"result":{"a":1}}\r\n\r\n',
        b': hi\n\ndata: {"method":"n"}\n\ndata:{"id":1,"result":{"a":1}}',
    ],
    ids=["one event", "one over two lines", "after another message"],
)
def test_a_response_may_come_as_an_event_stream(body: bytes) -> None:
    assert result_of(HttpResponse(200, {"content-type": "text/event-stream; charset=utf-8"}, body), 1) == {"a": 1}


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"])
def test_a_stream_of_events_is_read_up_to_the_answer(end: bytes) -> None:
    """However it is cut into pieces; of another body all is read, and nothing of what answers a notification."""
    answer = end.join([b": hi", b"", b'data: {"method":"n"}', b"", b'data: {"id":1,', b'data: "result":{}}', b"", b""])
    stream = {"content-type": "text/event-stream"}
    for size in range(1, len(answer) + 1):
        body = answer + b": on" + end * 2
        pieces = [body[at : at + size] for at in range(0, len(body), size)]
        read = b"".join(until_answer(iter(pieces), stream, 1))
        assert len(answer) - len(end) < len(read) < len(answer) + size
        assert [*until_answer(pieces, JSON, 1)] == pieces
        assert [*until_answer(pieces, stream, None)] == []


@pytest.mark.parametrize(
    ("members", "expected"),
    [
        *(({"id": number, "result": {}}, None) for number in (1, "1")),
        *(({"id": number, "result": {}}, NotMcp) for number in odd(2, "2", True, None)),
        *(({"id": 1, "result": found}, NotMcp) for found in odd(5, None, [])),
        *(({"id": number, "error": {"code": -1}}, PeerError) for number in odd(1, None)),
        ({"id": 2, "error": {"code": -1}}, NotMcp),
        ({"id": 1, "error": None, "result": {}}, None),
    ],
)
def test_only_the_answer_to_our_request_counts(members: Any, expected: type[ClientError] | None) -> None:
    response = HttpResponse(200, JSON, json.dumps(members).encode())
    if expected is None:
        assert result_of(response, 1) == {}
    else:
        with pytest.raises(expected):
            result_of(response, 1)


@pytest.mark.parametrize(
    ("response", "message"),
    [
        (plain(404, b'{"error": "MCP is at /mcp"}'), r"\(MCP is at /mcp\).*usually /mcp"),
        (plain(401, b'{"error": "invalid token"}'), r"invalid token.*--token-file"),
        (plain(405), "takes no POST"),
        (plain(302, location="http://x/\x1b[2J"), r"redirects to http://x/ \[2J;"),
        (plain(418), "HTTP 418: it is not MCP"),
        (plain(500), "its log has the reason"),
        (plain(200, b"", **{"content-type": "text/html"}), "text/html.*check address and path"),
        (error(-32000, 200, message="x" * 500), r"x{200}\.\.\. \(JSON-RPC error -32000\)"),
    ],
)
def test_an_error_is_one_line_that_teaches(response: Response, message: str) -> None:
    with pytest.raises(ClientError, match=message) as caught:
        result_of(response(1), 1)
    assert str(caught.value).isprintable()
