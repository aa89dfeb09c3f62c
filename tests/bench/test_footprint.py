"""What the server takes and leaves: instructions, bytes, memory, files, threads, sockets, requests to its backends."""

from __future__ import annotations

import resource
from collections.abc import Callable, Iterator

import pytest

from tests.bench import programs, rows, small_json, traffic
from tests.bench.backend import Backend
from tests.bench.programs import Servers, running
from tests.bench.targets import RSS_FLOODED
from tests.bench.traffic import Caller
from tests.deploy import tree
from tests.support.gohttp import Exchange, GoServer
from tests.support.hogs import Crowd

pytestmark = pytest.mark.slow  # waits for real limits, links or processes

THREADS = 9  # one loop and eight workers; a connection needs none of its own
SOCKETS = 2  # the listener, and the one connection


@pytest.fixture(scope="module")
def found() -> Iterator[Servers]:
    """Servers as init scripts start them; a board may not write a byte to any file, which ends a reply that is spooled."""
    with Servers() as servers:
        resource.prlimit(servers.board.process.pid, resource.RLIMIT_FSIZE, (0, 0))
        yield servers


@pytest.mark.parametrize("measure", [rows.learned, rows.growths, rows.resident], ids=lambda each: each.__name__)
def test_what_is_counted_reaches_its_targets(measure: Callable[[Servers], Iterator[rows.Row]], found: Servers) -> None:
    """The shell's own entry takes the tool list of a board that has it over its target (docs/performance.md)."""
    assert not [row.markdown() for row in measure(found) if not row.ok and "its shell" not in row.metric]


@pytest.mark.tools
def test_a_request_costs_few_times_what_bare_waitress_costs(found: Servers) -> None:
    tree.tool("valgrind", "valgrind")
    assert not [row.markdown() for row in rows.instructions(found) if not row.ok]


def test_each_call_is_one_request_to_its_backend_and_leaves_nothing() -> None:
    """None for a tool list while its copy is fresh."""
    with Backend() as backend, programs.settings(backend.port) as config, running(programs.board(config)) as board:
        with Caller(board.port) as caller:
            caller.ask(traffic.LIST)
            before = backend.connections
            for sent, made in ((traffic.LIST, 0), (traffic.TAP, 1), (traffic.SHOT, 2), (traffic.SMALL, 3)):
                caller.ask(sent)
                assert backend.connections - before == made
            assert board.sockets <= SOCKETS
        assert len(board.tasks()) == THREADS


def test_small_json_cannot_make_it_large_while_calls_hang() -> None:
    """The most that the process ever had, as the kernel counts it; and it goes on afterwards."""
    with (
        GoServer(Exchange.hang) as agent,
        programs.settings(agent.port) as config,
        running(programs.board(config)) as board,
    ):
        with Crowd(board.port, small_json.flood()) as flood:
            flood.wait_for(small_json.FLOODED, traffic.LIMIT_S)
            assert board.peak <= RSS_FLOODED
        with Caller(board.port) as caller:
            caller.ask(rows.DISCOVER)
        assert len(board.tasks()) == THREADS
