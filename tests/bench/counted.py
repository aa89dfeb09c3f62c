"""Instructions that a server spends on one request, counted by callgrind; they repeat within one per cent.

The client stays outside valgrind and asks on one connection. It sends the next request when every thread of the
server waits again: otherwise the server's loop would wake at another moment in every run.
"""

from __future__ import annotations

import itertools
import re
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from tests.bench.programs import Command, Program, running
from tests.bench.traffic import Caller

WARM_UP = 10  # requests until caches are filled and requests is imported
BATCHES = 5  # the least of them counts: what disturbs a server only ever adds
DUMP_S = 30.0
VALGRIND = ("valgrind", "--tool=callgrind", "--combine-dumps=no")


@dataclass
class Counted:
    """A server under callgrind."""

    program: Program
    dumps: Path
    _numbers: Iterator[int] = field(default_factory=lambda: itertools.count(1))

    def per_request(self, sent: bytes, batch: int) -> float:
        """Thousands of instructions for one such request."""
        with Caller(self.program.port) as caller:
            self._ask(caller, sent, WARM_UP)
            self._since_last()
            found = []
            for _ in range(BATCHES):
                self._ask(caller, sent, batch)
                found.append(self._since_last() / batch / 1000)
        return min(found)

    def _ask(self, caller: Caller, sent: bytes, times: int) -> None:
        for _ in range(times):
            caller.drain(sent)
            self._settled()

    def _settled(self) -> None:
        """Return once no thread runs, seen twice, because the lock between threads is handed over in between."""
        quiet = 0
        while quiet < 2:
            quiet = 0 if "R" in self.program.tasks() else quiet + 1

    def _since_last(self) -> int:
        """Instructions since this was asked before."""
        ask = ["vgdb", f"--pid={self.program.process.pid}", "dump"]
        subprocess.run(ask, check=True, capture_output=True, timeout=DUMP_S)
        dump = self.dumps / f"counts.{next(self._numbers)}"
        found = re.search(r"^(?:totals|summary): (\d+)", dump.read_text("utf-8"), re.MULTILINE)
        assert found, f"{dump.name} has no total"
        return int(found[1])


@contextmanager
def counting(command: Command) -> Iterator[Counted]:
    """The server that `command`, a Python with `-m`, starts; stopped when the block ends."""
    python, _, *rest = command
    with tempfile.TemporaryDirectory() as folder:
        dumps = Path(folder)
        prefix = (*VALGRIND, f"--callgrind-out-file={dumps}/counts", python, "-m", "tests.bench.steady")
        with running((*prefix, *rest)) as program:
            yield Counted(program, dumps)
