"""One tool call through the bridge, the relay, the client and the host's board driver, answered in odd ways by a server made of bytes.

Each row is tried in every way in. The relay hands an answer on as it came, so there the client behind it judges.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import pytest

from mcpboard.client import Client
from mcpboard.errors import ClientError, ToolFailed
from mcpboard.host.drivers.board import BoardDriver
from mcpboard.laptop.bridge import Bridge
from mcpboard.laptop.bridge.stdio import LineWriter
from mcpboard.laptop.bridge.upstream import Upstream
from mcpboard.transport.http import HttpClient
from tests.functional.test_client import DISCOVERED
from tests.laptop.bridge.test_bridge_peers import STATUS, Script, http, request, says, through
from tests.laptop.relay.test_relay import fetch, relaying
from tests.support.peer import Raw
from tests.support.piped import LIMIT_S

Answer = Callable[[bytes], bytes]  # the id of the call -> the bytes of the answer


class Ended(NamedTuple):
    """The end of a call for its caller; `delivery` is None where there is a result."""

    delivery: str | None
    text: str = ""


def bridged(answer: Answer) -> Ended:
    with Raw(says(answer(b"7"))) as raw:
        (message,) = through(raw.url, request(7, "tools/call", STATUS, modern=True))
    assert (message["jsonrpc"], message["id"], type(message["id"])) == ("2.0", 7, int)
    assert ("result" in message) is not ("error" in message)
    error = message.get("error")
    if error is None:
        return Ended(None)
    return Ended(error.get("data", {}).get("delivery", "none"), error["message"])


@contextmanager
def serving(answer: Answer) -> Iterator[str]:
    with Raw(says(DISCOVERED), says(answer(b"2"))) as raw:
        yield raw.url


def called(url: str) -> Ended:
    with Client(url, timeout=LIMIT_S) as client:
        try:
            client.call("tap")
        except ClientError as error:
            return Ended(error.delivery, str(error))
    return Ended(None)


def direct(answer: Answer) -> Ended:
    with serving(answer) as url:
        return called(url)


def relayed(answer: Answer) -> Ended:
    with serving(answer) as url, relaying(url) as near:
        return called(near)


def driven(answer: Answer) -> Ended:
    with serving(answer) as url:
        driver = BoardDriver(url)
        try:
            driver.launch_app("notes")
        except ToolFailed as error:
            return Ended((error.data or {})["delivery"], error.message)
        finally:
            driver.close()
    return Ended(None)


WAYS = [
    pytest.param(way, id=name)
    for name, way in {"bridge": bridged, "relay": relayed, "client": direct, "board driver": driven}.items()
]
ways_in = pytest.mark.parametrize("way", WAYS)
Way = Callable[[Answer], Ended]

GOOD = b'{"jsonrpc":"2.0","id":%s,"result":{"content":[]}}'
# With more than a bridge parses.
LARGE = b'{"jsonrpc":"2.0","id":%s,"result":{"content":[],"filler":"' + b"x" * (1 << 20) + b'%s"}}'
MAY_HAVE_RUN = "it may have been executed"


def interim(*heads: bytes) -> Answer:
    lines = b"".join(b"HTTP/1.1 " + head + b"\r\n\r\n" for head in heads)
    return lambda number: lines + http(GOOD % number)


@ways_in
@pytest.mark.parametrize(
    "heads",
    [
        pytest.param([b"100 Continue"], id="100"),
        pytest.param([b"102 Processing"], id="102"),
        pytest.param([b"103 Early Hints\r\nLink: </x>; rel=preload\r\nLink: </y>"], id="103 with headers"),
        pytest.param([b"103 Early Hints"] * 5 + [b"100 Continue", b"102 Processing"], id="several"),
    ],
)
def test_interim_answers_are_read_past(way: Way, heads: list[bytes]) -> None:
    assert way(interim(*heads)) == Ended(None)


@ways_in
@pytest.mark.parametrize("status", [b"100 Continue", b"103 Early Hints"])
def test_interim_answers_without_end_leave_the_fate_open(way: Way, status: bytes) -> None:
    delivery, text = way(interim(*[status] * 1000))
    assert delivery == "unknown"
    assert MAY_HAVE_RUN in text


@ways_in
@pytest.mark.parametrize(
    "status",
    [
        "202 Accepted",
        "204 No Content",
        "302 Found",
        "307 Temporary Redirect",
        "402 Payment Required",
        "406 Not Acceptable",
        "408 Request Timeout",
        "409 Conflict",
        "410 Gone",
        "418 I'm a teapot",
        "422 Unprocessable",
        "500 Oops",
        "502 Bad Gateway",
        "503 Busy",
        "504 Slow",
        "599 Strange",
    ],
)
def test_a_status_that_may_come_after_the_call_has_run_leaves_the_fate_open(way: Way, status: str) -> None:
    delivery, text = way(lambda number: http(b"", status))
    assert delivery == "unknown"
    assert MAY_HAVE_RUN in text


@ways_in
@pytest.mark.parametrize("status", [400, 401, 403, 404, 405, 413, 415, 429])
def test_a_status_that_refuses_before_anything_runs_says_so(way: Way, status: int) -> None:
    delivery, text = way(lambda number: http(b'{"error":"no"}', f"{status} No"))
    assert delivery == "not_sent"
    assert "nothing was executed" in text
    assert MAY_HAVE_RUN not in text


@ways_in
@pytest.mark.parametrize(
    "body",
    [
        pytest.param(b'{"jsonrpc":"2.0","id":%s,"error":null,"result":{"content":[]}}', id="error null"),
        pytest.param(b'{"jsonrpc":"2.0","id":%s,"error":"","result":{"content":[]}}', id="error as text"),
        pytest.param(b'{"jsonrpc":"2.0","id":%s,"error":[],"result":{"content":[]}}', id="error as a list"),
        pytest.param(b'{"jsonrpc":"2.0","id":%s,"error":false,"result":{"content":[]}}', id="error false"),
        pytest.param(b'{"jsonrpc":"2.0","id":"%s","result":{"content":[]}}', id="the id as text"),
        pytest.param(b'{"jsonrpc":"2.0","id":"%s","error":null,"result":{"content":[]}}', id="both"),
        pytest.param(b'{"jsonrpc":"2.0","id":%s.0,"result":{"content":[]}}', id="the id as a fraction"),
        pytest.param(b'{"id":%s,"result":{"content":[]}}', id="jsonrpc missing"),
        pytest.param(b'{"jsonrpc":"2.0","id":%s,"result":{"content":[],"_meta":null}}', id="_meta null"),
        pytest.param(b'\xef\xbb\xbf{"jsonrpc":"2.0","id":%s,"result":{"content":[]}}', id="a byte order mark"),
        pytest.param(LARGE % (b"%s", b""), id="large"),
        pytest.param(LARGE % (b'"%s"', b""), id="large, the id as text"),
        pytest.param(LARGE % (b"%s.0", b""), id="large, the id as a fraction"),
        pytest.param(b"\xef\xbb\xbf" + LARGE % (b'"%s"', b""), id="large, a byte order mark"),
    ],
)
def test_a_result_in_odd_json_rpc_is_a_result(way: Way, body: bytes) -> None:
    assert way(lambda number: http(body % number)) == Ended(None)


@ways_in
@pytest.mark.parametrize(
    "body",
    [
        pytest.param(b'{"jsonrpc":"2.0","id":%s,"result":null}', id="result null"),
        pytest.param(b'{"jsonrpc":"2.0","id":%s,"result":null,"error":null}', id="result and error null"),
        pytest.param(b'{"jsonrpc":"2.0","id":%s,"result":[]}', id="result as a list"),
        pytest.param(b'{"jsonrpc":"2.0","id":%s,"error":{}}', id="an empty error"),
        pytest.param(b'{"jsonrpc":"2.0","id":%s,"error":{"message":"x"}}', id="an error without code"),
        pytest.param(b'{"jsonrpc":"2.0","id":%s,"error":{"code":"-32602","message":"x"}}', id="a code as text"),
        pytest.param(b'{"jsonrpc":"2.0","id":true,"result":{"content":[]}}%.0s', id="the id true"),
        pytest.param(b'{"jsonrpc":"2.0","id":[],"result":{"content":[]}}%.0s', id="the id a list"),
        pytest.param(b'[{"jsonrpc":"2.0","id":%s,"result":{"content":[]}}]', id="a batch"),
        pytest.param(LARGE % (b"99", b"%.0s"), id="large, for another request"),
        pytest.param(LARGE % (b'"x"', b"%.0s"), id="large, the id a word"),
        pytest.param(LARGE % (b"null", b"%.0s"), id="large, the id null"),
        pytest.param(b'{"jsonrpc":"2.0","id":%s,"resu', id="cut"),
        pytest.param(b"<html>%.0s", id="a page"),
        pytest.param(b"%.0s", id="nothing"),
        pytest.param(b'{"jsonrpc":"2.0","id":%s,"result":{"content":"\xed\xa0\xbd"}}', id="bytes that are no UTF-8"),
    ],
)
def test_what_is_no_answer_leaves_the_fate_open_and_says_so(way: Way, body: bytes) -> None:
    delivery, text = way(lambda number: http(body % number))
    assert delivery == "unknown"
    assert MAY_HAVE_RUN in text


@pytest.mark.parametrize("way", [WAYS[1], WAYS[2], WAYS[3]])  # a bridge hands a result on as it is
@pytest.mark.parametrize(
    "content", [b'"x"', b"null", b"{}", b"[null]", b"[{}]", b'[{"type":"image","data":[],"mimeType":"x"}]']
)
def test_a_result_without_proper_content_leaves_the_fate_open(way: Way, content: bytes) -> None:
    delivery, text = way(lambda number: http(b'{"jsonrpc":"2.0","id":%s,"result":{"content":%s}}' % (number, content)))
    assert delivery == "unknown"
    assert MAY_HAVE_RUN in text


@pytest.mark.parametrize("flag", [b'"true"', b"1", b'"yes"', b"{}"])
def test_an_error_flag_of_another_type_is_no_success(flag: bytes) -> None:
    answer = http(b'{"jsonrpc":"2.0","id":2,"result":{"content":[],"isError":%s}}' % flag)
    with Raw(says(DISCOVERED), says(answer)) as raw, Client(raw.url) as client:
        assert client.call("tap").is_error


@ways_in
def test_an_error_without_message_still_has_one_for_the_caller(way: Way) -> None:
    assert way(lambda number: http(b'{"jsonrpc":"2.0","id":%s,"error":{"code":-32603,"message":null}}' % number)).text


# --- heads ---------------------------------------------------------------------------------------


@ways_in
def test_a_folded_header_is_one_header(way: Way) -> None:
    head = b"HTTP/1.1 200 OK\r\nContent-Type: application/json;\r\n\tcharset=utf-8\r\nX-Note: one\r\n  two\r\n"
    assert way(lambda n: head + b"Content-Length: %d\r\n\r\n" % len(GOOD % n) + GOOD % n) == Ended(None)


def chunked(version: bytes, *headers: bytes) -> Answer:
    head = b"\r\n".join((b"HTTP/" + version + b" 200 OK", b"Transfer-Encoding: chunked", *headers))
    return lambda n: head + b"\r\n\r\n%x\r\n%s\r\n0\r\n\r\n" % (len(GOOD % n), GOOD % n)


@ways_in
@pytest.mark.parametrize("headers", [(), (b"Content-Length: 5",)], ids=["alone", "with a length"])
def test_a_transfer_coding_in_http_1_0_leaves_the_end_in_doubt(way: Way, headers: tuple[bytes, ...]) -> None:
    delivery, text = way(chunked(b"1.0", *headers))
    assert delivery == "unknown"
    assert MAY_HAVE_RUN in text


@ways_in
def test_a_length_beside_chunks_does_not_cut_the_answer(way: Way) -> None:
    assert way(chunked(b"1.1", b"Content-Length: 5")) == Ended(None)


# --- deep answers --------------------------------------------------------------------------------


def nested(levels: int) -> Answer:
    inner = levels - 2  # the message and its result are two
    return lambda n: http(
        b'{"jsonrpc":"2.0","id":%s,"result":{"content":[],"structuredContent":%s%s}}' % (n, b"[" * inner, b"]" * inner)
    )


@contextmanager
def small_stacks() -> Iterator[None]:
    """As musl has them."""
    before = threading.stack_size(128 << 10)
    try:
        yield
    finally:
        threading.stack_size(before)


def in_a_thread(way: Way, answer: Answer) -> Ended:
    ended: list[Ended] = []
    with small_stacks():
        thread = threading.Thread(target=lambda: ended.append(way(answer)))
        thread.start()
        thread.join(LIMIT_S)
    return ended[0]


def test_a_thousand_levels_pass_the_bridge_on_a_small_stack() -> None:
    """To the byte, and unparsed here: the parser of the standard library would not follow."""
    script = Script(request(7, "tools/call", STATUS, modern=True))
    source: Any = script
    answer = nested(1000)(b"7")
    with Raw(says(answer)) as raw, small_stacks():
        Bridge(Upstream(HttpClient(raw.url), 0.0), LineWriter(script)).run(source)
    assert script.written.getvalue() == answer.partition(b"\r\n\r\n")[2] + b"\n"


@pytest.mark.parametrize("way", [WAYS[1], WAYS[2], WAYS[3]])
def test_a_thousand_levels_pass_on_a_small_stack(way: Way) -> None:
    way(interim())  # with all its imports done, which need more stack than a server gives
    assert in_a_thread(way, nested(1000)) == Ended(None)


@ways_in
@pytest.mark.parametrize("levels", [1001, 100_000])
def test_more_levels_leave_the_fate_open_and_are_named(way: Way, levels: int) -> None:
    way(interim())
    delivery, text = in_a_thread(way, nested(levels))
    assert delivery == "unknown"
    assert "1000 levels" in text
    assert MAY_HAVE_RUN in text


# --- half surrogate pairs ------------------------------------------------------------------------

HALF = b'{"jsonrpc":"2.0","id":%s,"result":{"content":[{"type":"text","text":"a\\ud83db \\ud83d\\ude00 \\\\ud83d"}]}}'


def test_the_client_reads_a_half_surrogate_pair_as_a_replacement_character() -> None:
    with Raw(says(DISCOVERED), says(http(HALF % b"2"))) as raw, Client(raw.url) as client:
        assert client.call("get_clipboard").text == "a\N{REPLACEMENT CHARACTER}b \N{GRINNING FACE} \\ud83d"


def test_bridge_and_relay_hand_it_on_as_it_came_with_one_warning(caplog: pytest.LogCaptureFixture) -> None:
    with Raw(*[says(http(HALF % b"7"))] * 3) as raw:
        answers = through(raw.url, *[request(7, "tools/call", STATUS, modern=True)] * 3)
    assert answers == [json.loads(HALF % b"7")] * 3
    assert caplog.text.count("half a surrogate pair") == 1
    caplog.clear()
    with Raw(*[says(http(HALF % b"1"))] * 2) as raw, relaying(raw.url) as url:
        for _ in range(2):
            assert fetched(url) == HALF % b"1"
    assert caplog.text.count("half a surrogate pair") == 1


def fetched(url: str) -> bytes:
    return fetch(url, body=b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{}}')[2]


def test_whole_pairs_and_escaped_backslashes_are_no_news(caplog: pytest.LogCaptureFixture) -> None:
    plain = HALF.replace(b"\\ud83db", b"b")
    with Raw(says(http(plain % b"7"))) as raw:
        through(raw.url, request(7, "tools/call", STATUS, modern=True))
    assert "half a surrogate pair" not in caplog.text
