"""Rows 1-16: what is decided before the body is read."""

from __future__ import annotations

from typing import Any

from mcpboard.protocol.limits import BODY_LIMIT
from tests.protocol.http_messages import ADDRESS, PLAIN, UNSENT, head, message
from tests.protocol.roles import ALICE, BOARD, DISABLED, HOST, OFF, Case

PING = message("ping")
OWN = f"http://{ADDRESS}"
JSON, CHALLENGE = ("Content-Type", "application/json"), ("WWW-Authenticate", "Bearer")
POST, POST_DELETE = ("Allow", "POST"), ("Allow", "POST, DELETE")

# Row -> Origin and Host of requests that get in.
OURS: dict[int, list[tuple[str | None, str | None]]] = {
    6: [
        *((None, host) for host in (ADDRESS, "board.lan:8080", "127.0.0.1:evil", "", None)),
        *((OWN, ADDRESS), (f"https://{ADDRESS}", ADDRESS), ("http://192.168.42.1", "192.168.42.1")),
        *(("http://LOCALHOST:8080", "localhost:8080"), ("HTTP://localhost:8080", "localhost:8080")),
        *(("http://[::1]:8080", "[0:0:0:0:0:0:0:1]:8080"), ("http://[FE80::AB]:8080", "[fe80::ab]:8080")),
        *(("http://[::ffff:192.168.42.1]:8080", "[::ffff:c0a8:2a01]:8080"), ("http://0.0.0.0:8080", "0.0.0.0:8080")),
    ],
    10: [
        *(("http://192.168.42.1", "192.168.42.1:80"), ("http://192.168.42.1:80", "192.168.42.1")),
        *(("https://192.168.42.1", "192.168.42.1:443"), ("http://[::1]", "[::1]:80")),
    ],
}  # fmt: skip
FOREIGN: dict[int, list[tuple[str, str | None]]] = {
    # Names that equal Host: they may be rebound.
    7: [("http://evil.example:8080", "evil.example:8080"), ("http://board.local", "board.local")],
    8: [
        *((origin, ADDRESS) for origin in ("https://evil.example", "http://192.168.42.2:8080", "http://192.168.42.1:9090")),
        *((origin, ADDRESS) for origin in ("http://127.0.0.1:8080", "http://localhost:8080", "http://[::ffff:192.168.42.1]:8080")),
        *(("http://localhost:8080", "127.0.0.1:8080"), (OWN, "[::ffff:192.168.42.1]:8080"), ("http://evil.example", "0.0.0.0:8080")),
    ],
    # What no page of ours sends.
    9: [
        *(("null", "null"), ("*", "*"), ("", ""), ("http://", ""), ("chrome-extension://abcdef", "abcdef")),
        *((origin, ADDRESS) for origin in ("null", "", " ", "file://", f"file://{ADDRESS}", f"ws://{ADDRESS}", "vscode-webview://x")),
        *((origin, ADDRESS) for origin in (f"//{ADDRESS}", ADDRESS, f"xhttp://{ADDRESS}", f"http\u017f://{ADDRESS}", f"http:\\\\{ADDRESS}")),
        *((f"{OWN}{more}", ADDRESS) for more in ("/", "/mcp", "?x", "#x", "\n", f", {OWN}")),
        *(("http://[::1", ADDRESS), (OWN, f"{ADDRESS}, {ADDRESS}"), (OWN, None), (OWN, "")),
    ],
    # The default port of the other scheme, and against ours.
    10: [("https://192.168.42.1", "192.168.42.1:80"), ("http://192.168.42.1", "192.168.42.1:443"), ("http://192.168.42.1", ADDRESS)],
}  # fmt: skip


def _sent(**fields: Any) -> Any:
    return PLAIN._replace(**fields)


def _off(row: int, phrase: str, sent: Any = PLAIN, body: bytes = PING, code: int | None = -32601, **wanted: Any) -> Case:  # fmt: skip
    return Case(row, f"{phrase} while switched off", sent, body, 404, code, DISABLED, says=OFF, **wanted)


def _crossed(row: int, **sent: Any) -> Case:
    phrase = f"the foreign page {sent['origin']!r} at {sent.get('host')!r}"
    return Case(row, phrase, _sent(**sent), status=403, code=-32600, id=UNSENT, says="open the board by its IP address")


def _media(**sent: Any) -> Case:
    return Case(13, f"a body with {sent}", _sent(**sent), status=415, code=-32600, says="Content-")


CASES = [
    _off(1, "a ping"),
    _off(1, "a text id", body=message("ping", id="a"), id="a"),
    _off(1, "a notification", body=message("x", id=UNSENT), id=None),
    _off(1, "broken JSON", body=b"{", id=None),
    _off(1, "a batch", body=b"[]", id=None),
    _off(1, "a foreign page", head(origin="http://evil.example")),
    _off(1, "another media type", head(content_type="text/plain")),
    _off(1, "a huge body", head(content_length=BODY_LIMIT + 1), code=None),
    *(_off(2, method, head(http=method), b"", None) for method in ("GET", "DELETE", "OPTIONS")),
    Case(3, "GET on a board", head(http="GET"), status=405, headers=[POST], says="the page for people is at /"),
    Case(3, "GET on a host, before its token", head(http="GET"), status=405, headers=[POST_DELETE], policy=HOST),
    Case(4, "DELETE on a board", head(http="DELETE", session="s-1"), status=405, headers=[POST]),
    *(Case(5, f"{method} on a board", head(http=method), status=405, headers=[POST]) for method in ("PUT", "PATCH", "HEAD", "OPTIONS", "TRACE", "post", "")),
    Case(5, "OPTIONS from the same origin", head(http="OPTIONS", origin=OWN), status=405, headers=[POST]),
    Case(5, "OPTIONS on a host without token", head(http="OPTIONS"), status=405, headers=[POST_DELETE], policy=HOST),
    _crossed(5, method="OPTIONS", origin="http://localhost:6274"),
    *(Case(row, f"a page of ours, {origin} at {host!r}", _sent(origin=origin, host=host)) for row, pairs in OURS.items() for origin, host in pairs),
    *(_crossed(row, origin=origin, host=host) for row, pairs in FOREIGN.items() for origin, host in pairs),
    Case(11, "no token on a host", status=401, headers=[CHALLENGE], policy=HOST, says='{"error": "invalid token"}'),
    Case(11, "a wrong token on a host", head(authorization="Bearer nope"), status=401, headers=[CHALLENGE], policy=HOST),
    Case(11, "DELETE without a token", head(http="DELETE", session="s-1"), status=401, headers=[CHALLENGE], policy=HOST),
    Case(11, "a good token on a host", head(authorization=ALICE), policy=HOST),
    Case(11, "a token on a board that requires none", head(authorization="Bearer nope")),
    Case(12, "a declared length one byte over the limit", head(content_length=BODY_LIMIT + 1), b"", 413, -32600, id=UNSENT),
    Case(12, "a declared length at the limit", head(content_length=BODY_LIMIT)),
    Case(12, "the length before the media type", head(content_length=1 << 31, content_type="text/plain"), b"", 413, -32600, id=UNSENT),
    *(_media(content_type=word) for word in ("text/plain", "application/x-www-form-urlencoded", "application/jsonp", "json", "", "application/json, text/plain", "text/plain,application/json", "application/json,", ",application/json", "application/json text/plain", 'application/json; x="a, text/plain')),
    _media(content_encoding="gzip"),
    Case(13, "a form", head(content_type="application/x-www-form-urlencoded"), b"a=b", 415, -32600, id=None),
    Case(13, "another media type and a text id", head(content_type="text/plain"), message("ping", id="a"), 415, -32600, id="a"),
    Case(13, "another media type and a batch", head(content_type="text/plain"), b"[]", 415, -32600, id=None),
    *(Case(13, f"Content-Type, sent more than once: {word}", head(content_type=word)) for word in ("application/json, application/json", "application/json; charset=utf-8,application/json", 'application/json; x="a, b" , Application/JSON;y=1, application/json')),
    Case(13, "the encoding that is none", head(content_encoding=" Identity ")),
    *(Case(13, f"Content-Type {word}", head(content_type=word)) for word in ("application/json; charset=utf-8", "Application/JSON", "application/json;charset=UTF-8;x=1")),
    Case(14, "no Content-Type and no length", head(content_type=None, content_length=None), headers=[JSON]),
    # The first that refuses gives the response: method or Origin, token, size, media type.
    *(Case(11, f"a bad token and {more}", head(authorization="Bearer wrong", **more), b"{", 401, policy=HOST) for more in ({"session": "gone"}, {"content_length": 1 << 30}, {"content_type": "text/plain"})),
    *(Case(8, f"a foreign page by {method} on a {who}", head(http=method, origin="http://evil.example", authorization="Bearer wrong"), b"", 403, -32600, policy, id=UNSENT) for method in ("GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS") for who, policy in (("board", BOARD), ("host", HOST))),
]  # fmt: skip
