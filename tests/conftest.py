"""A pretend board with mcpboard in front of it, for tests that leave no trace on either."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from mcpboard.simulator import Simulator
from tests import served
from tests.served import Board

# Modules that wait for real limits, links and processes: most of the suite's time, left out of `make test-fast`.
SLOW = frozenset(
    {
        "bench/test_footprint.py", "functional/test_faults_backend.py", "functional/test_faults_simulator.py",
        "host/cloud/test_assignments.py", "host/cloud/test_concurrency.py", "host/cloud/test_outage.py",
        "host/console/test_pages.py", "host/drivers/test_adb.py", "host/drivers/test_discovery.py",
        "host/drivers/test_iphone.py", "host/test_cli_host.py", "laptop/test_bridge.py", "serving/test_drain.py",
        "serving/test_limits.py", "test_cli.py",
    }
)  # fmt: skip


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark them."""
    for item in items:
        if item.path.relative_to(Path(__file__).parent).as_posix() in SLOW:
            item.add_marker(pytest.mark.slow)


@pytest.fixture(scope="session")
def board(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Board]:
    """Every setting at its default, served by a process of its own."""
    with Simulator() as simulator:
        config = served.settings_file(tmp_path_factory.mktemp("board"), simulator)
        with served.process(config) as url:
            yield Board(simulator, url)


@pytest.fixture(scope="session")
def strict_board(board: Board, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Board]:
    """The same pretend board, served with `strict_meta = true`."""
    config = served.settings_file(tmp_path_factory.mktemp("strict"), board.simulator, strict_meta=True)
    with served.process(config) as url:
        yield Board(board.simulator, url)
