"""`mcpboard doctor --board`: who listens where, what the backends say, and if the board has room."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from mcpboard.board.doctor import rules
from mcpboard.board.doctor.probes import AGENT_PORT, BoardProbes
from mcpboard.config.board import Settings
from mcpboard.doctor import Check, Finding, run

CHECKS: tuple[Check[BoardProbes], ...] = (
    Check("settings", "Settings", (), lambda board: board.loaded, rules.settings),
    Check("stock_agent", "A stock Agent", ("settings",), lambda board: board.stock_agent, rules.stock_agent),
    # Until mcpboard stands beside a stock Agent, the port in question is the Agent's by right.
    Check("ports", "Who listens where", ("stock_agent",), lambda board: board.ports, rules.ports),
    Check("agent", "The Agent", ("settings",), lambda board: board.agent, rules.backend),
    Check("catalogue", "Tool list", ("agent",), lambda board: board.agent, rules.tool_list),
    Check("config_web", "Config Web", ("settings",), lambda board: board.config_web, rules.backend),
    Check("memory", "Memory", (), lambda board: board.memory, rules.memory),
    Check("log", "Log", ("settings",), lambda board: board.log, rules.log),
)


def examine(load: Callable[[], Settings], agent_port: int = AGENT_PORT) -> Iterator[Finding]:
    """Yield the findings on this board, each as soon as it is there; `load` reads the settings or raises ConfigError.

    Asks nothing but loopback, and nothing that moves the phone. `agent_port` is where a stock
    board's Agent would be.
    """
    return run(CHECKS, BoardProbes(load, agent_port))
