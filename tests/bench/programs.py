"""Servers as processes of their own, started alike and watched from outside through /proc."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from mcpboard.serving.server import WAITRESS
from tests.support import ROOT
from tests.support.processes import first_line

START_S = 60.0  # seconds until a port must be printed; valgrind needs five
STOP_S = 10.0

# Hashes fixed, so that counts repeat.
STOCK = {"PYTHONHASHSEED": "0", "NO_PROXY": "127.0.0.1", "LC_ALL": "C.UTF-8"}

# What our init scripts and units set; bare waitress gets it, too, but not what others start in their own way.
ENVIRON = {
    **STOCK,
    "MALLOC_ARENA_MAX": "1",
    "MALLOC_TRIM_THRESHOLD_": "2097152",
    "MALLOC_MMAP_THRESHOLD_": "1048576",
}

Command = Sequence[str]


@dataclass(frozen=True)
class Program:
    """A server that runs: its process and the port it listens on."""

    process: subprocess.Popen[str]
    port: int

    @property
    def rss(self) -> float:
        """Resident MiB now."""
        return self._status("VmRSS")

    @property
    def peak(self) -> float:
        """The most resident MiB since the start or the latest `forget_peak`."""
        return self._status("VmHWM")

    @property
    def threads(self) -> int:
        return len(self.tasks())

    @property
    def sockets(self) -> int:
        """Open sockets, listener included."""
        links = (os.readlink(f"/proc/{self.process.pid}/fd/{name}") for name in self._descriptors())
        return sum(link.startswith("socket:") for link in links)

    @property
    def descriptors(self) -> int:
        return len(self._descriptors())

    def forget_peak(self) -> None:
        Path(f"/proc/{self.process.pid}/clear_refs").write_text("5", "ascii")

    def tasks(self) -> list[str]:
        """The state letter of every thread."""
        folder = f"/proc/{self.process.pid}/task"
        return [
            Path(folder, task, "stat").read_text("ascii").rpartition(")")[2].split()[0] for task in os.listdir(folder)
        ]

    def _descriptors(self) -> list[str]:
        return os.listdir(f"/proc/{self.process.pid}/fd")

    def _status(self, key: str) -> float:
        found = re.search(rf"{key}:\s+(\d+) kB", Path(f"/proc/{self.process.pid}/status").read_text("ascii"))
        assert found
        return int(found[1]) / 1024


@contextmanager
def running(
    command: Command, extra: Mapping[str, str] | None = None, common: Mapping[str, str] = ENVIRON
) -> Iterator[Program]:
    """A program that prints its port, or a URL that ends with it and a path, as its first line."""
    environ = {"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT), **common, **(extra or {})}
    pipe, nowhere = subprocess.PIPE, subprocess.DEVNULL
    with subprocess.Popen(
        command, cwd=ROOT, env=environ, stdin=nowhere, stdout=pipe, stderr=nowhere, text=True
    ) as process:
        try:
            yield Program(process, port_of(process))
        finally:
            process.kill()
            process.wait(STOP_S)


def port_of(process: subprocess.Popen[str]) -> int:
    """The port that a program prints; AssertionError when it does not."""
    line = first_line(process, START_S)
    found = re.search(r"(\d+)(/\w+)?\s*$", line)
    assert found, f"{process.args!r} did not start: {line!r}"
    return int(found[1])


# --- the servers -----------------------------------------------------------------------------


def bare(size: int) -> Command:
    """Bare waitress; every answer has `size` bytes."""
    return (sys.executable, "-m", "tests.bench.bare", str(size), json.dumps(dict(WAITRESS)))


def board(config: Path) -> Command:
    return (sys.executable, "-m", "mcpboard", "serve", "--config", str(config))


def relay(backend_port: int) -> Command:
    return (sys.executable, "-m", "tests.bench.relay", str(backend_port))


BACKEND: Command = (sys.executable, "-m", "tests.bench.backend")


@contextmanager
def settings(backend_port: int, bundle_max: int = 128 << 20, shell: bool = False) -> Iterator[Path]:
    """The settings of a board in front of that backend, in two files as on boards; room for a bundle of 64 MB."""
    url = f"http://127.0.0.1:{backend_port}"
    with tempfile.TemporaryDirectory() as folder:
        ours, agents = Path(folder, "mcpboard.toml"), Path(folder, "agent.toml")
        _write(
            agents,
            "[conversation_settings.agent]",
            f'mcp_config_web_base_url = "{url}"',
            f"mcp_shell_enabled = {str(shell).lower()}",
        )
        _write(
            ours,
            "[mcpboard]",
            'listen = "127.0.0.1:0"',
            f'agent_base_url = "{url}"',
            f'agent_config = "{agents}"',
            f"support_bundle_max_bytes = {bundle_max}",
        )
        yield ours


def _write(file: Path, *lines: str) -> None:
    file.write_text("\n".join(lines) + "\n", "utf-8")
