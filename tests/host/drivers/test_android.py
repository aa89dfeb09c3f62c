"""An Android phone behind a scripted adb server: what it prints, what it is sent, what goes wrong and what that is called."""

from __future__ import annotations

import base64
import json
import os
import shlex
import socket
import stat
import threading
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from mcpboard import cli
from mcpboard.errors import NOT_SENT, UNKNOWN, ToolFailed
from mcpboard.host import config as host_config
from mcpboard.host import doctor
from mcpboard.host.drivers import android, app_names, images
from mcpboard.host.drivers.android import BLACK, AndroidDriver, adb, shell_commands, uiautomator
from mcpboard.host.drivers.android.adb import AdbClient, AdbServerMissing, AttachedDevice
from mcpboard.host.drivers.base import OFFLINE, READY
from mcpboard.host.vision.tree import UiNode
from tests.deploy.rooms import until
from tests.host.drivers import LIMIT_S, Reply, png, refused
from tests.host.drivers.fake_adb import PHONE, fail, fake_adb, hang_up, listing, okay, packet, raw, shell, silence
from tests.host.rig import result, threads

PICTURE = png(30, 60)
LISTED = "host:devices-l"
SHOT, SIZE, INPUT = "shell,v2,raw:screencap -p", "shell,v2,raw:wm size", "shell,v2,raw:input"


# --- screenshots ----------------------------------------------------------------------------------

MANY = b"[Warning] Multiple displays were found, but no display id was specified!\n"
IDS = b'Display 4619827259835644672 (HWC display 0): port=0 pnpId=GGL displayName=""\nDisplay 2 (virtual)\n'


def test_the_picture_is_cut_out_of_what_a_phone_prints_and_must_be_whole() -> None:
    for output in (PICTURE, MANY + PICTURE, PICTURE + b"\n"):
        assert images.extract_png(output) == PICTURE
    for output in (b"", b"<html>", PICTURE[:-1], PICTURE[:40], b"\xff\xd8\xff" + PICTURE[8:]):
        with pytest.raises(ToolFailed, match="is no PNG|broke off"):
            images.extract_png(output)


def test_a_secure_window_is_explained_beside_its_black_picture() -> None:
    with fake_adb({"shell": shell(png(30, 60, light=0))}) as server:
        phone = AndroidDriver(PHONE, server.adb)
        shot = phone.take_screenshot()
        assert (shot.width, shot.height, shot.note) == (30, 60, BLACK)
        server.script["shell"] = shell(PICTURE)
        assert phone.take_screenshot().note == ""


@pytest.mark.parametrize("reply", [shell(MANY + PICTURE), shell(PICTURE, MANY)], ids=["printed", "complained"])
def test_of_several_displays_the_first_is_named_until_it_is_gone(reply: Reply) -> None:
    script = {SHOT: reply, f"{SHOT} -d": shell(PICTURE), "shell,v2,raw:dumpsys SurfaceFlinger": shell(IDS)}
    with fake_adb(script) as server:
        phone = AndroidDriver(PHONE, server.adb)
        phone.take_screenshot()
        phone.take_screenshot()
        named = "screencap -p -d 4619827259835644672"
        assert server.scripts == ["screencap -p", "dumpsys SurfaceFlinger --display-id", named, named]
        server.script[f"{SHOT} -d"] = shell(b"", b"Display Id is not valid", 1)
        refused(phone.take_screenshot, "Display Id is not valid")
        server.script[SHOT] = shell(PICTURE)
        assert phone.take_screenshot().content == PICTURE


# --- points ------------------------------------------------------------------------------------

SCREENS = [
    pytest.param(b"Physical size: 30x60\n", (29, 59), id="as large as its picture"),
    pytest.param(b"Physical size: 60x120\nOverride size: 15x30\n", (14, 29), id="an override of the size"),
    pytest.param(b"Physical size: 60x120\n  init=60x120 cur=300x600 app=1x1\n", (290, 590), id="what is current wins"),
    pytest.param(b"Display: mDisplayId=2\n cur=9x9 app\nDisplay: mDisplayId=0 x\n cur=60x120 app\n", (58, 118), id="another display first"),
    pytest.param(b"", (29, 59), id="a phone that does not tell"),
]  # fmt: skip


@pytest.mark.parametrize(("output", "point"), SCREENS)
def test_pixels_of_the_screenshot_become_points_of_the_screen(output: bytes, point: tuple[int, int]) -> None:
    with fake_adb({SIZE: shell(output), SHOT: shell(PICTURE)}) as server:
        phone = AndroidDriver(PHONE, server.adb)
        phone.tap((29, 59))
        phone.swipe((0, 0), (29, 59), 250)
        x, y = point
        touches = [line for line in server.scripts if line.startswith("input")]
        assert touches == [f"input tap {x} {y}", f"input swipe 0 0 {x} {y} 250"]


def test_a_phone_that_was_turned_is_looked_at_again_before_it_is_touched() -> None:
    with fake_adb({SHOT: shell(PICTURE), SIZE: shell(b"cur=60x30")}) as server:
        phone = AndroidDriver(PHONE, server.adb)
        server.script["shell,v2,raw:f="] = shell(dump("").encode())
        for use in (lambda: phone.tap((1, 1)), phone.ui_tree):
            refused(use, "was turned since its screenshot", delivery=NOT_SENT)
        server.script[SHOT] = shell(png(60, 30))
        phone.take_screenshot()
        phone.tap((59, 20))
        assert server.scripts[-1] == "input tap 59 20"


# --- text --------------------------------------------------------------------------------------

TYPED = [
    pytest.param("hello", "input text hello", id="a word"),
    pytest.param("a b", "input text a%sb", id="a space"),
    pytest.param("%s", "input text % && input text s", id="what `input` takes for a space"),
    pytest.param("100%%sure", "input text 100%% && input text sure", id="two per cent signs before an s"),
    pytest.param("it's", "input text 'it'\"'\"'s'", id="a quote"),
    pytest.param('$(x) `y` "z" \\', "input text '$(x)%s`y`%s\"z\"%s\\'", id="what a shell would run"),
    pytest.param("a\n\tb", "input text a && input keyevent 66 && input keyevent 61 && input text b", id="keys"),
    pytest.param("-n", "input text -n", id="what looks like an option"),
]


@pytest.mark.parametrize(("text", "script"), TYPED)
def test_text_becomes_commands(text: str, script: str) -> None:
    assert shell_commands.input_script(text) == script


def test_long_text_goes_in_pieces_that_a_phone_takes() -> None:
    text = "0123456789 %s" * 800
    commands = [shlex.split(command) for command in shell_commands.input_script(text).split(" && ")]
    assert {tuple(arguments[:2]) for arguments in commands} == {("input", "text")}
    assert "".join(arguments[2].replace("%s", " ") for arguments in commands) == text
    assert max(len(arguments[2]) for arguments in commands) <= 2 * shell_commands.PIECE


UNTYPEABLE = [
    pytest.param("שלום", "U+05E9 HEBREW LETTER SHIN (ש)", id="Hebrew"),
    pytest.param("你好", "U+4F60 CJK UNIFIED IDEOGRAPH-4F60 (你)", id="Chinese"),
    pytest.param("👨‍👩‍👧", "U+1F468 MAN (👨), U+200D ZERO WIDTH JOINER, U+1F469 WOMAN", id="a family"),
    pytest.param("e\u0301", "U+0301 COMBINING ACUTE ACCENT", id="a combining mark"),
    pytest.param("a\0b", "U+0000 control character", id="NUL"),
    pytest.param("a\r\nb", "U+000D control character", id="a carriage return"),
    pytest.param("\ud83d", "U+D83D control character", id="half of a pair"),
    pytest.param("אבגדהוזחט", "and more", id="more than anybody reads"),
]


@pytest.mark.parametrize(("text", "named"), UNTYPEABLE)
def test_what_no_android_phone_can_type_is_named(text: str, named: str) -> None:
    refused(lambda: shell_commands.input_script(text), named, "nothing was typed", delivery=NOT_SENT)


# --- apps --------------------------------------------------------------------------------------

INSTALLED = [
    "com.android.settings", "com.android.settings.intelligence", "com.google.android.apps.maps", "com.android.vending",
    "com.google.android.youtube", "org.one.notes", "org.two.notes", "com.android.chrome",
]  # fmt: skip
APPS = [
    pytest.param("com.android.chrome", "com.android.chrome", id="a package"),
    pytest.param("Settings", "com.android.settings", id="the end of a package's name"),
    pytest.param("YouTube", "com.google.android.youtube", id="a name in another case"),
    pytest.param(" maps ", "com.google.android.apps.maps", id="a name with spaces around it"),
    pytest.param("Play Store", "com.android.vending", id="a label that its package does not have"),
    pytest.param("intelligence", "com.android.settings.intelligence", id="a part of a name"),
]
NO_APPS = [
    pytest.param("Notes", "'Notes' may mean org.one.notes, org.two.notes; launch it by its package", id="several"),
    pytest.param("Utube", "near it: com.google.android.youtube", id="a slip of the pen"),
    pytest.param("zzz", "'zzz' is no app here; 8 packages are installed", id="nothing like it"),
]


@pytest.mark.parametrize(("name", "package"), APPS)
def test_an_app_is_found_by_what_people_call_it(name: str, package: str) -> None:
    assert app_names.find_package(name, INSTALLED) == package


@pytest.mark.parametrize(("name", "message"), NO_APPS)
def test_an_app_is_never_guessed(name: str, message: str) -> None:
    refused(lambda: app_names.find_package(name, INSTALLED), message, delivery=NOT_SENT)


# --- elements ----------------------------------------------------------------------------------


def dump(inner: str) -> str:
    return f"<?xml version='1.0' encoding='UTF-8' standalone='yes' ?><hierarchy rotation=\"0\">{inner}</hierarchy>"


ROLES = {
    "android.widget.TextView": "text", "android.widget.EditText": "field", "android.widget.ImageButton": "button",
    "android.widget.Button": "button", "androidx.recyclerview.widget.RecyclerView": "list", "com.x.Odd$Inner": "inner",
    "": "view",
}  # fmt: skip


def test_every_view_has_a_role() -> None:
    document = dump("".join(f'<node class="{view}" bounds="[0,0][5,5]"/>' for view in ROLES))
    assert [node.role for node in uiautomator.parse_tree(document, (10, 10), (10, 10)).children] == [*ROLES.values()]


def test_boxes_are_in_pixels_of_the_picture_and_inside_it() -> None:
    seen = '<node class="Button" bounds="[-5,10][50,20]" text="A &lt;b&gt;" content-desc="data:image/gif;base64,R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7" resource-id="i" clickable="true"/>'
    unseen = '<node class="View" bounds="[0,200][50,220]"/><node class="View" bounds="[3,3][3,9]"/>'
    (node,) = uiautomator.parse_tree(dump(seen + unseen), (100, 200), (50, 100)).children
    assert node == UiNode("button", (0, 20, 100, 40), "A <b>", "(GIF, 42 bytes, left out)", "i", clickable=True)


# --- status ------------------------------------------------------------------------------------

FRONT = [
    ("  mCurrentFocus=Window{1 u0 com.a/com.a.B}\n", {"id": "com.a", "activity": "com.a.B"}),
    ("  mCurrentFocus=null\n  mFocusedApp=ActivityRecord{9 u0 com.a/.B t12}\n", {"id": "com.a", "activity": ".B"}),
    ("  mFocusedApp=Token{1 ActivityRecord{9 u0 com.a/.B t12}}\n", {"id": "com.a", "activity": ".B"}),
    ("  mCurrentFocus=Window{1 u0 NotificationShade}\n", {}),
    ("", {}),
]
STATUSES = [
    ("@window\n    Display: mDisplayId=2\n mRotation=2\nDisplay: mDisplayId=0\nmRotation=1\n", {"rotation": 90}),
    ("@window\n    mRotation=1\n", {"rotation": 90}),
    ("@window\n    mCurrentRotation=ROTATION_270\n", {"rotation": 270}),
    ("@window\n    mRotation=ROTATION_0\n", {"rotation": 0}),
    ("@power\n  mWakefulness=Dozing\n", {"screen_on": False}),
    ("@model\n\n@battery\nCan't find service: battery\n@power\n", {}),
    ("", {}),
]


def test_status_and_app_in_front_are_read_from_every_androids_output() -> None:
    for output, front in FRONT:
        assert shell_commands.parse_foreground(output) == front
    for output, status in STATUSES:
        assert shell_commands.parse_status(output) == status


def test_the_servers_list_has_serials_states_and_models() -> None:
    usb = "0123456789ABCDEF       device usb:1-2 product:husky model:Pixel_8_Pro device:husky transport_id:4"
    assert adb.parse_devices(f"{usb}\nX\tno permissions; see [http://x]\n\n192.168.1.7:5555   offline\n") == [
        AttachedDevice("0123456789ABCDEF", "device", "Pixel 8 Pro"),
        AttachedDevice("X", "no permissions"),
        AttachedDevice("192.168.1.7:5555", "offline"),
    ]


def test_an_address_is_told_from_a_serial() -> None:
    addresses = ["192.168.1.7:5555", "phone.local:5555", "[fe80::1]:5555"]
    serials = ["0123ABC", "emulator-5554", "adb-1._adb-tls-connect._tcp"]
    assert [each for each in addresses + serials if adb.is_address(each)] == addresses


# --- faults ------------------------------------------------------------------------------------

# Between the tap and its phone: what goes wrong, the message, what became of the tap, how often it was sent.
FAULTS = [
    pytest.param({LISTED: listing(f"{PHONE}   unauthorized transport_id:1")}, "unlock the phone and accept its question", NOT_SENT, 0, id="a phone that does not trust this computer"),
    pytest.param({LISTED: listing(f"{PHONE}   offline transport_id:1")}, "cure: the phone is attached and silent: adb reconnect offline", NOT_SENT, 0, id="a phone that is offline"),
    pytest.param({LISTED: listing(f"{PHONE}   recovery product:p")}, "adb reboot", NOT_SENT, 0, id="a phone in recovery"),
    pytest.param({LISTED: listing(f"{PHONE}   no permissions (user in plugdev group)")}, "apt-get install android-sdk-platform-tools-common", NOT_SENT, 0, id="a USB device that may not be opened"),
    pytest.param({LISTED: listing()}, "S1 not found; cure: plug the phone in", NOT_SENT, 0, id="no phone"),
    pytest.param({"host:transport:": fail("device unauthorized.\nThis adb server's $ADB_VENDOR_KEYS is not set")}, "accept its question", NOT_SENT, 0, id="a phone whose trust ends between two requests"),
    pytest.param({"host:transport:": fail("device 'S1' not found")}, "plug the phone in", NOT_SENT, 0, id="a phone that is unplugged between two requests"),
    pytest.param({"host:transport:": hang_up}, "hung up before anything was sent", NOT_SENT, 0, id="a server that hangs up"),
    pytest.param({LISTED: raw(b"HTTP/1.1 400")}, "it is no adb server", NOT_SENT, 0, id="another kind of server"),
    pytest.param({LISTED: raw(b"OKAYzzzz")}, "it is no adb server", NOT_SENT, 0, id="a length that is no number"),
    pytest.param({INPUT: fail("closed")}, "phones before Android 7", UNKNOWN, 1, id="a phone without that kind of shell"),
    pytest.param({INPUT: shell(b"seen " + base64.b64encode(PICTURE) + b" twice", exit_code=1)}, "the phone refused: seen (PNG, ", UNKNOWN, 1, id="a picture among the words"),
    pytest.param({INPUT: shell(exit_code=None)}, "was lost in the middle", UNKNOWN, 1, id="a stream without its exit code"),
    pytest.param({INPUT: raw(b"OKAY" + packet(1, b"x" * 9)[:7])}, "was lost in the middle", UNKNOWN, 1, id="a packet that breaks off"),
    pytest.param({INPUT: shell(stderr=b"SecurityException: needs INJECT_EVENTS permission", exit_code=137)}, "enable 'USB debugging (Security settings)'", UNKNOWN, 1, id="a phone that forbids touches from outside"),
]  # fmt: skip


@pytest.mark.parametrize(("script", "message", "delivery", "sent"), FAULTS)
def test_a_tap_that_fails_says_why_was_sent_once_at_most_and_works_without_a_restart(
    script: Mapping[str, Reply], message: str, delivery: str, sent: int
) -> None:
    with fake_adb({SIZE: shell(b"Physical size: 30x60\n"), SHOT: shell(PICTURE)}) as server:
        phone, sound = AndroidDriver(PHONE, server.adb), dict(server.script)
        phone.take_screenshot()
        server.script.update(script)
        refused(lambda: phone.tap((1, 2)), message, delivery=delivery)
        assert server.scripts.count("input tap 1 2") == sent
        server.script = sound
        phone.tap((1, 2))
        assert server.scripts.count("input tap 1 2") == sent + 1


# What the phone says, what was to be done, what people are told.
EXPLAINED: list[Any] = [
    pytest.param({"shell": shell(exit_code=1)}, AndroidDriver.take_screenshot, "a secure window", id="no picture"),
    pytest.param({"shell": shell(b"", b"Capturing failed", 1)}, AndroidDriver.take_screenshot, "a secure window", id="a refused picture"),
    pytest.param({"shell": shell()}, AndroidDriver.take_screenshot, "a secure window", id="an empty picture"),
    pytest.param({"shell": shell(MANY + PICTURE)}, AndroidDriver.take_screenshot, "several displays and does not name them", id="displays without names"),
    pytest.param({"shell": shell(b"", b"ERROR: could not get idle state.", 1)}, AndroidDriver.ui_tree, "wait until it is still", id="a screen that moves"),
    pytest.param({"shell": shell(b"", b"ERROR: null root node returned", 1)}, AndroidDriver.ui_tree, "is off, locked", id="a screen without elements"),
    pytest.param({"shell": shell(b"Starting\nError: Activity class {a/a.B} does not exist.\n")}, lambda phone: phone.launch_app("a/a.B"), "Activity class {a/a.B} does not", id="no such activity, though the phone ends well"),
    pytest.param({"shell,v2,raw:pm": shell(b"package:a.b\n"), "shell,v2,raw:monkey": shell(b"** No activities found to run, monkey aborted.\n", exit_code=252)},
                 lambda phone: phone.launch_app("a.b"), "that package has nothing to launch", id="a package with nothing to launch"),
    pytest.param({}, lambda phone: phone.input_text("x" * 70_000), "too long for one command of adb", id="a text that no command can hold"),
]  # fmt: skip


@pytest.mark.parametrize(("script", "use", "message"), EXPLAINED)
def test_what_a_phone_cannot_do_is_explained(
    script: Mapping[str, Reply], use: Callable[[AndroidDriver], object], message: str
) -> None:
    with fake_adb(script) as server:
        refused(lambda: use(AndroidDriver(PHONE, server.adb)), message)


def test_a_command_may_take_longer_than_the_servers_own_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(adb, "REQUEST_SECONDS", 0.1)

    def slowly(peer: socket.socket) -> None:
        threading.Event().wait(0.3)
        shell(b"done")(peer)

    with fake_adb({"shell": slowly}) as server:
        assert server.adb.shell(PHONE, "sleep", LIMIT_S).text == "done"


ADDRESS = "127.0.0.1:16999"


@pytest.mark.parametrize(("serial", "given_up"), [(PHONE, False), (ADDRESS, True)], ids=["by cable", "by network"])
def test_a_phone_that_does_not_end_a_command_is_not_waited_for(
    monkeypatch: pytest.MonkeyPatch, serial: str, given_up: bool
) -> None:
    """By network, its connection is given up as well."""
    monkeypatch.setattr(android, "LAUNCH_SECONDS", 0.2)
    with fake_adb({LISTED: listing(f"{serial} device"), "shell": silence}) as server:
        phone = AndroidDriver(serial, server.adb)
        refused(lambda: phone.launch_app("a/.B"), "did not finish within 0.2 s", delivery=UNKNOWN)
        assert (server.requests[-1] == f"host:disconnect:{serial}") == given_up


def test_a_phone_by_network_is_connected_before_anything_is_sent() -> None:
    """The server answers OKAY to `host:connect` whatever came of it: only the text tells."""
    ready = {LISTED: listing(), f"host-serial:{ADDRESS}:wait-for-any-device": raw(b"OKAYOKAY")}
    with fake_adb(ready) as server:
        phone = AndroidDriver(ADDRESS, server.adb)
        for text in (f"failed to connect to '{ADDRESS}': Connection refused", "", "unable to connect"):
            server.script["host:connect:"] = okay(text)
            refused(lambda: phone.launch_app("a/.B"), "not reachable", delivery=NOT_SENT)
        assert server.scripts == []
        server.requests.clear()
        server.script["host:connect:"] = okay(f"connected to {ADDRESS}")
        phone.launch_app("a/.B")
        steps = [service.partition(":127")[0] for service in server.requests[1:4]]
        assert steps == ["host:disconnect", "host:connect", "host-serial"]
        assert server.scripts == ["am start -n a/.B"]


def test_without_a_serial_the_only_phone_is_meant_and_none_is_guessed() -> None:
    with fake_adb() as server:
        phone = AndroidDriver(None, server.adb)
        assert phone.probe().details["serial"] == PHONE
        server.script[LISTED] = listing("S1 device", "S2 device")
        refused(lambda: phone.launch_app("a/.B"), "several phones are attached (S1, S2)", delivery=NOT_SENT)
        for listed, state in ((listing(), "not found"), (listing("S1 unauthorized"), "unauthorized")):
            server.script[LISTED] = listed
            assert phone.probe().state == state


PROBES = [
    pytest.param({}, READY, id="a phone that takes commands"),
    pytest.param({LISTED: listing(f"{PHONE} unauthorized")}, "unauthorized", id="one without trust"),
    pytest.param({LISTED: listing()}, "not found", id="none"),
    pytest.param({"shell": silence}, OFFLINE, id="one that says nothing"),
    pytest.param({LISTED: silence}, "no adb server", id="a server that says nothing"),
]


@pytest.mark.parametrize(("script", "state"), PROBES)
def test_a_probe_says_how_the_phone_is(
    script: Mapping[str, Reply], state: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(android, "PROBE_SECONDS", 0.5)
    with fake_adb(script) as server:
        probe = AndroidDriver(PHONE, server.adb).probe()
        assert (probe.state, "error" in probe.details) == (state, state != READY)


# --- no server ---------------------------------------------------------------------------------


@pytest.fixture
def nowhere() -> int:
    """A port on which nothing listens."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port: int = taken.getsockname()[1]
    return port


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Puts an `adb` of that script before all others."""
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")

    def write(script: str) -> None:
        (tmp_path / "adb").write_text(f"#!/bin/sh\n{script}\n", "utf-8")
        (tmp_path / "adb").chmod(stat.S_IRWXU)

    return write


def test_a_server_is_started_where_that_is_allowed_and_else_it_is_said_how(
    nowhere: int, tmp_path: Path, program: Callable[[str], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    starting = AdbClient(port=nowhere, start=True)
    program(f'echo "$@" >> {tmp_path}/started')
    probe = AndroidDriver(PHONE, AdbClient(port=nowhere)).probe()
    assert (probe.state, probe.details["error"].rpartition("cure: ")[2]) == ("no adb server", f"adb -P {nowhere} start-server")  # fmt: skip
    assert not (tmp_path / "started").exists()
    refused(starting.devices, "it was started, and does not answer yet", error=AdbServerMissing)
    assert (tmp_path / "started").read_text("utf-8") == f"-P {nowhere} start-server\n"
    program("exit 3")
    refused(starting.devices, "adb start-server failed", error=AdbServerMissing)
    (tmp_path / "adb").unlink()
    monkeypatch.setenv("PATH", str(tmp_path))
    for client in (starting, AdbClient(port=nowhere)):
        refused(client.devices, "apt-get install adb", error=AdbServerMissing)


def test_many_calls_start_it_once(nowhere: int, tmp_path: Path, program: Callable[[str], None]) -> None:
    """The stand-in for `adb` serves as soon as it is started, as the real one does."""
    program(f"echo once >> {tmp_path}/started; touch {tmp_path}/up; while [ -e {tmp_path}/up ]; do :; done")
    server = AdbClient(port=nowhere, start=True)
    with ExitStack() as stack, threads() as pool:
        calls = [pool.submit(server.devices) for _ in range(4)]
        until((tmp_path / "up").exists, "the start")
        stack.enter_context(fake_adb(port=nowhere))
        (tmp_path / "up").unlink()
        assert [[phone.serial for phone in result(call)] for call in calls] == [[PHONE]] * 4
    assert (tmp_path / "started").read_text("utf-8") == "once\n"


# --- the command line --------------------------------------------------------------------------


def test_the_command_line_names_phones_and_remedies(
    tmp_path: Path, nowhere: int, capsys: pytest.CaptureFixture[str]
) -> None:
    flags = {"config": str(tmp_path / "host.toml"), "data": str(tmp_path / "data")}

    def devices(port: int, *words: str) -> tuple[int, str]:
        (tmp_path / "host.toml").write_text(f'[host]\nadb_server = "127.0.0.1:{port}"\n', "utf-8")
        code = cli.host_main(["devices", *words, "--config", flags["config"], "--data", flags["data"]])
        return code, "".join(capsys.readouterr())

    assert devices(nowhere, "add", "p", "--kind", "android", "--serial", PHONE)[0] == 0
    for verb in ("scan",), ("test", "p"):
        code, told = devices(nowhere, *verb)
        assert (code, "no adb server answers" in told) == (1, True)
    with fake_adb({LISTED: listing("S1 device model:Pixel_8 transport_id:1", "S2 unauthorized")}) as server:
        code, told = devices(server.adb.port, "scan")
        assert (code, told.startswith("S1  device  Pixel 8\nS2  unauthorized  cure: unlock the phone")) == (0, True)
        code, told = devices(server.adb.port, "test", "p")
        assert (code, json.loads(told)["state"]) == (0, READY)
        server.script[LISTED] = listing()
        assert devices(server.adb.port, "scan") == (1, "")
        server.script[LISTED] = listing(f"{PHONE} unauthorized")
        found = {each.name: each.result for each in doctor.examine(lambda: host_config.load(flags, environ={}))}
        assert found["device p"].message == "device S1 unauthorized"
        assert found["device p"].remedy.startswith("unlock the phone")
