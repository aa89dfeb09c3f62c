"""Rows 31-67: the revision that a request belongs to, whether its headers and envelope hold together, and handshakes."""

from __future__ import annotations

import json
from typing import Any

from mcpboard.protocol.headers import CLIENT_KEY, LOG_LEVEL_KEY, VERSION_KEY
from mcpboard.protocol.versions import LEGACY, MODERN, TOLERATED
from tests.protocol.http_messages import PLAIN, UNSENT, enveloped, head, message, meta, modern, odd
from tests.protocol.roles import ALICE, BOARD, HOST, STRICT, TOOLS, Case

NOBODYS = "2099-01-01"
HANDSHAKE: dict[str, Any] = {"protocolVersion": LEGACY, "capabilities": {}, "clientInfo": {"name": "c", "version": "1"}}
MODERN_LIST = modern("tools/list")
LIST, DISCOVER = message("tools/list"), message("server/discover")
STATUS, STATUS_ENVELOPED = message("tools/call", {"name": "status"}), enveloped("tools/call", name="status")
ODD = odd(5, [], {}, True)  # no text
LEVELS = ["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"]

# Members of results.
WHO = b'{"name":"fixture","title":"Fixture","version":"1.2.3"}'
COMPLETE = b'"resultType":"complete"'
SIGNED = COMPLETE + b',"_meta":{"io.modelcontextprotocol/serverInfo":' + WHO + b"}"
ABLE = b'"capabilities":{"tools":{}},'
TEXT = b'"instructions":"Look first.",'
DISCOVERED = b'"supportedVersions":["2026-07-28","2025-11-25"],' + ABLE + TEXT + b'"ttlMs":300000,"cacheScope":"private",' + SIGNED  # fmt: skip
TOOL_LIST = json.dumps([tool.listed() for tool in TOOLS], separators=(",", ":")).encode()
LISTED = b'"tools":' + TOOL_LIST + b',"ttlMs":60000,"cacheScope":"private",'
CALLED = b'"content":[{"type":"text","text":"done"}],'


def _listed(row: int, phrase: str, sent: Any = MODERN_LIST, envelope: Any = UNSENT) -> Case:
    """A tools/list that is served in the modern way."""
    return Case(row, phrase, sent, enveloped("tools/list", envelope), exact=LISTED + SIGNED)


def _mismatch(row: int, phrase: str, sent: Any, body: bytes, says: str = "", policy: Any = BOARD) -> Case:
    return Case(row, phrase, sent, body, 400, -32020, policy, says=says)


def _incomplete(row: int, phrase: str, envelope: Any, sent: Any = MODERN_LIST, policy: Any = BOARD) -> Case:
    return Case(row, phrase, sent, enveloped("tools/list", envelope), 400, -32602, policy)


def _named(row: int, name: str | None, body_name: Any = "status", says: str = "") -> Case:
    phrase = f"the tool {name!r} in the header and {body_name!r} in the body"
    return _mismatch(row, phrase, modern("tools/call", name), enveloped("tools/call", name=body_name), says)


def _unknown(row: int, phrase: str, sent: Any, body: bytes = LIST) -> Case:
    data = {"supported": [MODERN, LEGACY], "requested": sent.standard.version}
    return Case(row, phrase, sent, body, 400, -32022, data=data)


def _agreed(row: int, asked: str, answer: str, sent: Any = PLAIN, policy: Any = BOARD, end: bytes = COMPLETE) -> Case:
    exact = b'"protocolVersion":"%s",' % answer.encode() + ABLE + b'"serverInfo":' + WHO + b"," + TEXT + end
    headers = [("Mcp-Session-Id", "minted")] if policy is HOST and answer != MODERN else []
    sent = sent._replace(authorization=ALICE)
    phrase = f"{asked!r} asked for under {sent.standard}, {'of a host' if policy is HOST else 'strictly' * policy.strict_meta}"
    body = message("initialize", {**HANDSHAKE, "protocolVersion": asked})
    return Case(row, phrase, sent, body, policy=policy, exact=exact, headers=headers)


def _unasked(phrase: str, params: Any, policy: Any = BOARD) -> Case:
    return Case(62, phrase, head(authorization=ALICE), message("initialize", params), 200, -32602, policy)


AGREEMENT = [
    _listed(31, "a whole modern request"),
    _listed(31, "a whole modern request with unknown capabilities", envelope=meta(capabilities={"x": {"y": True}})),
    Case(31, "a whole modern tool call", modern("tools/call", "status"), STATUS_ENVELOPED, exact=CALLED + SIGNED),
    _mismatch(32, "an envelope without the version header", head(None, "tools/list"), enveloped("tools/list"), "Protocol-Version is missing"),
    _mismatch(32, "an envelope without any header", PLAIN, enveloped("tools/list")),
    _mismatch(33, "an envelope without Mcp-Method", modern(), enveloped("tools/list"), "Mcp-Method is missing"),
    *(_mismatch(34, f"Mcp-Method {method!r} over tools/list", modern(method), LIST) for method in ("tools/call", "Tools/List", "tools/list, tools/list", "")),
    _mismatch(34, "another method in the header", modern("ping"), enveloped("tools/list"), "Mcp-Method is 'ping' but the body says 'tools/list'"),
    _mismatch(34, "another method under the legacy header", head(LEGACY, "ping"), LIST),
    _mismatch(34, "another method on a handshake", head(None, "ping"), message("initialize", HANDSHAKE)),
    _named(35, None, says="Mcp-Name is missing"),
    *(_named(35, name) for name in ("", "tap", "Status", "status, status")),
    _named(35, "status", UNSENT, "the body says missing"),
    *(_named(35, str(name), name) for name in (None, 5, ["status"], {"a": 1}, True)),
    _mismatch(35, "Mcp-Method alone makes it strict", modern("tools/call"), STATUS),
    Case(35, "the encoded name of a tool", modern("tools/call", "=?base64?c3RhdHVz?="), STATUS_ENVELOPED),
    *(_named(36, f"=?base64?{name}?=") for name in ("c3RhdHVz=", "c3Rhd!Vz", "/w==", "c3RhdHV6", "\u00e9")),
    *(_listed(37, f"{name} on a method that has no name", modern("tools/list", name)) for name in ("tap", "=?base64?!?=")),
    _mismatch(38, "the legacy header over a modern envelope", head(LEGACY, "tools/list"), enveloped("tools/list")),
    *(_mismatch(38, f"the modern header over {version}", modern("tools/list"), enveloped("tools/list", meta(version)), f"but the body says '{version}'") for version in (LEGACY, "v999.0.0")),
    _mismatch(38, "an unknown header over a modern envelope", head(NOBODYS, "tools/list"), enveloped("tools/list")),
    *(_mismatch(38, f"{version} in the body alone", PLAIN, enveloped("tools/list", meta(version)), "Version is missing but the body") for version in (NOBODYS, LEGACY)),
    _mismatch(38, "the version header twice", head(f"{MODERN}, {MODERN}", "tools/list"), enveloped("tools/list")),
    _mismatch(39, "Mcp-Method without the version header", head(None, "tools/list"), LIST),
    _mismatch(39, "Mcp-Method on a handshake without the version header", head(None, "initialize"), message("initialize", HANDSHAKE)),
    # Headers that disagree come before an unknown version, and that before a broken envelope.
    *(_mismatch(39, f"two methods and {envelope}", head(version, "ping"), enveloped("tools/list", envelope)) for version, envelope in ((NOBODYS, {}), (MODERN, meta(capabilities=None)), (MODERN, "x"), (MODERN, meta(5)))),
]  # fmt: skip

ENVELOPES = [
    Case(40, "Mcp-Method and no _meta", modern("tools/list"), LIST, exact=LISTED + SIGNED),
    _listed(40, "Mcp-Method and an empty _meta", envelope={}),
    *(_incomplete(40, f"Mcp-Method and {envelope}, strictly", envelope, policy=STRICT) for envelope in ({}, {"progressToken": 1})),
    Case(40, "Mcp-Method and no _meta, strictly", modern("tools/list"), LIST, 400, -32602, STRICT),
    *(_incomplete(41, f"capabilities {word!r}", meta(capabilities=word)) for word in odd(None, [], "x")),
    _incomplete(41, "no capabilities beside a legacy version", meta(LEGACY, None), head(LEGACY)),
    _incomplete(42, "capabilities without a version", meta(None)),
    _incomplete(42, "clientInfo without a version", meta(None, None, {"name": "c", "version": "1"})),
    _incomplete(42, "capabilities without a version, by header alone", meta(None), modern()),
    *(_incomplete(43, f"_meta is {word!r}", word) for word in odd("x", [], 5, True)),
    _listed(43, "_meta is null", sent=modern(), envelope=None),
    *(Case(43, f"_meta is null under {version}", head(version), enveloped("tools/list", None)) for version in (LEGACY, None)),
    Case(43, "_meta is null on a handshake", PLAIN, message("initialize", {**HANDSHAKE, "_meta": None})),
    *(_incomplete(43, f"_meta is text under {version}", "x", head(version)) for version in (LEGACY, None)),
    Case(43, "_meta is text on a handshake", PLAIN, message("initialize", {**HANDSHAKE, "_meta": "x"}), 400, -32602),
    *(_incomplete(44, f"the version is {word!r}", meta(None) | {VERSION_KEY: word}) for word in odd(*ODD, None)),
    _incomplete(44, "the version is a number and there is no header", meta(5), PLAIN),
    _listed(45, "no clientInfo", envelope=meta(client=UNSENT)),
    *(_incomplete(46, f"clientInfo is {word!r}", meta() | {CLIENT_KEY: word}) for word in odd("c", [], {}, {"name": "c"}, {"version": "1"}, {"name": 1, "version": "1"}, {"name": "c", "version": None})),
    *(_listed(46, f"{key} is null", envelope=meta() | {key: None}) for key in (CLIENT_KEY, LOG_LEVEL_KEY)),
    _listed(46, "clientInfo is null, without an envelope", sent=modern(), envelope={CLIENT_KEY: None}),
    *(_incomplete(46, f"logLevel is {word!r}", meta(**{LOG_LEVEL_KEY: word})) for word in odd("loud", "", 7, ["debug"])),
    *(_listed(46, f"the log level {level}", envelope=meta(**{LOG_LEVEL_KEY: level})) for level in LEVELS),
    _listed(46, "clientInfo with more than it needs", envelope=meta(client={"name": "c", "version": "1", "title": 5})),
    # A legacy request without an envelope may put there what it likes.
    *(_incomplete(46, f"a bad {key} under {sent.standard}", {**more, key: "x"}, sent) for key in (LOG_LEVEL_KEY, CLIENT_KEY) for sent, more in ((modern(), {}), (head(LEGACY), meta(LEGACY)))),
    *(Case(46, f"a bad {key} under {version}", head(version), enveloped("tools/list", {key: "x"})) for key in (LOG_LEVEL_KEY, CLIENT_KEY) for version in (LEGACY, None)),
]  # fmt: skip

VERSIONS = [
    *(_unknown(47, f"an unknown version in header and body, Mcp-Method {method}", head(NOBODYS, method), enveloped("tools/list", meta(NOBODYS))) for method in ("tools/list", None)),
    *(_unknown(48, f"the version header {word!r:.30}", head(word)) for word in (NOBODYS, "", "foobar", "1999-01-01", "2026-07-28 ", f"{LEGACY}, {MODERN}", "x" * 9_000)),
    _unknown(48, "an unknown version comes before an unknown method", head(NOBODYS), message("x")),
    *(_unknown(48, f"an unknown version comes before {envelope}", head(NOBODYS), enveloped("tools/list", envelope)) for envelope in ("x", meta(NOBODYS, None), meta(5))),
    *(Case(49, f"tools/list in {version}", head(version), LIST, exact=LISTED + COMPLETE) for version in TOLERATED),
    Case(50, "an enveloped legacy request", head(LEGACY), enveloped("tools/list", meta(LEGACY)), exact=LISTED + COMPLETE),
    Case(50, "an enveloped legacy ping", head(LEGACY, "ping"), enveloped("ping", meta(LEGACY)), exact=b""),
    *(Case(51, f"{body.decode()} by header alone", modern(), body, exact=members + SIGNED) for body, members in ((LIST, LISTED), (STATUS, CALLED))),
    _mismatch(51, "by header alone, strictly", modern(), LIST, policy=STRICT),
    _mismatch(51, "by header and capabilities alone, strictly", modern(), enveloped("tools/list", meta(None)), policy=STRICT),
    _mismatch(51, "a strict tool call without Mcp-Name", modern("tools/call"), STATUS, policy=STRICT),
    Case(51, "by header and Mcp-Method alone, strictly", modern("ping"), message("ping"), 400, -32602, STRICT),
    *(Case(51, f"header {version}, strictly", head(version), LIST, policy=STRICT) for version in (LEGACY, "2025-03-26", None)),
    Case(51, "a whole envelope, strictly", modern("tools/list"), enveloped("tools/list"), policy=STRICT),
    _listed(52, "a progress token and nothing else", modern(), {"progressToken": 7}),
    _listed(52, "a foreign key and nothing else", modern(), {"traceparent": "00-1-2-03"}),
    *(Case(53, f"a ping under {sent.standard}", sent, exact=COMPLETE) for sent in (modern(), modern("ping"))),
    Case(54, "a ping with an envelope", modern("ping"), enveloped("ping"), 404, -32601, says=f"method not found: 'ping'; this is {MODERN} traffic, ping belongs to {LEGACY}"),
    *(Case(55, f"a ping in {version}", head(version), exact=b"") for version in (LEGACY, *TOLERATED)),
    Case(56, "a ping out of nowhere", exact=COMPLETE),
]  # fmt: skip

HANDSHAKES = [
    _agreed(57, LEGACY, LEGACY),
    *(_agreed(58, word, LEGACY) for word in (*TOLERATED, NOBODYS, "banana", "")),
    *(_agreed(59, asked, answer, policy=HOST) for asked, answer in (("2025-06-18", "2025-06-18"), ("2025-03-26", "2025-03-26"), (LEGACY, LEGACY), ("2024-11-05", LEGACY), ("banana", LEGACY))),
    *(_agreed(60, MODERN, MODERN, policy=policy) for policy in (BOARD, HOST)),
    *(_agreed(61, LEGACY, LEGACY, head(version), policy) for version in (LEGACY, MODERN, "2025-03-26", NOBODYS, "banana", "", f"{LEGACY}, {LEGACY}") for policy in (BOARD, STRICT)),
    _agreed(61, LEGACY, LEGACY, head(LEGACY, "initialize")),
    _agreed(61, MODERN, MODERN, modern("initialize"), end=SIGNED),
    Case(61, "a modern handshake mints no session", modern("initialize", authorization=ALICE), message("initialize", HANDSHAKE), policy=HOST),
    _unasked("no params on a handshake", UNSENT),
    *(_unasked(f"a handshake without a version, {policy.faults_as_results}", {}, policy) for policy in (BOARD, HOST)),
    *(_unasked(f"a handshake asking for {word!r}", {"protocolVersion": word}) for word in odd(*ODD, None)),
    *(Case(63, f"a handshake with an envelope names {version}", modern("initialize"), enveloped("initialize", **HANDSHAKE), 404, -32601, says=version) for version in (MODERN, LEGACY)),
    Case(64, "tools/list before any handshake", head(LEGACY), LIST, exact=LISTED + COMPLETE),
    *(Case(64, f"tools/call before any handshake, under {version}", head(version), STATUS, exact=CALLED + COMPLETE) for version in (LEGACY, None)),
    Case(65, "tools/list out of nowhere", PLAIN, LIST, exact=LISTED + COMPLETE),
    *(Case(66, f"discover under the header {version}", head(version), DISCOVER, exact=DISCOVERED) for version in (None, MODERN, LEGACY, "2025-03-26")),
    Case(66, "discover with an envelope", modern("server/discover"), enveloped("server/discover"), exact=DISCOVERED),
    *(Case(67, f"discover on a host, {sent.standard.version}", sent, DISCOVER, policy=HOST, exact=DISCOVERED) for sent in (head(authorization=ALICE), modern(authorization=ALICE))),
]  # fmt: skip

CASES = AGREEMENT + ENVELOPES + VERSIONS + HANDSHAKES
