"""A few seconds of what `make soak` does to every part of a call: at most once, and nobody is told what is not so."""

from __future__ import annotations

import itertools
import random
import signal
from collections.abc import Sequence

from tests.bench import killed
from tests.bench.killed import Trial


def planned(chance: random.Random) -> Sequence[Trial]:
    return [
        *killed.cuts("bridge", 15),  # each kind of cut in each zone, once
        *killed.cuts("host", 15),
        *itertools.islice(killed.foreign("bridge", chance), 4),
        *itertools.islice(killed.foreign("host", chance), 4),
        *killed.endings("kill -9", signal.SIGKILL, {"board": 1, "bridge": 1}, chance),
    ]


def test_no_action_is_doubled_and_nobody_is_told_what_is_not_so() -> None:
    found = killed.run(planned)
    assert not found.wrongs(), found.report()
