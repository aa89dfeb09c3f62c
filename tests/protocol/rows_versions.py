"""Rows 31-56: which revision a request belongs to, and whether its headers and envelope hold together."""

from __future__ import annotations

from typing import Any

from mcpboard.protocol.headers import LOG_LEVEL_KEY, SERVER_KEY
from mcpboard.protocol.versions import LEGACY, MODERN
from tests.protocol.cases import Case
from tests.protocol.http_messages import UNSENT, enveloped, head, message, meta, modern, odd
from tests.protocol.roles import SERVER

HANDSHAKE: dict[str, Any] = {"protocolVersion": LEGACY, "capabilities": {}, "clientInfo": {"name": "c", "version": "1"}}
SIGNED = {"_meta": {SERVER_KEY: SERVER}, "resultType": "complete"}
LIST = message("tools/list")
STRICT = "board with strict_meta"
UNKNOWN = {"supported": [MODERN, LEGACY], "requested": "2099-01-01"}


def _listed(row: int, phrase: str, sent: Any = UNSENT, envelope: Any = UNSENT) -> Case:
    """A tools/list that is served in the modern way."""
    return Case(
        row,
        phrase,
        modern("tools/list") if sent is UNSENT else sent,
        enveloped("tools/list", envelope),
        200,
        result=SIGNED,
    )


def _mismatch(row: int, phrase: str, sent: Any, body: bytes, policy: str = "board") -> Case:
    return Case(row, phrase, sent, body, 400, -32020, policy=policy)


def _incomplete(row: int, phrase: str, envelope: Any, sent: Any = UNSENT, policy: str = "board") -> Case:
    posted = modern("tools/list") if sent is UNSENT else sent
    return Case(row, phrase, posted, enveloped("tools/list", envelope), 400, -32602, policy=policy)


def _named(row: int, phrase: str, name: str | None, body_name: Any = "status") -> Case:
    return _mismatch(row, phrase, modern("tools/call", name), enveloped("tools/call", name=body_name))


AGREEMENT = [
    _listed(31, "a whole modern request"),
    _listed(31, "a whole modern request with unknown capabilities", envelope=meta(capabilities={"x": {"y": True}})),
    Case(31, "a whole modern tool call", modern("tools/call", "status"), enveloped("tools/call", name="status"), 200, result=SIGNED),
    _mismatch(32, "an envelope without the version header", head(None, "tools/list"), enveloped("tools/list")),
    _mismatch(32, "an envelope without any header", head(), enveloped("tools/list")),
    _mismatch(33, "an envelope without Mcp-Method", modern(), enveloped("tools/list")),
    _mismatch(34, "another method in the header", modern("tools/call"), enveloped("tools/list")),
    _mismatch(34, "the method in upper case", modern("Tools/List"), enveloped("tools/list")),
    _mismatch(34, "the method twice", modern("tools/list, tools/list"), enveloped("tools/list")),
    _mismatch(34, "an empty Mcp-Method", modern(""), LIST),
    _mismatch(34, "another method by header alone", modern("ping"), LIST),
    _mismatch(34, "another method under the legacy header", head(LEGACY, "ping"), LIST),
    _mismatch(34, "another method on a handshake", head(None, "ping"), message("initialize", HANDSHAKE)),
    _named(35, "a tool call without Mcp-Name", None),
    _named(35, "an empty Mcp-Name", ""),
    _named(35, "another tool in the header", "tap"),
    _named(35, "the tool in upper case", "Status"),
    _named(35, "the tool twice", "status, status"),
    _named(35, "a name in the header alone", "status", UNSENT),
    _named(35, "a name that is no text", "status", ["status"]),
    _named(35, "a name that is null", "None", None),
    _mismatch(35, "Mcp-Method alone makes it strict", modern("tools/call"), message("tools/call", {"name": "status"})),
    Case(35, "the encoded name of a tool", modern("tools/call", "=?base64?c3RhdHVz?="), enveloped("tools/call", name="status"), 200),
    *(_named(36, f"the encoded name {name}", name) for name in ("=?base64?c3RhdHVz=?=", "=?base64?c3Rhd!Vz?=", "=?base64?/w==?=", "=?base64?c3RhdHV6?=", "=?base64?\u00e9?=")),
    _listed(37, "a name on a method that has none", modern("tools/list", "tap")),
    _listed(37, "a broken name on a method that has none", modern("tools/list", "=?base64?!?=")),
    _mismatch(38, "the legacy header over a modern envelope", head(LEGACY, "tools/list"), enveloped("tools/list")),
    _mismatch(38, "the modern header over a legacy envelope", modern("tools/list"), enveloped("tools/list", meta(LEGACY))),
    _mismatch(38, "the modern header over an unknown version", modern("tools/list"), enveloped("tools/list", meta("v999.0.0"))),
    _mismatch(38, "an unknown header over a modern envelope", head("2099-01-01", "tools/list"), enveloped("tools/list")),
    _mismatch(38, "an unknown version in the body alone", head(), enveloped("tools/list", meta("2099-01-01"))),
    _mismatch(38, "the version header twice", head(f"{MODERN}, {MODERN}", "tools/list"), enveloped("tools/list")),
    _mismatch(38, "a legacy version in the body alone", head(), enveloped("tools/list", meta(LEGACY))),
    _mismatch(39, "Mcp-Method without the version header", head(None, "tools/list"), LIST),
    _mismatch(39, "Mcp-Method on a handshake without the version header", head(None, "initialize"), message("initialize", HANDSHAKE)),
]  # fmt: skip

ENVELOPES = [
    Case(40, "Mcp-Method and no _meta", modern("tools/list"), LIST, 200, result=SIGNED),
    _listed(40, "Mcp-Method and an empty _meta", envelope={}),
    _incomplete(40, "Mcp-Method and an empty _meta, strictly", {}, policy=STRICT),
    Case(40, "Mcp-Method and no _meta, strictly", modern("tools/list"), LIST, 400, -32602, policy=STRICT),
    _incomplete(41, "no capabilities", meta(capabilities=None)),
    _incomplete(41, "capabilities that are a list", meta(capabilities=[])),
    _incomplete(41, "capabilities that are text", meta(capabilities="x")),
    _incomplete(41, "no capabilities beside a legacy version", meta(LEGACY, None), head(LEGACY)),
    _incomplete(42, "capabilities without a version", meta(None)),
    _incomplete(42, "clientInfo without a version", meta(None, None, {"name": "c", "version": "1"})),
    _incomplete(42, "capabilities without a version, by header alone", meta(None), modern()),
    *(_incomplete(43, f"_meta is {word!r}", word) for word in odd("x", [], 5, None, True)),
    _incomplete(43, "_meta is text in the legacy revision", "x", head(LEGACY)),
    _incomplete(43, "_meta is text without any header", "x", head()),
    Case(43, "_meta is text on a handshake", head(), message("initialize", {**HANDSHAKE, "_meta": "x"}), 400, -32602),
    *(_incomplete(44, f"the version is {word!r}", meta(word)) for word in odd(5, [], {}, True)),
    _incomplete(44, "the version is null", {**meta(None), "io.modelcontextprotocol/protocolVersion": None}),
    _incomplete(44, "the version is a number and there is no header", meta(5), head()),
    _listed(45, "no clientInfo", envelope=meta(client=UNSENT)),
    *(_incomplete(46, f"clientInfo is {word!r}", meta(client=word)) for word in odd("c", [], {}, {"name": "c"}, {"version": "1"}, {"name": 1, "version": "1"}, {"name": "c", "version": None})),
    _incomplete(46, "clientInfo is null", {**meta(), "io.modelcontextprotocol/clientInfo": None}),
    *(_incomplete(46, f"logLevel is {word!r}", meta(**{LOG_LEVEL_KEY: word})) for word in ("loud", "", 7, None, ["debug"])),
    _listed(46, "a log level that is one", envelope=meta(**{LOG_LEVEL_KEY: "debug"})),
    _listed(46, "clientInfo with more than it needs", envelope=meta(client={"name": "c", "version": "1", "title": 5})),
]  # fmt: skip

VERSIONS = [
    Case(47, "an unknown version in header and body", head("2099-01-01", "tools/list"), enveloped("tools/list", meta("2099-01-01")), 400, -32022, data=UNKNOWN),
    Case(47, "an unknown version and no Mcp-Method", head("2099-01-01"), enveloped("tools/list", meta("2099-01-01")), 400, -32022, data=UNKNOWN),
    Case(48, "an unknown version by header alone", head("2099-01-01"), LIST, 400, -32022, data=UNKNOWN),
    *(Case(48, f"the version header {word!r}", head(word), LIST, 400, -32022, data={**UNKNOWN, "requested": word}) for word in ("", "foobar", "1999-01-01", "2026-07-28 ", f"{LEGACY}, {MODERN}", f"{LEGACY}, {LEGACY}")),
    Case(48, "an unknown version comes before an unknown method", head("2099-01-01"), message("x"), 400, -32022),
    *(Case(49, f"tools/list in {version}", head(version), LIST, 200, result={"_meta": UNSENT}) for version in ("2025-06-18", "2025-03-26", "2024-11-05")),
    Case(50, "an enveloped legacy request", head(LEGACY), enveloped("tools/list", meta(LEGACY)), 200, result={"_meta": UNSENT}),
    Case(50, "an enveloped legacy ping", head(LEGACY, "ping"), enveloped("ping", meta(LEGACY)), 200, says='"result":{}'),
]  # fmt: skip

BY_HEADER = [
    *(Case(51, f"{method} by header alone", modern(), message(method, {"name": "status"}), 200, result=SIGNED) for method in ("tools/list", "tools/call", "server/discover")),
    Case(51, "ping by header alone", modern(), message("ping"), 200, says='"result":{"resultType":"complete"}}'),
    Case(51, "the hints of tools/list by header alone", modern(), LIST, 200, result={"ttlMs": 60_000, "cacheScope": "private"}),
    _mismatch(51, "by header alone, strictly", modern(), LIST, STRICT),
    _mismatch(51, "a strict tool call without Mcp-Name", modern("tools/call"), message("tools/call", {"name": "status"}), STRICT),
    Case(51, "by header and Mcp-Method alone, strictly", modern("ping"), message("ping"), 400, -32602, policy=STRICT),
    Case(51, "the legacy revision, strictly", head(LEGACY), LIST, 200, policy=STRICT),
    Case(51, "no header at all, strictly", head(), LIST, 200, policy=STRICT),
    Case(51, "a whole envelope, strictly", modern("tools/list"), enveloped("tools/list"), 200, policy=STRICT),
    _listed(52, "a progress token and nothing else", modern(), {"progressToken": 7}),
    _listed(52, "a foreign key and nothing else", modern(), {"traceparent": "00-1-2-03"}),
    Case(53, "a ping under the modern header", modern(), message("ping"), 200, says='"result":{"resultType":"complete"}}'),
    Case(53, "a ping under both modern headers", modern("ping"), message("ping"), 200, says='"result":{"resultType":"complete"}}'),
    Case(54, "a ping with an envelope", modern("ping"), enveloped("ping"), 404, -32601),
    *(Case(55, f"a ping in {version}", head(version), message("ping"), 200, says='"result":{}}') for version in (LEGACY, "2025-06-18", "2025-03-26", "2024-11-05")),
    Case(56, "a ping out of nowhere", head(), message("ping"), 200, says='"result":{"resultType":"complete"}}'),
]  # fmt: skip


CASES = AGREEMENT + ENVELOPES + VERSIONS + BY_HEADER
