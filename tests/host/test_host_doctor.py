"""`device-host-agent doctor`: what the facts about a host mean, by table; then a whole examination."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from mcpboard.doctor import CheckResult, CheckState
from mcpboard.errors import ConfigError, PeerRefused, PeerUnreachable
from mcpboard.host import config as host_config
from mcpboard.host import doctor
from mcpboard.host.access.tokens import TOKEN_FILE, main_token
from mcpboard.host.cloud.enrollment import Enrollment
from mcpboard.host.config import HostSettings
from mcpboard.host.devices import registry
from mcpboard.host.devices.registry import DEVICES_FILE, DeviceSpec
from mcpboard.host.doctor import AgentFacts
from mcpboard.host.drivers.base import Probe

URL = "http://127.0.0.1:8765/mcp"
BOARD = DeviceSpec("b", "board", "http://10.0.0.7:8080/mcp")
PHONE = DeviceSpec("p", "android", serial="S1")
ENROLLED = Enrollment("https://c", "host-1", "secret-token", 1, 1, 10)
EVALUATE = {check.name: check.evaluate for check in doctor.CHECKS}

# A check, its facts, its message, and the remedy of one that failed.
CHECKS = [
    ("settings", ConfigError("x: bad; take another"), "x: bad", "take another"),
    ("token", ConfigError("/t: none; start it"), "/t: none", "start it"),
    ("agent", AgentFacts(URL), f"answers at {URL} and takes the token", ""),
    ("agent", AgentFacts(URL, PeerUnreachable("gone")), f"nothing answers at {URL}", "device-host-agent run"),
    ("agent", AgentFacts(URL, PeerRefused("HTTP 401")), f"{URL}: HTTP 401", "restart the agent: it needs that when its token was replaced"),
    ("cloud", None, "not enrolled", ""),
    ("cloud", ENROLLED, "enrolled at https://c as host-1", ""),
    ("cloud", ConfigError("unreadable"), "unreadable", "delete the file and enroll again"),
    ("devices", [BOARD, PHONE], "b, p", ""),
    ("devices", [PHONE, replace(PHONE, id="q")], "p and q are one phone, or may be, so q is not served", "device-host-agent devices remove q"),
    ("devices", [], "none", "device-host-agent devices add ID --kind board"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "facts", "message", "remedy"), CHECKS)
def test_facts_of_a_host_are_evaluated(name: str, facts: object, message: str, remedy: str) -> None:
    result = EVALUATE[name](facts)
    assert (result.message, result.remedy) == (message, remedy)
    assert result.state is (CheckState.FAILED if remedy else CheckState.OK)


NO_ADB = Probe("no adb server", {"error": "no adb server answers; cure: adb start-server"})
DEVICES = [
    (PHONE, Probe("ready"), "ready", ""),
    (PHONE, NO_ADB, "no adb server answers", "adb start-server"),
    (PHONE, Probe("offline", {"error": "is its port forwarded? cure: iproxy 8100 8100"}), "is its port forwarded?", "iproxy 8100 8100"),
    (BOARD, Probe("offline"), "offline", "mcpboard doctor http://10.0.0.7:8080/mcp"),
    (PHONE, Probe("failing"), "failing", "device-host-agent devices test p"),
]  # fmt: skip


@pytest.mark.parametrize(("spec", "probe", "message", "remedy"), DEVICES)
def test_the_remedy_of_a_device_is_that_of_who_knows_most(
    spec: DeviceSpec, probe: Probe, message: str, remedy: str
) -> None:
    result = doctor.device(spec, probe)
    assert (result.message, result.remedy) == (message, remedy)


def examine(folder: Path) -> dict[str, CheckResult]:
    def load() -> HostSettings:
        return host_config.load({"data": str(folder), "port": "9"}, environ={})

    return {finding.name: finding.result for finding in doctor.examine(load)}


def test_every_device_has_a_check_of_its_own_and_files_are_left_alone(tmp_path: Path) -> None:
    token = main_token(tmp_path)
    for name in ("one", "two"):
        registry.add(tmp_path, DeviceSpec(name, "simulated"))
    before = {file.name: file.read_bytes() for file in tmp_path.iterdir()}
    found = examine(tmp_path)
    assert list(found) == [*EVALUATE, "device one", "device two"]
    assert found["agent"].remedy == "device-host-agent run"
    assert token not in str(found)
    assert {file.name: file.read_bytes() for file in tmp_path.iterdir()} == before


def test_a_broken_list_of_devices_hides_nothing_else(tmp_path: Path) -> None:
    main_token(tmp_path)
    (tmp_path / DEVICES_FILE).write_text("{}", "utf-8")
    found = examine(tmp_path)
    assert found["devices"].state is CheckState.FAILED
    assert found["token"].message == f"{tmp_path / TOKEN_FILE}, and 0 named"
    assert list(found) == [*EVALUATE]
