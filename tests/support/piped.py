"""A bridge as a client starts it, a process on two pipes; and a board that can be killed and started again."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from mcpboard.simulator import Simulator
from tests.support import ROOT, served

LIMIT_S = 20.0  # for what is sure to come, on a slow machine under load
MODERN = "2026-07-28"
ENVELOPE = {
    "io.modelcontextprotocol/protocolVersion": MODERN,
    "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {},
}
# A proxy where nobody listens, and a locale that knows no character beyond ASCII.
HOSTILE = dict.fromkeys(("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"), "http://127.0.0.1:9")
ENVIRONMENT = {"PATH": os.defpath, "LC_ALL": "C", "PYTHONDONTWRITEBYTECODE": "1", "PYTHONWARNINGS": "error", **HOSTILE}
if "PYTHONPATH" in os.environ:  # so that what is taken away from these tests is from the bridge, too
    ENVIRONMENT["PYTHONPATH"] = os.environ["PYTHONPATH"]


class Bridged:
    """A client at the near end of a bridge; responses are kept by their id until somebody takes them."""

    def __init__(self, child: subprocess.Popen[bytes]) -> None:
        self.child = child
        self.lines: list[bytes] = []  # every line of standard output, in order
        self.stderr = b""  # standard error
        self._responses: dict[Any, Any] = {}
        self._changed = threading.Condition()
        self.readers = [threading.Thread(target=self._read_responses), threading.Thread(target=self._read_errors)]
        for reader in self.readers:
            reader.start()

    def _read_responses(self) -> None:
        assert self.child.stdout is not None
        for line in self.child.stdout:
            message = json.loads(line.decode("utf-8"))
            with self._changed:
                self.lines.append(line)
                self._responses[message.get("id")] = message
                self._changed.notify_all()

    def _read_errors(self) -> None:
        assert self.child.stderr is not None
        for line in self.child.stderr:
            with self._changed:
                self.stderr += line
                self._changed.notify_all()

    def wait_for_log(self, words: bytes) -> None:
        with self._changed:
            assert self._changed.wait_for(lambda: words in self.stderr, LIMIT_S), self.stderr

    def write(self, line: bytes) -> None:
        assert self.child.stdin is not None
        self.child.stdin.write(line + b"\n")
        self.child.stdin.flush()

    def notify(self, method: str, **params: Any) -> None:
        self.write(json.dumps({"jsonrpc": "2.0", "method": method, "params": params}).encode())

    def send(self, number: Any, method: str, params: Mapping[str, Any] | None = None, *, modern: bool = False) -> None:
        message = {"jsonrpc": "2.0", "id": number, "method": method}
        if modern:
            message["params"] = {**(params or {}), "_meta": ENVELOPE}
        elif params is not None:
            message["params"] = params
        self.write(json.dumps(message, ensure_ascii=False).encode())

    def response(self, number: Any, seconds: float = LIMIT_S) -> Any:
        """Return the whole message that answers the request of that id."""
        with self._changed:
            assert self._changed.wait_for(lambda: number in self._responses, seconds), (number, self.stderr)
            return self._responses.pop(number)

    def request(
        self, number: Any, method: str, params: Mapping[str, Any] | None = None, *, modern: bool = False
    ) -> Any:
        self.send(number, method, params, modern=modern)
        return self.response(number)

    def call(self, number: Any, tool: str, *, modern: bool = False, **arguments: Any) -> Any:
        return self.request(number, "tools/call", {"name": tool, "arguments": arguments}, modern=modern)

    def initialize(self, version: str) -> Any:
        client = {"name": "old", "version": "1"}
        response = self.request(
            "i", "initialize", {"protocolVersion": version, "capabilities": {}, "clientInfo": client}
        )
        self.notify("notifications/initialized")
        return response

    def end(self) -> int:
        """Close standard input; return the exit code once everything has ended."""
        assert self.child.stdin is not None
        self.child.stdin.close()
        code = self.child.wait(LIMIT_S)
        for reader in self.readers:
            reader.join(LIMIT_S)
        return code


@contextmanager
def bridge(url: str, *flags: str, **variables: str) -> Iterator[Bridged]:
    """`mcpboard bridge URL FLAGS` in a hostile environment; it must end with its input, and without a traceback."""
    command = [sys.executable, "-m", "mcpboard", "bridge", url, *flags]
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(command, cwd=ROOT, env=ENVIRONMENT | variables, **pipes) as child:
        bridged = Bridged(child)
        try:
            yield bridged
            assert bridged.end() == 0
        finally:
            child.kill()
            for reader in bridged.readers:
                reader.join(LIMIT_S)
    assert b"Traceback" not in bridged.stderr


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as sock:
        port: int = sock.getsockname()[1]
        return port


class RestartableBoard:
    """`mcpboard serve` on a port that it keeps, to be killed and started again."""

    def __init__(self, folder: Path, simulator: Simulator) -> None:
        self.port = free_port()
        self._config = served.settings_file(folder, simulator, listen=f"127.0.0.1:{self.port}")
        self._child: subprocess.Popen[str] | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/mcp"

    def start(self) -> None:
        command = [sys.executable, "-m", "mcpboard", "serve", "--config", str(self._config)]
        self._child = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
        assert self._child.stdout is not None
        assert self._child.stdout.readline().startswith("mcpboard: serving")

    def kill(self) -> None:
        """As a power cut would: no drain, no end of a session."""
        if self._child is not None:
            with self._child as child:
                child.kill()
            self._child = None
