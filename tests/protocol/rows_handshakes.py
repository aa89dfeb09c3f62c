"""Rows 57-67: the handshake, the legacy revision without one, and discovery."""

from __future__ import annotations

from typing import Any

from mcpboard.protocol.versions import LEGACY, MODERN
from tests.protocol.cases import Case
from tests.protocol.http_messages import UNSENT, enveloped, head, message, modern, odd
from tests.protocol.roles import ALICE, SERVER
from tests.protocol.rows_versions import HANDSHAKE, LIST, SIGNED


def _agreed(row: int, asked: str, answer: str, sent: Any = UNSENT, policy: str = "board", phrase: str = "") -> Case:
    posted = head() if sent is UNSENT else sent
    wanted = {"protocolVersion": answer, "capabilities": {"tools": {}}, "serverInfo": SERVER, "resultType": "complete"}
    headers = (("Mcp-Session-Id", "minted"),) if policy == "host" else ()
    body = message("initialize", {**HANDSHAKE, "protocolVersion": asked})
    return Case(
        row,
        phrase or f"a {policy} asked for {asked!r}",
        posted,
        body,
        200,
        policy=policy,
        result=wanted,
        headers=headers,
    )


def _unasked(phrase: str, params: Any, policy: str = "board") -> Case:
    return Case(62, phrase, head(authorization=ALICE), message("initialize", params), 200, -32602, policy=policy)


CASES = [
    _agreed(57, LEGACY, LEGACY),
    *(_agreed(58, word, LEGACY) for word in ("2025-06-18", "2025-03-26", "2024-11-05", "2099-01-01", "banana", "")),
    *(_agreed(59, word, word, head(authorization=ALICE), "host") for word in ("2025-06-18", "2025-03-26", LEGACY)),
    *(_agreed(59, word, LEGACY, head(authorization=ALICE), "host") for word in ("2024-11-05", "banana")),
    _agreed(60, MODERN, MODERN),
    _agreed(60, MODERN, MODERN, head(authorization=ALICE), "host"),
    *(_agreed(61, LEGACY, LEGACY, head(version), phrase=f"a handshake under the header {version!r}") for version in (LEGACY, MODERN, "2025-03-26", "2099-01-01", "banana", "", f"{LEGACY}, {LEGACY}")),
    _agreed(61, LEGACY, LEGACY, head(LEGACY, "initialize"), phrase="a handshake that names its method"),
    _agreed(61, MODERN, MODERN, modern("initialize"), phrase="a handshake that names its method under the modern header"),
    _unasked("no params on a handshake", UNSENT),
    _unasked("a handshake without a version", {}),
    *(_unasked(f"a handshake asking for {word!r}", {"protocolVersion": word}) for word in odd(5, None, [], {}, True)),
    _unasked("a handshake without a version on a host", {}, "host"),
    Case(63, "a handshake with an envelope", modern("initialize"), enveloped("initialize", **HANDSHAKE), 404, -32601, says=MODERN),
    Case(63, "both versions are named", modern("initialize"), enveloped("initialize", **HANDSHAKE), 404, -32601, says=LEGACY),
    Case(64, "tools/list before any handshake", head(LEGACY), LIST, 200),
    Case(64, "tools/call before any handshake", head(LEGACY), message("tools/call", {"name": "status"}), 200),
    Case(65, "tools/list out of nowhere", head(), LIST, 200, result={"_meta": UNSENT, "resultType": "complete", "ttlMs": 60_000}),
    *(Case(66, f"discover under the header {version}", head(version), message("server/discover"), 200, result=SIGNED) for version in (None, MODERN, LEGACY, "2025-03-26")),
    Case(66, "discover with an envelope", modern("server/discover"), enveloped("server/discover"), 200, result=SIGNED),
    Case(67, "discover on a host", head(authorization=ALICE), message("server/discover"), 200, policy="host", result=SIGNED),
    Case(67, "modern discover on a host", modern(authorization=ALICE), message("server/discover"), 200, policy="host", result=SIGNED),
]  # fmt: skip
