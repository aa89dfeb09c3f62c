"""A simulated board with mcpboard in front of it, for tests that leave no trace on either."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest

from mcpboard.simulator import Simulator
from tests.support import served
from tests.support.served import Board


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Refuse ids that differ from process to process: several workers could not share the tests."""
    assert not [each.nodeid for each in items if " at 0x" in each.nodeid]


@pytest.fixture(scope="session")
def board(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Board]:
    """Every setting at its default, served by a process of its own."""
    with Simulator() as simulator:
        config = served.settings_file(tmp_path_factory.mktemp("board"), simulator)
        with served.process(config) as url:
            yield Board(simulator, url)


@pytest.fixture(scope="session")
def strict_board(board: Board, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Board]:
    """The same simulated board, served with `strict_meta = true`."""
    config = served.settings_file(tmp_path_factory.mktemp("strict"), board.simulator, strict_meta=True)
    with served.process(config) as url:
        yield Board(board.simulator, url)


@pytest.fixture(autouse=True)
def root_logger() -> Iterator[None]:
    """Take away what a verb that ran in this process added to the root logger: its stream ends with the test."""
    root, level = logging.getLogger(), logging.getLogger().level
    yield
    for handler in [each for each in root.handlers if type(each).__module__.startswith(("logging", "mcpboard"))]:
        root.removeHandler(handler)
        handler.close()
    root.setLevel(level)
