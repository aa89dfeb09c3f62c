"""One simulated board for each test."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from mcpboard.simulator import Simulator
from tests.simulator.simulating import new_board


@pytest.fixture
def sim() -> Iterator[Simulator]:
    with new_board() as board:
        yield board
