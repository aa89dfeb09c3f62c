"""The adb server's faults, by table: what each is called, what to do about it, and what became of an action."""

from __future__ import annotations

import json
import os
import socket
import stat
import threading
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path

import pytest

from mcpboard import cli
from mcpboard.errors import NOT_SENT, UNKNOWN, ToolFailed
from mcpboard.host import config as host_config
from mcpboard.host import doctor
from mcpboard.host.drivers import android
from mcpboard.host.drivers.android import AndroidDriver, adb
from mcpboard.host.drivers.android.adb import AdbClient, AdbServerMissing, AttachedDevice, is_address
from mcpboard.host.drivers.android.discovery import AdbDiscovery
from mcpboard.host.drivers.base import OFFLINE, READY
from tests.deploy.rooms import until
from tests.host.drivers.fake_adb import (
    LIMIT_S,
    PHONE,
    Reply,
    fail,
    fake_adb,
    hang_up,
    listing,
    okay,
    packets,
    raw,
    shell,
    silence,
)
from tests.host.drivers.lab import png
from tests.host.rig import result, threads

pytestmark = pytest.mark.slow  # waits for real limits, links or processes

ADDRESS = "127.0.0.1:16999"

INPUT = "shell,v2,raw:input"

# Between the tap and its phone: what goes wrong, the message, what became of the tap, how often it was sent.
FAULTS = [
    pytest.param(
        {"host:devices-l": listing(f"{PHONE}   unauthorized transport_id:1")},
        "unlock the phone and accept its question", NOT_SENT, 0, id="a phone that does not trust this computer",
    ),
    pytest.param(
        {"host:devices-l": listing(f"{PHONE}   offline transport_id:1")},
        "cure: the phone is attached and silent: adb reconnect offline", NOT_SENT, 0, id="a phone that is offline",
    ),
    pytest.param({"host:devices-l": listing(f"{PHONE}   recovery product:p")}, "adb reboot", NOT_SENT, 0, id="a phone in recovery"),
    pytest.param(
        {"host:devices-l": listing(f"{PHONE}   no permissions (user in plugdev group; are your udev rules wrong?)")},
        "apt-get install android-sdk-platform-tools-common", NOT_SENT, 0, id="a USB device that may not be opened",
    ),
    pytest.param({"host:devices-l": listing()}, "S1 not found; cure: plug the phone in", NOT_SENT, 0, id="no phone"),
    pytest.param(
        {"host:transport:": fail("device unauthorized.\nThis adb server's $ADB_VENDOR_KEYS is not set")},
        "accept its question", NOT_SENT, 0, id="a phone whose trust ends between two requests",
    ),
    pytest.param({"host:transport:": fail("device 'S1' not found")}, "plug the phone in", NOT_SENT, 0, id="a phone that is unplugged between two requests"),
    pytest.param({"host:transport:": hang_up}, "hung up before anything was sent", NOT_SENT, 0, id="a server that hangs up"),
    pytest.param({"host:devices-l": raw(b"HTTP/1.1 400")}, "it is no adb server", NOT_SENT, 0, id="another kind of server"),
    pytest.param({"host:devices-l": raw(b"OKAYzzzz")}, "it is no adb server", NOT_SENT, 0, id="a length that is no number"),
    pytest.param({INPUT: fail("closed")}, "phones before Android 7", UNKNOWN, 1, id="a phone without that kind of shell"),
    pytest.param({INPUT: shell(exit_code=None)}, "was lost in the middle", UNKNOWN, 1, id="a stream without its exit code"),
    pytest.param({INPUT: raw(b"OKAY" + packets(b"x" * 9)[:7])}, "was lost in the middle", UNKNOWN, 1, id="a packet that breaks off"),
    pytest.param(
        {INPUT: shell(stderr=b"SecurityException: needs INJECT_EVENTS permission", exit_code=137)},
        "enable 'USB debugging (Security settings)'", UNKNOWN, 1, id="a phone that forbids touches from outside",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("script", "message", "delivery", "sent"), FAULTS)
def test_a_tap_that_fails_says_why_and_was_sent_once_at_most(
    script: Mapping[str, Reply], message: str, delivery: str, sent: int
) -> None:
    with fake_adb({"shell,v2,raw:wm size": shell(b"Physical size: 10x20\n")}) as server:
        phone = AndroidDriver(PHONE, server.adb)
        server.script["shell,v2,raw:screencap"] = shell(png(10, 20))
        phone.take_screenshot()
        server.script.update(script)
        with pytest.raises(ToolFailed) as failed:
            phone.tap((1, 2))
        assert message in str(failed.value)
        assert (failed.value.data or {})["delivery"] == delivery
        assert server.scripts.count("input tap 1 2") == sent


@pytest.mark.parametrize(("script", "message"), [(each.values[0], each.values[1]) for each in FAULTS[:10]])
def test_the_next_call_works_without_a_restart(script: Mapping[str, Reply], message: str) -> None:
    with fake_adb() as server:
        phone, sound = AndroidDriver(PHONE, server.adb), dict(server.script)
        server.script.update(script)
        with pytest.raises(ToolFailed):
            phone.launch_app("a/.B")
        server.script = sound
        phone.launch_app("a/.B")
        assert server.scripts == ["am start -n a/.B"]


def test_a_phone_that_does_not_end_a_command_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(android, "LAUNCH_SECONDS", 0.2)
    with fake_adb({"shell": silence}) as server:
        with pytest.raises(ToolFailed, match="did not finish within 0.2 s") as failed:
            AndroidDriver(PHONE, server.adb).launch_app("a/.B")
        assert failed.value.data == {"delivery": UNKNOWN}
        assert "host:disconnect:S1" not in server.requests


def test_a_command_may_take_longer_than_the_servers_own_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(adb, "REQUEST_SECONDS", 0.1)

    def slowly(peer: socket.socket) -> None:
        threading.Event().wait(0.3)
        shell(b"done")(peer)

    with fake_adb({"shell": slowly}) as server:
        assert server.adb.shell(PHONE, "sleep", LIMIT_S).text == "done"


def test_the_connection_of_a_silent_phone_by_network_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(android, "LAUNCH_SECONDS", 0.2)
    with fake_adb({"host:devices-l": listing(f"{ADDRESS} device"), "shell": silence}) as server:
        with pytest.raises(ToolFailed, match="did not finish"):
            AndroidDriver(ADDRESS, server.adb).launch_app("a/.B")
        assert server.requests[-1] == f"host:disconnect:{ADDRESS}"


CONNECTING = {"host:devices-l": listing(), f"host-serial:{ADDRESS}:wait-for-any-device": raw(b"OKAYOKAY")}


def test_a_phone_by_network_is_connected_before_anything_is_sent() -> None:
    with fake_adb({**CONNECTING, "host:connect:": okay(f"connected to {ADDRESS}")}) as server:
        AndroidDriver(ADDRESS, server.adb).launch_app("a/.B")
        assert [service.partition(":127")[0] for service in server.requests[1:4]] == [
            "host:disconnect", "host:connect", "host-serial",
        ]  # fmt: skip
        assert server.scripts == ["am start -n a/.B"]


@pytest.mark.parametrize(
    "text", ["failed to connect to '127.0.0.1:16999': Connection refused", "", "unable to connect"]
)
def test_an_okay_is_no_connection_where_the_text_says_otherwise(text: str) -> None:
    """The server answers OKAY to `host:connect` whatever came of it."""
    with fake_adb({**CONNECTING, "host:connect:": okay(text)}) as server:
        with pytest.raises(ToolFailed, match="not reachable") as failed:
            AndroidDriver(ADDRESS, server.adb).launch_app("a/.B")
        assert failed.value.data == {"delivery": NOT_SENT}
        assert server.scripts == []


def test_without_a_serial_the_only_phone_is_meant_and_none_is_guessed() -> None:
    with fake_adb() as server:
        assert AndroidDriver(None, server.adb).probe().details["serial"] == PHONE
        server.script["host:devices-l"] = listing("S1 device", "S2 device")
        with pytest.raises(ToolFailed, match=r"several phones are attached \(S1, S2\)"):
            AndroidDriver(None, server.adb).launch_app("a/.B")
        server.script["host:devices-l"] = listing()
        assert AndroidDriver(None, server.adb).probe().state == "not found"
        server.script["host:devices-l"] = listing("S1 unauthorized")
        assert AndroidDriver(None, server.adb).probe().state == "unauthorized"


PROBES = [
    pytest.param({}, READY, id="a phone that takes commands"),
    pytest.param({"host:devices-l": listing(f"{PHONE} unauthorized")}, "unauthorized", id="one without trust"),
    pytest.param({"host:devices-l": listing()}, "not found", id="none"),
    pytest.param({"shell": silence}, OFFLINE, id="one that says nothing"),
    pytest.param({"host:devices-l": silence}, "no adb server", id="a server that says nothing"),
]


@pytest.mark.parametrize(("script", "state"), PROBES)
def test_a_probe_says_how_the_phone_is(script: Mapping[str, Reply], state: str) -> None:
    with fake_adb(script) as server:
        probe = AndroidDriver(PHONE, server.adb).probe()
        assert probe.state == state
        assert ("error" in probe.details) == (state != READY)


def test_the_server_lists_what_it_knows() -> None:
    usb = "0123456789ABCDEF       device usb:1-2 product:husky model:Pixel_8_Pro device:husky transport_id:4"
    with fake_adb(
        {"host:devices-l": listing(usb, "X\tno permissions; see [http://x]", "192.168.1.7:5555   offline")}
    ) as server:
        assert server.adb.devices() == [
            AttachedDevice("0123456789ABCDEF", "device", "Pixel 8 Pro"),
            AttachedDevice("X", "no permissions"),
            AttachedDevice("192.168.1.7:5555", "offline"),
        ]


def test_a_script_that_no_service_name_can_hold_is_refused() -> None:
    with fake_adb() as server, pytest.raises(ToolFailed, match="too long") as failed:
        server.adb.shell(PHONE, "x" * 70_000, 1)
    assert failed.value.data == {"delivery": NOT_SENT}


ADDRESSES = [("192.168.1.7:5555", True), ("phone.local:5555", True), ("[fe80::1]:5555", True), ("0123ABC", False),
             ("emulator-5554", False), ("adb-1._adb-tls-connect._tcp", False)]  # fmt: skip


@pytest.mark.parametrize(("serial", "address"), ADDRESSES)
def test_an_address_is_told_from_a_serial(serial: str, address: bool) -> None:
    assert is_address(serial) == address


# --- no server ---------------------------------------------------------------------------------


@pytest.fixture
def nowhere() -> int:
    """A port on which nothing listens."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port: int = taken.getsockname()[1]
    return port


def program(folder: Path, script: str) -> None:
    (folder / "adb").write_text(f"#!/bin/sh\n{script}\n", "utf-8")
    (folder / "adb").chmod(stat.S_IRWXU)


def test_no_server_says_how_to_start_one(nowhere: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert "apt-get install adb" in AndroidDriver(PHONE, AdbClient(port=nowhere)).probe().details["error"]
    program(tmp_path, "exit 0")
    probe = AndroidDriver(PHONE, AdbClient(port=nowhere)).probe()
    assert (probe.state, probe.details["error"].rpartition("cure: ")[2]) == (
        "no adb server", f"adb -P {nowhere} start-server",
    )  # fmt: skip


def test_a_server_is_started_where_that_is_allowed(
    nowhere: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    program(tmp_path, f'echo "$@" >> {tmp_path}/started')
    with pytest.raises(AdbServerMissing, match="it was started, and does not answer yet"):
        AdbClient(port=nowhere, start=True).devices()
    assert (tmp_path / "started").read_text("utf-8") == f"-P {nowhere} start-server\n"
    program(tmp_path, "exit 3")
    with pytest.raises(AdbServerMissing, match="adb start-server failed"):
        AdbClient(port=nowhere, start=True).devices()
    (tmp_path / "adb").unlink()
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(AdbServerMissing, match="apt-get install adb"):
        AdbClient(port=nowhere, start=True).devices()


def test_many_calls_start_it_once(nowhere: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The stand-in for `adb` serves as soon as it is started, as the real one does."""
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    program(tmp_path, f"echo once >> {tmp_path}/started; touch {tmp_path}/up; while [ -e {tmp_path}/up ]; do :; done")
    server = AdbClient(port=nowhere, start=True)
    with ExitStack() as stack, threads() as pool:
        calls = [pool.submit(server.devices) for _ in range(4)]
        until((tmp_path / "up").exists, "the start")
        stack.enter_context(fake_adb(port=nowhere))
        (tmp_path / "up").unlink()
        assert [[phone.serial for phone in result(call)] for call in calls] == [[PHONE]] * 4
    assert (tmp_path / "started").read_text("utf-8") == "once\n"


# --- the command line --------------------------------------------------------------------------


def device_host_agent(folder: Path, port: int, *arguments: str) -> int:
    (folder / "host.toml").write_text(f'[host]\nadb_server = "127.0.0.1:{port}"\n', "utf-8")
    return cli.host_main([*arguments, "--config", str(folder / "host.toml"), "--data", str(folder / "data")])


def test_a_scan_names_serials_and_remedies(tmp_path: Path, nowhere: int, capsys: pytest.CaptureFixture[str]) -> None:
    phones = listing("S1 device model:Pixel_8 transport_id:1", "S2 unauthorized transport_id:2")
    with fake_adb({"host:devices-l": phones}) as server:
        assert device_host_agent(tmp_path, server.adb.port, "devices", "scan") == 0
        ready, distrusted = capsys.readouterr().out.splitlines()
        assert ready == "S1  device  Pixel 8"
        assert distrusted.startswith("S2  unauthorized  cure: unlock the phone")
        server.script["host:devices-l"] = listing()
        assert device_host_agent(tmp_path, server.adb.port, "devices", "scan") == 1
    assert device_host_agent(tmp_path, nowhere, "devices", "scan") == 1
    assert "no adb server answers" in capsys.readouterr().err


def test_testing_a_phone_names_what_is_missing(
    tmp_path: Path, nowhere: int, capsys: pytest.CaptureFixture[str]
) -> None:
    assert device_host_agent(tmp_path, nowhere, "devices", "add", "p", "--kind", "android", "--serial", PHONE) == 0
    assert device_host_agent(tmp_path, nowhere, "devices", "test", "p") == 1
    probe = json.loads(capsys.readouterr().out)
    assert (probe["state"], "cure: " in probe["error"]) == ("no adb server", True)
    with fake_adb({"host:devices-l": listing(f"{PHONE} unauthorized")}) as server:
        flags = {"config": str(tmp_path / "host.toml"), "data": str(tmp_path / "data")}
        (tmp_path / "host.toml").write_text(f'[host]\nadb_server = "127.0.0.1:{server.adb.port}"\n', "utf-8")
        found = {each.name: each.result for each in doctor.examine(lambda: host_config.load(flags, environ={}))}
        assert found["device p"].message == "device S1 unauthorized"
        assert found["device p"].remedy.startswith("unlock the phone")
    with fake_adb() as server:
        assert device_host_agent(tmp_path, server.adb.port, "devices", "test", "p") == 0


def test_discovery_tells_why_there_is_no_list(nowhere: int) -> None:
    discovery = AdbDiscovery(AdbClient(port=nowhere))
    try:
        until(lambda: discovery.problem is not None, "the problem")
        assert "no adb server answers" in str(discovery.problem)
        assert discovery.devices == ()
    finally:
        discovery.close()
