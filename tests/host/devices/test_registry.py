"""`devices.json`: written by the command line, followed by a running agent."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from mcpboard.errors import ConfigError
from mcpboard.host.devices import registry
from mcpboard.host.devices.manager import DeviceManager
from mcpboard.host.devices.registry import DEVICES_FILE, DeviceSpec, Registry
from tests.host.rig import Agent, Fake, agent, result, threads
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
    pytest.param(DeviceSpec("x", "iphone", interface="usb0"), "interface means nothing", id="an interface for an iPhone"),
    pytest.param(DeviceSpec("x", "android", serial="usb:1-4"), "usb:1-4 is no serial", id="a place for a serial"),
    pytest.param(DeviceSpec("x", "android", serial="model:Pixel_7"), "is no serial", id="a property for a serial"),
    pytest.param(DeviceSpec("x", "android", serial="tcp:10.0.0.1:5555"), "is no serial", id="a way for a serial"),
    pytest.param(DeviceSpec("x", "android", serial="10.0.0.1"), "is no serial", id="an address without its port"),
    pytest.param(DeviceSpec("taken", "board"), "there is a device taken already", id="an id that is taken"),
]  # fmt: skip


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


def test_of_a_folder_that_was_replaced_no_device_is_served(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Another agent may run on the new one, as the lock of this agent is on the old one."""
    folder = tmp_path / "data"
    registry.add(folder, DeviceSpec("p1", "simulated"))
    with agent(folder) as host:
        caller = host.caller
        assert "p1" in caller.call("list_devices").text
        folder.rename(tmp_path / "old")
        assert caller.call("list_devices").text == "[]"
        shutil.copytree(tmp_path / "old", folder)
        assert caller.call("list_devices").text == "[]"
        folder_replaced = f"{folder}: was replaced; this agent serves none of its devices until it is restarted"
        assert folder_replaced in caplog.messages
        assert "there is no device" in caller.call("tap", x=1, y=1).error["message"]


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


# --- one phone under two ids -------------------------------------------------------------------

B, U = "http://192.168.42.1:8080/mcp", "http://127.0.0.1:8100"
UDID = "00008030-001A2B3C4D5E802E"

SAME: list[tuple[DeviceSpec, DeviceSpec]] = [
    (DeviceSpec("a", "board"), DeviceSpec("b", "board")),
    (DeviceSpec("a", "board"), DeviceSpec("b", "board", url=B)),
    (DeviceSpec("a", "board", url=B), DeviceSpec("b", "board", url=f"{B}/")),
    (DeviceSpec("a", "board", url=B), DeviceSpec("b", "board", url="http://192.168.42.1:8080")),
    (DeviceSpec("a", "board", url=B), DeviceSpec("b", "board", url="HTTP://192.168.42.1:8080/mcp")),
    (DeviceSpec("a", "board", url=B), DeviceSpec("b", "board", url="http://[::ffff:192.168.42.1]:8080/mcp")),
    (DeviceSpec("a", "board", url="http://Board.example/mcp"), DeviceSpec("b", "board", url="http://board.example.:80/mcp")),
    (DeviceSpec("a", "board", url="http://[fd00::1]:8080"), DeviceSpec("b", "board", url="http://[FD00:0::1]:8080/mcp")),
    (DeviceSpec("a", "board", url="http://localhost:1/mcp"), DeviceSpec("b", "board", url="http://127.0.0.1:1/mcp")),
    (DeviceSpec("a", "board", url="http://[::1]:1/mcp"), DeviceSpec("b", "board", url="http://127.1:1/m%63p")),
    (DeviceSpec("a", "board", url="http://0.0.0.0:1/mcp"), DeviceSpec("b", "board", url="http://localhost:1/mcp")),
    (DeviceSpec("a", "board", url="http://[::]:1/mcp"), DeviceSpec("b", "board", url="http://0:1/mcp")),
    (DeviceSpec("a", "board", url="http://[::1%251]:1"), DeviceSpec("b", "board", url="http://[::ffff:127.0.0.1]:1")),
    (DeviceSpec("a", "board", url="http://[fe80::1%25usb0]:1"), DeviceSpec("b", "board", url="http://[FE80:0::1%usb0]:1")),
    (DeviceSpec("a", "board", url="http://h:1//mcp"), DeviceSpec("b", "board", url="http://h:1/x/.././mcp")),
    (DeviceSpec("a", "board", interface="usb0"), DeviceSpec("b", "board", interface="usb0")),
    (DeviceSpec("a", "board"), DeviceSpec("b", "board", interface="usb0")),
    (DeviceSpec("a", "android", serial="S1"), DeviceSpec("b", "android", serial="S1")),
    (DeviceSpec("a", "android"), DeviceSpec("b", "android", serial="S1")),
    (DeviceSpec("a", "android", serial="S1"), DeviceSpec("b", "android")),
    (DeviceSpec("a", "android", serial="S1"), DeviceSpec("b", "android", serial="adb-S1-9mU6UL._adb-tls-connect._tcp")),
    (DeviceSpec("a", "android", serial="S1"), DeviceSpec("b", "android", serial="adb-S1-9mU6UL (2)._adb-tls-connect._tcp.")),
    (DeviceSpec("a", "android", serial="localhost:5555"), DeviceSpec("b", "android", serial="127.0.0.1:5555")),
    (DeviceSpec("a", "android", serial="emulator-5554"), DeviceSpec("b", "android", serial="localhost:5555")),
    (DeviceSpec("a", "iphone"), DeviceSpec("b", "iphone", url=f"{U}/")),
    (DeviceSpec("a", "iphone", url=U, serial=UDID), DeviceSpec("b", "iphone", url=f"{U[:-1]}1", serial=UDID.lower())),
    (DeviceSpec("a", "iphone", url=U, serial=UDID), DeviceSpec("b", "iphone", url=f"{U[:-1]}1", serial=UDID.replace("-", ""))),
]  # fmt: skip

DIFFERENT: list[tuple[DeviceSpec, DeviceSpec]] = [
    (DeviceSpec("a", "simulated"), DeviceSpec("b", "simulated")),
    (DeviceSpec("a", "board", interface="usb0"), DeviceSpec("b", "board", interface="usb1")),
    (DeviceSpec("a", "board", url=B), DeviceSpec("b", "board", url="http://192.168.42.2:8080/mcp")),
    (DeviceSpec("a", "board", url=B), DeviceSpec("b", "board", url="http://192.168.42.1:8090/mcp")),
    (DeviceSpec("a", "board", url="http://g.example/one"), DeviceSpec("b", "board", url="http://g.example/two")),
    (DeviceSpec("a", "board", url="http://localhost:1"), DeviceSpec("b", "board", url="http://127.0.0.2:1")),
    (DeviceSpec("a", "board", url="http://[fe80::1%usb0]:1"), DeviceSpec("b", "board", url="http://[fe80::1%usb1]:1")),
    (DeviceSpec("a", "android", serial="S1"), DeviceSpec("b", "android", serial="s1")),
    (DeviceSpec("a", "android", serial="10.0.0.1:5555"), DeviceSpec("b", "android", serial="10.0.0.2:5555")),
    (DeviceSpec("a", "android", serial="S1"), DeviceSpec("b", "iphone", serial="S1")),
    (DeviceSpec("a", "iphone"), DeviceSpec("b", "iphone", url=f"{U[:-1]}1")),
    (DeviceSpec("a", "board", url="http://[::1"), DeviceSpec("b", "board", url="http://[::2")),
]


@pytest.mark.parametrize(("one", "other"), SAME)
def test_a_phone_that_has_an_id_gets_no_second_one(tmp_path: Path, one: DeviceSpec, other: DeviceSpec) -> None:
    registry.add(tmp_path, one)
    with pytest.raises(ConfigError, match=r"(a is that phone already|and a may be one phone)") as refused:
        registry.add(tmp_path, other)
    assert "remove" in str(refused.value)
    assert registry.specs(tmp_path) == [one]
    registry.remove(tmp_path, "a")
    registry.add(tmp_path, other)


@pytest.mark.parametrize(("one", "other"), DIFFERENT)
def test_phones_that_only_look_alike_are_two(tmp_path: Path, one: DeviceSpec, other: DeviceSpec) -> None:
    registry.add(tmp_path, one)
    registry.add(tmp_path, other)
    assert len(registry.specs(tmp_path)) == 2


def ids(host: Agent) -> list[str]:
    return [each["id"] for each in json.loads(host.caller.call("list_devices").text)]


def test_of_a_file_that_names_a_phone_twice_the_first_is_served(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Such files are there from older versions; removing one of the two is enough, while the agent runs."""
    folder = tmp_path / "data"
    folder.mkdir(mode=0o700)
    twice = [{"id": "a", "kind": "android", "serial": "S1"}, {"id": "b", "kind": "android", "serial": "S1"}]
    (folder / DEVICES_FILE).write_text(json.dumps({"version": 1, "devices": twice}), "utf-8")
    with agent(folder) as host:
        assert ids(host) == ["a"]
        assert ids(host) == ["a"]
        assert caplog.text.count("b is not served: a is that phone already; remove one of them") == 1
        registry.remove(folder, "a")
        assert ids(host) == ["b"]


def plug_in(host: Agent, driver: Fake) -> None:
    host.role.manager.add("S1", "android", driver, (DeviceSpec("S1", "android", serial="S1"),), found=True)


def test_a_phone_that_is_named_is_no_longer_the_one_that_was_found(tmp_path: Path) -> None:
    driver = Fake()
    with agent(tmp_path / "data") as host:
        plug_in(host, driver)
        registry.add(tmp_path / "data", DeviceSpec("pixel", "android", serial="S1"))
        assert ids(host) == ["pixel"]
        assert driver.closed


def test_a_found_phone_that_takes_its_own_serial_for_a_name_is_named(tmp_path: Path) -> None:
    with agent(tmp_path / "data") as host:
        plug_in(host, Fake())
        registry.add(tmp_path / "data", DeviceSpec("S1", "android", serial="S1"))
        assert ids(host) == ["S1"]
        registry.remove(tmp_path / "data", "S1")
        assert ids(host) == []


@pytest.mark.parametrize("over", ["the end of the session", "idle"])
def test_a_found_phone_that_somebody_has_is_theirs_to_the_end(tmp_path: Path, over: str) -> None:
    """Until then it is handed out under its old id only, so that it never has two owners."""
    driver = Fake()
    with agent(tmp_path / "data") as host:
        plug_in(host, driver)
        first, second = host.caller.open(), host.caller.open()
        assert first.call("tap", device_id="S1", x=1, y=1).text
        registry.add(tmp_path / "data", DeviceSpec("pixel", "android", serial="S1"))
        assert second.call("tap", device_id="pixel", x=2, y=2).error["message"] == "unknown device: pixel"
        assert second.call("tap", device_id="S1", x=2, y=2).error["message"].startswith("device S1 is busy")
        assert first.call("tap", device_id="S1", x=3, y=3).text
        assert driver.done == [("tap", (1, 1)), ("tap", (3, 3))]
        if over == "idle":
            host.clock.pass_by(60)
        else:
            assert first.end() == 204
        assert ids(host) == ["pixel"]


def test_a_phone_with_a_call_inside_is_not_handed_out_under_a_new_id(tmp_path: Path) -> None:
    """One that was removed, too: its last call has to end first."""
    spec = DeviceSpec("old", "android", serial="S1")
    driver = Fake()
    driver.stop_inside()
    with agent(tmp_path / "data") as host, threads() as pool:
        host.role.manager.add("old", "android", driver, (spec,))
        tapping = pool.submit(host.caller.call, "tap", device_id="old", x=1, y=1)
        driver.wait_inside()
        host.role.manager.remove("old")
        registry.add(tmp_path / "data", DeviceSpec("new", "android", serial="S1"))
        assert ids(host) == []
        driver.go_on.set()
        assert result(tapping).text == "tapped 1,1 on old"
        assert ids(host) == ["new"]


def test_a_phone_by_network_that_told_its_serial_is_the_one_on_the_cable(tmp_path: Path) -> None:
    manager = DeviceManager()
    serials = {"10.0.0.7:5555": "S1"}
    driver = Fake()
    manager.add("S1", "android", driver, (DeviceSpec("S1", "android", serial="S1"),), found=True)
    registry.add(tmp_path, DeviceSpec("pixel", "android", serial="10.0.0.7:5555"))
    Registry(tmp_path, manager, lambda spec: Fake(), serials)
    assert manager.ids() == ["pixel"]
    assert driver.closed
    manager.close()
