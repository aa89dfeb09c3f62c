"""A part of `make soak`: mixed traffic with faults, over loopback, for as long as SECONDS says.

Prints calls, errors by kind, the curve of resident memory, and what slots and lanes hold in the end. Exit code 1
for anything that leaked or that no fault explains.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mcpboard.simulator import Simulator
from tests.bench import mixture, traffic
from tests.bench.programs import ENVIRON, Program, port_of
from tests.support import ROOT

CLIENTS = 8  # more than turns, so that some are turned away
POINTS = 20  # of the memory curve
FAULT_EVERY_S = 0.1
SETTLE_S = 60.0  # for what is under way in the end; no fault lasts as long
GROWTH_MIB = 4.0  # from the end of the first quarter on: what traffic of this kind moves up and down
THREADS = 9  # the loop and eight workers


@dataclass
class Soak:
    """The measured values."""

    seconds: float
    calls: Counter[str] = field(default_factory=Counter)
    curve: list[float] = field(default_factory=list)  # MiB, evenly spaced
    before: dict[str, Any] = field(default_factory=dict)
    after: dict[str, Any] = field(default_factory=dict)
    tracebacks: int = 0

    def wrongs(self) -> Iterator[str]:
        """Everything that must not be."""
        yield from (f"{count} x {kind}" for kind, count in self.calls.items() if kind.startswith("unexplained"))
        if not self.calls[mixture.OK]:
            yield "no call succeeded"
        if self.tracebacks:
            yield f"{self.tracebacks} tracebacks in the log"
        if self.after["slots"] or self.after["lanes"]:
            yield f"slots or lanes still held: {self.after}"
        if self.after["threads"] != THREADS:
            yield f"{self.after['threads']} threads, not {THREADS}"
        if self.after["descriptors"] > self.before["descriptors"]:
            yield f"descriptors: {self.before['descriptors']} before, {self.after['descriptors']} after"
        warm = max(self.curve[: POINTS // 4 + 1])
        if self.curve[-1] - warm > GROWTH_MIB:
            yield f"resident memory grew from {warm:.1f} to {self.curve[-1]:.1f} MiB"

    def report(self) -> str:
        lines = [f"{sum(self.calls.values())} calls in {self.seconds:g} s"]
        lines += [f"  {count:7}  {kind}" for kind, count in self.calls.most_common()]
        lines.append("resident MiB: " + " ".join(f"{mebibytes:.1f}" for mebibytes in self.curve))
        lines.append(f"held before: {self.before}\nheld after:  {self.after}")
        return "\n".join([*lines, *(f"WRONG: {wrong}" for wrong in self.wrongs())])


class Held(Program):
    """A `tests.bench.held` that runs."""

    def held(self) -> dict[str, Any]:
        """Return the resources that it holds now."""
        assert self.process.stdin and self.process.stdout
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        found: dict[str, Any] = json.loads(self.process.stdout.readline())
        return found


def run(seconds: float) -> Soak:
    """Soak a server for that long."""
    soak = Soak(seconds)
    with Simulator(speed=50) as simulator, tempfile.TemporaryFile("w+") as log:
        with serving(simulator, log) as program:
            mixture.exchange(program.port, traffic.SHOT)  # requests is imported
            _settled(program)
            soak.before = program.held()
            _traffic(soak, program, simulator)
            simulator.faults.clear()
            soak.after = _settled(program)
        log.seek(0)
        soak.tracebacks = log.read().count("Traceback")
    return soak


@contextmanager
def serving(simulator: Simulator, log: Any) -> Iterator[Held]:
    lines = [
        "[mcpboard]",
        'log_level = "warning"',
        f'agent_base_url = "{simulator.agent_url}"',
        "[conversation_settings.agent]",
        f'mcp_config_web_base_url = "{simulator.config_web_url}"',
    ]
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "mcpboard.toml")
        file.write_text("\n".join(lines) + "\n", "utf-8")
        command = [sys.executable, "-m", "tests.bench.held", str(file)]
        pipe, environ = subprocess.PIPE, {**os.environ, **ENVIRON}
        with subprocess.Popen(
            command, cwd=ROOT, env=environ, stdin=pipe, stdout=pipe, stderr=log, text=True
        ) as process:
            try:
                yield Held(process, port_of(process))
            finally:
                process.kill()


def _traffic(soak: Soak, program: Held, simulator: Simulator) -> None:
    over = threading.Event()
    found: list[Counter[str]] = [Counter() for _ in range(CLIENTS)]

    def client(number: int) -> None:
        chance = random.Random(number)
        while not over.is_set():
            found[number][mixture.deed(program.port, chance)] += 1

    def faults() -> None:
        chance = random.Random(0)
        while not over.wait(FAULT_EVERY_S):
            kind, target, settings = chance.choice(mixture.FAULTS)
            simulator.faults.clear()  # so that those that found no call do not pile up
            simulator.faults.set(kind, target, times=1, **settings)

    threads = [threading.Thread(target=client, args=(number,), name="client") for number in range(CLIENTS)]
    threads.append(threading.Thread(target=faults, name="faults"))
    for thread in threads:
        thread.start()
    for _ in range(POINTS):
        over.wait(soak.seconds / POINTS)
        soak.curve.append(program.rss)
    over.set()
    for thread in threads:
        thread.join()
    soak.calls = sum(found, Counter())


def _settled(program: Held) -> dict[str, Any]:
    """Return the resources that are held once nothing is under way, or after SETTLE_S."""
    pause, end = threading.Event(), time.monotonic() + SETTLE_S
    least = program.held()
    while (least["slots"] or least["lanes"] or least["descriptors"] > _quiet(program)) and time.monotonic() < end:
        pause.wait(0.1)
        least = program.held()
    return least


def _quiet(program: Held) -> int:
    """Descriptors of a server without connections."""
    return program.descriptors - max(0, program.sockets - 1)


if __name__ == "__main__":
    outcome = run(float(os.environ["SECONDS"]))
    print(outcome.report())
    sys.exit(1 if any(outcome.wrongs()) else 0)
