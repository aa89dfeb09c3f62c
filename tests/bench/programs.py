"""Servers as processes of their own, started alike and watched from outside through /proc."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import IO

from mcpboard.serving.server import WAITRESS
from tests.bench.traffic import Caller
from tests.support import ROOT, provision
from tests.support.http import request
from tests.support.processes import first_line

START_S = 60.0  # seconds until a port must be printed; valgrind needs five

# Hashes fixed, so that counts repeat.
STOCK = {"PYTHONHASHSEED": "0", "NO_PROXY": "127.0.0.1", "LC_ALL": "C.UTF-8"}

# What our init scripts and units set; bare waitress gets it, too, but not what others start in their own way.
MALLOC = {"MALLOC_ARENA_MAX": "1", "MALLOC_TRIM_THRESHOLD_": "2097152", "MALLOC_MMAP_THRESHOLD_": "1048576"}
ENVIRON = {**STOCK, **MALLOC}

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
    def descriptors(self) -> list[str]:
        """Where each open file leads; sockets are `socket:...`."""
        folder = f"/proc/{self.process.pid}/fd"
        return [os.readlink(f"{folder}/{name}") for name in os.listdir(folder)]

    @property
    def sockets(self) -> int:
        """Open sockets, listener included."""
        return sum(link.startswith("socket:") for link in self.descriptors)

    def forget_peak(self) -> None:
        Path(f"/proc/{self.process.pid}/clear_refs").write_text("5", "ascii")

    def tasks(self) -> list[str]:
        """The state letter of every thread."""
        stats = Path(f"/proc/{self.process.pid}/task").glob("*/stat")
        return [stat.read_text("ascii").rpartition(")")[2].split()[0] for stat in stats]

    def _status(self, key: str) -> float:
        found = re.search(rf"{key}:\s+(\d+) kB", Path(f"/proc/{self.process.pid}/status").read_text("ascii"))
        assert found
        return int(found[1]) / 1024


@contextmanager
def running(
    command: Command,
    environ: Mapping[str, str] = ENVIRON,
    stdin: int = subprocess.DEVNULL,
    stderr: IO[str] | int = subprocess.DEVNULL,
) -> Iterator[Program]:
    """A program that prints its port, or a URL that ends with it and a path, as its first line."""
    environ = {"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT), **environ}
    with subprocess.Popen(
        command, cwd=ROOT, env=environ, stdin=stdin, stdout=subprocess.PIPE, stderr=stderr, text=True
    ) as process:
        try:
            line = first_line(process, START_S)
            found = re.search(r"(\d+)(/\w+)?\s*$", line)
            assert found, f"{command!r} did not start: {line!r}"
            yield Program(process, int(found[1]))
        finally:
            process.kill()


# --- the servers -----------------------------------------------------------------------------


PYTHON = (sys.executable, "-m")
# Bare waitress, whose every answer has as many bytes as our tools/list.
BARE: Command = (*PYTHON, "tests.bench.bare", "11254", json.dumps(dict(WAITRESS)))
BACKEND: Command = (*PYTHON, "tests.bench.backend")
SDK = "mcp==2.3.0"


def board(config: Path) -> Command:
    return (*PYTHON, "mcpboard", "serve", "--config", str(config))


@contextmanager
def settings(backend_port: int, shell: bool = False) -> Iterator[Path]:
    """The settings of a board in front of that backend, in two files as on boards; room for a bundle of 64 MiB."""
    with tempfile.TemporaryDirectory() as folder:
        agent, ours = Path(folder, "agent.toml"), Path(folder, "mcpboard.toml")
        url, enabled = f"http://127.0.0.1:{backend_port}", str(shell).lower()
        ours.write_text(
            f'[mcpboard]\nlisten = "127.0.0.1:0"\nagent_base_url = "{url}"\nagent_config = "{agent}"\n'
            f"support_bundle_max_bytes = {128 << 20}\n", "utf-8",
        )  # fmt: skip
        agent.write_text(
            f'[conversation_settings.agent]\nmcp_config_web_base_url = "{url}"\nmcp_shell_enabled = {enabled}\n',
            "utf-8",
        )
        yield ours


class Servers(ExitStack):
    """Everything that is measured, each from when it is asked for the first time until the block ends."""

    @cached_property
    def backend(self) -> Program:
        return self.enter_context(running(BACKEND))

    @cached_property
    def config(self) -> Path:
        return self.enter_context(settings(self.backend.port))

    @cached_property
    def board(self) -> Program:
        return self.enter_context(running(board(self.config)))

    @cached_property
    def bare(self) -> Program:
        return self.enter_context(running(BARE))

    @cached_property
    def relay(self) -> Program:
        return self.enter_context(running((*PYTHON, "tests.bench.relay", str(self.backend.port))))

    @cached_property
    def sdk(self) -> Program:
        python = str(provision.python_prefix(SDK))
        return self.enter_context(
            running((python, str(Path(__file__).with_name("sdk_server.py")), str(self.backend.port)), STOCK)
        )

    def serve(self, path: str) -> None:
        """Have the backend serve other sizes: /bundle/BYTES or /picture/BYTES."""
        with Caller(self.backend.port) as caller:
            caller.drain(request(method="GET", path=path))
