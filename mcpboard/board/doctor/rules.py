"""Evaluate the facts about a board: each rule turns those of one probe into a result, and looks at nothing else."""

from __future__ import annotations

import os
from urllib.parse import urlsplit

from mcpboard.board.backend import BackendResponse
from mcpboard.board.doctor.probes import BackendFacts, LogFacts, MemoryFacts, PortFacts, StockAgentFacts
from mcpboard.board.live_schemas import live_schemas, outside
from mcpboard.board.tools import ROWS
from mcpboard.config.board import SETTINGS, Settings
from mcpboard.doctor import CheckResult, failed, ok
from mcpboard.errors import BackendBroken, ConfigError

MIB = 1 << 20  # bytes
LEAST_MEMORY = 12 * MIB  # available; below, a board of 128 MB begins to end programs
MOST_RESIDENT = 64 * MIB  # of the server; hostile load takes it to 40, see the benchmarks
LEAST_DISK = MIB  # bytes free where the log is

UPDATE = "update the board's software"


def settings(loaded: Settings | ConfigError) -> CheckResult:
    """Fail when the settings cannot be read or MCP is disabled; say from which files they come."""
    if isinstance(loaded, ConfigError):
        return failed(str(loaded), "mcpboard config (after correcting that line)")
    if loaded.warnings:
        return failed("; ".join(loaded.warnings), "mcpboard config (shows what is effective, and from where)")
    sources = loaded.sources
    if not loaded.mcp_enabled:
        return failed(
            f"MCP is disabled in {sources['mcp_enabled']}", "set mcp_enabled = true there, or use Config Web > Advanced"
        )
    changed = [row.key for row in SETTINGS if sources[row.key] != "default"]
    files = sorted({sources[key] for key in changed})
    return ok(f"{', '.join(changed)} from {', '.join(files)}; the rest by default" if changed else "all by default")


def stock_agent(facts: StockAgentFacts) -> CheckResult:
    """Fail when the Agent of a stock board owns its usual port and mcpboard does not stand beside it."""
    if facts.advice is None:
        return ok(f"none on port {facts.port}")
    asked = urlsplit(facts.settings.agent_base_url).port == facts.port
    if asked and all(address.port != facts.port for address in facts.settings.listen):
        return ok(f"on port {facts.port}, and mcpboard stands beside it")
    return failed(
        f"the Agent has port {facts.port}, so mcpboard has to stand beside it",
        f"write below [mcpboard]: {' and '.join(facts.advice.splitlines())}",
    )


def ports(facts: PortFacts) -> CheckResult:
    """Fail when mcpboard does not have its ports; say who has them."""
    served = []
    for holder in facts.holders:
        if holder.listener is None:
            return failed(f"nobody listens on port {holder.port}", facts.starter)
        if holder.version is None:
            return failed(
                f"port {holder.port} belongs to {holder.listener.owner}, which is not mcpboard",
                f"end that program, or give mcpboard another port (listen), then: {facts.starter}",
            )
        served.append(f"mcpboard {holder.version} on {holder.listener.address} port {holder.port}")
    return ok(", ".join(served) or "any free port, as listen says")


def backend(facts: BackendFacts) -> CheckResult:
    """Fail when a backend does not answer as expected."""
    if facts.error:
        return failed(facts.error, f"start {facts.title}, or correct its address in the settings")
    if facts.status != 200 or not facts.object:
        return failed(f"{facts.title} answers GET {facts.path} with HTTP {facts.status}, and not as expected", UPDATE)
    return ok(f"answers GET {facts.path}")


def tool_list(facts: BackendFacts) -> CheckResult:
    """Fail when the Agent lacks a tool that we offer; name those whose schemas clients would not take."""
    try:
        schemas = live_schemas(BackendResponse(facts.status, "", facts.body))
    except (BackendBroken, ValueError):
        return failed("the Agent's tool list cannot be read", UPDATE)
    needed = [row.tool.name for row in ROWS if row.path.startswith("/api/tools/")]
    missing = [name for name in needed if name not in schemas]
    if missing:
        return failed(f"this board's Agent does not have: {', '.join(missing)}", UPDATE)
    builtin = [name for name in needed if outside(schemas[name])]
    return ok(f"all {len(needed)} tools" + (f"; built-in schemas for {', '.join(builtin)}" if builtin else ""))


def memory(facts: MemoryFacts) -> CheckResult:
    """Fail when the board runs out of memory, or the server holds more than its share."""
    server = f"the server holds {_mib(facts.resident)}" if facts.runs else "no server runs here"
    message = f"{_mib(facts.available)} available, {server}"
    if facts.available is not None and facts.available < LEAST_MEMORY:
        return failed(f"memory runs out: {message}", "top -b -n 1 -o %MEM | head -15 (shows who has it)")
    if facts.resident is not None and facts.resident > MOST_RESIDENT:
        return failed(f"the server has grown: {message}", "restart mcpboard, and report this with its log")
    return ok(message)


def _mib(size: int | None) -> str:
    return "unknown" if size is None else f"{size / MIB:.0f} MiB"


def log(facts: LogFacts) -> CheckResult:
    """Fail when the log has nowhere to go; say what its last lines hold."""
    target = facts.target
    if target == "stderr":
        return ok("on standard error, where the init system puts it")
    if target == "syslog":
        missing = failed("no syslog daemon runs", "start syslogd, or set log to a file")
        return missing if facts.missing else ok("in the system's log")
    if facts.missing:
        return failed(f"{target} is not there", f"mkdir -p {os.path.dirname(target)} (then restart mcpboard)")
    if facts.error:
        return failed(f"{target}: {facts.error}", f"sudo mcpboard doctor --board (or look at {target})")
    if facts.free < LEAST_DISK:
        return failed(f"{target}: its disk is full", f"df -h {os.path.dirname(target)}")
    return ok(f"{target}, last line {facts.age:.0f} s ago, {facts.errors} errors near its end")
