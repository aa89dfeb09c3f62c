"""A pretend board with mcpboard in front of it, as a process of its own."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from mcpboard.simulator import Simulator
from tests import served


@dataclass(frozen=True)
class Board:
    """The pretend board, and the MCP URL in front of it."""

    simulator: Simulator
    url: str


@pytest.fixture(scope="session")
def board(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Board]:
    """One for all tests that leave no trace on it, with every setting at its default."""
    with Simulator() as simulator:
        config = served.settings_file(tmp_path_factory.mktemp("board"), simulator)
        with served.process(config) as url:
            yield Board(simulator, url)
