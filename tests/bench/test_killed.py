"""A few seconds of what `make soak` does to every part of a call: at most once, and nobody is told what is not so."""

from __future__ import annotations

import random
import signal
from collections.abc import Sequence

import pytest

from tests.bench import killed, trials
from tests.bench.trials import Trial


def planned(chance: random.Random) -> Sequence[Trial]:
    return [
        *trials.cuts("bridge", 15),  # each kind of cut in each zone, once
        *trials.cuts("host", 15),
        *(trial for chain in ("board", "relay", "host") for trial in trials.leaving(chain, 1)),
        *trials.foreign("bridge", 4, chance),
        *trials.foreign("host", 4, chance),
        *trials.endings("kill -9", signal.SIGKILL, {"board": 1, "bridge": 1}, chance),
    ]


@pytest.mark.slow
def test_no_action_is_doubled_and_nobody_is_told_what_is_not_so() -> None:
    found = killed.run(planned)
    assert not found.wrongs(), found.report()
