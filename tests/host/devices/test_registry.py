"""`devices.json`: written by the command line, followed by a running agent."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from mcpboard.errors import ConfigError
from mcpboard.host.devices import registry
from mcpboard.host.devices.registry import DEVICES_FILE, DeviceSpec
from tests.host.rig import Fake, agent
from tests.support import ROOT

FULL = DeviceSpec("board-1", "board", "http://192.168.42.1:8080/mcp", None, "usb0")


def test_what_is_added_is_read_back_in_order(tmp_path: Path) -> None:
    registry.add(tmp_path, FULL)
    registry.add(tmp_path, DeviceSpec("a.b_c-1", "android", serial="emulator-5554"))
    assert registry.specs(tmp_path) == [FULL, DeviceSpec("a.b_c-1", "android", serial="emulator-5554")]
    registry.remove(tmp_path, "board-1")
    assert [each.id for each in registry.specs(tmp_path)] == ["a.b_c-1"]


REFUSED = [
    pytest.param(DeviceSpec("a b", "board"), "letters, digits", id="an id with a space"),
    pytest.param(DeviceSpec("", "board"), "letters, digits", id="an empty id"),
    pytest.param(DeviceSpec("x", "toaster"), "kind is one of board, simulated, android, iphone", id="an unknown kind"),
    pytest.param(DeviceSpec("x", "simulated", url="http://x"), "url means nothing", id="a URL for a phone in memory"),
    pytest.param(DeviceSpec("x", "board", serial="s"), "serial means nothing", id="a serial number for a board"),
    pytest.param(
        DeviceSpec("x", "iphone", interface="usb0"), "interface means nothing", id="an interface for an iPhone"
    ),
    pytest.param(DeviceSpec("taken", "board"), "there is a device taken already", id="an id that is taken"),
]


@pytest.mark.parametrize(("spec", "complaint"), REFUSED)
def test_a_device_that_makes_no_sense_is_not_written_down(tmp_path: Path, spec: DeviceSpec, complaint: str) -> None:
    registry.add(tmp_path, DeviceSpec("taken", "simulated"))
    with pytest.raises(ConfigError, match=complaint):
        registry.add(tmp_path, spec)
    assert [each.id for each in registry.specs(tmp_path)] == ["taken"]


BROKEN = [
    pytest.param("{", id="broken JSON"),
    pytest.param("{}", id="no list"),
    pytest.param('{"devices": [7]}', id="a device that is a number"),
    pytest.param('{"devices": [{"id": "x"}]}', id="a device without a kind"),
    pytest.param('{"devices": [{"id": "x", "kind": "board", "colour": "red"}]}', id="an unknown member"),
    pytest.param('{"devices": [{"id": 7, "kind": "board"}]}', id="a number for an id"),
    pytest.param('{"devices": [{"id": "x", "kind": "board"}, {"id": "x", "kind": "board"}]}', id="an id twice"),
    pytest.param(json.dumps({"devices": [{"id": f"d{n}", "kind": "board"} for n in range(65)]}), id="too many"),
]


@pytest.mark.parametrize("content", BROKEN)
def test_a_broken_file_refuses_to_start_and_later_changes_nothing(
    tmp_path: Path, content: str, caplog: pytest.LogCaptureFixture
) -> None:
    folder = tmp_path / "data"
    with agent(folder, X=Fake()) as host:
        registry.add(folder, DeviceSpec("p1", "simulated"))
        assert [each["id"] for each in json.loads(host.caller.call("list_devices").text)] == ["X", "p1"]
        (folder / DEVICES_FILE).write_text(content)
        assert [each["id"] for each in json.loads(host.caller.call("list_devices").text)] == ["X", "p1"]
        assert "stay as they were" in caplog.text
    with pytest.raises(ConfigError, match=DEVICES_FILE), agent(folder):
        pytest.fail("it started")


def test_a_running_agent_follows_the_file(tmp_path: Path) -> None:
    """A device that is removed while it is leased is -32602 to the owner of the lease."""
    folder = tmp_path / "data"
    with agent(folder) as host:
        caller = host.caller.open()
        registry.add(folder, DeviceSpec("p1", "simulated", None))
        assert caller.call("tap", x=1, y=1).text == "tapped 1,1 on p1"
        registry.add(folder, DeviceSpec("p2", "simulated"))
        assert caller.call("tap", x=1, y=1).text == "tapped 1,1 on p1", "the only one that it has"
        registry.remove(folder, "p1")
        assert caller.call("tap", x=1, y=1, device_id="p1").error["message"] == "unknown device: p1"
        assert host.role.manager.leases() == {}
        assert caller.call("tap", x=1, y=1).text == "tapped 1,1 on p2"


def test_an_id_that_the_agent_has_already_is_named_in_the_log(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    folder = tmp_path / "data"
    with agent(folder, X=Fake()) as host:
        registry.add(folder, DeviceSpec("X", "simulated"))
        assert [each["id"] for each in json.loads(host.caller.call("list_devices").text)] == ["X"]
    assert "there is a device X already" in caplog.text


def test_processes_that_add_at_once_lose_nothing(tmp_path: Path) -> None:
    program = (
        "import sys; from pathlib import Path; from mcpboard.host.devices.registry import DeviceSpec, add; sys.stdin.read(); "
        "[add(Path(sys.argv[1]), DeviceSpec(f'{sys.argv[2]}-{n}', 'simulated')) for n in range(5)]"
    )
    command = [sys.executable, "-c", program, str(tmp_path / "data")]
    processes = [subprocess.Popen([*command, str(n)], cwd=ROOT, stdin=subprocess.PIPE) for n in range(6)]
    for each in processes:
        assert each.stdin is not None
        each.stdin.close()
    assert [each.wait(30) for each in processes] == [0] * 6
    assert len(registry.specs(tmp_path / "data")) == 30
