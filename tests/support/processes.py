"""Programs as processes of their own: run to their end, or used while a block lasts; the standard library alone."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from itertools import takewhile
from pathlib import Path
from typing import IO, Any

from tests.support import ROOT

LIMIT_S = 30.0  # for what is sure to come, on a slow machine under load
MCPBOARD = (sys.executable, "-m", "mcpboard")
HOST = (*MCPBOARD, "host")
# No HOME, no locale but C, none of the caller's variables; a warning is an error.
BARE = {
    "PATH": os.defpath,
    "LC_ALL": "C",
    "PYTHONPATH": str(ROOT),
    "PYTHONDONTWRITEBYTECODE": "1",
    "PYTHONWARNINGS": "error",
}


def run(*command: str | bytes, **how: Any) -> subprocess.CompletedProcess[str]:
    """What a program did; `how` replaces the arguments of `subprocess.run` that are usual here."""
    stdin, pipe = None if "input" in how else subprocess.DEVNULL, subprocess.PIPE
    usual: dict[str, Any] = {"cwd": ROOT, "env": BARE, "stdin": stdin, "stdout": pipe, "stderr": pipe}
    return subprocess.run(command, check=False, text=True, timeout=LIMIT_S, **(usual | how))


@dataclass
class Program:
    """A program that runs."""

    process: subprocess.Popen[str]
    log: IO[str]

    @cached_property
    def line(self) -> str:
        """The first line that it prints; "" when it ends without."""
        return first_line(self.process, LIMIT_S)

    @property
    def url(self) -> str:
        """The URL that it says it serves."""
        assert " serving http://" in self.line, self.line + self.errors
        return self.line.split()[-1]

    @property
    def errors(self) -> str:
        """Its standard error so far."""
        self.log.seek(0)
        return self.log.read()

    def told_until(self, words: str) -> str:
        """Everything that it prints before a line with these words."""
        assert self.process.stdout is not None
        with _killed_after(self.process, 2 * LIMIT_S):
            return "".join(takewhile(lambda line: words not in line, self.process.stdout))

    def end(self, number: int = signal.SIGTERM) -> int:
        """Send it a signal; return the exit code."""
        self.process.send_signal(number)
        return self.process.wait(LIMIT_S)


@contextmanager
def started(*command: str, **how: Any) -> Iterator[Program]:
    """A program that runs until the block ends, or longer ago; `how` replaces what is usual, as for `run`."""
    # Standard error goes to a file: nobody reads meanwhile, and a pipe would fill up.
    with tempfile.TemporaryFile("w+", encoding="utf-8") as log:
        usual: dict[str, Any] = {"cwd": ROOT, "env": BARE, "stdin": subprocess.DEVNULL, "stderr": log}
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, **(usual | how)) as process:
            try:
                yield Program(process, log)
                process.terminate()
                process.wait(LIMIT_S)
            finally:
                process.kill()


def first_line(process: subprocess.Popen[str], seconds: float) -> str:
    """The first line that `process` prints; "" when it ends without, as it does by force once the time is over."""
    assert process.stdout is not None
    with _killed_after(process, seconds):
        return process.stdout.readline()


@contextmanager
def _killed_after(process: subprocess.Popen[str], seconds: float) -> Iterator[None]:
    """End what the block reads of `process` when the time is over."""
    limit = threading.Timer(seconds, process.kill)
    limit.start()
    try:
        yield
    finally:
        limit.cancel()
        limit.join()


def host(*words: str, cwd: Path = ROOT, **variables: str) -> subprocess.CompletedProcess[str]:
    """What `device-host-agent WORDS` did."""
    return run(*HOST, *words, cwd=cwd, env={**BARE, **variables})


@contextmanager
def host_agent(*words: str, cwd: Path = ROOT, **variables: str) -> Iterator[tuple[Program, str]]:
    """A `device-host-agent WORDS` on a free port, and its URL."""
    with started(*HOST, *words, "--port", "0", cwd=cwd, env={**BARE, **variables}) as agent:
        yield agent, agent.url
