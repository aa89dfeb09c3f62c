"""One tool call through the bridge, the relay, the client and the host's board driver, answered in odd ways by a server made of bytes.

Each row is tried in every way in. The relay hands an answer on as it came, so there the client behind it judges.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Mapping
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


WAYS = {"bridge": bridged, "relay": relayed, "client": direct, "board driver": driven}
ways_in = pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
judging = pytest.mark.parametrize("way", [relayed, direct, driven])  # a bridge hands a result on as it is
Way = Callable[[Answer], Ended]

GOOD = b'{"jsonrpc":"2.0","id":%s,"result":{"content":[]}}'
# With more than a bridge parses.
LARGE = b'{"jsonrpc":"2.0","id":%s,"result":{"content":[],"filler":"' + b"x" * (1 << 20) + b'%s"}}'
TEXTS = {"unknown": "it may have been executed", "not_sent": "nothing was executed"}


def interim(*heads: bytes) -> Answer:
    lines = b"".join(b"HTTP/1.1 " + head + b"\r\n\r\n" for head in heads)
    return lambda number: lines + http(GOOD % number)


def chunked(version: bytes, *headers: bytes, coding: bytes = b"chunked") -> Answer:
    head = b"\r\n".join((b"HTTP/" + version + b" 200 OK", b"Transfer-Encoding: " + coding, *headers))
    return lambda n: head + b"\r\n\r\n%x\r\n%s\r\n0\r\n\r\n" % (len(GOOD % n), GOOD % n)


def saying(body: bytes) -> Answer:
    return lambda number: http(body % number)


def events(text: bytes) -> Answer:
    """A stream that is not over behind the answer, and breaks off then."""
    return lambda n: http(text.replace(b"GOOD", GOOD) % n, kind="text/event-stream", length=1 << 30)


def status(line: str) -> Answer:
    return lambda number: http(b'{"error":"no"}', line)


FOLDED = b"HTTP/1.1 200 OK\r\nContent-Type: application/json;\r\n\tcharset=utf-8\r\nX-Note: one\r\n  two\r\n"

# What the body says, the id of the call in it -> with these it is a result, although JSON-RPC has it otherwise.
RESULTS = {
    "error null": b'{"jsonrpc":"2.0","id":%s,"error":null,"result":{"content":[]}}',
    "error as text": b'{"jsonrpc":"2.0","id":%s,"error":"","result":{"content":[]}}',
    "error as a list": b'{"jsonrpc":"2.0","id":%s,"error":[],"result":{"content":[]}}',
    "error false": b'{"jsonrpc":"2.0","id":%s,"error":false,"result":{"content":[]}}',
    "the id as text": b'{"jsonrpc":"2.0","id":"%s","result":{"content":[]}}',
    "both": b'{"jsonrpc":"2.0","id":"%s","error":null,"result":{"content":[]}}',
    "the id as a fraction": b'{"jsonrpc":"2.0","id":%s.0,"result":{"content":[]}}',
    "jsonrpc missing": b'{"id":%s,"result":{"content":[]}}',
    "_meta null": b'{"jsonrpc":"2.0","id":%s,"result":{"content":[],"_meta":null}}',
    "a byte order mark": b'\xef\xbb\xbf{"jsonrpc":"2.0","id":%s,"result":{"content":[]}}',
    "large": LARGE % (b"%s", b""),
    "large, the id as text": LARGE % (b'"%s"', b""),
    "large, the id as a fraction": LARGE % (b"%s.0", b""),
    "large, a byte order mark": b"\xef\xbb\xbf" + LARGE % (b'"%s"', b""),
}
# The same -> with these nobody knows.
NO_ANSWERS = {
    "result null": b'{"jsonrpc":"2.0","id":%s,"result":null}',
    "result and error null": b'{"jsonrpc":"2.0","id":%s,"result":null,"error":null}',
    "result as a list": b'{"jsonrpc":"2.0","id":%s,"result":[]}',
    "an empty error": b'{"jsonrpc":"2.0","id":%s,"error":{}}',
    "an error without code": b'{"jsonrpc":"2.0","id":%s,"error":{"message":"x"}}',
    "a code as text": b'{"jsonrpc":"2.0","id":%s,"error":{"code":"-32602","message":"x"}}',
    "the id true": b'{"jsonrpc":"2.0","id":true,"result":{"content":[]}}%.0s',
    "the id a list": b'{"jsonrpc":"2.0","id":[],"result":{"content":[]}}%.0s',
    "a batch": b'[{"jsonrpc":"2.0","id":%s,"result":{"content":[]}}]',
    "large, without its end": (LARGE % (b"%s", b""))[:-2],
    "large, for another request": LARGE % (b"99", b"%.0s"),
    "large, the id a word": LARGE % (b'"x"', b"%.0s"),
    "large, the id null": LARGE % (b"null", b"%.0s"),
    "cut": b'{"jsonrpc":"2.0","id":%s,"resu',
    "a page": b"<html>%.0s",
    "nothing": b"%.0s",
    "bytes that are no UTF-8": b'{"jsonrpc":"2.0","id":%s,"result":{"content":"\xed\xa0\xbd"}}',
}
# Statuses that may come after the call has run, and those that refuse before anything runs.
LATE = (
    "202 Accepted", "204 No Content", "302 Found", "307 Temporary Redirect", "402 Payment Required",
    "406 Not Acceptable", "408 Request Timeout", "409 Conflict", "410 Gone", "418 I'm a teapot", "422 Unprocessable",
    "500 Oops", "502 Bad Gateway", "503 Busy", "504 Slow", "599 Strange",
)  # fmt: skip
EARLY = (400, 401, 403, 404, 405, 413, 415, 429)

ANSWERS: Mapping[str, tuple[Answer, str | None]] = {
    "100": (interim(b"100 Continue"), None),
    "102": (interim(b"102 Processing"), None),
    "103 with headers": (interim(b"103 Early Hints\r\nLink: </x>; rel=preload\r\nLink: </y>"), None),
    "several": (interim(*[b"103 Early Hints"] * 5, b"100 Continue", b"102 Processing"), None),
    "100 without end": (interim(*[b"100 Continue"] * 1000), "unknown"),
    "103 without end": (interim(*[b"103 Early Hints"] * 1000), "unknown"),
    "a folded header": (lambda n: FOLDED + b"Content-Length: %d\r\n\r\n" % len(GOOD % n) + GOOD % n, None),
    "a length beside chunks": (chunked(b"1.1", b"Content-Length: 5"), None),
    "a transfer coding in HTTP/1.0": (chunked(b"1.0"), "unknown"),
    "the same with a length": (chunked(b"1.0", b"Content-Length: 5"), "unknown"),
    "a transfer coding that nobody asked for": (chunked(b"1.1", coding=b"gzip, chunked"), "unknown"),
    "events": (events(b"data: GOOD\n\n"), None),
    "events with other ends of lines": (events(b"event: message\r\ndata: GOOD\r\n\r\n: still here\r\n\r\n"), None),
    "events with old ends of lines": (events(b"data: GOOD\r\r"), None),
    "an event of several lines": (events(b'data: {"jsonrpc":"2.0",\ndata: "id":%s,"result":{"content":[]}}\n\n'), None),
    "events behind others": (
        events(
            b': hi\n\nid: 1\ndata:\n\ndata: {"method":"x"}\n\ndata: {"id":99,"result":{}}\n\ndata: GOOD\n\n: on\n\n'
        ),
        None,
    ),
    "a large event": (events(b"data: " + LARGE % (b"%s", b"") + b"\n\n: on\n\n"), None),
    "events for others": (events(b'data: {"id":99,"result":{}}%.0s\n\n'), "unknown"),
    "an event without its end": (events(b"data: GOOD\n"), "unknown"),
    **{line: (status(line), "unknown") for line in LATE},
    **{f"{number}": (status(f"{number} No"), "not_sent") for number in EARLY},
    **{name: (saying(body), None) for name, body in RESULTS.items()},
    **{name: (saying(body), "unknown") for name, body in NO_ANSWERS.items()},
}


@ways_in
@pytest.mark.parametrize(("answer", "delivery"), ANSWERS.values(), ids=ANSWERS)
def test_what_became_of_the_call_is_known_as_far_as_it_can_be(way: Way, answer: Answer, delivery: str | None) -> None:
    ended = way(answer)
    assert ended.delivery == delivery
    for said, text in TEXTS.items():
        assert (text in ended.text) == (said == delivery)


@judging
@pytest.mark.parametrize(
    "content", [b'"x"', b"null", b"{}", b"[null]", b"[{}]", b'[{"type":"image","data":[],"mimeType":"x"}]']
)
def test_a_result_without_proper_content_leaves_the_fate_open(way: Way, content: bytes) -> None:
    delivery, text = way(lambda number: http(b'{"jsonrpc":"2.0","id":%s,"result":{"content":%s}}' % (number, content)))
    assert delivery == "unknown"
    assert TEXTS["unknown"] in text


@pytest.mark.parametrize("flag", [b'"true"', b"1", b'"yes"', b"{}"])
def test_an_error_flag_of_another_type_is_no_success(flag: bytes) -> None:
    answer = http(b'{"jsonrpc":"2.0","id":2,"result":{"content":[],"isError":%s}}' % flag)
    with Raw(says(DISCOVERED), says(answer)) as raw, Client(raw.url) as client:
        assert client.call("tap").is_error


@ways_in
def test_an_error_without_message_still_has_one_for_the_caller(way: Way) -> None:
    assert way(lambda number: http(b'{"jsonrpc":"2.0","id":%s,"error":{"code":-32603,"message":null}}' % number)).text


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


@judging
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
    assert TEXTS["unknown"] in text


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
