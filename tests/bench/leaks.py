"""A part of `make soak`: mixed traffic with faults, over loopback, for as long as SECONDS says.

Prints calls, errors by kind, the curve of resident memory, and what slots and lanes hold in the end. Exit code 1
for anything that leaked or that no fault explains.
"""

from __future__ import annotations

import json
import os
import random
import re
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mcpboard.simulator import Simulator
from tests.bench import programs, traffic
from tests.bench.programs import Program
from tests.bench.traffic import Caller
from tests.support import served
from tests.support.http import InvalidResponse

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
        if not self.calls[OK]:
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


# --- what clients do ---------------------------------------------------------------------------

OK = "ok"
LEFT = "left on purpose"

# The beginning of what a tool's error says -> what it is called. Any other error is unexplained.
KINDS: Mapping[str, str] = {
    r"\w+ was not started|\d+ calls are under way": "busy",
    r".* cannot be reached": "unreachable",
    r".* did not finish": "late",
    r".* broke off": "broken off",
    r".* answered .* badly": "malformed",
    r"The board gave an answer that makes no sense": "malformed",
    r"The board'?s? .*HTTP \d+|The board did not|This board does not offer": "turned down",
    r"The screenshot is missing": "no screenshot",
}

# (kind, target, settings) of the simulator's switches; each hits once. None lasts longer than a soak's last seconds.
FAULTS: tuple[tuple[str, str, Mapping[str, Any]], ...] = (
    ("reset_before_read", "*", {}),
    ("reset_after_read", "*", {}),
    ("reset_after_execution", "touch_gesture", {}),
    ("truncated", "*", {}),
    ("html", "*", {}),
    ("redirect", "*", {}),
    ("status", "*", {}),
    ("shutting_down", "*", {}),
    ("slow", "*", {"seconds": 0.3}),
    ("gzip", "screenshot", {}),
    ("empty_output", "screenshot", {}),
    ("not_a_picture", "screenshot", {}),
    ("tool_error", "*", {}),
    ("soft_failure", "touch_gesture", {}),
    ("oversized", "screenshot", {}),
    ("bundle", "support_bundle", {"bytes": 1 << 20, "dies_after": 300_000}),
    ("bundle", "support_bundle", {"bytes": 4 << 20}),
    ("bundle_error", "support_bundle", {}),
)


def exchange(port: int, sent: bytes) -> str:
    """Ask once and name the outcome; anything that no fault explains is named `unexplained: ...`."""
    try:
        with Caller(port) as caller:
            answer = json.loads(caller.ask(sent))
    except InvalidResponse as error:
        # Config Web died with the bundle half over.
        return "bundle cut" if sent is traffic.BUNDLE else f"unexplained: {error!r}"
    if "result" not in answer:
        return f"unexplained: JSON-RPC {answer.get('error')}"
    result = answer["result"]
    return _error(result["content"][0]["text"]) if result.get("isError") else OK


def _error(text: str) -> str:
    told = text.splitlines()
    for line in reversed(told):  # lines before the last may tell of calls that nobody heard of
        for pattern, kind in KINDS.items():
            if re.match(pattern, line):
                return kind
    # What the Agent says of its own failures is passed on as it is.
    return (
        "the tool failed"
        if any(re.search(r"HID device|tap the field|archive|error", line) for line in told)
        else (f"unexplained: {text[:120]!r}")
    )


def leave(port: int, sent: bytes) -> str:
    """Ask and reset the connection at once."""
    caller = Caller(port)
    caller.send(sent)
    caller.leave(reset=True)
    return LEFT


def half(port: int, sent: bytes) -> str:
    """Send all but the end, and go."""
    with Caller(port) as caller:
        caller.send(sent[:-7])
    return LEFT


def glance(port: int, sent: bytes) -> str:
    """Read the first bytes of the answer through a small window, and go."""
    with Caller(port, receive_buffer=4096) as caller:
        caller.send(sent)
        caller.sock.recv(512)
    return LEFT


# How often, out of the sum, a client does what.
DEEDS: tuple[tuple[int, Callable[[int, bytes], str], bytes], ...] = (
    (8, exchange, traffic.LIST),
    (8, exchange, traffic.post("server/discover")),
    (10, exchange, traffic.SHOT),
    (10, exchange, traffic.TAP),
    (8, exchange, traffic.SMALL),
    (3, exchange, traffic.BUNDLE),
    (3, leave, traffic.TAP),
    (3, leave, traffic.SHOT),
    (2, leave, traffic.BUNDLE),
    (2, half, traffic.SHOT),
    (2, glance, traffic.SHOT),
    (1, glance, traffic.BUNDLE),
)
WEIGHTS = [weight for weight, _, _ in DEEDS]


def deed(port: int, chance: random.Random) -> str:
    """Do one thing that clients do; its outcome."""
    _, do, sent = chance.choices(DEEDS, WEIGHTS)[0]
    try:
        return do(port, sent)
    except (AssertionError, OSError, ValueError) as error:
        return f"unexplained: {type(error).__name__} {str(error)[:80]}"


# --- the run -----------------------------------------------------------------------------------


def run(seconds: float) -> Soak:
    """Soak a server for that long."""
    soak = Soak(seconds)
    with (
        Simulator(speed=50) as simulator, tempfile.TemporaryFile("w+") as log, tempfile.TemporaryDirectory() as folder,
    ):  # fmt: skip
        config = served.settings_file(Path(folder), simulator, log_level="warning")
        command = (*programs.PYTHON, "tests.bench.held", str(config))
        with programs.running(command, stdin=subprocess.PIPE, stderr=log) as program:
            exchange(program.port, traffic.SHOT)  # requests is imported
            soak.before = _settled(program)
            _traffic(soak, program, simulator)
            simulator.faults.clear()
            soak.after = _settled(program)
        log.seek(0)
        soak.tracebacks = log.read().count("Traceback")
    return soak


def _traffic(soak: Soak, program: Program, simulator: Simulator) -> None:
    over = threading.Event()
    found: list[Counter[str]] = [Counter() for _ in range(CLIENTS)]

    def client(number: int) -> None:
        chance = random.Random(number)
        while not over.is_set():
            found[number][deed(program.port, chance)] += 1

    def faults() -> None:
        chance = random.Random(0)
        while not over.wait(FAULT_EVERY_S):
            kind, target, settings = chance.choice(FAULTS)
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


def _settled(program: Program) -> dict[str, Any]:
    """Return the resources that are held once nothing is under way and nobody connected, or after SETTLE_S."""
    pause, end = threading.Event(), time.monotonic() + SETTLE_S
    while True:
        connected, held = program.sockets > 1, _held(program)
        if not (connected or held["slots"] or held["lanes"]) or time.monotonic() > end:
            return held
        pause.wait(0.1)


def _held(program: Program) -> dict[str, Any]:
    assert program.process.stdin and program.process.stdout
    program.process.stdin.write("\n")
    program.process.stdin.flush()
    found: dict[str, Any] = json.loads(program.process.stdout.readline())
    return found


if __name__ == "__main__":
    outcome = run(float(os.environ["SECONDS"]))
    print(outcome.report())
    sys.exit(1 if any(outcome.wrongs()) else 0)
