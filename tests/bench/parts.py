"""The programs of a kill test, each a process of its own that may be ended at any moment and started again.

    caller -> bridge (stdio), relay, host agent -> front -> board -> back -> Agent
              relay and host agent behind `door`

The names between the arrows are proxies of ours, whose ports stay while the programs behind them come and go.
"""

from __future__ import annotations

import contextlib
import http.client
import itertools
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from mcpboard.host.access import tokens
from mcpboard.host.devices import registry
from tests.bench import cutter, numbered
from tests.bench.cutter import Cutter
from tests.bench.programs import ENVIRON, START_S
from tests.bench.traffic import META
from tests.support import ROOT
from tests.support.http import MODERN as VERSION
from tests.support.processes import first_line

LIMIT_S = 30.0  # for the answer to one call
EXIT_S = 15.0  # after SIGTERM; replies that are owed take four
DUMP = 6000  # characters of a log that are shown
WAIT_S = "10"  # that a bridge waits for its board
PROGRAM = (sys.executable, "-m")

BEFORE_RUNNING = frozenset({-32700, -32600, -32601, -32602, -32020, -32021, -32022})  # JSON-RPC codes
REFUSALS = frozenset({400, 401, 403, 404, 405, 413, 415, 429})  # HTTP statuses that say the same
OK, DONE, NOT_SENT, UNKNOWN = "ok", "done", "not_sent", "unknown"
NOTHING, UNSAID = "nothing", "unsaid"  # no answer came; a failure came that does not say what became of the action


class Told(NamedTuple):
    """The outcome that a caller was told of one action."""

    how: str
    text: str = ""


def told_by(message: object) -> Told:
    """From a JSON-RPC response."""
    if not isinstance(message, dict):
        return Told(UNSAID, repr(message)[:200])
    error = message.get("error")
    if isinstance(error, dict):
        data = error.get("data")
        default = NOT_SENT if error.get("code") in BEFORE_RUNNING else UNSAID
        return Told(data.get("delivery", default) if isinstance(data, dict) else default, str(error.get("message")))
    result = message.get("result") or {}
    text = "\n".join(block.get("text", "") for block in result.get("content", ()))
    if not result.get("isError"):
        return Told(OK, text)
    return Told((result.get("structuredContent") or {}).get("delivery", UNSAID), text)


class Part:
    """One program; `ahead` are the proxies that lead to it."""

    def __init__(self, name: str, command: Sequence[str], ahead: Cutter | None, log: Path) -> None:
        self.name = name
        self._command, self._ahead, self._log = command, ahead, log
        self.process: subprocess.Popen[str] | None = None
        self._ending = threading.Lock()
        self.ended = threading.Event()  # by `end`
        self.overdue = ""  # what it wrote when it had not exited in time

    def launch(self) -> None:
        """Begin to start."""
        piped = self._ahead is None  # a bridge: no port, two pipes
        with self._ending, self._log.open("ab") as log:
            self.ended.clear()
            self.process = subprocess.Popen(
                self._command, cwd=ROOT, env={"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT), **ENVIRON, "PYTHONFAULTHANDLER": "1"},
                stdin=subprocess.PIPE if piped else subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=log, text=True,
            )  # fmt: skip

    def ready(self) -> None:
        """Return once it serves, and have its proxy lead to it."""
        if self._ahead is not None and self.process is not None:
            line = first_line(self.process, START_S)
            found = re.search(r"http://127\.0\.0\.1:(\d+)", line)  # the first one: a relay names its board, too
            assert found, f"{self.name} did not start: {line!r}"
            self._ahead.aim(int(found[1]))

    def end(self, number: int, process: subprocess.Popen[str] | None) -> None:
        """Send the signal to `process`, unless that has had one; from any thread, however late."""
        with self._ending:
            if process is not None and process is self.process and not self.ended.is_set():
                with contextlib.suppress(ProcessLookupError):
                    os.kill(process.pid, number)
                self.ended.set()

    def gone(self) -> None:
        """Return once it has exited; its port refuses from then on."""
        assert self.process is not None
        try:
            self.process.wait(EXIT_S)
        except subprocess.TimeoutExpired:
            self.process.send_signal(signal.SIGABRT)  # upon which it writes where its threads are
            self.process.wait()
            self.overdue = self._log.read_text("utf-8", "replace")[-DUMP:]
        finally:
            for pipe in (self.process.stdin, self.process.stdout):
                if pipe is not None:
                    with contextlib.suppress(OSError):
                        pipe.close()
            if self._ahead is not None:
                self._ahead.aim(None)

    def again(self) -> None:
        self.gone()
        self.launch()
        self.ready()


class Caller:
    """A client of a server over HTTP, in the modern revision: one connection a call, nothing of ours in it."""

    def __init__(self, ahead: Cutter, call: Any, token: str | None = None) -> None:
        self._ahead, self._shape, self._token = ahead, call, token

    def call(self, number: int) -> Told:
        name, arguments = self._shape(number)
        params = {"name": name, "arguments": arguments, "_meta": META}
        body = json.dumps({"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params})
        headers = {
            "Content-Type": "application/json", "Accept": "application/json, text/event-stream",
            "MCP-Protocol-Version": VERSION, "Mcp-Method": "tools/call", "Mcp-Name": name, "Connection": "close",
        }  # fmt: skip
        if self._token is not None:
            headers["Authorization"] = f"Bearer {self._token}"
        connection = http.client.HTTPConnection("127.0.0.1", self._ahead.port, timeout=LIMIT_S)
        try:
            connection.request("POST", "/mcp", body, headers)
            with connection.getresponse() as response:
                status, content = response.status, response.read()
        except TimeoutError:
            return Told(UNSAID, f"no answer within {LIMIT_S:g} s")
        except (OSError, http.client.HTTPException) as error:
            return Told(NOTHING, type(error).__name__)
        finally:
            connection.close()
        if status < 200:  # nothing came after it
            return Told(NOTHING, f"HTTP {status}")
        if b'"jsonrpc"' in content:
            return told_by(json.loads(content))
        return Told(NOT_SENT if status in REFUSALS else UNKNOWN, f"HTTP {status} {content[:100]!r}")


class BridgeCaller:
    """A client on the pipes of a bridge, in the legacy revision, as those are that start programs."""

    def __init__(self, part: Part) -> None:
        self._part = part
        self._opened: object = None
        self._ids = itertools.count(1)

    def call(self, number: int) -> Told:
        if self._opened is not self._part.process:
            client = {"name": "bench", "version": "1"}
            opening = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client}
            if self._ask("initialize", opening) is None:
                return Told(NOTHING, "initialize")
            self._opened = self._part.process
        name, arguments = numbered.for_board(number)
        message = self._ask("tools/call", {"name": name, "arguments": arguments})
        return Told(NOTHING) if message is None else told_by(message)

    def _ask(self, method: str, params: dict[str, Any]) -> object:
        """The response, None when the bridge went without."""
        process, number = self._part.process, next(self._ids)
        assert process is not None and process.stdin is not None and process.stdout is not None
        overdue = threading.Timer(LIMIT_S, process.kill)  # which ends the read below
        overdue.start()
        try:
            process.stdin.write(json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": params}) + "\n")
            process.stdin.flush()
            for line in process.stdout:
                message = json.loads(line)
                if message.get("id") == number:
                    return message
        except (OSError, ValueError):  # a line that broke off is no answer
            pass
        finally:
            overdue.cancel()
        return None


class Stand:
    """All parts, running, and a caller for each way to the board."""

    def __init__(self, folder: Path, proxies: Sequence[Cutter]) -> None:
        self.folder = folder
        self.proxies = proxies
        self.back, self.front, relay_door, host_door = proxies
        self.doors = {"relay": relay_door, "host": host_door}
        self.written = folder / "executed"
        log = folder / "log"
        url = f"http://127.0.0.1:{self.front.port}/mcp"
        settings, data = folder / "mcpboard.toml", folder / "host"
        back = f"http://127.0.0.1:{self.back.port}"
        settings.write_text(
            f'[mcpboard]\nlisten = "127.0.0.1:0"\nlog_level = "warning"\nagent_base_url = "{back}"\n'
            f'[conversation_settings.agent]\nmcp_config_web_base_url = "{back}"\n', "utf-8",
        )  # fmt: skip
        data.mkdir(mode=0o700)
        for spec in (
            registry.DeviceSpec("board", "board", url),
            registry.DeviceSpec("simulated-1", "simulated"),
            registry.DeviceSpec("simulated-2", "simulated"),
        ):
            registry.add(data, spec)
        module = (*PROGRAM, "mcpboard")
        commands: dict[str, tuple[Sequence[str], Cutter | None]] = {
            "Agent": ((*PROGRAM, "tests.bench.numbered", str(self.written)), self.back),
            "board": ((*module, "serve", "--config", str(settings)), self.front),
            "bridge": ((*module, "bridge", "--wait", WAIT_S, url), None),
            "relay": ((*module, "relay", "--listen", "127.0.0.1:0", url), relay_door),
            "host": ((*module, "host", "run", "--port", "0", "--data", str(data)), host_door),
        }
        self.parts = {name: Part(name, command, ahead, log) for name, (command, ahead) in commands.items()}
        self.callers: dict[str, Caller | BridgeCaller] = {
            "board": Caller(self.front, numbered.for_board),
            "bridge": BridgeCaller(self.parts["bridge"]),
            "relay": Caller(relay_door, numbered.for_board),
            "host": Caller(host_door, numbered.for_host, tokens.main_token(data)),
        }

    def start(self) -> None:
        for part in self.parts.values():
            part.launch()
        for part in self.parts.values():
            part.ready()

    def close(self) -> None:
        for part in self.parts.values():
            part.end(signal.SIGKILL, part.process)
            if part.process is not None:
                part.gone()

    def tracebacks(self) -> int:
        """In what the parts logged."""
        return len(re.findall(rb"Traceback", (self.folder / "log").read_bytes()))


@contextmanager
def standing() -> Iterator[Stand]:
    with tempfile.TemporaryDirectory() as folder, cutter.cutters(4) as proxies:
        stand = Stand(Path(folder), proxies)
        try:
            stand.start()
            yield stand
        finally:
            stand.close()
