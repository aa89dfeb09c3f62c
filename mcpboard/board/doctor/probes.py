"""`mcpboard doctor --board`: who listens where, what the backends say, and whether the board has room.

The probes; what they mean is judged in `board.diagnosis`.
"""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property

from mcpboard.board import stock_agent
from mcpboard.board.arrival import BackendResponse
from mcpboard.board.backend import Backend
from mcpboard.board.doctor import rules
from mcpboard.board.doctor.listeners import Listener, available, listeners, resident
from mcpboard.board.doctor.rules import (
    BackendFacts,
    LogFacts,
    MemoryFacts,
    PortFacts,
    PortHolder,
    SettingsFacts,
    StockAgentFacts,
)
from mcpboard.board.tools import AGENT, CONFIG_WEB
from mcpboard.config.board import Settings
from mcpboard.doctor import Check, Finding, run
from mcpboard.errors import ConfigError, ToolError
from mcpboard.net import host_port, reachable_here

AGENT_PORT = 8080  # where a stock board's Agent is
LOOK_S = 10.0  # seconds for a backend: Config Web asks its control script first
OURS_S = 1.0  # seconds; our own health page never waits
SYSLOG_SOCKET = "/dev/log"
TAIL = 64 << 10  # bytes at the end of a log that are looked through

# File that an installation brings -> the command that starts the server there.
STARTERS = {
    "/etc/init.d/S90mcpboard": "/etc/init.d/S90mcpboard start",
    "/etc/init.d/mcpboard": "/etc/init.d/mcpboard start",
    "/lib/systemd/system/mcpboard.service": "systemctl enable --now mcpboard",
}


@dataclass
class BoardProbes:
    """This board: every question is asked when a check needs it, and once."""

    load: Callable[[], Settings]
    agent_port: int = AGENT_PORT

    @cached_property
    def read(self) -> SettingsFacts:
        try:
            settings = self.load()
        except ConfigError as error:
            return SettingsFacts(error=str(error))
        return SettingsFacts(settings)

    @cached_property
    def settings(self) -> Settings:
        """The settings in force; to be asked for only when they could be read."""
        assert self.read.settings is not None
        return self.read.settings

    @cached_property
    def listeners(self) -> list[Listener]:
        return listeners()

    @cached_property
    def beside(self) -> StockAgentFacts:
        return StockAgentFacts(self.agent_port, self.settings, stock_agent.advice(self.agent_port))

    @cached_property
    def ports(self) -> PortFacts:
        written = {address.port for address in self.settings.listen if address.port}
        # A server that runs may have been given other addresses by its flags than the file says.
        ours = {each.port for each in self.listeners if each.serves_mcp}
        holders = tuple(PortHolder(port, *self._held(port)) for port in sorted(written & ours or ours or written))
        starter = next((command for file, command in STARTERS.items() if os.path.exists(file)), "mcpboard serve")
        return PortFacts(holders, starter)

    def _held(self, port: int) -> tuple[Listener | None, str | None]:
        """Who listens on `port`, and the version that mcpboard's health page there tells."""
        listener = next((each for each in self.listeners if each.port == port), None)
        if listener is None:
            return None, None
        found = _asked(
            Backend(AGENT, f"http://{host_port(reachable_here(listener.address), port)}"), "/health", OURS_S
        ).object
        return listener, str(found.get("version")) if found.get("name") == "mcpboard" else None

    @cached_property
    def agent(self) -> BackendFacts:
        return _asked(Backend(AGENT, self.settings.agent_base_url), "/api/tools", LOOK_S)

    @cached_property
    def config_web(self) -> BackendFacts:
        return _asked(Backend(CONFIG_WEB, self.settings.mcp_config_web_base_url), "/api/device/status", LOOK_S)

    @cached_property
    def memory(self) -> MemoryFacts:
        if self.read.settings is None:  # nor are the ports known
            return MemoryFacts(available(), None)
        server = next((each.listener for each in self.ports.holders if each.listener and each.version), None)
        held = None if server is None or server.pid is None else resident(server.pid)
        return MemoryFacts(available(), held, runs=server is not None)

    @cached_property
    def log(self) -> LogFacts:
        return look_at_log(self.settings.log)


def _asked(backend: Backend, path: str, seconds: float) -> BackendFacts:
    try:
        answer: BackendResponse = backend.call("GET", path, None, seconds)
    except ToolError as error:
        return BackendFacts(backend.title, path, error=error.text)
    return BackendFacts(backend.title, path, answer.status, answer.body)


def look_at_log(place: str) -> LogFacts:
    """What there is to see of a log; `place` is stderr, syslog or a path."""
    if place == "stderr":
        return LogFacts(place)
    if place == "syslog":
        return LogFacts(place, missing=not os.path.exists(SYSLOG_SOCKET))
    try:
        free = shutil.disk_usage(os.path.dirname(place)).free
        with open(place, "rb") as file:
            seen = os.fstat(file.fileno())
            file.seek(max(0, seen.st_size - TAIL))
            lines = file.read(TAIL).splitlines()
    except OSError as error:
        return LogFacts(place, missing=isinstance(error, FileNotFoundError), error=error.strerror or "")
    errors = sum(b" ERROR " in line for line in lines)
    return LogFacts(place, free=free, age=time.time() - seen.st_mtime, errors=errors)


CHECKS: tuple[Check[BoardProbes], ...] = (
    Check("settings", "Settings", (), lambda board: board.read, rules.settings),
    Check("stock_agent", "A stock Agent", ("settings",), lambda board: board.beside, rules.stock_agent),
    # Until mcpboard stands beside a stock Agent, the port in question is the Agent's by right.
    Check("ports", "Who listens where", ("stock_agent",), lambda board: board.ports, rules.ports),
    Check("agent", "The Agent", ("settings",), lambda board: board.agent, rules.backend),
    Check("catalogue", "Catalogue", ("agent",), lambda board: board.agent, rules.catalogue),
    Check("config_web", "Config Web", ("settings",), lambda board: board.config_web, rules.backend),
    Check("memory", "Memory", (), lambda board: board.memory, rules.memory),
    Check("log", "Log", ("settings",), lambda board: board.log, rules.log),
)


def examine(load: Callable[[], Settings], agent_port: int = AGENT_PORT) -> Iterator[Finding]:
    """The findings on this board, each as soon as it is there; `load` reads the settings or raises ConfigError.

    Asks nothing but loopback, and nothing that moves the phone. `agent_port` is where a stock
    board's Agent would be.
    """
    return run(CHECKS, BoardProbes(load, agent_port))
