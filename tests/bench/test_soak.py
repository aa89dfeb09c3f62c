"""Seconds of what `make soak` does for ten minutes."""

from __future__ import annotations

import pytest

from tests.bench import crowded, leaks

pytestmark = pytest.mark.slow

SECONDS = 10.0


def test_mixed_traffic_with_faults_leaves_nothing_behind() -> None:
    found = leaks.run(SECONDS)
    assert not list(found.wrongs()), found.report()


def test_a_crowded_board_answers_an_honest_client_in_little_memory() -> None:
    found = crowded.run(SECONDS)
    assert not list(found.wrongs()), found.report()
