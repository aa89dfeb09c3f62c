"""A support bundle on its way: exact, in flat memory, in no file, and never half a one for a whole."""

from __future__ import annotations

import base64
import tempfile
import threading
import tracemalloc
from http.client import HTTPConnection, IncompleteRead

import pytest

from mcpboard.errors import BackendBroken
from tests.serving.conftest import Lines
from tests.serving.served import Served
from tests.support.http import HOST, InvalidResponse, call, request

MIB = 1 << 20
LARGE = 28 * MIB  # bytes; base64 of it is the largest that a client can be expected to take


@pytest.fixture
def no_files(monkeypatch: pytest.MonkeyPatch) -> None:
    """Any temporary file would be an error, and one in the log besides."""

    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("a temporary file")

    monkeypatch.setattr(tempfile, "TemporaryFile", refuse)


@pytest.mark.parametrize(("length", "header"), [
    pytest.param(LARGE, "content-length", id="announced"),
    pytest.param(None, "transfer-encoding", id="not announced"),
])  # fmt: skip
def test_a_large_bundle_comes_whole_in_flat_memory(
    served: Served, no_files: None, lines: Lines, length: int | None, header: str
) -> None:
    served.post(call("file", size=10))
    with served.client() as client:
        tracemalloc.start()
        client.send(request(call("file", size=LARGE, length=length)))
        status, headers = client.head()
        total = 0
        while total < LARGE:  # a reader that keeps nothing, so that all growth is the server's
            total += len(client.file.read(32 * 1024))
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    assert status == 200
    assert header in headers
    assert peak < MIB


def test_every_byte_is_there(served: Served, no_files: None) -> None:
    response = served.post(call("file", size=MIB + 1))
    assert base64.b64decode(response.json["result"]["content"][0]["resource"]["blob"]) == bytes(MIB + 1)
    assert len(response.body) == int(response.headers["content-length"])


def test_a_slow_reader_costs_no_memory_and_no_file(served: Served, no_files: None) -> None:
    """While it stalls the server holds a few pieces, not the rest of the reply."""
    served.post(call("file", size=10))
    tracemalloc.start()
    with served.client(4096) as client:
        client.send(request(call("file", size=LARGE)))
        served.limit.wait_for(1)
        assert served.pings()
        _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < MIB
    served.limit.wait_for(0)
    assert [source.closed for source in served.role.sources] == [1, 1]


@pytest.mark.parametrize(("error", "level"), [
    pytest.param(BackendBroken("the source died"), "WARNING", id="the source dies"),
    pytest.param(ZeroDivisionError("a bug"), "WARNING", id="a bug in the source"),
])  # fmt: skip
@pytest.mark.parametrize("length", [pytest.param(MIB, id="announced"), pytest.param(None, id="not announced")])
def test_a_source_that_dies_midway_breaks_the_connection_off(
    served: Served, lines: Lines, error: Exception, level: str, length: int | None
) -> None:
    served.role.dies_with = error
    with served.client() as client:
        client.send(request(call("file", size=500_000, length=length)))
        with pytest.raises((InvalidResponse, ValueError)):
            client.response()
    first = lines.next()
    assert (first.levelname, "reply broken off after" in first.getMessage()) == (level, True)
    assert lines.next().getMessage().endswith("not handed over whole")
    assert lines.none_left()
    served.limit.wait_for(0)
    assert served.role.sources[0].closed == 1
    assert served.role.lost.get_nowait() == "file"
    assert served.pings()


@pytest.mark.parametrize("length", [1_000_000, 400_000])
def test_a_source_of_another_length_than_announced_is_never_taken_for_whole(
    served: Served, lines: Lines, length: int
) -> None:
    connection = HTTPConnection(HOST, served.port, timeout=20)
    connection.request("POST", "/mcp", call("file", size=500_000, length=length), {"Content-Type": "application/json"})
    with pytest.raises(IncompleteRead):
        connection.getresponse().read()
    connection.close()
    served.limit.wait_for(0)
    assert served.role.sources[0].closed == 1


def test_eight_bundles_read_at_once(served: Served, no_files: None) -> None:
    """More than there are slots: each is whole or is told at once that all slots are taken."""
    responses = []

    def post() -> None:
        responses.append(served.post(call("file", size=2 * MIB)).json["result"])

    threads = [threading.Thread(target=post) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    whole = [response for response in responses if not response.get("isError")]
    assert len(responses) == 8
    assert len(whole) >= 1
    served.limit.wait_for(0)
    assert all(source.closed == 1 for source in served.role.sources)
