"""An action that breaks in an odd place: its caller always hears what became of it, and nothing is done twice."""

from __future__ import annotations

import argparse
import threading
from pathlib import Path
from typing import Any

import pytest

from mcpboard.cli.host import run as run_verb
from mcpboard.errors import DONE, NOT_SENT, UNKNOWN, ToolFailed
from mcpboard.host.cloud.assignment import AssignmentRun
from mcpboard.host.devices.manager import DeviceManager
from mcpboard.host.drivers.android import AndroidDriver, shell_commands
from mcpboard.host.drivers.android import adb as adb_client
from mcpboard.host.drivers.base import Driver, Point
from mcpboard.host.drivers.iphone import IPhoneDriver
from mcpboard.protocol.limits import HOST_STACK_BYTES
from mcpboard.serving import server
from mcpboard.simulator.cloud.scheduler import Scheduler
from tests.host.cloud.rig import LOOK, TAP, taking_part
from tests.host.drivers import png
from tests.host.drivers.fake_adb import PHONE, fake_adb, hang_up, raw, shell, silence
from tests.host.drivers.fake_wda import FakePhone, WdaFault, fake_wda
from tests.host.rig import Fake, agent

ACTIONS: dict[str, dict[str, Any]] = {"tap": {"x": 1, "y": 1}, "swipe": {"start_x": 1, "start_y": 1, "end_x": 2, "end_y": 2}, "input_text": {"text": "hello"}, "launch_app": {"app_id": "Notes"}}  # fmt: skip


class Panic(BaseException):
    """What no `except Exception` catches, as the bindings of some libraries raise it."""


class Wordless(Exception):
    def __str__(self) -> str:
        raise ValueError


FAULTS = [
    (Panic("of a library"), UNKNOWN), (KeyboardInterrupt(), UNKNOWN), (SystemExit(1), UNKNOWN), (Wordless(), UNKNOWN), (MemoryError(), UNKNOWN),
    (RecursionError("too deep"), UNKNOWN), (OSError("cannot identify image file"), UNKNOWN), (KeyError("a bug"), UNKNOWN),
    (ToolFailed("it fell silent"), UNKNOWN), (ToolFailed("it did", delivery=DONE), DONE), (ToolFailed("it did not", delivery=NOT_SENT), NOT_SENT),
]  # fmt: skip


@pytest.mark.parametrize("tool", ACTIONS)
def test_what_breaks_inside_an_action_leaves_its_outcome_known(tmp_path: Path, tool: str) -> None:
    """Once at the device, then free for the next call of the same owner; a look that breaks has nothing to say of it."""
    phone = Fake()
    with agent(tmp_path, phone=phone) as host:
        caller = host.caller.open()
        for fault, delivery in FAULTS:
            phone.done, phone.fault = [], fault
            error = caller.call(tool, **ACTIONS[tool]).error
            assert (error["code"], error["data"]) == (-32000, {"delivery": delivery})
            assert ("look at the screen" in error["message"]) == (delivery == UNKNOWN)
            assert len(phone.done) == 1
            if not isinstance(fault, ToolFailed):
                assert "data" not in caller.call("take_screenshot").error
            phone.fault = None
            assert caller.call("take_screenshot").result
            assert [each.idle_s for each in host.role.manager.states()] == [0.0], "its lease is kept, no call is inside"


@pytest.mark.parametrize("fault", [MemoryError(), Panic(), ToolFailed("it may have", delivery=UNKNOWN)], ids=repr)
def test_what_breaks_before_an_action_is_told_as_not_sent(tmp_path: Path, fault: BaseException) -> None:
    """A point needs the size of the screen first, and to ask for it moves nothing."""

    class Sizeless(Fake):
        def size(self) -> Point:
            raise fault

    phone = Sizeless()
    with agent(tmp_path, phone=phone) as host:
        for tool in ("tap", "swipe"):
            error = host.caller.call(tool, **ACTIONS[tool]).error
            assert error["data"] == {"delivery": NOT_SENT}
            assert error["message"].startswith(f"{tool} was not begun, so nothing was done: ")
    assert phone.done == []


def test_what_breaks_behind_an_action_hides_it_from_nobody(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    phone = Fake()
    with agent(tmp_path, phone=phone) as host:
        ended = DeviceManager._end_call

        def break_behind(manager: DeviceManager, device_id: str, number: int) -> None:
            ended(manager, device_id, number)
            raise MemoryError

        monkeypatch.setattr(DeviceManager, "_end_call", break_behind)
        error = host.caller.call("tap", x=1, y=1).error
    assert error["data"] == {"delivery": UNKNOWN}
    assert phone.done == [("tap", (1, 1))]


def test_a_call_that_never_came_to_its_device_is_told_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken() -> None:
        raise OSError("the disk of devices.json")

    with agent(tmp_path, phone=Fake()) as host:
        monkeypatch.setattr(host.role, "follow", broken)
        error = host.caller.call("tap", x=1, y=1).error
        assert (error["message"], error["data"]) == ("the disk of devices.json", {"delivery": NOT_SENT})


# --- Android -----------------------------------------------------------------------------------------

SIZE = f"shell,v2,raw:{shell_commands.SCREEN}"
SHOT = "shell,v2,raw:screencap"
TAPPING = "shell,v2,raw:input"
ADDRESS = "127.0.0.1:5555"
# What the phone answers, what is told of the tap, and how many were sent.
ADB: list[tuple[dict[str, Any], str, int]] = [
    ({TAPPING: raw(b"OKAY" + b"\1\xff\xff\xff\x7f")}, UNKNOWN, 1),  # more output than is read
    ({TAPPING: hang_up}, UNKNOWN, 1),
    ({TAPPING: shell(b"", b"Killed", 137)}, UNKNOWN, 1),
    ({SIZE: hang_up}, NOT_SENT, 0),
    ({SIZE: shell(b"cur=0x0")}, NOT_SENT, 0),
    ({SIZE: shell(b"cur=" + b"9" * 5000 + b"x1")}, NOT_SENT, 0),
    ({SHOT: shell(b"GIF89a")}, NOT_SENT, 0),
    ({SHOT: shell(png(30, 60)[:-20])}, NOT_SENT, 0),
]


def act(tmp_path: Path, driver: Driver) -> Any:
    with agent(tmp_path, phone=driver) as host:
        return host.caller.call("tap", x=1, y=1).error


@pytest.mark.parametrize(("script", "delivery", "taps"), ADB)
def test_an_android_phone_that_breaks_off(tmp_path: Path, script: Any, delivery: str, taps: int) -> None:
    with fake_adb({SHOT: shell(png(30, 60)), **script}) as adb:
        error = act(tmp_path, AndroidDriver(PHONE, adb.adb))
        assert error["data"] == {"delivery": delivery}
        assert sum(each.startswith("input") for each in adb.scripts) == taps


def test_a_silent_phone_by_network_is_not_told_as_not_sent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The tap is out, and the server that should forget the dead connection is silent, too: that says nothing of the tap."""
    monkeypatch.setattr("mcpboard.host.drivers.android.ACT_SECONDS", 0.2)
    monkeypatch.setattr(adb_client, "REQUEST_SECONDS", 0.5)
    listed = raw(b"OKAY" + b"%04x" % (len(ADDRESS) + 8) + f"{ADDRESS} device\n".encode())
    script = {"host:devices-l": listed, SHOT: shell(png(30, 60)), TAPPING: silence, "host:disconnect:": hang_up}
    with fake_adb(script) as adb:
        error = act(tmp_path, AndroidDriver(ADDRESS, adb.adb))
        assert error["data"] == {"delivery": UNKNOWN}
        assert "did not finish within 0.2 s; look at the screen before repeating it" in error["message"]
        assert sum(each.startswith("input") for each in adb.scripts) == 1


STARTS: list[tuple[bytes | None, str]] = [
    (None, NOT_SENT),  # nothing was started: the list of apps did not come
    (b"Error type 3\nError: Activity class {a/b} does not exist.", NOT_SENT),
    (b"Error: Activity not started, unable to resolve Intent", NOT_SENT),
    (b"Error while the app came up", UNKNOWN),
]


@pytest.mark.parametrize(("output", "delivery"), STARTS)
def test_only_what_am_says_it_has_not_started_was_not_sent(output: bytes | None, delivery: str) -> None:
    with fake_adb({"shell": shell(output) if output else hang_up}) as adb, pytest.raises(ToolFailed) as failed:
        AndroidDriver(PHONE, adb.adb).launch_app("org.example/.Main" if output else "Notes")
    assert failed.value.delivery == delivery


# --- iPhone ------------------------------------------------------------------------------------------

DEEP = b'{"value":' + b"[" * 5000 + b"]" * 5000 + b"}"
WDA: list[tuple[str, Any, str]] = [
    ("/wda/tap", lambda: b"<html>hello</html>", UNKNOWN),
    ("/wda/tap", lambda: b'{"value":', UNKNOWN),
    ("/wda/tap", lambda: DEEP, UNKNOWN),
    ("/wda/tap", lambda: b'{"value":[' + b"[]," * 20_000 + b"[]]}", UNKNOWN),  # too many lists
    ("/wda/tap", lambda: b" " * (2 << 20), UNKNOWN),
    ("/wda/tap", WdaFault("unknown error", 500, "boom"), UNKNOWN),
    ("/wda/tap", WdaFault("timeout", 408), UNKNOWN),
    ("/wda/tap", WdaFault("invalid session id", 404), NOT_SENT),
    ("/wda/tap", WdaFault("invalid argument", 400), NOT_SENT),
    ("/window/size", lambda: DEEP, NOT_SENT),
    ("/window/size", lambda: b"<html>", NOT_SENT),
    ("/screenshot", lambda: b"<html>", NOT_SENT),
    ("/screenshot", lambda: "AAAA", NOT_SENT),
    ("/session", lambda: b"<html>", NOT_SENT),
]


@pytest.mark.parametrize(("route", "answer", "delivery"), WDA)
def test_an_iphone_that_answers_oddly(tmp_path: Path, route: str, answer: Any, delivery: str) -> None:
    phone = FakePhone()
    phone.faults[route] = answer
    with fake_wda(phone) as url:
        error = act(tmp_path, IPhoneDriver(url))
    assert error["data"] == {"delivery": delivery}
    assert sum(each.endswith("/wda/tap") for each in phone.requests) == (route == "/wda/tap")
    assert ("look at the screen" in error["message"]) == (delivery == UNKNOWN)


# --- the cloud ---------------------------------------------------------------------------------------


def test_a_step_whose_result_cannot_be_kept_is_told_as_executed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: Any) -> None:
        raise MemoryError

    monkeypatch.setattr(AssignmentRun, "record", broken)
    phone = Fake()
    with Scheduler() as scheduler, taking_part(tmp_path, scheduler, X=phone):
        outcome = scheduler.outcome(scheduler.dispatch("X", [TAP, LOOK]))
    reason = "step 1, tap, was executed, and its result cannot be reported: MemoryError"
    assert (outcome["failure_reason"], outcome["retryable"]) == (reason, False)
    assert phone.done == [("tap", (1, 2))]


STEPS = [(MemoryError(), False), (ToolFailed("perhaps", delivery=UNKNOWN), False), (ToolFailed("it did", delivery=DONE), False), (ToolFailed("no", delivery=NOT_SENT), True)]  # fmt: skip


@pytest.mark.parametrize(("fault", "retryable"), STEPS, ids=repr)
def test_only_what_touched_nothing_may_be_given_out_again(tmp_path: Path, fault: Exception, retryable: bool) -> None:
    phone = Fake()
    phone.fault = fault
    with Scheduler() as scheduler, taking_part(tmp_path, scheduler, X=phone) as host:
        outcome = scheduler.outcome(scheduler.dispatch("X", [TAP]))
        assert (outcome["failure_code"], outcome["retryable"]) == ("step_failed", retryable)
        phone.fault = None
        assert host.caller.call("tap", x=1, y=1).text, "its lease is over"


# --- threads -----------------------------------------------------------------------------------------


def test_threads_of_a_host_have_a_stack_of_a_stated_size(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sizes: list[int] = []

    def serve(*_: Any) -> int:
        sizes.append(threading.stack_size())
        return 0

    monkeypatch.setattr(server, "serve", serve)
    arguments = argparse.Namespace(data=str(tmp_path), config=None, demo=False, port="0")
    before = threading.stack_size()
    try:
        assert run_verb.run(arguments) == 0
    finally:
        threading.stack_size(before)
    assert sizes == [HOST_STACK_BYTES]
