"""Seconds of what `make soak` does for ten minutes a part."""

from __future__ import annotations

import random
import signal
from collections.abc import Sequence

import pytest

from tests.bench import crowded, killed, leaks, trials
from tests.bench.trials import Trial

pytestmark = pytest.mark.slow

SECONDS = 10.0


def test_mixed_traffic_with_faults_leaves_nothing_behind() -> None:
    found = leaks.run(SECONDS)
    assert not list(found.wrongs()), found.report()


def test_a_crowded_board_answers_an_honest_client_in_little_memory() -> None:
    found = crowded.run(SECONDS)
    assert not list(found.wrongs()), found.report()


def planned(chance: random.Random) -> Sequence[Trial]:
    return [
        *trials.cuts("bridge", 15),  # each kind of cut in each zone, once
        *trials.cuts("host", 15),
        *(trial for chain in ("board", "relay", "host") for trial in trials.leaving(chain, 1)),
        *trials.foreign("bridge", 4, chance),
        *trials.foreign("host", 4, chance),
        *trials.endings("kill -9", signal.SIGKILL, {"board": 1, "bridge": 1}, chance),
    ]


def test_whatever_is_killed_or_cut_no_action_is_doubled_and_nobody_is_told_what_is_not_so() -> None:
    found = killed.run(planned)
    assert not found.wrongs(), found.report()
