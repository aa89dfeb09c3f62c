"""Rows 17-30: whether the body is one JSON-RPC message, and messages that want no answer."""

from __future__ import annotations

from typing import Any

from mcpboard.protocol.versions import LEGACY, MODERN
from tests.protocol.http_messages import PLAIN, UNSENT, enveloped, head, message, modern, odd
from tests.protocol.roles import Case

CALL = message("tools/call", {"name": "status"})
ODD = odd(5, None, [], {}, True)  # no text


def _broken(phrase: str, body: bytes) -> Case:
    return Case(17, phrase, PLAIN, body, 400, -32700, id=None)


def _misshapen(row: int, phrase: str, body: bytes, id: Any = 1, sent: Any = PLAIN) -> Case:
    return Case(row, phrase, sent, body, 400, -32600, id=id)


def _noted(row: int, phrase: str, body: bytes, sent: Any = PLAIN) -> Case:
    return Case(row, phrase, sent, body, 202)


def _unknown(row: int, version: str, body: bytes) -> Case:
    data = {"supported": [MODERN, LEGACY], "requested": version}
    return Case(row, f"{body[:60]!r} under version {version!r}", head(version), body, 400, -32022, id=UNSENT, data=data)


READY = message("notifications/initialized", id=UNSENT)
CASES = [
    _broken("half a message", b'{"jsonrpc":"2.0","id":1,'),
    _broken("two messages in one body", message("ping") * 2),
    _broken("bytes that are no UTF-8", b'{"jsonrpc":"2.0","id":1,"method":"\xff"}'),
    Case(17, "a byte order mark is skipped", PLAIN, b"\xef\xbb\xbf" + message("ping")),
    _misshapen(18, "an empty batch", b"[]", None),
    *(_misshapen(18, f"a batch of one under {sent.standard}", b"[" + message("ping") + b"]", None, sent) for sent in (PLAIN, head(LEGACY), modern("ping"))),
    *(_misshapen(19, f"the scalar {text}", text.encode(), None) for text in ("5", '"ping"', "null", "true", "1e400")),
    _misshapen(19, "an empty object", b"{}", None),
    _misshapen(19, "an id and nothing to do", b'{"jsonrpc":"2.0","id":7}', 7),
    _misshapen(19, "params and nothing to do", b'{"jsonrpc":"2.0","params":{}}', None),
    *(_misshapen(20, f"jsonrpc is {word!r}", message("ping", jsonrpc=word)) for word in odd(UNSENT, "1.0", 2, 2.0, None, "2.0 ")),
    _misshapen(20, "a result without jsonrpc", b'{"id":1,"result":{}}', None),
    *(_misshapen(21, f"method is {word!r}", message(word)) for word in ODD),
    *(_misshapen(21, f"params is {word!r}", message("ping", word)) for word in odd([], "x", 5, False)),
    Case(21, "params is null", body=b'{"jsonrpc":"2.0","id":1,"method":"ping","params":null}'),
    _misshapen(21, "params of a notification is a list", message("x", [], id=UNSENT), None),
    *(_misshapen(22, f"id is {word!r:.30}", message("ping", id=word), None) for word in odd(None, True, False, {}, [1], 1.5, -0.5, "x" * 1025)),
    _misshapen(22, "id is a number beyond every float", b'{"jsonrpc":"2.0","id":1e400,"method":"ping"}', None),
    _misshapen(22, "id null on a tool call", message("tools/call", {"name": "status"}, id=None), None),
    *(Case(23, f"id is {word!r:.30}", PLAIN, message("ping", id=word), id=word) for word in (0, -1, "", "0", "x" * 1024, "a\u00e9\ud83d", 2**70, 10**4000, 1.0, -0.0, 1e300)),
    Case(23, "the last of two ids counts", PLAIN, b'{"jsonrpc":"2.0","id":1,"id":2,"method":"ping"}', id=2),
    Case(23, "a result beside the method is an extra member", PLAIN, message("x", result={}), 404, -32601),
    Case(23, "an error beside the method is an extra member", PLAIN, message("ping", error={}, extra=[])),
    Case(24, "a refusal before the body has no id", head(origin="null"), message("ping"), 403, -32600, id=UNSENT),
    *(_noted(25, f"the client is ready, under {version}", READY, head(version)) for version in (None, LEGACY, MODERN, "2025-03-26")),
    *(_noted(25, f"the notification {name}", message(name, id=UNSENT)) for name in ("notifications/made_up", "foo/bar")),
    *(_noted(25, f"a notification with params {params}", message("x", params, id=UNSENT)) for params in odd(None, {})),
    _noted(25, "a notification with an envelope", enveloped("notifications/x", id=UNSENT), modern("x")),
    Case(25, "a notification's name with an id is a request", PLAIN, message("notifications/initialized", id=7), 404, -32601, id=7),
    *(_unknown(26, version, READY) for version in ("2099-01-01", "", "2025-11-25, 2025-11-25")),
    *(_misshapen(27, f"{method} without an id", message(method, {"name": "status"}, id=UNSENT), None) for method in ("tools/call", "tools/list", "ping", "initialize", "server/discover")),
    _misshapen(27, "a modern tool call without an id", enveloped("tools/call", id=UNSENT, name="status"), None, modern("tools/call", "status")),
    _noted(28, "a cancellation", message("notifications/cancelled", {"requestId": 1, "reason": "tired"}, id=UNSENT), head(LEGACY)),
    *(_noted(29, f"a posted {member} under version {version}", message(UNSENT, **{member: {}}), head(version)) for member in ("result", "error") for version in (None, LEGACY, "2025-06-18")),
    *(_noted(29, f"a posted answer {members}", message(UNSENT, **members)) for members in odd({"result": None}, {"id": None, "error": {}})),
    _unknown(29, "2099-01-01", message(UNSENT, result={})),
    *(_misshapen(30, f"a posted {member} in the modern revision", message(UNSENT, **{member: {}}), None, modern()) for member in ("result", "error")),
]  # fmt: skip
