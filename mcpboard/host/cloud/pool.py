"""The assignments under way, each in a thread of its own."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Sequence

from mcpboard.host.cloud.assignment import AssignmentRun

MOST_RUNS = 16  # at a time, each a thread
REMEMBERED = 256  # leases that have ended: one that is given out again is not carried out again


class AssignmentPool:
    """Runs assignments by `carry_out`, which does not raise; `ended` is called after each. Safe to share."""

    def __init__(self, carry_out: Callable[[AssignmentRun], None], ended: Callable[[], None]) -> None:
        self._carry_out = carry_out
        self._tell_ended = ended
        self._lock = threading.Lock()
        self._under_way: dict[str, tuple[AssignmentRun, threading.Thread]] = {}  # by lease
        self._ended: deque[str] = deque(maxlen=REMEMBERED)

    def begin(self, run: AssignmentRun) -> bool:
        """Start it in a thread; False for a lease that runs already, or did."""
        thread = daemon(lambda: self._work(run), f"assignment on {run.device}")
        with self._lock:
            if run.lease in self._under_way or run.lease in self._ended:
                return False
            self._under_way[run.lease] = run, thread
            thread.start()
        return True

    @property
    def full(self) -> bool:
        with self._lock:
            return len(self._under_way) >= MOST_RUNS

    def runs(self) -> list[AssignmentRun]:
        """Those under way."""
        with self._lock:
            return [run for run, _ in self._under_way.values()]

    def threads(self) -> list[threading.Thread]:
        """Their threads."""
        with self._lock:
            return [thread for _, thread in self._under_way.values()]

    def _work(self, run: AssignmentRun) -> None:
        self._carry_out(run)
        with self._lock:
            del self._under_way[run.lease]
            self._ended.append(run.lease)
        self._tell_ended()


def daemon(work: Callable[[], None], name: str) -> threading.Thread:
    """A thread that does not keep the process: a device or a name server may never answer."""
    return threading.Thread(target=work, name=f"cloud {name}", daemon=True)


def join(threads: Sequence[threading.Thread], seconds: float) -> list[str]:
    """Wait for all of them, that long at most; the names of those that still run."""
    over = time.monotonic() + seconds
    for thread in threads:
        thread.join(max(0.0, over - time.monotonic()))
    return [thread.name for thread in threads if thread.is_alive()]
