"""Three real adb daemons behind a real adb server, driven over MCP by a client that people use."""

from __future__ import annotations

import base64
import signal
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from typing import Any

import pytest

from mcpboard.errors import ToolFailed
from mcpboard.host.drivers.android import AndroidDriver
from mcpboard.host.drivers.android.adb import AdbClient
from mcpboard.host.drivers.android.discovery import SILENT, AdbDiscovery
from mcpboard.host.drivers.base import READY
from tests.deploy.rooms import until
from tests.host.drivers import png
from tests.host.drivers.lab import FIRST_PORT, LIMIT_S, Phone, Room, room
from tests.host.rig import Agent, agent, result, threads
from tests.support.visitors import CLIENTS, Visitor, visit

pytestmark = [pytest.mark.tools]

LOST_S = 6.0  # within which the loss of a phone is reported, whatever was to last
MODERN_SDK = next(each for each in CLIENTS if each.name == "Python mcp 2.3")
QUOTED = 'it\'s "$HOME" `id` $(id) 100%sure %% a\\b ; | & * ~ #1\n\t-end '


@dataclass
class Lab:
    """Three phones A, B and C, the agent that drives them, and a client of it."""

    room: Room
    phones: dict[str, Phone]
    agent: Agent
    client: Visitor

    def call(self, tool: str, device: str, **arguments: Any) -> Any:
        return self.client.ask("tools/call", tool, {**arguments, "device_id": device})

    def text(self, tool: str, device: str, **arguments: Any) -> str:
        got = self.call(tool, device, **arguments)
        assert "content" in got, got
        return str(got["content"][-1]["text"])

    def states(self) -> list[str]:
        listed = self.client.ask("tools/call", "list_devices", {})["structuredContent"]["devices"]
        return [each["state"] for each in listed]


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    with room(tmp_path_factory.mktemp("lab")) as inside:
        phones = {name: Phone(inside, FIRST_PORT + number) for number, name in enumerate("ABC")}
        for phone in phones.values():
            phone.start()
        adb = AdbClient(port=inside.port)
        drivers: dict[str, Any] = {name: AndroidDriver(phone.serial, adb) for name, phone in phones.items()}
        with (
            agent(tmp_path_factory.mktemp("agent") / "data", **drivers) as host,
            visit(MODERN_SDK, [host.url], host.token) as client,
        ):
            yield Lab(inside, phones, host, client)


def test_each_phone_answers_for_itself_its_picture_byte_for_byte(lab: Lab) -> None:
    assert lab.states() == [READY] * 3
    told = {
        "battery": 71, "screen_on": True, "rotation": 0, "width": 540, "height": 1200, "override_size": [540, 1200],
        "app": "com.android.settings",
    }  # fmt: skip
    for light, (name, phone) in enumerate(lab.phones.items()):
        status = lab.call("device_status", name)["structuredContent"]
        assert status.items() >= {**told, "model": phone.model}.items()
        picture = png(540, 1200, light=100 + light)
        (phone.folder / "picture.png").write_bytes(picture)
        shown, caption = lab.call("take_screenshot", name)["content"]
        assert base64.b64decode(shown["data"]) == picture
        assert (shown["mimeType"], caption["text"]) == ("image/png", f"540x1200 {name}")


def test_every_action_reaches_its_phone_once_and_whole(lab: Lab) -> None:
    for name, phone in lab.phones.items():
        before = len(phone.calls)
        lab.text("tap", name, x=5, y=7)
        lab.text("swipe", name, start_x=5, start_y=900, end_x=8, end_y=90, duration_ms=120)
        lab.text("launch_app", name, app_id="Notes")
        lab.text("launch_app", name, app_id="org.example.notes/.Main")
        assert phone.calls[before:] == [
            ["input", "tap", "5", "7"],
            ["input", "swipe", "5", "900", "8", "90", "120"],
            ["monkey", "-p", "org.example.notes", "-c", "android.intent.category.LAUNCHER", "1"],
            ["am", "start", "-n", "org.example.notes/.Main"],
        ]


def test_text_arrives_as_it_is_through_every_shell_between(lab: Lab) -> None:
    """A space is sent as `%s`; a new line and a tab are keys."""
    before = len(lab.phones["A"].calls)
    lab.text("input_text", "A", text=QUOTED)
    keys = {"66": "\n", "61": "\t"}
    calls = lab.phones["A"].calls[before:]
    typed = [keys[word] if kind == "keyevent" else word.replace("%s", " ") for _, kind, word in calls]
    assert "".join(typed) == QUOTED


def test_the_elements_are_found_where_they_are_to_be_tapped(lab: Lab) -> None:
    (match,) = lab.call("find_text", "B", query="Wi-Fi & more")["structuredContent"]["matches"]
    assert (match["center"], match["source"]) == ([270, 140], "tree")
    found = lab.call("get_ui_tree", "B", include_app_info=True)["structuredContent"]
    assert found["app"] == {"id": "com.android.settings", "activity": "com.android.settings.Settings"}
    assert found["tree"]["children"][0]["children"][0]["id"] == "android:id/title"
    assert '[1] text "Wi-Fi & more" @270,140' in lab.text("describe_screen", "B")


def test_a_phone_killed_in_the_middle_of_a_swipe(lab: Lab) -> None:
    """Its error comes in less than six seconds, the others notice nothing, and it is back with its daemon."""
    doomed = lab.phones["A"]
    before = len(doomed.calls)
    with threads() as pool, visit(MODERN_SDK, [lab.agent.url], lab.agent.token) as other:
        ends = {"start_x": 5, "start_y": 900, "end_x": 8, "end_y": 90}
        swiping = pool.submit(lab.call, "swipe", "A", **ends, duration_ms=10_000)
        until(lambda: len(doomed.calls) > before, "the beginning of the swipe", LIMIT_S)
        assert "content" in other.ask("tools/call", "tap", {"x": 1, "y": 1, "device_id": "B"})
        doomed.kill()
        error = swiping.result(LOST_S)["error"]
    assert "was lost in the middle of the command; look at the screen before repeating it" in error["message"]
    assert (error["code"], error["data"]["delivery"]) == (-32000, "unknown")
    for name in "BC":
        assert lab.text("tap", name, x=2, y=2) == f"tapped 2,2 on {name}"
    assert lab.states() == ["not reachable", READY, READY]
    assert "cure: " in lab.call("tap", "A", x=1, y=1)["error"]["message"]
    doomed.start()
    assert lab.text("tap", "A", x=3, y=3) == "tapped 3,3 on A"
    assert doomed.calls[before:] == [["input", "swipe", "5", "900", "8", "90", "10000"], ["input", "tap", "3", "3"]]


def test_a_phone_that_falls_silent_is_told_and_comes_back(lab: Lab) -> None:
    """Its connections stay open, so nobody but a clock can know."""
    lab.phones["B"].process.send_signal(signal.SIGSTOP)
    try:
        assert lab.states() == [READY, "offline", READY]
        assert lab.text("tap", "C", x=2, y=2)
    finally:
        lab.phones["B"].process.send_signal(signal.SIGCONT)
    assert lab.text("tap", "B", x=2, y=2)
    assert lab.states() == [READY] * 3


def test_a_server_that_is_restarted_is_found_again(lab: Lab) -> None:
    lab.room.kill_server()
    with threads() as pool:
        waiting = pool.submit(lab.call, "tap", "A", x=1, y=1)  # the socket listens on, so this waits for the new server
        lab.room.start_server()
        result(waiting)
    for name in "ABC":
        assert lab.text("tap", name, x=4, y=4) == f"tapped 4,4 on {name}"


def test_discovery_follows_what_comes_goes_and_dies_in_silence(lab: Lab) -> None:
    phone = Phone(lab.room, FIRST_PORT + 3)
    adb = AdbClient(port=lab.room.port)
    with pytest.raises(ToolFailed, match="not reachable"):
        adb.connect(phone.serial)
    seen: list[str | None] = []

    def changed(phones: Any) -> None:
        seen.append(next((each.state for each in phones if each.serial == phone.serial), None))

    with closing(AdbDiscovery(adb, changed, 0.3)):
        try:
            phone.start()
            adb.connect(phone.serial)
            until(lambda: seen[-1:] == ["device"], f"the phone: {seen}", LIMIT_S)
            phone.process.send_signal(signal.SIGSTOP)
            until(lambda: SILENT in seen, f"its silence: {seen}", LIMIT_S)
            phone.process.send_signal(signal.SIGCONT)
            until(lambda: seen[-1] == "device", f"its return: {seen}", LIMIT_S)
            adb.disconnect(phone.serial)
            until(lambda: seen[-1] is None, f"its farewell: {seen}", LIMIT_S)
        finally:
            phone.kill()
