"""What the server takes and leaves: bytes, memory, files, threads, sockets, requests to its backends."""

from __future__ import annotations

import resource
from collections.abc import Callable, Iterator

import pytest

from tests.bench import host, hostile, programs, small_json, traffic
from tests.bench.backend import Backend
from tests.bench.programs import Program
from tests.bench.targets import (
    BUNDLE_GROWTH,
    BUNDLE_SIZES,
    INSTRUCTIONS_BYTES,
    LIST_BYTES,
    RSS_AFTER_CALLS,
    RSS_FLOODED,
    RSS_HOSTILE,
    RSS_IDLE,
)
from tests.bench.traffic import Caller
from tests.support.gohttp import Exchange, GoServer, tool_answer

pytestmark = pytest.mark.slow  # waits for real limits, links or processes

CALLS = 1_000
MIB = 1 << 20

# One loop and eight workers; a connection needs none of its own.
THREADS = 9
SOCKETS = 2  # the listener, and the one connection


@pytest.fixture(scope="module")
def backend() -> Iterator[Backend]:
    with Backend() as running:
        yield running


@pytest.fixture
def board(backend: Backend) -> Iterator[Program]:
    """A server of its own for each test, as init scripts start it, that may not write a byte to any file."""
    with programs.settings(backend.port) as config, programs.running(programs.board(config)) as program:
        resource.prlimit(program.process.pid, resource.RLIMIT_FSIZE, (0, 0))
        yield program


def ask(board: Program, sent: bytes) -> bytes:
    with Caller(board.port) as caller:
        return caller.ask(sent)


def test_every_client_has_room_for_the_tools_and_the_instructions_of_a_board(board: Program) -> None:
    listed, told = traffic.learned(board.port)
    assert listed <= LIST_BYTES
    assert told <= INSTRUCTIONS_BYTES


def test_every_client_has_room_for_the_tools_and_the_instructions_of_a_host() -> None:
    listed, told = host.sizes()
    assert listed <= LIST_BYTES
    assert told <= INSTRUCTIONS_BYTES


def test_an_idle_server_is_small(board: Program) -> None:
    """Idle is before the first request to a backend, with which requests comes in."""
    ask(board, traffic.post("server/discover"))
    assert board.rss <= RSS_IDLE


def test_a_server_that_has_worked_is_small_and_holds_nothing(board: Program) -> None:
    with Caller(board.port) as caller:
        for number in range(CALLS):
            caller.drain((traffic.TAP, traffic.LIST, traffic.SHOT, traffic.SMALL)[number % 4])
        assert board.sockets <= SOCKETS
    assert board.rss <= RSS_AFTER_CALLS
    assert board.threads == THREADS


def test_strangers_cannot_make_it_large(board: Program) -> None:
    with hostile.strangers(board.port):
        assert board.peak <= RSS_HOSTILE
    ask(board, traffic.LIST)
    assert board.peak <= RSS_HOSTILE
    assert board.threads == THREADS


@pytest.mark.parametrize("hangs", [False, True], ids=["calls that end", "calls that hang"])
def test_small_json_cannot_make_it_large(hangs: bool) -> None:
    """The most that the process ever had, as the kernel counts it; and it goes on afterwards."""
    script: Callable[[Exchange], object] = Exchange.hang if hangs else lambda went: went.reply(tool_answer("ok"))
    with (
        GoServer(script) as agent,
        programs.settings(agent.port) as config,
        programs.running(programs.board(config)) as board,
    ):
        with small_json.Flood(board.port) as flood:
            flood.wait_for(small_json.FLOODED, traffic.LIMIT_S)
            assert board.peak <= RSS_FLOODED
        ask(board, traffic.post("server/discover"))
        assert board.threads == THREADS


@pytest.mark.parametrize(
    ("sent", "connections"),
    [
        pytest.param(traffic.LIST, 0, id="tools/list while its copy is fresh"),
        pytest.param(traffic.TAP, 1, id="an action"),
        pytest.param(traffic.SHOT, 1, id="a screenshot"),
        pytest.param(traffic.SMALL, 1, id="a status"),
    ],
)
def test_a_call_is_one_request_to_its_backend(sent: bytes, connections: int, board: Program, backend: Backend) -> None:
    ask(board, traffic.LIST)
    before = backend.connections
    ask(board, sent)
    assert backend.connections - before == connections


@pytest.mark.parametrize("size", BUNDLE_SIZES)
@pytest.mark.parametrize(
    ("receive_buffer", "piece"),
    [pytest.param(None, MIB, id="fast reader"), pytest.param(4096, 8192, id="slow reader")],
)
def test_a_bundle_passes_through(
    size: int, receive_buffer: int | None, piece: int, board: Program, backend: Backend
) -> None:
    """The limit on file sizes, which ends the reply at the first byte that waitress would spool, is the other half."""
    backend.bundle_bytes = MIB
    ask(board, traffic.BUNDLE)  # what the first bundle brings in for good
    backend.bundle_bytes = size * MIB
    before = board.rss
    board.forget_peak()
    with Caller(board.port, receive_buffer) as caller:
        assert caller.drain(traffic.BUNDLE, piece) > size * MIB
    assert board.peak - before <= BUNDLE_GROWTH
