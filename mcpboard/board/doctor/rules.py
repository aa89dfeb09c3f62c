"""What was found on the board means this: each judge turns facts into a Verdict, and looks at nothing else."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from mcpboard.board import catalog as live
from mcpboard.board.arrival import BackendResponse
from mcpboard.board.doctor.listeners import Listener
from mcpboard.board.tools import ROWS
from mcpboard.config.board import SETTINGS, Settings
from mcpboard.doctor import CheckResult, failed, ok
from mcpboard.errors import BackendBroken
from mcpboard.text import json_object

MIB = 1 << 20  # bytes
LEAST_MEMORY = 12 * MIB  # available; below, a board of 128 MB begins to end programs
MOST_RESIDENT = 64 * MIB  # of the server; hostile load takes it to 40, see the benchmarks
LEAST_DISK = MIB  # bytes free where the log is

UPDATE = "update the board's software"


# --- facts -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class SettingsFacts:
    """The settings, or why they cannot be read."""

    settings: Settings | None = None
    error: str = ""


@dataclass(frozen=True)
class StockAgentFacts:
    """Whether an Agent owns `port`, and then the two lines that make room for both."""

    port: int
    settings: Settings
    advice: str | None


@dataclass(frozen=True)
class PortHolder:
    """Who has a port; `version` is mcpboard's, None when it is not mcpboard that answers."""

    port: int
    listener: Listener | None
    version: str | None


@dataclass(frozen=True)
class PortFacts:
    """The ports of mcpboard, and the command that starts the server on this board."""

    holders: tuple[PortHolder, ...]
    starter: str


@dataclass(frozen=True)
class BackendFacts:
    """What a backend answered to a GET, or the error instead."""

    title: str
    path: str
    status: int = 0
    body: bytes = field(default=b"", repr=False)
    error: str = ""

    @property
    def object(self) -> Mapping[str, Any]:
        return json_object(self.body) or {}


@dataclass(frozen=True)
class MemoryFacts:
    """Bytes available to a new program, and those that the server holds; None where nobody says.

    `runs` is False when no server is at its ports.
    """

    available: int | None
    resident: int | None
    runs: bool = True


@dataclass(frozen=True)
class LogFacts:
    """Where the log goes; bytes free there, seconds since the last line, and error lines near its end."""

    place: str
    missing: bool = False
    error: str = ""
    free: int = 0
    age: float = 0.0
    errors: int = 0


# --- judges ----------------------------------------------------------------------------------


def settings(found: SettingsFacts) -> CheckResult:
    """Whether the settings can be read, and from which files they come."""
    if found.settings is None:
        return failed(found.error, "mcpboard config (after correcting that line)")
    if found.settings.warnings:
        return failed("; ".join(found.settings.warnings), "mcpboard config (shows what is in force, and from where)")
    if not found.settings.mcp_enabled:
        source = found.settings.sources["mcp_enabled"]
        return failed(f"MCP is switched off in {source}", "set mcp_enabled = true there, or use Config Web > Advanced")
    changed = [row.key for row in SETTINGS if found.settings.sources[row.key] != "default"]
    files = sorted({found.settings.sources[key] for key in changed})
    return ok(f"{', '.join(changed)} from {', '.join(files)}; the rest by default" if changed else "all by default")


def stock_agent(found: StockAgentFacts) -> CheckResult:
    """Whether the Agent of a stock board owns its usual port, and mcpboard stands beside it then."""
    if found.advice is None:
        return ok(f"none on port {found.port}")
    reached = urlsplit(found.settings.agent_base_url).port == found.port
    if reached and all(address.port != found.port for address in found.settings.listen):
        return ok(f"on port {found.port}, and mcpboard stands beside it")
    return failed(
        f"the Agent has port {found.port}, so mcpboard has to stand beside it",
        f"write below [mcpboard]: {' and '.join(found.advice.splitlines())}",
    )


def ports(found: PortFacts) -> CheckResult:
    """Whether mcpboard has its ports, or else who has them."""
    for holder in found.holders:
        if holder.listener is None:
            return failed(f"nobody listens on port {holder.port}", found.starter)
        if holder.version is None:
            return failed(
                f"port {holder.port} belongs to {holder.listener.owner}, which is not mcpboard",
                f"end that program, or give mcpboard another port (listen), then: {found.starter}",
            )
    return ok(", ".join(map(_held, found.holders)) if found.holders else "any free port, as listen says")


def _held(holder: PortHolder) -> str:
    listener = holder.listener
    address = f"{listener.address} port {holder.port}" if listener else f"port {holder.port}"
    return f"mcpboard {holder.version} on {address}"


def backend(found: BackendFacts) -> CheckResult:
    """Whether a backend answers in good order."""
    if found.error:
        return failed(found.error, f"start {found.title}, or correct its address in the settings")
    if found.status != 200 or not found.object:
        return failed(f"{found.title} answers GET {found.path} with HTTP {found.status}, and not as expected", UPDATE)
    return ok(f"answers GET {found.path}")


def catalogue(found: BackendFacts) -> CheckResult:
    """Whether the Agent has every tool that we offer, with schemas that clients take."""
    try:
        schemas = live.schemas(BackendResponse(found.status, "", found.body))
    except (BackendBroken, ValueError, RecursionError):
        return failed("the Agent's catalogue cannot be read", UPDATE)
    wanted = [row.tool.name for row in ROWS if row.path.startswith("/api/tools/")]
    missing = [name for name in wanted if name not in schemas]
    if missing:
        return failed(f"this board's Agent does not have: {', '.join(missing)}", UPDATE)
    own = [name for name in wanted if not _is_usable(schemas[name])]
    return ok(f"all {len(wanted)} tools" + (f"; built-in schemas for {', '.join(own)}" if own else ""))


def _is_usable(schema: object) -> bool:
    return isinstance(schema, dict) and live.is_usable(schema)


def memory(found: MemoryFacts) -> CheckResult:
    """Whether the board has room, and the server keeps to its own."""
    server = f"the server holds {_mib(found.resident)}" if found.runs else "no server runs here"
    words = f"{_mib(found.available)} available, {server}"
    if found.available is not None and found.available < LEAST_MEMORY:
        return failed(f"memory runs out: {words}", "top -b -n 1 -o %MEM | head -15 (shows who has it)")
    if found.resident is not None and found.resident > MOST_RESIDENT:
        return failed(f"the server has grown: {words}", "restart mcpboard, and report this with its log")
    return ok(words)


def _mib(size: int | None) -> str:
    return "unknown" if size is None else f"{size / MIB:.0f} MiB"


def log(found: LogFacts) -> CheckResult:
    """Whether the log has somewhere to go, and what its last lines hold."""
    if found.place == "stderr":
        return ok("on standard error, where the init system puts it")
    if found.place == "syslog":
        missing = failed("no syslog daemon runs", "start syslogd, or set log to a file")
        return missing if found.missing else ok("in the system's log")
    if found.missing:
        return failed(f"{found.place} is not there", f"mkdir -p {os.path.dirname(found.place)} (then restart mcpboard)")
    if found.error:
        return failed(f"{found.place}: {found.error}", f"sudo mcpboard doctor --board (or look at {found.place})")
    if found.free < LEAST_DISK:
        return failed(f"{found.place}: its disk is full", f"df -h {os.path.dirname(found.place)}")
    return ok(f"{found.place}, last line {found.age:.0f} s ago, {found.errors} errors near its end")
