"""Hot plug: what adb reports at once, what it never reports, and phones that become devices by themselves."""

from __future__ import annotations

import contextlib
import queue
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from mcpboard import host
from mcpboard.errors import ConfigError
from mcpboard.host import config as host_config
from mcpboard.host.config import adb_server
from mcpboard.host.devices import autodiscovery, registry
from mcpboard.host.devices.manager import DeviceManager
from mcpboard.host.devices.registry import DeviceSpec
from mcpboard.host.drivers.android import AndroidDriver, adb, discovery
from mcpboard.host.drivers.android.adb import AttachedDevice
from mcpboard.host.drivers.android.discovery import SILENT, AdbDiscovery
from tests.deploy.rooms import until
from tests.host.drivers import LIMIT_S
from tests.host.drivers.fake_adb import FakeServer, block, fake_adb, hang_up, shell, silence


class Tracker:
    """Sends lists of phones on the tracking connection, when a test says so; None ends the connection."""

    def __init__(self) -> None:
        self.lists: queue.Queue[tuple[str, ...] | None] = queue.Queue()

    def send(self, *phones: str) -> None:
        self.lists.put(phones)

    def __call__(self, peer: socket.socket) -> None:
        peer.sendall(b"OKAY")
        while (phones := self.lists.get(timeout=LIMIT_S)) is not None:
            peer.sendall(block("".join(f"{phone}\n" for phone in phones)))


@pytest.fixture
def tracker() -> Tracker:
    return Tracker()


@pytest.fixture
def server(tracker: Tracker, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeServer]:
    monkeypatch.setattr(discovery, "RETRY_SECONDS", 0.1)
    with fake_adb({"host:track-devices-l": tracker}) as found:
        yield found
        tracker.lists.put(None)


def test_changes_are_reported_once_silent_deaths_and_the_servers_own_included(
    server: FakeServer, tracker: Tracker
) -> None:
    changes: queue.Queue[tuple[AttachedDevice, ...]] = queue.Queue()

    def next_change() -> tuple[AttachedDevice, ...]:
        return changes.get(timeout=LIMIT_S)

    ready, distrusted = AttachedDevice("S1", "device", "Pixel 8"), AttachedDevice("S1", "unauthorized")
    with contextlib.closing(AdbDiscovery(server.adb, changes.put, 0.1)) as following:
        tracker.send("S1 unauthorized")
        assert next_change() == (distrusted,)
        tracker.send("S1 unauthorized")
        tracker.send("S1 device model:Pixel_8")
        assert next_change() == (ready,)
        server.script["shell"] = hang_up
        assert next_change() == (AttachedDevice("S1", SILENT, "Pixel 8"),)
        server.script["shell"] = shell()
        assert next_change() == (ready,)
        tracker.lists.put(None)
        assert next_change() == () == following.devices
        assert "hung up" in str(following.problem)
        tracker.send("S1 unauthorized")
        assert next_change() == (distrusted,)
        assert following.problem is None


def test_it_ends_in_front_of_a_server_that_says_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(adb, "REQUEST_SECONDS", 0.3)
    with fake_adb({"host:track-devices-l": silence}) as server, contextlib.closing(AdbDiscovery(server.adb)):
        until(lambda: server.requests != [], "the question")


# --- phones that become devices ----------------------------------------------------------------


def test_a_serial_becomes_an_id(tmp_path: Path) -> None:
    ids = {"R5CT1234": "R5CT1234", "192.168.1.7:5555": "192.168.1.7-5555", "_adb._tcp": "adb._tcp", "": "phone"}
    for serial, device in ids.items():
        assert autodiscovery.device_id(serial) == device
        registry.add(tmp_path, DeviceSpec(device, "simulated"))  # an id as any other


def named(serial: str | None, kind: str = "android") -> list[DeviceSpec]:
    return [DeviceSpec("mine", kind, serial=serial)]


CABLE, NET, OTHER_NET = "S1 device", "10.0.0.7:5555 device", "10.0.0.8:5555 device"
# What has a name already, what is plugged in one after the other, the serial that phones by network tell, the devices.
PLUGGED = [
    pytest.param([], ["S1 device,S9 unauthorized"], b"", ["S1"], id="who trusts this computer"),
    pytest.param([], [CABLE, CABLE, f"{CABLE},S2 device"], b"", ["S1", "S2"], id="the same again, and another"),
    pytest.param(named("S1"), [CABLE], b"", [], id="it has a name"),
    pytest.param(named("S2"), [CABLE], b"", ["S1"], id="another has a name"),
    pytest.param(named(None), [CABLE], b"", [], id="the only phone has a name"),
    pytest.param(named("S1", "iphone"), [CABLE], b"", ["S1"], id="an iPhone has a name"),
    pytest.param([], [f"{CABLE},{NET}"], b"S1\n", ["S1"], id="by cable and by network at once"),
    pytest.param([], [NET, CABLE], b"S1\n", ["10.0.0.7-5555"], id="the network first"),
    pytest.param(named("S1"), [NET], b"S1\n", [], id="the cable has a name"),
    pytest.param(named("10.0.0.7:5555"), [f"{CABLE},{NET}"], b"S1\n", [], id="the network has a name"),
    pytest.param(named("10.0.0.7:5555"), [CABLE, f"{CABLE},{NET}"], b"S1\n", [], id="the network has a name and comes later"),
    *(pytest.param([], [f"{NET},{OTHER_NET}"], told, ["10.0.0.7-5555", "10.0.0.8-5555"], id=f"two that tell {told!r}")
      for told in (b"", b"unknown\n", b"0123456789ABCDEF\n", b"EMULATOR36X1X9X0\n")),
]  # fmt: skip


@pytest.mark.parametrize(("specs", "lists", "told", "devices"), PLUGGED)
def test_a_phone_that_is_plugged_in_is_one_device_under_one_name(
    server: FakeServer, tracker: Tracker, specs: list[DeviceSpec], lists: list[str], told: bytes, devices: list[str]
) -> None:
    server.script["shell"] = shell(told)
    with contextlib.closing(DeviceManager()) as manager:
        with contextlib.closing(autodiscovery.discover(manager, lambda: specs, server.adb)) as following:
            for listed in lists:
                tracker.send(*listed.split(","))
                until(lambda: following.devices != (), "the list")
                tracker.send()  # by then the list has been dealt with
                until(lambda: following.devices == (), "the end of the list")
        assert manager.ids() == devices
        assert all(isinstance(each.driver, AndroidDriver) for each in manager.states())


def test_the_agent_takes_what_is_plugged_in_where_it_is_told_to(
    server: FakeServer, tracker: Tracker, tmp_path: Path
) -> None:
    written = f'[host]\nadb_server = "127.0.0.1:{server.adb.port}"\nadb_discover = true\n'
    (tmp_path / "host.toml").write_text(written, "utf-8")
    flags = {"config": str(tmp_path / "host.toml"), "data": str(tmp_path / "data")}
    with contextlib.closing(host.build(host_config.load(flags, environ={}))) as role:
        tracker.send("S1 device")
        until(lambda: role.manager.ids() == ["S1"], "the phone")


def test_an_adb_server_is_a_loopback_address_with_a_port_and_no_other_is_used() -> None:
    """Whoever reaches one may do anything on its phones."""
    assert adb_server("127.0.0.1:5037") == ("127.0.0.1", 5037)
    assert adb_server("[::1]:16037") == ("::1", 16037)
    for written in ("192.168.1.7:5037", "localhost", "127.0.0.1", "127.0.0.1:0", "127.0.0.1:99999", ":5037", 5):
        with pytest.raises(ConfigError, match=r"a loopback address with a port such as 127\.0\.0\.1:5037"):
            adb_server(written)
