"""A support bundle on its way: exact, in flat memory, in no file, and never half a one for a whole."""

from __future__ import annotations

import base64
import tempfile
import tracemalloc
from concurrent.futures import ThreadPoolExecutor

import pytest

from mcpboard.errors import BackendBroken
from tests.serving.conftest import Lines
from tests.serving.served import Served
from tests.support.http import InvalidResponse, call, request

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
def test_a_large_bundle_comes_whole_in_flat_memory(served: Served, no_files: None, lines: Lines, length: int | None, header: str) -> None:  # fmt: skip
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


@pytest.mark.parametrize("error", [BackendBroken("the source died"), ZeroDivisionError("a bug")])
@pytest.mark.parametrize("length", [pytest.param(MIB, id="announced"), pytest.param(None, id="not announced")])
def test_a_source_that_dies_midway_breaks_the_connection_off(served: Served, lines: Lines, error: Exception, length: int | None) -> None:  # fmt: skip
    served.role.dies_with = error
    with pytest.raises((InvalidResponse, ValueError)):
        served.post(call("file", size=500_000, length=length))
    first = lines.next()
    assert (first.levelname, "reply broken off after" in first.getMessage()) == ("WARNING", True)
    assert lines.next().getMessage().endswith("not handed over whole")
    assert lines.none_left()
    served.limit.wait_for(0)
    assert served.role.sources[0].closed == 1
    assert served.role.lost.get_nowait() == "file"
    assert served.pings()


@pytest.mark.parametrize("length", [1_000_000, 400_000])
def test_a_source_of_another_length_than_announced_is_never_taken_for_whole(served: Served, lines: Lines, length: int) -> None:  # fmt: skip
    with pytest.raises(InvalidResponse):
        served.post(call("file", size=500_000, length=length))
    served.limit.wait_for(0)
    assert served.role.sources[0].closed == 1


def test_eight_bundles_read_at_once(served: Served, no_files: None) -> None:
    """More than there are slots: each is whole, to the byte, or is told at once that all slots are taken."""
    with ThreadPoolExecutor(8) as pool:
        results = list(pool.map(lambda _: served.post(call("file", size=2 * MIB + 1)).result, range(8)))
    whole = [base64.b64decode(each["content"][0]["resource"]["blob"]) for each in results if not each.get("isError")]
    assert whole
    assert set(whole) == {bytes(2 * MIB + 1)}
    served.limit.wait_for(0)
    assert all(source.closed == 1 for source in served.role.sources)
