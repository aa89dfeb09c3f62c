"""Whatever comes in, an answer goes out: any bytes under any head, and any message near a good one."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from mcpboard.errors import ParseError, Refused
from mcpboard.net import parse_authority
from mcpboard.protocol import headers, jsonrpc
from mcpboard.protocol.access import admit, same_origin
from mcpboard.protocol.endpoint import METHODS, Endpoint
from mcpboard.protocol.headers import StandardHeaders, decoded_name, encoded_name
from mcpboard.protocol.messages import Policy, Reply, RequestHead, Step, ToolCall
from mcpboard.protocol.tools import Content, Text, check_arguments
from mcpboard.protocol.versions import KNOWN, LEGACY, MODERN
from tests.protocol.http_messages import ADDRESS, head, message, meta, render
from tests.protocol.roles import ALICE, BOARD, DISABLED, HOST, STRICT, TOOL_LIST, TOOLS, Role

quick = settings(max_examples=200, derandomize=True, deadline=None, database=None)
POLICIES = (BOARD, HOST, STRICT, DISABLED)

# --- what may come in ----------------------------------------------------------------------

SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8)
JSON = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=8,
)
VERSIONS = st.sampled_from([None, MODERN, LEGACY, *sorted(KNOWN), "2099-01-01", ""])
NAMES = [*METHODS, "notifications/initialized", "notifications/cancelled", "resources/list", "x"]
TOOL_NAMES = st.sampled_from([tool.name for tool in TOOLS] + ["shell", "", "=?base64?dGFw?="])
SENT = st.builds(
    StandardHeaders,
    version=VERSIONS | st.text(max_size=5),
    method=st.none() | st.sampled_from(NAMES),
    name=st.none() | TOOL_NAMES | st.text(max_size=20),
)
# Hypothesis likes the first of a sample, so what lets a post through stands first, and often.
HEADS = st.builds(
    RequestHead,
    method=st.sampled_from(["POST"] * 12 + ["GET", "DELETE", "DELETE"]),
    host=st.sampled_from([ADDRESS] * 3 + [None, "evil.example"]),
    origin=st.sampled_from([None] * 12 + [f"http://{ADDRESS}", "null"]),
    authorization=st.sampled_from([ALICE] * 8 + [None, "Bearer x"]),
    content_type=st.sampled_from(["application/json"] * 12 + [None, "text/plain"]),
    session=st.sampled_from([None, "s-1", "gone"]),
    standard=st.sampled_from([StandardHeaders(), StandardHeaders(LEGACY), StandardHeaders(MODERN)]) | SENT,
)


def optional(members: dict[str, st.SearchStrategy[Any]]) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries({}, optional=members)


META = optional({
    headers.VERSION_KEY: VERSIONS | JSON,
    headers.CAPABILITIES_KEY: st.just({}) | JSON,
    headers.CLIENT_KEY: st.just({"name": "c", "version": "1"}) | JSON,
    headers.LOG_LEVEL_KEY: st.just("debug") | JSON,
    "progressToken": JSON,
})  # fmt: skip
PARAMS = optional({
    "_meta": META | JSON,
    "name": TOOL_NAMES | JSON,
    "arguments": st.just({"x": 1, "y": 2}) | JSON,
    "cursor": JSON,
    "protocolVersion": VERSIONS | JSON,
    "clientInfo": JSON,
})  # fmt: skip
MESSAGES = optional({
    "jsonrpc": st.sampled_from(["2.0"] * 9 + ["1.0", 2]),
    "id": st.integers() | st.text(max_size=5) | st.sampled_from([0, "", 1.0, 1.5, None, True, 2**70]) | JSON,
    "method": st.sampled_from(NAMES * 2 + ["", 5]) | JSON,
    "params": PARAMS | JSON,
    "result": JSON,
})  # fmt: skip
ARGUMENTS = st.dictionaries(st.sampled_from(["x", "y", "times", "to", "z"]), st.integers() | JSON)
IDS = st.integers() | st.text(max_size=5)
GOOD = st.one_of(
    st.builds(lambda id, method: message(method, id=id), IDS, st.sampled_from(NAMES)),
    st.builds(lambda id: message("initialize", {"protocolVersion": LEGACY}, id=id), IDS),
    st.builds(lambda id, name: message("tools/call", {"name": name, "arguments": {"x": 1, "y": 2}}, id=id), IDS, TOOL_NAMES),
)  # fmt: skip
BODIES = GOOD | (MESSAGES | JSON).map(lambda value: json.dumps(value).encode()) | st.binary(max_size=64)
POLICY = st.sampled_from([BOARD, HOST] * 3 + [*POLICIES])

# --- what must hold ------------------------------------------------------------------------


def stepped(policy: Policy, head: RequestHead, body: bytes) -> Step | Refused:
    """Return the step that a post leads to; the only exception that may pass is Refused, and only from the head."""
    endpoint = Endpoint(policy, TOOL_LIST)
    try:
        admitted = admit(policy, head)
    except Refused as refused:
        return refused
    return endpoint.receive(admitted, body)


def test_any_post_comes_to_a_step_or_a_refusal() -> None:
    types = Counter[str]()

    @quick
    @given(POLICY, HEADS, BODIES)
    def check(policy: Policy, head: RequestHead, body: bytes) -> None:
        body = body if head.method == "POST" else b""
        step = stepped(policy, head, body)
        types[type(step).__name__] += 1
        if isinstance(step, Refused):
            assert step.status in {401, 403, 404, 405, 413}
            json.dumps(step.body)
        elif isinstance(step, Reply):
            assert_answers(step, body)

    check()
    assert {"Refused", "Reply"} <= set(types), "the posts are too wild, or too tame, to prove anything"


def assert_answers(reply: Reply, body: bytes) -> None:
    """A reply is empty, or one JSON-RPC answer that echoes the id in its own JSON type."""
    got = render(reply)
    assert got.status in {200, 202, 204, 400, 404, 415}
    if got.body is None:
        return
    answer = got.json
    assert got.headers["Content-Type"] == "application/json"
    assert ("result" in answer) != ("error" in answer)
    try:
        sent = jsonrpc.readable_id(jsonrpc.load(body))
    except ParseError:  # None, where nobody could read one
        sent = None
    assert repr(answer["id"]) == repr(sent) if "id" in answer else answer["error"]["code"] == -32022


COHERENT = [
    *((StandardHeaders(version), {}) for version in (None, LEGACY, MODERN)),
    (StandardHeaders(MODERN, "tools/call", "tap"), meta()),
]


@st.composite
def calls(draw: st.DrawFn) -> tuple[StandardHeaders, dict[str, Any]]:
    """A tap that is good, or wrong in one place."""
    flaw = draw(st.sampled_from(["none"] * 4 + ["name", "arguments", "headers", "id"]))
    sent, envelope = draw(st.tuples(SENT, META) if flaw == "headers" else st.sampled_from(COHERENT))
    params = {
        "name": draw(TOOL_NAMES | JSON) if flaw == "name" else "tap",
        "arguments": draw(ARGUMENTS if flaw == "arguments" else st.just({"x": 1, "y": 2})),
        "_meta": envelope,
    }
    members = {"jsonrpc": "2.0", "method": "tools/call", "params": params}
    return sent, members if flaw == "id" and draw(st.booleans()) else {
        **members,
        "id": draw(JSON if flaw == "id" else IDS),
    }


def test_a_tool_call_is_of_a_known_tool_with_an_id() -> None:
    types = Counter[str]()

    @quick
    @given(POLICY, calls())
    def check(policy: Policy, call: tuple[StandardHeaders, dict[str, Any]]) -> None:
        sent, members = call
        step = stepped(policy, RequestHead("POST", authorization=ALICE, standard=sent), json.dumps(members).encode())
        types[type(step).__name__] += 1
        assert isinstance(step, Reply | ToolCall)
        if isinstance(step, ToolCall):
            assert (step.name, repr(step.id)) == (members["params"]["name"], repr(members["id"]))
            assert json.loads(step.arguments_json) == step.arguments
            check_arguments(TOOL_LIST.tools[step.name].input_schema, step.arguments)

    check()
    assert min(types["Reply"], types["ToolCall"]) >= 10, "one type was hardly met"


@quick
@given(st.text(max_size=30), st.integers() | st.text(max_size=8), st.booleans())
def test_any_text_of_a_tool_comes_back_whole(text: str, id: int | str, failed: bool) -> None:
    got = Role(BOARD, Content((Text(text),), {"text": text}, failed)).post(head(), message("tools/call", {"name": "status"}, id=id))  # fmt: skip
    result = got.json["result"]
    assert got.json["id"] == id
    assert result["content"][0]["text"] == result["structuredContent"]["text"] == text
    assert result.get("isError", False) is failed


@quick
@given(st.ip_addresses(), st.none() | st.integers(1, 65535))
def test_every_address_is_its_own_origin(address: Any, port: int | None) -> None:
    host = f"[{address}]" if address.version == 6 else str(address)
    whole = host if port is None else f"{host}:{port}"
    if "%" not in whole:
        assert parse_authority(whole) == (address, port)
        assert same_origin(f"http://{whole}", whole)
        assert same_origin(f"https://{whole.upper()}", whole)


@quick
@given(st.text(max_size=20))
def test_every_name_can_be_sent_encoded(name: str) -> None:
    assert decoded_name(encoded_name(name)) == name
