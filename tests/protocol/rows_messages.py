"""Rows 17-30: whether the body is one JSON-RPC message, and messages that want no answer."""

from __future__ import annotations

from typing import Any

from mcpboard.protocol.versions import LEGACY, MODERN
from tests.protocol.cases import Case
from tests.protocol.http_messages import UNSENT, enveloped, head, message, modern, odd

PLAIN = head()
SUPPORTED = [MODERN, LEGACY]


def _broken(phrase: str, body: bytes) -> Case:
    return Case(17, phrase, PLAIN, body, 400, -32700, id=None)


def _misshapen(row: int, phrase: str, body: bytes, id: Any = 1) -> Case:
    return Case(row, phrase, PLAIN, body, 400, -32600, id=id)


def _noted(row: int, phrase: str, method: str, version: str | None = None, params: Any = UNSENT) -> Case:
    return Case(row, phrase, head(version), message(method, params, id=UNSENT), 202)


UNREADABLE = [
    _broken("an empty body", b""),
    _broken("spaces only", b" \r\n\t"),
    _broken("half a message", b'{"jsonrpc":"2.0","id":1,'),
    _broken("two messages in one body", message("ping") * 2),
    _broken("a word that is no JSON", b"ping"),
    _broken("bytes that are no UTF-8", b'{"jsonrpc":"2.0","id":1,"method":"\xff"}'),
    _broken("UTF-16 with its mark", '{"id":1}'.encode("utf-16")),
    _broken("UTF-16 without a mark", '{"id":1}'.encode("utf-16-le")),
    _broken("nesting without end", b'{"id":1,"a":' + b"[" * 100_000),
    _broken("an integer of five thousand digits", b'{"id":' + b"1" * 5_000 + b"}"),
    _broken("NaN", b'{"id":NaN}'),
    _broken("minus infinity", b'{"id":-Infinity}'),
    Case(17, "a byte order mark is skipped", PLAIN, b"\xef\xbb\xbf" + message("ping"), 200),
]

MISSHAPEN = [
    _misshapen(18, "an empty batch", b"[]", id=None),
    _misshapen(18, "a batch of one", b"[" + message("ping") + b"]", id=None),
    Case(18, "a batch in the modern revision", modern("ping"), b"[" + message("ping") + b"]", 400, -32600, id=None),
    Case(18, "a batch in the legacy revision", head(LEGACY), b"[" + message("ping") * 1 + b"]", 400, -32600, id=None),
    *(_misshapen(19, f"the scalar {text}", text.encode(), id=None) for text in ("5", '"ping"', "null", "true", "1e400")),
    _misshapen(19, "an empty object", b"{}", id=None),
    _misshapen(19, "an id and nothing to do", b'{"jsonrpc":"2.0","id":7}', id=7),
    _misshapen(19, "params and nothing to do", b'{"jsonrpc":"2.0","params":{}}', id=None),
    _misshapen(20, "no jsonrpc member", message("ping", jsonrpc=UNSENT)),
    *(_misshapen(20, f"jsonrpc is {word!r}", message("ping", jsonrpc=word)) for word in ("1.0", 2, 2.0, None, "2.0 ")),
    _misshapen(20, "a result without jsonrpc", b'{"id":1,"result":{}}', id=None),
    *(_misshapen(21, f"method is {word!r}", message(word)) for word in odd(5, None, ["ping"], {}, True)),
    *(_misshapen(21, f"params is {word!r}", message("ping", word)) for word in odd([], "x", 5, None, False)),
    _misshapen(21, "params of a notification is a list", message("x", [], id=UNSENT), id=None),
    *(_misshapen(22, f"id is {word!r}", message("ping", id=word), id=None) for word in odd(None, True, False, {}, [], [1], 1.5, -0.5)),
    _misshapen(22, "id is a number beyond every float", b'{"jsonrpc":"2.0","id":1e400,"method":"ping"}', id=None),
    Case(22, "id null on a tool call", PLAIN, message("tools/call", {"name": "status"}, id=None), 400, -32600, id=None),
    *(Case(23, f"id is {word!r:.30}", PLAIN, message("ping", id=word), 200, id=word) for word in (0, -1, "", "0", "a\u00e9\ud83d", 2**70, 10**4000, 1.0, -0.0, 1e300)),
    Case(23, "the last of two ids counts", PLAIN, b'{"jsonrpc":"2.0","id":1,"id":2,"method":"ping"}', 200, id=2),
    Case(23, "a result beside the method is an extra member", PLAIN, message("x", result={}), 404, -32601),
    Case(23, "an error beside the method is an extra member", PLAIN, message("ping", error={}), 200),
    Case(24, "an id that cannot be read is null", PLAIN, b"{", 400, -32700, id=None),
    Case(24, "a refusal before the body has no id", head(origin="null"), message("ping"), 403, -32600, id=UNSENT),
]  # fmt: skip

UNANSWERED = [
    _noted(25, "the client is ready", "notifications/initialized"),
    _noted(25, "the client is ready, under a legacy header", "notifications/initialized", LEGACY),
    _noted(25, "the client is ready, under a modern header", "notifications/initialized", MODERN),
    _noted(25, "a notification under an older known header", "notifications/initialized", "2025-03-26"),
    _noted(25, "a notification nobody knows", "notifications/made_up"),
    _noted(25, "a name nobody knows", "foo/bar"),
    _noted(25, "params of a notification may be null", "notifications/initialized", params=None),
    Case(25, "a notification's name with an id is a request", PLAIN, message("notifications/initialized", id=7), 404, -32601, id=7),
    Case(25, "a notification with an envelope", modern("x"), enveloped("notifications/x", id=UNSENT), 202),
    *(
        Case(
            26,
            f"a notification under version {version!r}",
            head(version),
            message("notifications/x", id=UNSENT),
            400,
            -32022,
            id=UNSENT,
            data={"supported": SUPPORTED, "requested": version},
        )
        for version in ("2099-01-01", "", "2025-11-25, 2025-11-25")
    ),
    *(Case(27, f"{method} without an id", PLAIN, message(method, {"name": "status"}, id=UNSENT), 400, -32600, id=None) for method in ("tools/call", "tools/list", "ping", "initialize", "server/discover")),
    Case(27, "a modern tool call without an id", modern("tools/call", "status"), enveloped("tools/call", id=UNSENT, name="status"), 400, -32600, id=None),
    _noted(28, "a cancellation", "notifications/cancelled", LEGACY, {"requestId": 1, "reason": "tired"}),
    *(Case(29, f"a posted {member} under version {version}", head(version), message(UNSENT, **{member: {}}), 202) for member in ("result", "error") for version in (None, LEGACY, "2025-06-18")),
    Case(29, "a posted response under a version nobody knows", head("2099-01-01"), message(UNSENT, result={}), 400, -32022, id=UNSENT),
    Case(30, "a posted result in the modern revision", modern(), message(UNSENT, result={}), 400, -32600, id=None),
    Case(30, "a posted error in the modern revision", modern(), message(UNSENT, error={}), 400, -32600, id=None),
]  # fmt: skip

CASES = UNREADABLE + MISSHAPEN + UNANSWERED
