"""`device-host-agent doctor`: what the facts about a host mean, by table; then a whole examination."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

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
from mcpboard.host.doctor import AgentFacts, DeviceFacts, TokenFacts
from mcpboard.host.drivers.base import Probe

URL = "http://127.0.0.1:8765/mcp"
BOARD = DeviceSpec("b", "board", "http://10.0.0.7:8080/mcp")
PHONE = DeviceSpec("p", "android", serial="S1")
NO_ADB = Probe("no adb server", {"error": "no adb server answers; cure: adb start-server"})

ROWS = [
    pytest.param(doctor.settings, ConfigError("x: bad; take another"), CheckState.FAILED, "x: bad", id="no settings"),
    pytest.param(doctor.token, TokenFacts(Path("/t"), 2), CheckState.OK, "/t, and 2 named", id="a token"),
    pytest.param(doctor.token, ConfigError("/t: none; start it"), CheckState.FAILED, "/t: none", id="no token"),
    pytest.param(doctor.agent, AgentFacts(URL), CheckState.OK, "takes the token", id="an agent"),
    pytest.param(
        doctor.agent, AgentFacts(URL, PeerUnreachable("gone")), CheckState.FAILED, "nothing answers at", id="no agent"
    ),
    pytest.param(
        doctor.agent, AgentFacts(URL, PeerRefused("HTTP 401")), CheckState.FAILED, "HTTP 401", id="another token"
    ),
    pytest.param(doctor.cloud, None, CheckState.OK, "not enrolled", id="no cloud"),
    pytest.param(
        doctor.cloud,
        Enrollment("https://c", "host-1", "secret-token", 1, 1, 10),
        CheckState.OK,
        "enrolled at https://c as host-1",
        id="a cloud",
    ),
    pytest.param(doctor.cloud, ConfigError("unreadable"), CheckState.FAILED, "unreadable", id="no remedy in the error"),
    pytest.param(doctor.devices, [BOARD, PHONE], CheckState.OK, "b, p", id="devices"),
    pytest.param(
        doctor.devices, [PHONE, replace(PHONE, id="q")], CheckState.FAILED, "q is not served", id="one phone twice"
    ),
    pytest.param(doctor.devices, [], CheckState.FAILED, "none", id="no devices"),
    pytest.param(doctor.devices, ConfigError("no list"), CheckState.FAILED, "no list", id="no list of devices"),
    pytest.param(doctor.device, DeviceFacts(PHONE, Probe("ready")), CheckState.OK, "ready", id="a device"),
    pytest.param(doctor.device, DeviceFacts(BOARD, Probe("offline")), CheckState.FAILED, "offline", id="offline"),
    pytest.param(
        doctor.device, DeviceFacts(PHONE, NO_ADB), CheckState.FAILED, "no adb server answers", id="a driver's remedy"
    ),
]


@pytest.mark.parametrize(("evaluate", "facts", "state", "message"), ROWS)
def test_facts_of_a_host_are_evaluated(
    evaluate: Callable[[Any], CheckResult], facts: object, state: CheckState, message: str
) -> None:
    result = evaluate(facts)
    assert result.state is state, result
    assert message in result.message
    assert bool(result.remedy) == (state is CheckState.FAILED)
    assert "secret" not in result.message


REMEDIES = [
    pytest.param(doctor.settings, ConfigError("x: bad; take another"), "take another", id="the error's own"),
    pytest.param(doctor.device, DeviceFacts(PHONE, NO_ADB), "adb start-server", id="the driver's own"),
    pytest.param(
        doctor.device,
        DeviceFacts(PHONE, Probe("offline", {"error": "is its port forwarded? cure: iproxy 8100 8100"})),
        "iproxy 8100 8100",
        id="the driver's own, behind a question",
    ),
    pytest.param(
        doctor.device,
        DeviceFacts(BOARD, Probe("offline")),
        "mcpboard doctor http://10.0.0.7:8080/mcp",
        id="a board's way",
    ),
    pytest.param(
        doctor.device, DeviceFacts(PHONE, Probe("failing")), "device-host-agent devices test p", id="another device"
    ),
]


@pytest.mark.parametrize(("evaluate", "facts", "remedy"), REMEDIES)
def test_the_remedy_is_what_knows_most(evaluate: Callable[[Any], CheckResult], facts: object, remedy: str) -> None:
    assert evaluate(facts).remedy == remedy


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
    assert list(found) == [*(check.name for check in doctor.CHECKS), "device one", "device two"]
    assert found["agent"].remedy == "device-host-agent run"
    assert token not in str(found)
    assert {file.name: file.read_bytes() for file in tmp_path.iterdir()} == before


def test_a_broken_list_of_devices_hides_nothing_else(tmp_path: Path) -> None:
    main_token(tmp_path)
    (tmp_path / DEVICES_FILE).write_text("{}", "utf-8")
    found = examine(tmp_path)
    assert found["devices"].state is CheckState.FAILED
    assert found["token"].message == f"{tmp_path / TOKEN_FILE}, and 0 named"
    assert list(found) == [check.name for check in doctor.CHECKS]
