"""Look at this board: its settings, ports, backends, memory and log. `rules` says what the facts mean."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

from mcpboard.board import stock_agent
from mcpboard.board.backend import Backend
from mcpboard.board.doctor import listeners
from mcpboard.board.doctor.listeners import Listener
from mcpboard.board.tools import AGENT, CONFIG_WEB
from mcpboard.config.board import Settings
from mcpboard.errors import ConfigError, ToolError
from mcpboard.net import host_port, reachable_here
from mcpboard.text import json_object

AGENT_PORT = 8080  # where a stock board's Agent is
BACKEND_S = 10.0  # seconds for a backend: Config Web asks its control script first
HEALTH_S = 1.0  # seconds; our own health page never waits
SYSLOG_SOCKET = "/dev/log"
TAIL = 64 << 10  # bytes at the end of a log that are looked through

# File that an installation brings -> the command that starts the server there.
STARTERS = {
    "/etc/init.d/S90mcpboard": "/etc/init.d/S90mcpboard start",
    "/etc/init.d/mcpboard": "/etc/init.d/mcpboard start",
    "/lib/systemd/system/mcpboard.service": "systemctl enable --now mcpboard",
}


class StockAgentFacts(NamedTuple):
    """The two lines that make room for both when an Agent owns `port`; `advice` is None when none does."""

    port: int
    settings: Settings
    advice: str | None


class PortHolder(NamedTuple):
    """The program that has a port; `version` is mcpboard's, None when it is not mcpboard that answers."""

    port: int
    listener: Listener | None
    version: str | None


class PortFacts(NamedTuple):
    """The ports of mcpboard, and the command that starts the server on this board."""

    holders: tuple[PortHolder, ...]
    starter: str


class BackendFacts(NamedTuple):
    """A backend's answer to a GET, or the error instead."""

    title: str
    path: str
    status: int = 0
    body: bytes = b""
    error: str = ""

    @property
    def object(self) -> Mapping[str, Any]:
        return json_object(self.body) or {}


class MemoryFacts(NamedTuple):
    """Bytes available to a new program, and those that the server holds; None where the kernel does not say.

    `runs` is False when no server is at its ports.
    """

    available: int | None
    resident: int | None
    runs: bool = True


class LogFacts(NamedTuple):
    """Where the log goes; bytes free there, seconds since the last line, and error lines near its end."""

    target: str
    missing: bool = False
    error: str = ""
    free: int = 0
    age: float = 0.0
    errors: int = 0


@dataclass
class BoardProbes:
    """This board: each probe looks when a check needs it, and once."""

    load: Callable[[], Settings]
    agent_port: int = AGENT_PORT

    @cached_property
    def loaded(self) -> Settings | ConfigError:
        try:
            return self.load()
        except ConfigError as error:
            return error

    @cached_property
    def settings(self) -> Settings:
        """The effective settings; to be used only when they could be read."""
        assert isinstance(self.loaded, Settings)
        return self.loaded

    @cached_property
    def stock_agent(self) -> StockAgentFacts:
        return StockAgentFacts(self.agent_port, self.settings, stock_agent.advice(self.agent_port))

    @cached_property
    def ports(self) -> PortFacts:
        listening = listeners.listeners()
        configured = {address.port for address in self.settings.listen if address.port}
        # A server that runs may have been given other addresses by its flags than the file says.
        serving = {each.port for each in listening if each.serves_mcp}
        holders = []
        for port in sorted(configured & serving or serving or configured):
            listener, version = next((each for each in listening if each.port == port), None), None
            if listener is not None:
                base_url = f"http://{host_port(reachable_here(listener.address), port)}"
                health = _get(Backend(AGENT, base_url), "/health", HEALTH_S).object
                version = str(health.get("version")) if health.get("name") == "mcpboard" else None
            holders.append(PortHolder(port, listener, version))
        starter = next((command for file, command in STARTERS.items() if os.path.exists(file)), "mcpboard serve")
        return PortFacts(tuple(holders), starter)

    @cached_property
    def agent(self) -> BackendFacts:
        return _get(Backend(AGENT, self.settings.agent_base_url), "/api/tools", BACKEND_S)

    @cached_property
    def config_web(self) -> BackendFacts:
        return _get(Backend(CONFIG_WEB, self.settings.mcp_config_web_base_url), "/api/device/status", BACKEND_S)

    @cached_property
    def memory(self) -> MemoryFacts:
        available = listeners.available()
        if isinstance(self.loaded, ConfigError):  # nor are the ports known
            return MemoryFacts(available, None)
        server = next((each.listener for each in self.ports.holders if each.listener and each.version), None)
        resident = None if server is None or server.pid is None else listeners.resident(server.pid)
        return MemoryFacts(available, resident, runs=server is not None)

    @cached_property
    def log(self) -> LogFacts:
        return log_facts(self.settings.log)


def _get(backend: Backend, path: str, seconds: float) -> BackendFacts:
    try:
        response = backend.call("GET", path, None, seconds)
    except ToolError as error:
        return BackendFacts(backend.title, path, error=error.text)
    return BackendFacts(backend.title, path, response.status, response.body)


def log_facts(target: str) -> LogFacts:
    """Return what there is to see of a log; `target` is stderr, syslog or a path."""
    if target == "stderr":
        return LogFacts(target)
    if target == "syslog":
        return LogFacts(target, missing=not os.path.exists(SYSLOG_SOCKET))
    try:
        free = shutil.disk_usage(os.path.dirname(target)).free
        with open(target, "rb") as file:
            status = os.fstat(file.fileno())
            file.seek(max(0, status.st_size - TAIL))
            lines = file.read(TAIL).splitlines()
    except OSError as error:
        return LogFacts(target, missing=isinstance(error, FileNotFoundError), error=error.strerror or "")
    errors = sum(b" ERROR " in line for line in lines)
    return LogFacts(target, free=free, age=time.time() - status.st_mtime, errors=errors)
