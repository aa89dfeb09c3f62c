"""The real programs under hostile traffic, with all the descriptors they want and with 32: one client is answered."""

from __future__ import annotations

import contextlib
import os
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from mcpboard.host.access.tokens import read_main_token
from tests.bench import programs
from tests.bench.backend import Backend
from tests.support import hogs
from tests.support.hogs import ANSWER_S, FRAME, IDLE, PING, UNFINISHED, UNREAD, Crowd, Hog, waits

pytestmark = pytest.mark.slow  # waits for real limits, links or processes

SECONDS = 2.0
PICTURE = 3_000_000  # bytes: 4 MB as base64
SHOT = hogs.call("screenshot")
TAP = hogs.call("touch_gesture", type="tap", point={"x": 1, "y": 1})
BUSY = 0.5  # of a processor: what a server that spins takes is all of it

FEW = ("sh", "-c", 'ulimit -n 32; exec "$@"', "sh")
CROWD: Mapping[Hog, int] = {IDLE: 30, hogs.blank(0.5): 30, FRAME: 36, UNFINISHED: 12, UNREAD: 6}
READERS: Mapping[Hog, int] = {hogs.reader(SHOT): 6}


@dataclass(frozen=True)
class Started:
    """A program that serves, and what an honest client asks of it."""

    pid: int
    port: int
    asked: Mapping[str, bytes]
    hogs: Mapping[Hog, int]

    @property
    def processor_s(self) -> float:
        """Seconds of processor that it has taken."""
        fields = Path(f"/proc/{self.pid}/stat").read_text("ascii").rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@contextlib.contextmanager
def board(folder: Path, before: Sequence[str] = ()) -> Iterator[Started]:
    with Backend() as backend, programs.settings(backend.port) as config:
        backend.show(PICTURE)
        with programs.running((*before, *programs.board(config))) as program:
            asked = {"ping": PING, "tools/list": hogs.message("tools/list"), "an action": TAP}
            yield Started(program.process.pid, program.port, asked, {**CROWD, **READERS})


@contextlib.contextmanager
def relay(folder: Path, before: Sequence[str] = ()) -> Iterator[Started]:
    """In front of a board that has no crowd of its own."""
    with board(folder) as behind:
        url = f"http://127.0.0.1:{behind.port}/mcp"
        command = (sys.executable, "-m", "mcpboard", "relay", url, "--listen", "127.0.0.1:0")
        with programs.running((*before, *command)) as program:
            # Its line names both ports, ours first.
            yield Started(program.process.pid, program.port, behind.asked, behind.hogs)


@contextlib.contextmanager
def host(folder: Path, before: Sequence[str] = ()) -> Iterator[Started]:
    """The strangers have no token."""
    main = "import sys; from mcpboard.cli import host_main; sys.exit(host_main())"
    command = (sys.executable, "-c", main, "run", "--port", "0", "--data", str(folder / "data"))
    with programs.running((*before, *command)) as program:
        token = read_main_token(folder / "data")
        asked = {"ping": hogs.message("ping", token), "list_devices": hogs.call("list_devices", token)}
        many = {hog: count if before else count * 4 for hog, count in CROWD.items()}
        yield Started(program.process.pid, program.port, asked, many)


@pytest.mark.parametrize("before", [pytest.param((), id="as it is"), pytest.param(FEW, id="32 descriptors")])
@pytest.mark.parametrize("program", [board, relay, host])
def test_an_honest_client_is_answered(program: object, before: Sequence[str], tmp_path: Path) -> None:
    with program(tmp_path, before) as started:  # type: ignore[operator]
        with Crowd(started.port, started.hogs):
            found = waits(started.port, SECONDS, started.asked)
        assert found.worst_s <= ANSWER_S
        assert found.answers >= len(started.asked)


@pytest.mark.parametrize("program", [board, relay, host])
def test_without_descriptors_it_does_not_spin(program: object, tmp_path: Path) -> None:
    """All that it may open is open, and strangers knock: it waits for one to go, and is at rest meanwhile."""
    resource = pytest.importorskip("resource")
    with program(tmp_path) as started:  # type: ignore[operator]
        hogs.answered(started.port, started.asked["ping"])
        open_now = len(os.listdir(f"/proc/{started.pid}/fd"))
        limits = resource.prlimit(started.pid, resource.RLIMIT_NOFILE)
        resource.prlimit(started.pid, resource.RLIMIT_NOFILE, (open_now, limits[1]))
        with Crowd(started.port, {Hog(back_s=1.0): 24}):
            before, begun = started.processor_s, time.monotonic()
            threading.Event().wait(1.0)
            used = (started.processor_s - before) / (time.monotonic() - begun)
        assert used < BUSY
        resource.prlimit(started.pid, resource.RLIMIT_NOFILE, limits)
        hogs.answered(started.port, started.asked["ping"])
