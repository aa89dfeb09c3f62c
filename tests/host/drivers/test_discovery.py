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
from mcpboard.host.drivers.android import AndroidDriver
from mcpboard.host.drivers.android.adb import AttachedDevice
from mcpboard.host.drivers.android.discovery import SILENT, AdbDiscovery
from tests.deploy.rooms import until
from tests.host.drivers.fake_adb import LIMIT_S, FakeServer, block, fake_adb, hang_up, shell, silence

pytestmark = pytest.mark.slow  # waits for real limits, links or processes

QUICK_S = 0.1  # between two rounds of asking


class Tracker:
    """Sends lists of phones on the tracking connection, when a test says so."""

    def __init__(self) -> None:
        self.lists: queue.Queue[str | None] = queue.Queue()

    def send(self, *phones: str) -> None:
        self.lists.put("".join(f"{phone}\n" for phone in phones))

    def __call__(self, peer: socket.socket) -> None:
        peer.sendall(b"OKAY")
        while (listed := self.lists.get(timeout=LIMIT_S)) is not None:
            peer.sendall(block(listed))


@pytest.fixture
def tracker() -> Tracker:
    return Tracker()


@pytest.fixture
def server(tracker: Tracker) -> Iterator[FakeServer]:
    with fake_adb({"host:track-devices-l": tracker}) as found:
        yield found
        tracker.lists.put(None)


Following = tuple[AdbDiscovery, "queue.Queue[tuple[AttachedDevice, ...]]"]


@pytest.fixture
def following(server: FakeServer) -> Iterator[Following]:
    changes: queue.Queue[tuple[AttachedDevice, ...]] = queue.Queue()
    discovery = AdbDiscovery(server.adb, changes.put, QUICK_S)
    yield discovery, changes
    discovery.close()


def test_every_change_is_reported_once(tracker: Tracker, following: Following) -> None:
    discovery, changes = following
    tracker.send("S1 unauthorized")
    assert changes.get(timeout=LIMIT_S) == (AttachedDevice("S1", "unauthorized"),)
    tracker.send("S1 unauthorized")
    tracker.send("S1 device model:Pixel_8")
    assert changes.get(timeout=LIMIT_S) == (AttachedDevice("S1", "device", "Pixel 8"),)
    tracker.send()
    assert changes.get(timeout=LIMIT_S) == () == discovery.devices


def test_a_phone_that_died_without_a_word_is_found_out(
    server: FakeServer, tracker: Tracker, following: Following
) -> None:
    _, changes = following
    server.script["shell"] = hang_up
    tracker.send("S1 device")
    assert changes.get(timeout=LIMIT_S) == (AttachedDevice("S1", "device"),)
    assert changes.get(timeout=LIMIT_S) == (AttachedDevice("S1", SILENT),)
    del server.script["shell"]
    server.script["shell"] = lambda peer: peer.sendall(b"OKAY\3\1\0\0\0\0")
    assert changes.get(timeout=LIMIT_S) == (AttachedDevice("S1", "device"),)


def test_a_server_that_dies_is_told_and_found_again(tracker: Tracker, following: Following) -> None:
    discovery, changes = following
    tracker.send("S1 unauthorized")
    changes.get(timeout=LIMIT_S)
    tracker.lists.put(None)
    assert changes.get(timeout=LIMIT_S) == ()
    assert "hung up" in str(discovery.problem)
    tracker.send("S1 unauthorized")
    assert changes.get(timeout=LIMIT_S) == (AttachedDevice("S1", "unauthorized"),)
    assert discovery.problem is None


def test_it_ends_in_front_of_a_server_that_says_nothing() -> None:
    with fake_adb({"host:track-devices-l": silence}) as server:
        discovery = AdbDiscovery(server.adb)
        until(lambda: server.requests != [], "the question")
        discovery.close()


# --- phones that become devices ----------------------------------------------------------------

IDS = [("R5CT1234", "R5CT1234"), ("192.168.1.7:5555", "192.168.1.7-5555"), ("_adb._tcp", "adb._tcp"), ("", "phone")]


@pytest.mark.parametrize(("serial", "device"), IDS)
def test_a_serial_becomes_an_id(tmp_path: Path, serial: str, device: str) -> None:
    assert autodiscovery.device_id(serial) == device
    registry.add(tmp_path, DeviceSpec(device, "android"))  # an id as any other


REGISTERED: list[tuple[list[DeviceSpec], list[str]]] = [
    ([], ["S1"]),
    ([DeviceSpec("mine", "android", serial="S1")], []),
    ([DeviceSpec("mine", "android", serial="S2")], ["S1"]),
    ([DeviceSpec("mine", "android")], []),
    ([DeviceSpec("mine", "iphone", serial="S1")], ["S1"]),
]


@pytest.mark.parametrize(("specs", "devices"), REGISTERED)
def test_a_phone_that_has_a_name_gets_no_other(
    server: FakeServer, tracker: Tracker, specs: list[DeviceSpec], devices: list[str]
) -> None:
    with contextlib.closing(DeviceManager()) as manager:
        with contextlib.closing(autodiscovery.discover(manager, lambda: specs, server.adb)) as discovery:
            tracker.send("S1 device", "S9 unauthorized")
            until(lambda: discovery.devices != (), "the list")
            tracker.send()  # by then the first list has been dealt with
            until(lambda: discovery.devices == (), "the end of the list")
        assert manager.ids() == devices


def test_a_phone_that_is_plugged_in_again_is_the_same_device(server: FakeServer, tracker: Tracker) -> None:
    with contextlib.closing(DeviceManager()) as manager:
        with contextlib.closing(autodiscovery.discover(manager, list, server.adb)) as discovery:
            tracker.send("S1 device")
            tracker.send()
            tracker.send("S1 device")
            tracker.send("S1 device", "S2 device")
            until(lambda: len(discovery.devices) == 2, "both phones")
            until(lambda: manager.ids() == ["S1", "S2"], "both devices")
        assert isinstance(manager.state("S1").driver, AndroidDriver)


def test_the_agent_takes_what_is_plugged_in_where_it_is_told_to(
    server: FakeServer, tracker: Tracker, tmp_path: Path
) -> None:
    (tmp_path / "host.toml").write_text(
        f'[host]\nadb_server = "127.0.0.1:{server.adb.port}"\nadb_discover = true\n', "utf-8"
    )
    flags = {"config": str(tmp_path / "host.toml"), "data": str(tmp_path / "data")}
    with contextlib.closing(host.build(host_config.load(flags, environ={}))) as role:
        tracker.send("S1 device")
        until(lambda: role.manager.ids() == ["S1"], "the phone")


def found_of(
    server: FakeServer, tracker: Tracker, manager: DeviceManager, specs: list[DeviceSpec], *lists: str
) -> None:
    """Plug in what is in each of the lists, one list after the other."""
    with contextlib.closing(autodiscovery.discover(manager, lambda: specs, server.adb)) as discovery:
        for listed in lists:
            tracker.send(*listed.split(","))
            until(lambda: discovery.devices != (), "the list")
            tracker.send()
            until(lambda: discovery.devices == (), "the end of the list")


BY_CABLE, BY_NETWORK = "S1 device", "10.0.0.7:5555 device"
PATHS = [
    pytest.param([], (f"{BY_CABLE},{BY_NETWORK}",), ["S1"], id="both at once"),
    pytest.param([], (BY_NETWORK, BY_CABLE), ["10.0.0.7-5555"], id="the network first"),
    pytest.param([DeviceSpec("mine", "android", serial="S1")], (BY_NETWORK,), [], id="the cable has a name"),
    pytest.param(
        [DeviceSpec("mine", "android", serial="10.0.0.7:5555")],
        (f"{BY_CABLE},{BY_NETWORK}",),
        [],
        id="the network has a name",
    ),
    pytest.param([DeviceSpec("mine", "android", serial="10.0.0.7:5555")], (BY_CABLE, f"{BY_CABLE},{BY_NETWORK}"), [], id="the network has a name and comes later"),
]  # fmt: skip


@pytest.mark.parametrize(("specs", "lists", "devices"), PATHS)
def test_a_phone_by_cable_and_by_network_is_one_device(
    server: FakeServer, tracker: Tracker, specs: list[DeviceSpec], lists: tuple[str, ...], devices: list[str]
) -> None:
    """The one by network tells its serial when it is asked."""
    server.script["shell"] = shell(b"S1\n")
    with contextlib.closing(DeviceManager()) as manager:
        found_of(server, tracker, manager, specs, *lists)
        assert manager.ids() == devices


@pytest.mark.parametrize("told", [b"", b"unknown\n", b"0123456789ABCDEF\n", b"EMULATOR36X1X9X0\n"])
def test_phones_that_tell_no_serial_of_their_own_are_not_taken_for_one(
    server: FakeServer, tracker: Tracker, told: bytes
) -> None:
    server.script["shell"] = shell(told)
    with contextlib.closing(DeviceManager()) as manager:
        found_of(server, tracker, manager, [], "10.0.0.7:5555 device,10.0.0.8:5555 device")
        assert manager.ids() == ["10.0.0.7-5555", "10.0.0.8-5555"]


# --- settings ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("written", "server"), [("127.0.0.1:5037", ("127.0.0.1", 5037)), ("[::1]:16037", ("::1", 16037))]
)
def test_an_adb_server_is_a_loopback_address_with_a_port(written: str, server: tuple[str, int]) -> None:
    assert adb_server(written) == server


@pytest.mark.parametrize(
    "written", ["192.168.1.7:5037", "localhost", "127.0.0.1", "127.0.0.1:0", "127.0.0.1:99999", ":5037", 5]
)
def test_no_other_adb_server_is_used(written: object) -> None:
    """Whoever reaches one may do anything on its phones."""
    with pytest.raises(ConfigError, match=r"a loopback address with a port such as 127\.0\.0\.1:5037"):
        adb_server(written)
