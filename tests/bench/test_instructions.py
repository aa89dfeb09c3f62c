"""What a request costs beside bare waitress, in instructions: the same run, the same settings, all checks in."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.bench import programs, traffic
from tests.bench.backend import Backend
from tests.bench.counted import counting
from tests.bench.targets import INSTRUCTIONS

pytestmark = [pytest.mark.tools, pytest.mark.slow]

REQUESTS = {
    "tools/list": (traffic.LIST, 30),
    "small tools/call": (traffic.TAP, 15),
    "screenshot 200 KB": (traffic.SHOT, 5),
}


def bare() -> float:
    with counting(programs.bare(11_000)) as server:
        return server.per_request(traffic.LIST, 30)


def ours() -> Mapping[str, float]:
    with Backend() as backend, programs.settings(backend.port) as config, counting(programs.board(config)) as server:
        return {name: server.per_request(sent, batch) for name, (sent, batch) in REQUESTS.items()}


@pytest.fixture(scope="module")
def costs() -> Iterator[Mapping[str, float]]:
    """Thousands of instructions for one request of each kind, and for one of bare waitress."""
    if shutil.which("valgrind") is None:
        pytest.fail("valgrind is not here\nmake this succeed, then test again: apt-get install valgrind", pytrace=False)
    with ThreadPoolExecutor(2) as pool:
        alone, counted = pool.submit(bare), pool.submit(ours)
        yield {**counted.result(), "bare": alone.result()}


@pytest.mark.parametrize("name", REQUESTS)
def test_a_request_costs_few_times_what_bare_waitress_costs(name: str, costs: Mapping[str, float]) -> None:
    ratio = costs[name] / costs["bare"]
    assert ratio <= INSTRUCTIONS[name], (
        f"{ratio:.2f} x bare waitress ({costs[name]:,.0f} to {costs['bare']:,.0f} thousand)"
    )
