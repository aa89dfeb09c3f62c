"""`mcpboard doctor --board`: who listens where, the backends, and room on the board; by table, then for real."""

from __future__ import annotations

import json
import os
import re
import socket
import struct
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest

from mcpboard import __version__
from mcpboard.board import doctor
from mcpboard.board.doctor import listeners, probes, rules
from mcpboard.board.doctor.listeners import Listener
from mcpboard.board.doctor.probes import BackendFacts, LogFacts, MemoryFacts, PortFacts, PortHolder, StockAgentFacts
from mcpboard.board.tools import ROWS
from mcpboard.config.board import Settings
from mcpboard.doctor import CheckResult, CheckState, skipped
from mcpboard.errors import ConfigError
from mcpboard.simulator import Simulator
from tests.support import ROOT, rig, served

MIB = 1 << 20
SETTINGS = rig.settings()
OTHER = Listener("0.0.0.0", 8080, 7, "nginx")
OURS = Listener("0.0.0.0", 8080, 7, "python3", serves_mcp=True)
HIDDEN = Listener("0.0.0.0", 8080)
ADVICE = 'listen = "0.0.0.0:8090"\nagent_base_url = "http://127.0.0.1:8080"'

AGENT_TOOLS = [row.tool for row in ROWS if row.path.startswith("/api/tools/")]


def tool_list(without: str = "", schemas: bool = True) -> bytes:
    named = {tool.name: {"args_schema": tool.input_schema} if schemas else {} for tool in AGENT_TOOLS}
    return json.dumps({"tools": [{"name": name, **named[name]} for name in named if name != without]}).encode()


def asked(body: bytes, status: int = 200) -> BackendFacts:
    return BackendFacts("the Agent", "/api/tools", status, body)


def with_agent(port: int, listen: int) -> Settings:
    settings = rig.settings(agent=f"http://127.0.0.1:{port}")
    return replace(settings, listen=(settings.listen[0]._replace(port=listen),))


@pytest.mark.parametrize(("evaluate", "facts", "ok", "message"), [
    pytest.param(rules.settings, SETTINGS, True, "agent_base_url", id="settings"),
    pytest.param(rules.settings, ConfigError("/x: line 3: no TOML"), False, "line 3", id="settings that cannot be read"),
    pytest.param(rules.settings, replace(SETTINGS, warnings=("beware",)), False, "beware", id="settings with a warning"),
    pytest.param(rules.settings, replace(SETTINGS, mcp_enabled=False), False, "disabled in default", id="disabled"),
    pytest.param(rules.stock_agent, StockAgentFacts(8080, SETTINGS, None), True, "none", id="no stock Agent"),
    pytest.param(rules.stock_agent, StockAgentFacts(8080, with_agent(8080, 8090), ADVICE), True, "stands beside", id="beside a stock Agent"),
    pytest.param(rules.stock_agent, StockAgentFacts(8080, with_agent(8081, 8080), ADVICE), False, "has port 8080", id="in the way of a stock Agent"),
    pytest.param(rules.stock_agent, StockAgentFacts(8080, with_agent(8081, 8090), ADVICE), False, "has port 8080", id="beside, but asking elsewhere"),
    pytest.param(rules.ports, PortFacts((PortHolder(8080, OURS, "1.2"),), "s"), True, "mcpboard 1.2 on 0.0.0.0 port 8080", id="mcpboard on its port"),
    pytest.param(rules.ports, PortFacts((PortHolder(8080, None, None),), "s"), False, "nobody listens", id="nobody on the port"),
    pytest.param(rules.ports, PortFacts((PortHolder(8080, OTHER, None),), "s"), False, "nginx (pid 7)", id="another program on the port"),
    pytest.param(rules.ports, PortFacts((PortHolder(8080, HIDDEN, None),), "s"), False, "another user", id="a program that only root may see"),
    pytest.param(rules.ports, PortFacts((), "s"), True, "any free port", id="port 0"),
    pytest.param(rules.backend, asked(b'{"a":1}'), True, "answers", id="a backend"),
    pytest.param(rules.backend, asked(b"404 page not found", 404), False, "HTTP 404", id="a backend of another version"),
    pytest.param(rules.backend, asked(b"[]"), False, "not as expected", id="a backend that says something else"),
    pytest.param(rules.backend, asked(b"\xff{"), False, "not as expected", id="a backend that says nothing sensible"),
    pytest.param(rules.backend, BackendFacts("the Agent", "/x", error="refused"), False, "refused", id="a backend down"),
    pytest.param(rules.tool_list, asked(tool_list()), True, f"all {len(AGENT_TOOLS)} tools", id="a tool list"),
    pytest.param(rules.tool_list, asked(tool_list(schemas=False)), True, "built-in schemas for screenshot", id="an old tool list"),
    pytest.param(rules.tool_list, asked(tool_list("open_url")), False, "does not have: open_url", id="a tool that is missing"),
    pytest.param(rules.tool_list, asked(b"<html>"), False, "cannot be read", id="no tool list"),
    pytest.param(rules.memory, MemoryFacts(64 * MIB, 20 * MIB), True, "64 MiB available", id="memory"),
    pytest.param(rules.memory, MemoryFacts(5 * MIB, 20 * MIB), False, "runs out", id="no memory"),
    pytest.param(rules.memory, MemoryFacts(64 * MIB, 90 * MIB), False, "has grown", id="a server that has grown"),
    pytest.param(rules.memory, MemoryFacts(None, None), True, "unknown", id="a kernel that says nothing"),
    pytest.param(rules.memory, MemoryFacts(64 * MIB, None, runs=False), True, "64 MiB available, no server runs here", id="no server"),
    pytest.param(rules.log, LogFacts("stderr"), True, "standard error", id="log on stderr"),
    pytest.param(rules.log, LogFacts("syslog"), True, "system's log", id="log to syslog"),
    pytest.param(rules.log, LogFacts("syslog", missing=True), False, "no syslog", id="no syslog daemon"),
    pytest.param(rules.log, LogFacts("/l/x", free=9 * MIB, age=3, errors=2), True, "2 errors", id="log in a file"),
    pytest.param(rules.log, LogFacts("/l/x", missing=True), False, "not there", id="no log file"),
    pytest.param(rules.log, LogFacts("/l/x", error="Permission denied"), False, "Permission", id="a log that is not ours"),
    pytest.param(rules.log, LogFacts("/l/x", free=5), False, "disk is full", id="a full disk"),
])  # fmt: skip
def test_facts_are_evaluated(evaluate: Callable[[Any], CheckResult], facts: object, ok: bool, message: str) -> None:  # fmt: skip
    result = evaluate(facts)
    assert result.state is (CheckState.OK if ok else CheckState.FAILED), result
    assert message in result.message
    assert bool(result.remedy) is not ok


# --- the kernel's tables -------------------------------------------------------------------------


def tcp(address: str, port: int, inode: int, state: str = "0A", family: int = socket.AF_INET) -> str:
    """A line of the kernel's table: it prints each four bytes of an address as its own machine's number."""
    packed = socket.inet_pton(family, address)
    words = struct.unpack(f"={len(packed) // 4}I", packed)
    local = f"{''.join(f'{word:08X}' for word in words)}:{port:04X}"
    return f"   0: {local} 00000000:0000 {state} 00000000:00000000 00:00000000 00000000     0        0 {inode} 1 x\n"


HEADER = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n"


def test_listeners_are_read_with_their_owners(tmp_path: Path) -> None:
    """Of two processes; a third one cannot be looked into, and a connection is no listener."""
    files = {
        "net/tcp": HEADER + tcp("127.0.0.1", 8081, 11) + tcp("192.168.42.1", 8080, 22) + tcp("1.2.3.4", 9, 44, state="01"),
        "net/tcp6": HEADER + tcp("::1", 80, 33, family=socket.AF_INET6),
        "5/comm": "agent\n", "5/cmdline": "agent\0", "6/comm": "python3\n", "6/cmdline": "python3\0/usr/bin/mcpboard\0serve\0",
        "6/status": "Name:\tpython3\nVmRSS:\t   20480 kB\n", "meminfo": "MemTotal: 1 kB\nMemAvailable:      65536 kB\n",
    }  # fmt: skip
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    for name, target in {"5/fd/3": "socket:[11]", "6/fd/3": "socket:[22]", "6/fd/4": "/dev/null"}.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).symlink_to(target)
    assert listeners.listeners(str(tmp_path)) == [
        Listener("127.0.0.1", 8081, 5, "agent"),
        Listener("192.168.42.1", 8080, 6, "python3", serves_mcp=True),
        Listener("::1", 80),
    ]
    assert (listeners.resident(6, str(tmp_path)), listeners.available(str(tmp_path))) == (20 * MIB, 64 * MIB)


def test_where_there_is_no_proc_nothing_is_said(tmp_path: Path) -> None:
    nowhere = str(tmp_path)
    assert listeners.listeners(nowhere) == []
    assert listeners.resident(1, nowhere) is listeners.available(nowhere) is None


def test_our_own_listener_is_found_in_the_real_proc() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        found = [each for each in listeners.listeners() if each.port == port]
    assert [(each.address, each.pid, each.serves_mcp) for each in found] == [("127.0.0.1", os.getpid(), False)]


# --- logs ----------------------------------------------------------------------------------------


def test_errors_at_the_end_of_a_log_are_counted(tmp_path: Path) -> None:
    file = tmp_path / "mcpboard.log"
    assert probes.log_facts(str(file)).missing
    assert probes.log_facts(str(tmp_path)).error
    file.write_text("2026-01-01 ERROR x: old\n" + "2026-01-01 INFO x: y\n" * 10_000 + "2026-01-02 ERROR x: new\n")
    found = probes.log_facts(str(file))
    assert (found.errors, found.missing, found.error) == (1, False, "")
    assert found.free > MIB


# --- for real ------------------------------------------------------------------------------------


@pytest.fixture
def simulator() -> Iterator[Simulator]:
    with Simulator() as simulator:
        yield simulator


def states(load: Callable[[], Settings], agent_port: int = 9) -> dict[str, CheckResult]:
    return {finding.name: finding.result for finding in doctor.examine(load, agent_port)}


def failing(found: dict[str, CheckResult]) -> list[str]:
    return [name for name, result in found.items() if result.state is CheckState.FAILED]


def test_a_board_that_is_well(simulator: Simulator, tmp_path: Path) -> None:
    """The verb itself, in front of a server of its own, as its process and its settings file are."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    file = served.settings_file(tmp_path, simulator, listen=f"127.0.0.1:{port}")
    with served.process(file):
        command = [sys.executable, "-m", "mcpboard", "doctor", "--board", "--config", str(file), "--json"]
        done = subprocess.run(command, check=False, capture_output=True, timeout=60, cwd=ROOT)
    assert done.stderr == b""
    checks = {each["check"]: each for each in json.loads(done.stdout)["checks"]}
    assert [name for name, each in checks.items() if each["state"] == "failed"] == []
    assert str(file) in checks["settings"]["message"]
    assert checks["ports"]["message"] == f"mcpboard {__version__} on 127.0.0.1 port {port}"
    assert re.fullmatch(r"\d+ MiB available, the server holds [1-9]\d MiB", checks["memory"]["message"])
    assert done.returncode == 0


def test_a_board_where_nothing_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listeners, "listeners", list)  # whatever else may run on this machine
    found = states(lambda: rig.settings())
    assert {"agent", "config_web"} <= set(failing(found))
    assert found["catalogue"].state is CheckState.SKIPPED
    assert found["memory"].message.endswith("available, no server runs here")


def test_a_stock_agent_keeps_its_port(simulator: Simulator) -> None:
    """The Agent on mcpboard's port is one trouble with one remedy, and ending the Agent is not it."""
    port = int(simulator.agent_url.rpartition(":")[2])
    found = states(lambda: with_agent(port, listen=port), port)
    assert "stock_agent" in failing(found)
    assert f"http://127.0.0.1:{port}" in found["stock_agent"].remedy
    assert found["ports"] == skipped("depends on: A stock Agent")
    assert not [result for result in found.values() if "end that program" in result.remedy]


def test_settings_that_cannot_be_read_are_told_and_the_rest_goes_on() -> None:
    found = states(Mock(side_effect=ConfigError("/etc/mcpboard/mcpboard.toml: line 1: no TOML")))
    assert failing(found)[0] == "settings"
    assert found["agent"].state is CheckState.SKIPPED
    assert found["memory"].state is CheckState.OK
