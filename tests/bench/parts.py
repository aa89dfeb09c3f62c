"""The programs of a kill test, each a process of its own that may be ended at any moment and started again.

    caller -> bridge (stdio), relay, host agent -> front -> board -> back -> Agent
              relay and host agent behind `door`

The names between the arrows are proxies of ours, whose ports stay while the programs behind them come and go.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import re
import signal
import subprocess
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from mcpboard.host.access import tokens
from mcpboard.host.devices.registry import DeviceSpec, add
from tests.bench import numbered, traffic
from tests.bench.cutter import Cutter
from tests.bench.numbered import Call
from tests.bench.programs import ENVIRON, PYTHON, START_S
from tests.support import ROOT, served
from tests.support.http import LEGACY, Connection
from tests.support.processes import first_line

LIMIT_S = 30.0  # for the answer to one call
EXIT_S = 15.0  # after SIGTERM; replies that are owed take four
DUMP = 6000  # characters of a log that are shown
WAIT_S = "10"  # that a bridge waits for its board

BEFORE_RUNNING = frozenset({-32700, -32600, -32601, -32602, -32020, -32021, -32022})  # JSON-RPC codes
REFUSALS = frozenset({400, 401, 403, 404, 405, 413, 415, 429})  # HTTP statuses that say the same
OK, DONE, NOT_SENT, UNKNOWN = "ok", "done", "not_sent", "unknown"
NOTHING, UNSAID = "nothing", "unsaid"  # no answer came; a failure came that does not say what became of the action


class Told(NamedTuple):
    """The outcome that a caller was told of one action."""

    how: str
    text: str = ""


def told_by(message: Any) -> Told:
    """From a JSON-RPC response."""
    match message:
        case {"error": {"data": {"delivery": how}, "message": text}}:
            return Told(how, text)
        case {"error": {"code": code, "message": text}}:
            return Told(NOT_SENT if code in BEFORE_RUNNING else UNSAID, text)
        case {"result": {"isError": True, "content": content, "structuredContent": {"delivery": how}}}:
            return Told(how, _words(content))
        case {"result": {"isError": True, "content": content}}:
            return Told(UNSAID, _words(content))
        case {"result": {"content": content}}:
            return Told(OK, _words(content))
    return Told(UNSAID, repr(message)[:200])


def _words(content: Any) -> str:
    return "\n".join(block.get("text", "") for block in content)


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

    def __init__(self, ahead: Cutter, shape: Callable[[int], Call], token: str | None = None) -> None:
        self._ahead, self._shape, self._token = ahead, shape, token

    def call(self, number: int) -> Told:
        name, arguments = self._shape(number)
        sent = traffic.post("tools/call", self._token, "Connection: close", name=name, arguments=arguments)
        try:
            with Connection(self._ahead.port) as connection:
                connection.sock.settimeout(LIMIT_S)
                connection.send(sent)
                response = connection.response()
        except TimeoutError:
            return Told(UNSAID, f"no answer within {LIMIT_S:g} s")
        except OSError as error:
            return Told(NOTHING, type(error).__name__)
        if b'"jsonrpc"' in response.body:
            return told_by(response.json)
        return Told(NOT_SENT if response.status in REFUSALS else UNKNOWN, f"{response} {response.body[:100]!r}")


class BridgeCaller:
    """A client on the pipes of a bridge, in the legacy revision, as those are that start programs."""

    def __init__(self, part: Part) -> None:
        self._part = part
        self._opened: object = None
        self._ids = itertools.count(1)

    def call(self, number: int) -> Told:
        if self._opened is not self._part.process:
            client = {"name": "bench", "version": "1"}
            if self._ask("initialize", protocolVersion=LEGACY, capabilities={}, clientInfo=client) is None:
                return Told(NOTHING, "initialize")
            self._opened = self._part.process
        name, arguments = numbered.for_board(number)
        message = self._ask("tools/call", name=name, arguments=arguments)
        return Told(NOTHING) if message is None else told_by(message)

    def _ask(self, method: str, **params: Any) -> object:
        """The response, None when the bridge went without."""
        process, number = self._part.process, next(self._ids)
        assert process is not None and process.stdin is not None and process.stdout is not None
        overdue = threading.Timer(LIMIT_S, process.kill)  # which ends the read below
        overdue.start()
        try:
            process.stdin.write(json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": params}) + "\n")
            process.stdin.flush()
            messages = map(json.loads, process.stdout)
            return next((message for message in messages if message.get("id") == number), None)
        except (OSError, ValueError):  # a line that broke off is no answer
            return None
        finally:
            overdue.cancel()


class Stand(contextlib.ExitStack):
    """All parts, running, and a caller for each way to the board; until the block ends."""

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self.proxies = [self.enter_context(contextlib.closing(Cutter())) for _ in range(4)]
        self.back, self.front, relay_door, host_door = self.proxies
        self.doors = {"relay": relay_door, "host": host_door}
        self.written, self.log, data = folder / "executed", folder / "log", folder / "host"
        back, url = f"http://127.0.0.1:{self.back.port}", f"http://127.0.0.1:{self.front.port}/mcp"
        settings = served.settings_for(folder, back, back, log_level="warning")
        data.mkdir(mode=0o700)
        for spec in (("board", "board", url), ("simulated-1", "simulated"), ("simulated-2", "simulated")):
            add(data, DeviceSpec(*spec))
        commands: dict[str, tuple[str, Cutter | None]] = {
            "Agent": (f"tests.bench.numbered {self.written}", self.back),
            "board": (f"mcpboard serve --config {settings}", self.front),
            "bridge": (f"mcpboard bridge --wait {WAIT_S} {url}", None),
            "relay": (f"mcpboard relay --listen 127.0.0.1:0 {url}", relay_door),
            "host": (f"mcpboard host run --port 0 --data {data}", host_door),
        }
        self.parts = {
            name: Part(name, (*PYTHON, *command.split()), ahead, self.log)
            for name, (command, ahead) in commands.items()
        }
        self.callers: dict[str, Caller | BridgeCaller] = {
            "board": Caller(self.front, numbered.for_board),
            "bridge": BridgeCaller(self.parts["bridge"]),
            "relay": Caller(relay_door, numbered.for_board),
            "host": Caller(host_door, numbered.for_host, tokens.main_token(data)),
        }
        self.callback(self.stop)

    def start(self) -> None:
        for part in self.parts.values():
            part.launch()
        for part in self.parts.values():
            part.ready()

    def stop(self) -> None:
        """End every part, so that nothing is executed any more."""
        for part in self.parts.values():
            part.end(signal.SIGKILL, part.process)
            if part.process is not None:
                part.gone()
