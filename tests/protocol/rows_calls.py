"""Rows 68-90: methods that are not there, tools and their arguments, and what calls come to."""

from __future__ import annotations

from typing import Any

from mcpboard.errors import BackendTimeout, Busy, InvalidParams, MissingCapability
from tests.protocol.cases import Case
from tests.protocol.http_messages import UNSENT, enveloped, head, message, modern, odd
from tests.protocol.roles import ALICE, DeviceBusy, ToolFault

MISSING = [
    "resources/list", "resources/read", "resources/templates/list", "resources/subscribe", "resources/unsubscribe",
    "prompts/list", "prompts/get", "completion/complete", "logging/setLevel", "subscriptions/listen",
]  # fmt: skip
ALLOWED = head(authorization=ALICE)
TAP = {"x": 1, "y": 2}


def _called(
    row: int,
    phrase: str,
    params: Any,
    *,
    policy: str = "board",
    code: int | None = None,
    status: int = 200,
    **wanted: Any,
) -> Case:
    return Case(row, phrase, ALLOWED, message("tools/call", params), status, code, policy=policy, **wanted)


def _tapped(
    row: int, phrase: str, arguments: Any, code: int | None = None, policy: str = "board", **wanted: Any
) -> Case:
    return _called(row, phrase, {"name": "tap", "arguments": arguments}, code=code, policy=policy, **wanted)


def _came_to(row: int, phrase: str, outcome: Any, code: int | None = None, policy: str = "host", **wanted: Any) -> Case:
    return _called(row, phrase, {"name": "status"}, code=code, policy=policy, outcome=outcome, **wanted)


FAULT = {"isError": True, "structuredContent": {"delivery": "not_sent"}}
FAILED = {"isError": True, "structuredContent": UNSENT}

METHODS = [
    Case(68, "a method nobody knows", head(), message("tools/tap"), 404, -32601, says="tools/tap"),
    Case(68, "a modern method nobody knows", modern("tools/tap"), enveloped("tools/tap"), 404, -32601),
    Case(68, "a method in the wrong case", head(), message("Ping"), 404, -32601),
    Case(68, "a method without a name", head(), message(""), 404, -32601),
    Case(68, "a method that is half a surrogate pair", head(), message("\ud83d"), 404, -32601),
    Case(69, "an unknown method on a host", ALLOWED, message("x"), 200, -32601, policy="host"),
    Case(69, "an unknown modern method on a host", modern(authorization=ALICE), message("x"), 404, -32601, policy="host"),
    Case(69, "an enveloped unknown method on a host", modern("x", authorization=ALICE), enveloped("x"), 404, -32601, policy="host"),
    Case(69, "an enveloped ping on a host", modern("ping", authorization=ALICE), enveloped("ping"), 404, -32601, policy="host"),
    *(Case(70, f"{method} is not offered", head(), message(method), 404, -32601) for method in MISSING),
    *(Case(70, f"modern {method} is not offered", modern(method), enveloped(method), 404, -32601) for method in MISSING),
]  # fmt: skip

PARAMS = [
    Case(71, "a cursor that was never given out", head(), message("tools/list", {"cursor": "bogus"}), 200, -32602),
    Case(71, "an empty cursor", head(), message("tools/list", {"cursor": ""}), 200, -32602),
    Case(71, "a modern cursor that was never given out", modern("tools/list"), enveloped("tools/list", cursor="x"), 200, -32602),
    Case(71, "a cursor of null is none", head(), message("tools/list", {"cursor": None}), 200, result={"nextCursor": UNSENT}),
    Case(72, "a cursor that is a number", head(), message("tools/list", {"cursor": 5}), 200, -32602),
    _called(72, "a tool call without params", UNSENT, code=-32602),
    _called(72, "a tool call without a name", {}, code=-32602),
    *(_called(72, f"a tool named {word!r}", {"name": word}, code=-32602) for word in odd(None, 5, ["tap"], {}, True)),
    *(_called(72, f"arguments {word!r}", {"name": "status", "arguments": word}, code=-32602) for word in odd([], "{}", 5, False, "")),
    _called(73, "no arguments", {"name": "status"}),
    _called(73, "arguments of null", {"name": "status", "arguments": None}),
    _called(73, "arguments of null on a host", {"name": "status", "arguments": None}, policy="host"),
    *(_called(74, f"the tool {name!r}", {"name": name}, code=-32602, says="unknown tool") for name in ("shell", "Status", " status", "", "a\u00e9", "\ud83d")),
    _called(74, "the unknown tool is named", {"name": "shell"}, code=-32602, says="shell"),
    _called(74, "an unknown tool on a host", {"name": "shell"}, code=-32602, policy="host"),
]  # fmt: skip

ARGUMENTS = [
    _tapped(75, "a required property is missing", {"x": 1}, says="argument y is missing", result=FAULT),
    _tapped(75, "everything is missing", None, says="0 to 1000, left to right", result=FAULT),
    _tapped(75, "a truth value for a number", {**TAP, "x": True}, says="argument x must be a finite number", result=FAULT),
    _tapped(75, "null for a number", {**TAP, "x": None}, says="argument x", result=FAULT),
    _tapped(75, "text for a truth value", {**TAP, "long": "true"}, says="argument long must be true or false", result=FAULT),
    _tapped(75, "a number for text", {**TAP, "label": 5}, says="argument label must be text", result=FAULT),
    _tapped(75, "a missing argument on a host", {"x": 1}, -32602, "host", says="argument y is missing"),
    _tapped(75, "a wrong type on a host", {**TAP, "x": "far"}, -32602, "host", says="argument x"),
    _tapped(75, "numbers as text", {"x": "12", "y": "0.5"}, result={"isError": UNSENT}),
    _tapped(75, "unknown properties are the backend's", {**TAP, "z": []}, result={"isError": UNSENT}),
    _tapped(75, "values out of range are the backend's", {"x": -1, "y": 1e9}, result={"isError": UNSENT}),
    _tapped(75, "half a surrogate pair in the arguments", {**TAP, "label": "\ud83d"}, -32602, says="surrogate"),
    _tapped(75, "arguments over the limit", {**TAP, "label": "x" * 262_144}, -32602, says="262144 bytes"),
]  # fmt: skip

OUTCOMES = [
    _came_to(76, "the backend timed out", BackendTimeout("no answer in 10 s"), None, "board", says="no answer in 10 s", result=FAILED),
    _came_to(77, "the one bundle is already under way", Busy("busy: a bundle is being made"), None, "board", says="busy", result=FAILED),
    _came_to(78, "the device is busy", DeviceBusy("device X is busy", data={"busy_owner": "cloud_assignment"}), -32000, data={"busy_owner": "cloud_assignment"}),
    _came_to(79, "the device is unknown", InvalidParams("unknown device: X"), -32602, says="unknown device: X"),
    _came_to(80, "a tool of the host raised", ToolFault("adb: device offline"), -32000, says="adb: device offline"),
    _came_to(81, "our own bug, once the id is known", None, -32603),
    _came_to(81, "our own bug on a board", None, -32603, "board"),
    Case(82, "a session id on a board", head(session="stale"), message("tools/list"), 200),
    Case(82, "an empty session id on a board", head(session=""), message("ping"), 200),
    Case(82, "a session id of 8 KiB on a board", head(session="x" * 8192), message("ping"), 200),
    Case(83, "a dead session beside the modern header", modern(session="gone", authorization=ALICE), message("ping"), 200, policy="host"),
    Case(83, "neither session nor modern header", ALLOWED, message("tools/list"), 200, policy="host"),
    Case(84, "a dead session", head(session="gone", authorization=ALICE), message("tools/list"), 404, -32600, policy="host"),
    Case(84, "another principal's session", head(session="s-1", authorization="Bearer token-b"), message("ping"), 404, -32600, policy="host"),
    Case(84, "a dead session under a notification", head(session="gone", authorization=ALICE), message("x", id=UNSENT), 404, -32600, id=None, policy="host"),
    Case(84, "a dead session under broken JSON", head(session="gone", authorization=ALICE), b"{", 404, -32600, id=None, policy="host"),
    Case(84, "a dead session under a batch", head(session="gone", authorization=ALICE), b"[]", 404, -32600, id=None, policy="host"),
    Case(84, "a dead session under a malformed request", head(session="gone", authorization=ALICE), message(5), 404, -32600, policy="host"),
    Case(84, "a live session under broken JSON", head(session="s-1", authorization=ALICE), b"{", 400, -32700, id=None, policy="host"),
    Case(84, "a handshake with a dead session", head(session="gone", authorization=ALICE), message("initialize", {"protocolVersion": "2025-11-25"}), 200, policy="host", headers=(("Mcp-Session-Id", "minted"),)),
    Case(85, "DELETE of a live session", head(http="DELETE", session="s-1", authorization=ALICE), b"", 204, policy="host"),
    Case(85, "DELETE of a dead session", head(http="DELETE", session="gone", authorization=ALICE), b"", 404, -32600, id=None, policy="host"),
    Case(85, "DELETE of another's session", head(http="DELETE", session="s-1", authorization="Bearer token-b"), b"", 404, -32600, id=None, policy="host"),
    Case(85, "DELETE without a session", head(http="DELETE", authorization=ALICE), b"", 404, -32600, id=None, policy="host"),
    _called(86, "members of other revisions", {"name": "status", "inputResponses": {}, "requestState": "x", "task": {"ttl": 1}}),
    _came_to(90, "a capability that was not declared", MissingCapability("sampling"), -32021, status=400, says="sampling", data={"requiredCapabilities": {"sampling": {}}}),
]  # fmt: skip

CASES = METHODS + PARAMS + ARGUMENTS + OUTCOMES
