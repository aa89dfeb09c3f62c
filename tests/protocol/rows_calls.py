"""Rows 68-90: methods that are not there, tools and their arguments, and what calls come to."""

from __future__ import annotations

from typing import Any

from mcpboard.errors import BackendTimeout, Busy, DeviceBusy, InvalidParams, ToolFailed
from mcpboard.protocol.versions import LEGACY
from tests.conformance.fixture_role import MissingCapability
from tests.protocol.http_messages import PLAIN, UNSENT, enveloped, head, message, modern, odd
from tests.protocol.roles import ALICE, BOARD, BOB, HOST, Case

MISSING = [
    *("resources/list", "resources/read", "resources/templates/list", "resources/subscribe", "resources/unsubscribe"),
    *("prompts/list", "prompts/get", "completion/complete", "logging/setLevel", "subscriptions/listen"),
]  # fmt: skip
TAP = {"x": 1, "y": 2}
OPENED = message("initialize", {"protocolVersion": LEGACY})
FAULT = {"isError": True, "structuredContent": {"delivery": "not_sent"}}
FAILED = {"isError": True, "structuredContent": UNSENT}
INTERNAL = '"message":"internal error; the server\'s log has the details"}'


def _gone(row: int, phrase: str, sent: Any, body: bytes = message("ping"), code: int = -32601, status: int = 404, policy: Any = BOARD, **wanted: Any) -> Case:  # fmt: skip
    return Case(row, phrase, sent, body, status, code, policy, **wanted)


def _listed(row: int, cursor: Any) -> Case:
    return Case(row, f"the cursor {cursor!r}", PLAIN, message("tools/list", {"cursor": cursor}), code=-32602)


def _called(row: int, phrase: str, params: Any, code: int | None = None, policy: Any = BOARD, **wanted: Any) -> Case:
    return Case(row, phrase, head(authorization=ALICE), message("tools/call", params), 200, code, policy, **wanted)


def _tapped(phrase: str, arguments: Any, code: int | None = None, policy: Any = BOARD, **wanted: Any) -> Case:
    return _called(75, phrase, {"name": "tap", "arguments": arguments}, code, policy, **wanted)


def _written(phrase: str, arguments: bytes, code: int | None, says: str = "") -> Case:
    body = b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"tap","arguments":{"x":1,%s}}}' % arguments
    return Case(75, phrase, PLAIN, body, 400 if code == -32700 else 200, code, id=None if code == -32700 else 1, says=says)  # fmt: skip


def _came_to(row: int, phrase: str, outcome: Any, code: int | None = None, policy: Any = HOST, **wanted: Any) -> Case:
    return _called(row, phrase, {"name": "status"}, code, policy, outcome=outcome, **wanted)


def _session(phrase: str, body: bytes = message("ping"), status: int = 404, code: int | None = -32600, session: str = "gone", who: str = ALICE, **wanted: Any) -> Case:  # fmt: skip
    return Case(84, f"{phrase} in the session {session}", head(session=session, authorization=who), body, status, code, HOST, **wanted)  # fmt: skip


def _ended(phrase: str, status: int = 404, code: int | None = -32600, who: str = ALICE, **sent: Any) -> Case:
    return Case(85, f"DELETE of {phrase}", head(http="DELETE", authorization=who, **sent), b"", status, code, HOST, id=None)  # fmt: skip


CASES = [
    *(_gone(68, f"the method {method!r}", PLAIN, message(method), says="method not found") for method in ("tools/tap", "Ping", "", "\ud83d")),
    _gone(68, "a modern method nobody knows", modern("tools/tap"), enveloped("tools/tap"), says="tools/tap"),
    _gone(69, "an unknown method on a host", head(authorization=ALICE), message("x"), status=200, policy=HOST),
    _gone(69, "an unknown modern method on a host", modern(authorization=ALICE), message("x"), policy=HOST),
    *(_gone(69, f"an enveloped {method} on a host", modern(method, authorization=ALICE), enveloped(method), policy=HOST) for method in ("x", "ping")),
    *(_gone(70, f"{method} under {sent.standard.version}", sent, body) for method in MISSING for sent, body in ((PLAIN, message(method)), (modern(method), enveloped(method)))),
    *(_listed(row, cursor) for row, cursor in ((71, "bogus"), (71, ""), (72, 5))),
    Case(71, "a modern cursor that was never given out", modern("tools/list"), enveloped("tools/list", cursor="x"), 200, -32602),
    Case(71, "a cursor of null is none", PLAIN, message("tools/list", {"cursor": None}), result={"nextCursor": UNSENT}),
    *(_called(72, f"a tool call with params {params!r}", params, -32602) for params in odd(UNSENT, {})),
    *(_called(72, f"a tool named {word!r}", {"name": word}, -32602) for word in odd(None, 5, ["tap"], {}, True)),
    *(_called(72, f"arguments {word!r}", {"name": "status", "arguments": word}, -32602) for word in odd([], "{}", 5, False, "")),
    *(_called(73, f"no arguments, {params}, {policy.faults_as_results}", {"name": "status", **params}, policy=policy) for params in odd({}, {"arguments": None}) for policy in (BOARD, HOST)),
    *(_called(74, f"the tool {name!r}", {"name": name}, -32602, says=f"unknown tool: {name[:1]}") for name in ("shell", "Status", " status", "", "shell\u00e9", "s\ud83d")),
    _called(74, "an unknown tool on a host", {"name": "shell"}, -32602, HOST),
    _tapped("a required property is missing", {"x": 1}, says="argument y is missing", result=FAULT),
    _tapped("everything is missing", None, says="0 to 1000, left to right", result=FAULT),
    _tapped("a truth value for a number", {**TAP, "x": True}, says="argument x must be a finite number", result=FAULT),
    _tapped("a missing argument on a host", {"x": 1}, -32602, HOST, says="argument y is missing"),
    _tapped("a wrong type on a host", {**TAP, "x": "far"}, -32602, HOST, says="argument x"),
    *(_tapped(f"the backend's to judge, {arguments}", arguments, result={"isError": UNSENT}) for arguments in ({"x": "12", "y": "0.5"}, {**TAP, "z": []}, {"x": -1, "y": 1e9})),
    *(_tapped(f"an optional null is left out, {policy.faults_as_results}", {**TAP, "label": None, "times": None, "to": None}, policy=policy, result={"isError": UNSENT}) for policy in (BOARD, HOST)),
    *(_tapped(f"an object as text, {policy.faults_as_results}", {**TAP, "to": '{"x":1,"y":2}'}, policy=policy, result={"isError": UNSENT}) for policy in (BOARD, HOST)),
    _tapped("a required null", {**TAP, "x": None}, says="argument x must be a finite number", result=FAULT),
    _tapped("a required null on a host", {**TAP, "x": None}, -32602, HOST, says="argument x must be a finite number"),
    _tapped("an object as text that lacks what is required", {**TAP, "to": '{"x":1,"y":null}'}, says="argument to.y must be a finite number", result=FAULT),
    _tapped("a list as text for an object", {**TAP, "to": "[1,2]"}, says="argument to must be an object", result=FAULT),
    _written("half a surrogate pair in an object as text", b'"y":2,"to":"{\\"x\\":1,\\"y\\":2,\\"z\\":\\"\\\\ud83d\\"}"', -32602, "half a surrogate pair"),
    _written("no number in an object as text", b'"y":2,"to":"{\\"x\\":1,\\"y\\":1e400}"', -32602, "not finite"),
    *(_written(f"no character in {more!r}", b'"y":2,' + more, -32602, "half a surrogate pair") for more in (b'"label":"\\ud83d"', b'"\\udc00":0')),
    *(_written(f"no number in {more!r}", more, -32602, "not finite") for more in (b'"y":1e400', b'"y":2,"z":[-1e999]')),
    _written("arguments over the limit", b'"y":2,"z":"%s"' % (b"z" * 262_144), -32602, "limit of 262144 bytes"),
    _written("arguments of exactly the limit", b'"y":2,"z":"%s"' % (b"a" * (262_144 - len('{"x":1,"y":2,"z":""}'))), None),
    # They stand three levels deep in a request, which may have 64.
    *(_written(f"{depth} levels", b'"y":2,"z":' + b"[" * depth + b"]" * depth, code) for depth, code in ((61, None), (62, -32700), (10_000, -32700))),
    _came_to(76, "the backend timed out", BackendTimeout("no answer in 10 s"), None, BOARD, says="no answer in 10 s", result=FAILED),
    _came_to(77, "the one bundle is already under way", Busy("busy: a bundle is being made"), None, BOARD, says="busy", result=FAILED),
    _came_to(78, "the device is busy", DeviceBusy("device X is busy", "cloud_assignment", None), -32000, data={"busy_owner": "cloud_assignment", "delivery": "not_sent"}),
    _came_to(79, "the device is unknown", InvalidParams("unknown device: X"), -32602, says="unknown device: X"),
    _came_to(80, "a tool of the host raised", ToolFailed("adb: device offline"), -32000, says="adb: device offline"),
    _came_to(80, "a tool failed that only reads", Busy("busy"), -32000),
    _called(80, "a tool failed that acts", {"name": "tap", "arguments": TAP}, -32000, HOST, outcome=Busy("busy"), data={"delivery": "not_sent"}),
    *(_came_to(81, f"our own bug, {policy.faults_as_results}", None, -32603, policy, says=INTERNAL) for policy in (HOST, BOARD)),
    *(Case(82, f"the session id {session[:10]!r} on a board", head(session=session), message("tools/list")) for session in ("stale", "", "x" * 8192)),
    Case(83, "a dead session beside the modern header", modern(session="gone", authorization=ALICE), policy=HOST),
    Case(83, "neither session nor modern header", head(authorization=ALICE), message("tools/list"), policy=HOST),
    _session("a list", message("tools/list", id="x"), id="x"),
    _session("a call that is not run", message("tools/call", {"name": "status"})),
    _session("another principal", session="s-1", who=BOB),
    *(_session(f"{body!r}", body, id=None) for body in (message("x", id=UNSENT), b"{", b"[]", b"{}")),
    _session("a malformed request", message(5)),
    _session("no token", status=401, code=None, session="s-1", who="", headers=[("WWW-Authenticate", "Bearer")]),
    _session("broken JSON", b"{", 400, -32700, "s-1", id=None),
    _session("a ping", status=200, code=None, session="s-1"),
    _session("a handshake", OPENED, 200, None, headers=[("Mcp-Session-Id", "minted")]),
    _ended("a live session", 204, None, session="s-1"),
    _ended("a dead session", session="gone"),
    _ended("another's session", session="s-1", who=BOB),
    _ended("no session"),
    _called(86, "members of other revisions", {"name": "status", "inputResponses": {}, "requestState": "x", "task": {"ttl": 1}}),
    Case(90, "a capability that was not declared", PLAIN, message("tools/call", {"name": "status"}), 400, -32021, outcome=MissingCapability("sampling"), data={"requiredCapabilities": {"sampling": {}}}),
]  # fmt: skip
