"""A part of `make soak`: strangers who take all that a board has, and one client that is answered all the same.

Idle connections, blank lines, pages of frames, unfinished bodies, replies that are read slowly or not at all, JSON that
is small on the wire and large in memory. Prints how long the honest client waited at the worst, and the most resident
memory, looked at every 100 ms; where root can make a control group, the server runs inside 64 MB. Exit code 1 when a limit was missed.
"""

from __future__ import annotations

import contextlib
import os
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from tests.bench import programs, small_json
from tests.bench.programs import Servers, running
from tests.bench.targets import HONEST_S, RSS_CROWDED
from tests.support import hogs
from tests.support.hogs import FRAME, IDLE, PING, UNFINISHED, UNREAD, Crowd, Hog, Waits, waits

LOOK_S = 0.1  # between two looks at the memory
GROUP_BYTES = 64 << 20
NO_GROUP = "no control group could be made"
PICTURE = 3_000_000  # bytes: 4 MB as base64, the largest that a board passes on
SHOT = hogs.call("screenshot")

MIX: Mapping[Hog, int] = {
    IDLE: 24,
    hogs.blank(10.0): 24,
    hogs.asking(PING, 0.2): 6,
    FRAME: 36,
    UNFINISHED: 15,
    UNREAD: 6,
    hogs.reader(SHOT): 6,
}
ASKED: Mapping[str, bytes] = {
    "ping": PING,
    "tools/list": hogs.message("tools/list"),
    "an action": hogs.call("touch_gesture", type="tap", point={"x": 500, "y": 500}),
    "a status": hogs.call("phone_bridge_status"),
}


@dataclass
class Crowded:
    """The measured values."""

    seconds: float
    honest: Waits
    ended: int = 0  # connections of strangers that the server has ended
    peak: float = 0.0  # MiB
    group: str = NO_GROUP
    wrong: str = ""

    def wrongs(self) -> Iterator[str]:
        """Everything that must not be."""
        if self.wrong:
            yield self.wrong
        if self.honest.worst_s > HONEST_S:
            yield f"an honest client waited {self.honest.worst_s:.1f} s, more than {HONEST_S:g} s"
        if self.peak > RSS_CROWDED:
            yield f"{self.peak:.1f} MiB were resident, more than {RSS_CROWDED:g}"

    def report(self) -> str:
        lines = [
            f"{self.honest.answers} answers to an honest client in {self.seconds:g} s, the latest after "
            f"{self.honest.worst_s:.2f} s; {self.ended} connections of strangers were ended",
            f"resident at the most {self.peak:.1f} MiB; {self.group}",
        ]
        return "\n".join([*lines, *(f"WRONG: {wrong}" for wrong in self.wrongs())])


def run(seconds: float) -> Crowded:
    """Crowd a board for that long."""
    found = Crowded(seconds, Waits())
    with Servers() as servers, limited() as (before, found.group):
        servers.serve(f"/picture/{PICTURE}")
        with running((*before, *programs.board(servers.config))) as board:
            over = threading.Event()

            def most() -> float:
                looks = (board.rss for _ in iter(lambda: over.wait(LOOK_S), True))
                return max(looks, default=0.0)

            with ThreadPoolExecutor(1) as pool, Crowd(board.port, {**MIX, **small_json.flood()}) as crowd:
                looking = pool.submit(most)
                try:
                    found.honest = waits(board.port, seconds, ASKED)
                except AssertionError as late:
                    found.wrong = str(late)
                found.ended = crowd.ended
                over.set()
            if board.process.poll() is None:
                found.peak = looking.result()
            else:
                found.wrong = f"the server ended with {board.process.returncode}"
    return found


@contextlib.contextmanager
def limited() -> Iterator[tuple[Sequence[str], str]]:
    """A prefix that puts a command into a control group of 64 MB without swap, and a few words about it.

    The prefix is empty where none can be made.
    """
    parent, limits = Path("/sys/fs/cgroup"), {"memory.max": GROUP_BYTES, "memory.swap.max": 0}
    if not (parent / "cgroup.controllers").exists():  # version 1
        parent, limits = parent / "memory", {"memory.limit_in_bytes": GROUP_BYTES}
    group = parent / f"mcpboard-{os.getpid()}"
    before: Sequence[str] = ("sh", "-c", f'echo $$ > {group}/cgroup.procs && exec "$@"', "sh")
    words = "inside a control group of 64 MB"
    try:
        group.mkdir()
        for name, value in limits.items():
            if (group / name).exists() or name == "memory.max":  # a kernel without swap has no limit for it
                (group / name).write_text(str(value), "ascii")
    except OSError:
        before, words = (), NO_GROUP
    try:
        yield before, words
    finally:
        with contextlib.suppress(OSError):  # it could not be made
            group.rmdir()


if __name__ == "__main__":
    outcome = run(float(os.environ["SECONDS"]))
    print(outcome.report())
    sys.exit(1 if any(outcome.wrongs()) else 0)
