"""Clients that people use, each a process that does what it is told; and the table of them.

A visit is a script in `clients/`: it connects, says which protocol version was agreed on, and turns each line of
its standard input into a request. The server is a URL, or the words of a program to start.
"""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.support import ROOT, provision
from tests.support.piped import HOSTILE, LIMIT_S

MODERN, LEGACY, OLDER = "2026-07-28", "2025-11-25", "2025-06-18"
REFUSED = -32602  # our code for a tool that does not exist
UNASKED = "tool_not_found"  # the inspector's own word: it looks into the list first
VISIT_S = 60.0  # seconds for one answer; a large bundle takes two on an idle machine
SCRIPTS = Path(__file__).parent / "clients"
DIRECT = {**dict.fromkeys(HOSTILE, ""), "NO_PROXY": "127.0.0.1", "no_proxy": "127.0.0.1"}

MCP_1_20 = "mcp==1.20.0 pydantic==2.11.10"  # with a younger pydantic it cannot be imported
NODE = {"node": "22.23.3"}
SDK1 = {**NODE, "@modelcontextprotocol/sdk": "1.32.2"}
CLIENT2 = {**NODE, "@modelcontextprotocol/client": "2.4.0"}
INSPECTOR = {**NODE, "@modelcontextprotocol/inspector": "2.12.0"}

Start = Callable[[], tuple[list[str], Path]]  # the command of a visit without its server, and where to run it


def python(script: str, requirements: str, *arguments: str) -> Start:
    """A Python script that finds `requirements`, between spaces, and its own folder."""

    def start() -> tuple[list[str], Path]:
        interpreter = provision.python_prefix(*requirements.split())
        return [str(interpreter), "-E", "-s", str(SCRIPTS / script), *arguments], ROOT

    return start


def node(script: str, packages: dict[str, str], *arguments: str) -> Start:
    """A module that finds `packages`: given as text, it imports from the working folder."""

    def start() -> tuple[list[str], Path]:
        prefix = provision.node_prefix(packages)
        module = "".join((SCRIPTS / name).read_text("utf-8") for name in ("steps.mjs", script))
        program = prefix / "node_modules/.bin/node"
        return [str(program), "--input-type=module", "--eval", module, "--", *arguments], prefix

    return start


def curl(version: str) -> Start:
    """The curl of this system."""
    return lambda: ([sys.executable, "-E", "-s", str(SCRIPTS / "curl.py"), version], ROOT)


@dataclass(frozen=True)
class Client:
    """One client as it is used: what it must agree on with a board, directly and through the bridge.

    A client that is refused wrongly falls back to an older revision and says nothing, so only the version shows it. No
    version means that it cannot connect that way.
    """

    name: str
    mode: str
    start: Start
    direct: str | None
    bridged: str | None
    unknown: int | str = REFUSED  # what it makes of a tool that does not exist
    pings: bool = False

    def __str__(self) -> str:
        return f"{self.name}, {self.mode}"


CLIENTS = [
    Client("Python mcp 2.3", "as it comes", python("mcp2.py", "mcp==2.3.0", "auto"), MODERN, MODERN),
    Client("Python mcp 2.3", "asked for a handshake", python("mcp2.py", "mcp==2.3.0", "legacy"), LEGACY, LEGACY, pings=True),
    Client("Python mcp 1.30", "as it comes", python("mcp1.py", "mcp==1.30.0"), LEGACY, LEGACY, pings=True),
    Client("Python mcp 1.23", "as it comes", python("mcp1.py", "mcp==1.23.3"), LEGACY, LEGACY, pings=True),
    Client("Python mcp 1.20", "as it comes", python("mcp1.py", MCP_1_20), None, OLDER, pings=True),
    Client("fastmcp 4.2", "as it comes", python("fastmcp4.py", "fastmcp==4.2.3"), MODERN, MODERN),
    Client("TypeScript sdk 1.32", "as it comes", node("sdk1.mjs", SDK1), LEGACY, LEGACY, pings=True),
    Client("TypeScript client 2.4", "asked to probe", node("client2.mjs", CLIENT2, "auto"), MODERN, MODERN),
    Client("TypeScript client 2.4", "as it comes", node("client2.mjs", CLIENT2, "legacy"), LEGACY, LEGACY, pings=True),
    Client("inspector 2.12", "asked to probe", node("inspector.mjs", INSPECTOR, "auto"), MODERN, MODERN, UNASKED),
    Client("inspector 2.12", "as it comes", node("inspector.mjs", INSPECTOR, "legacy"), LEGACY, LEGACY, UNASKED),
    Client("curl", "with a whole envelope", curl(MODERN), MODERN, None),
    Client("curl", "with a handshake", curl(LEGACY), LEGACY, None, pings=True),
]  # fmt: skip


# --- visits ----------------------------------------------------------------------------------


class Visitor:
    """A client that has connected; `version` is what it agreed on."""

    def __init__(self, child: subprocess.Popen[str]) -> None:
        self._child = child
        self.version: str = self.hear()["version"]

    def ask(self, *words: Any) -> Any:
        """The result of a request, as the client saw it, or `{"error": ...}`."""
        self.send(*words)
        return self.hear()

    def send(self, *words: Any) -> None:
        """Have it make a request: the method, then the tool's name and arguments."""
        assert self._child.stdin is not None
        self._child.stdin.write(json.dumps(words) + "\n")
        self._child.stdin.flush()

    def hear(self) -> Any:
        """The answer to the oldest request that was not heard yet; VisitFailed when the client has ended."""
        assert self._child.stdout is not None
        limit = threading.Timer(VISIT_S, _end, [self._child])
        limit.start()
        try:
            line = self._child.stdout.readline()
        finally:
            limit.cancel()
            limit.join()
        if not line:
            raise VisitFailed("the client ended, or was ended; what it said is on standard error")
        return json.loads(line)


class VisitFailed(Exception):
    """The client gave up."""


@contextmanager
def visit(client: Client, server: Sequence[str], token: str = "") -> Iterator[Visitor]:
    """A visit to `server`, a URL or a program's words; it must end well. VisitFailed when it cannot connect."""
    command, folder = client.start()
    pipe, environment = subprocess.PIPE, os.environ | DIRECT | {"VISITOR_TOKEN": token}
    with subprocess.Popen(
        [*command, *server], cwd=folder, env=environment, stdin=pipe, stdout=pipe, text=True,
        start_new_session=True,
    ) as child:  # fmt: skip
        try:
            yield Visitor(child)
            assert child.stdin is not None
            child.stdin.close()
            assert child.wait(LIMIT_S) == 0
        finally:
            _end(child)


def _end(child: subprocess.Popen[str]) -> None:
    """Kill it and all that it has started, if they are still there."""
    with suppress(ProcessLookupError):
        os.killpg(child.pid, signal.SIGKILL)


def bridge_program(folder: Path) -> str:
    """A program that is `mcpboard bridge` of this tree, in an environment whose proxies lead nowhere."""
    file = folder / "bridge"
    variables = shlex.join(f"{name}={value}" for name, value in {**HOSTILE, "PYTHONPATH": str(ROOT)}.items())
    file.write_text(f'#!/bin/sh\nexec env {variables} {shlex.quote(sys.executable)} -m mcpboard bridge "$@"\n')
    file.chmod(0o755)
    return str(file)
