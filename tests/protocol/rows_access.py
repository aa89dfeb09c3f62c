"""Rows 1-16: what is decided before the body is read."""

from __future__ import annotations

from typing import Any

from mcpboard.protocol.limits import BODY_LIMIT
from tests.protocol.cases import Case
from tests.protocol.http_messages import ADDRESS, UNSENT, head, message
from tests.protocol.roles import ALICE, OFF

PING = message("ping")
PLAIN = head()
OWN = f"http://{ADDRESS}"
NO_BODY = b""
JSON = ("Content-Type", "application/json")


def _refused(row: int, phrase: str, status: int, *headers: tuple[str, str], policy: str = "board", **sent: Any) -> Case:
    return Case(row, phrase, PLAIN._replace(**sent), PING, status, policy=policy, headers=headers)


def _crossed(row: int, phrase: str, **sent: Any) -> Case:
    return Case(
        row, phrase, PLAIN._replace(**sent), PING, 403, -32600, id=UNSENT, says="open the board by its IP address"
    )


def _media(row: int, phrase: str, **sent: Any) -> Case:
    return Case(row, phrase, PLAIN._replace(**sent), PING, 415, -32600, id=UNSENT, says="Content-")


DISABLED = [
    Case(1, "a ping while MCP is switched off", PLAIN, PING, 404, -32601, policy="board that is off", says=OFF),
    Case(1, "text id echoed while switched off", PLAIN, message("ping", id="a"), 404, -32601, id="a", policy="board that is off"),
    Case(1, "a notification while switched off", PLAIN, message("x", id=UNSENT), 404, -32601, id=None, policy="board that is off"),
    Case(1, "broken JSON while switched off", PLAIN, b"{", 404, -32601, id=None, policy="board that is off", says=OFF),
    Case(1, "a batch while switched off", PLAIN, b"[]", 404, -32601, id=None, policy="board that is off", says=OFF),
    Case(1, "disabled is reported before a foreign Origin", head(origin="http://evil.example"), PING, 404, -32601, policy="board that is off"),
    Case(1, "disabled is reported before the media type", head(content_type="text/plain"), PING, 404, -32601, policy="board that is off"),
    Case(1, "a huge body while switched off", head(content_length=BODY_LIMIT + 1), PING, 404, policy="board that is off", says=OFF),
    Case(2, "GET while switched off", head(http="GET"), NO_BODY, 404, policy="board that is off", says=OFF),
    Case(2, "DELETE while switched off", head(http="DELETE"), NO_BODY, 404, policy="board that is off", says=OFF),
    Case(2, "OPTIONS while switched off", head(http="OPTIONS"), NO_BODY, 404, policy="board that is off", says=OFF),
]  # fmt: skip

METHODS = [
    _refused(3, "GET on a board", 405, ("Allow", "POST"), method="GET"),
    _refused(3, "GET on a host, before its token", 405, ("Allow", "POST, DELETE"), method="GET", policy="host"),
    _refused(4, "DELETE on a board", 405, ("Allow", "POST"), method="DELETE"),
    _refused(4, "DELETE with a session id on a board", 405, ("Allow", "POST"), method="DELETE", session="s-1"),
    *(_refused(5, f"{method} on a board", 405, ("Allow", "POST"), method=method) for method in ("PUT", "PATCH", "HEAD", "OPTIONS", "TRACE", "post", "")),
    _refused(5, "OPTIONS from the same origin", 405, ("Allow", "POST"), method="OPTIONS", origin=OWN),
    _refused(5, "OPTIONS on a host without token", 405, ("Allow", "POST, DELETE"), method="OPTIONS", policy="host"),
    _crossed(5, "a preflight from another origin", method="OPTIONS", origin="http://localhost:6274"),
]  # fmt: skip

ORIGINS = [
    Case(6, "no Origin", head(), PING, 200),
    Case(6, "no Origin and a name as Host", head(host="board.lan:8080"), PING, 200),
    Case(6, "no Origin and no Host", head(host=None), PING, 200),
    Case(6, "the page of this very address", head(origin=OWN), PING, 200),
    _crossed(7, "a rebound name that equals Host", origin="http://evil.example:8080", host="evil.example:8080"),
    _crossed(7, "a name under .local that equals Host", origin="http://board.local", host="board.local"),
    _crossed(8, "another site calling the address", origin="https://evil.example"),
    _crossed(8, "the same address on another port", origin="http://192.168.42.1:9090"),
    _crossed(8, "the neighbour's address", origin="http://192.168.42.2:8080"),
    _crossed(8, "localhost against the address", origin="http://localhost:8080"),
    _crossed(9, "the opaque origin", origin="null"),
    _crossed(9, "an empty Origin", origin=""),
    _crossed(9, "two Origins joined", origin=f"{OWN}, {OWN}"),
    _crossed(9, "an Origin that is no URL", origin="http://[::1"),
    _crossed(9, "an Origin without any Host", origin=OWN, host=None),
    _crossed(9, "an Origin with two Hosts joined", origin=OWN, host=f"{ADDRESS}, {ADDRESS}"),
    Case(10, "the default port spelt by Host alone", head(origin="http://10.0.0.9", host="10.0.0.9:80"), PING, 200),
    Case(10, "the default port spelt by Origin alone", head(origin="http://10.0.0.9:80", host="10.0.0.9"), PING, 200),
    Case(10, "the default port of https", head(origin="https://10.0.0.9", host="10.0.0.9:443"), PING, 200),
    _crossed(10, "the default port of the other scheme", origin="https://10.0.0.9", host="10.0.0.9:80"),
]

CHALLENGE = ("WWW-Authenticate", "Bearer")
CHECKS = [
    _refused(11, "no token on a host", 401, CHALLENGE, policy="host"),
    _refused(11, "a wrong token on a host", 401, CHALLENGE, policy="host", authorization="Bearer nope"),
    _refused(11, "DELETE without a token", 401, CHALLENGE, policy="host", method="DELETE", session="s-1"),
    Case(11, "the exact text of the refusal", PLAIN, PING, 401, policy="host", says='{"error": "invalid token"}'),
    Case(11, "a good token on a host", head(authorization=ALICE), PING, 200, policy="host"),
    Case(11, "a token on a board that requires none", head(authorization="Bearer nope"), PING, 200),
    Case(12, "a declared length one byte over the limit", head(content_length=BODY_LIMIT + 1), PING, 413, -32600, id=UNSENT),
    Case(12, "a declared length at the limit", head(content_length=BODY_LIMIT), PING, 200),
    Case(12, "the length before the media type", head(content_length=1 << 31, content_type="text/plain"), PING, 413, -32600, id=UNSENT),
    *(_media(13, f"Content-Type {media_type or 'empty'}", content_type=media_type) for media_type in ("text/plain", "application/x-www-form-urlencoded", "application/jsonp", "application/json, application/json", "json", "")),
    _media(13, "a body with Content-Encoding", content_encoding="gzip"),
    Case(13, "the encoding that is none", head(content_encoding=" Identity "), PING, 200),
    *(Case(13, f"Content-Type {media_type}", head(content_type=media_type), PING, 200) for media_type in ("application/json; charset=utf-8", "Application/JSON", "application/json;charset=UTF-8;x=1")),
    Case(14, "no Content-Type", head(content_type=None), PING, 200),
    Case(14, "no Content-Type and no length", head(content_type=None, content_length=None), PING, 200, headers=(JSON,)),
]  # fmt: skip

CASES = DISABLED + METHODS + ORIGINS + CHECKS
