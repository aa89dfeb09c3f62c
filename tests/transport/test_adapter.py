"""The one way out, in front of the board's own backend and of WebDriverAgent: interim answers before the real one."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from mcpboard.board.backend import Backend
from mcpboard.errors import UNKNOWN, BackendBroken
from mcpboard.host.drivers.iphone.wda import WdaClient, WdaUnreachable
from tests.functional.peer import Raw

INTERIM = b"HTTP/1.1 103 Early Hints\r\nLink: </x>\r\nX: y\r\n\r\n"


def backend(url: str) -> object:
    return Backend("agent", url.removesuffix("/mcp")).call("POST", "/api/tools/tap", b"{}", 5.0).body


def wda(url: str) -> object:
    return WdaClient(url.removesuffix("/mcp"))._send("POST", "/session/1/wda/tap", {}, 5.0)["value"]


@pytest.mark.parametrize(("ask", "expected"), [(backend, b'{"value":{"a":1}}'), (wda, {"a": 1})])
@pytest.mark.parametrize("count", [1, 64])
def test_interim_answers_are_read_past(ask: Callable[[str], object], expected: object, count: int) -> None:
    body = b'{"value":{"a":1}}'
    answer = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body)
    with Raw(lambda sock, over: sock.sendall(INTERIM * count + answer)) as raw:
        assert ask(raw.url) == expected


@pytest.mark.parametrize(("ask", "failure"), [(backend, BackendBroken), (wda, WdaUnreachable)])
def test_interim_answers_without_end_leave_the_fate_open(
    ask: Callable[[str], object], failure: type[Exception]
) -> None:
    with Raw(lambda sock, over: sock.sendall(INTERIM * 500)) as raw, pytest.raises(failure) as caught:
        ask(raw.url)
    assert (getattr(caught.value, "data", None) or vars(caught.value)).get("delivery", UNKNOWN) == UNKNOWN
