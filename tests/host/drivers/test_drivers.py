"""The drivers: a phone in memory, and a board of ours at the other end of a real socket."""

from __future__ import annotations

import base64
import contextlib
import json
import socket
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from mcpboard import board as board_role
from mcpboard.client import Client
from mcpboard.errors import DONE, NOT_SENT, UNKNOWN, ConfigError
from mcpboard.host.devices.registry import DeviceSpec
from mcpboard.host.drivers import factory
from mcpboard.host.drivers.android import AndroidDriver
from mcpboard.host.drivers.base import OFFLINE, READY, UnavailableDriver
from mcpboard.host.drivers.board import BoardDriver
from mcpboard.host.drivers.images import image_size
from mcpboard.host.drivers.iphone import IPhoneDriver
from mcpboard.host.drivers.simulated import SimulatedDriver
from mcpboard.host.vision.find import icon_in_tree, text_in_tree
from mcpboard.protocol.results import call_result
from mcpboard.serving import server
from mcpboard.simulator import Simulator
from tests.host.drivers import answering, refused
from tests.host.rig import agent
from tests.support import rig, served
from tests.support.http import LIMIT_S, Caller

# --- phones in memory --------------------------------------------------------------------------


@pytest.fixture
def phone() -> SimulatedDriver:
    return SimulatedDriver(clock=lambda: 0.0)


def test_a_phone_that_was_turned_is_tapped_in_the_screenshot_that_was_seen(phone: SimulatedDriver) -> None:
    """Or in the tree: its boxes are pixels of the screenshot that would be taken."""
    assert phone.size() == (498, 1080)
    phone.take_screenshot()
    phone.phone.turn("Landscape", True)
    assert phone.size() == (498, 1080)
    tree = phone.ui_tree()
    assert tree is not None
    assert phone.size() == tree.box[2:] == (1920, 886)
    x, y = icon_in_tree(tree, "Notes")[0]["center"]
    phone.tap((x, y))
    assert phone.app_info() == {"id": "Notes", "name": "Notes"}
    shot = phone.take_screenshot()
    assert image_size(shot.content) == (shot.width, shot.height) == phone.size() == (1920, 886)
    phone.phone.turn("Landscape", False)
    phone.new_owner()
    assert phone.size() == (498, 1080)


def test_what_a_phone_in_memory_does_is_seen_in_its_tree_and_what_it_cannot_do_is_told(phone: SimulatedDriver) -> None:
    phone.launch_app("settings")
    phone.swipe((249, 900), (249, 300), 300)
    phone.tap(found(phone, "Battery"))
    assert phone.phone.view().page == "Battery"
    phone.launch_app("Notes")
    refused(lambda: phone.input_text("lost"), "no text field has the focus: tap into one first")
    phone.tap((249, 300))
    refused(lambda: phone.input_text("ring\a"), "cannot type U+0007 control character", "nothing was typed")
    phone.input_text("Grüße 你好\n")
    assert phone.phone.text == "Grüße 你好\n"
    assert found(phone, "Grüße 你好")
    refused(lambda: phone.launch_app("Chess"), "no app is called 'Chess'; there are Settings, Notes")


def found(phone: SimulatedDriver, text: str) -> tuple[int, int]:
    tree = phone.ui_tree()
    assert tree is not None
    x, y = text_in_tree(tree, text)[0]["center"]
    return x, y


# --- boards ------------------------------------------------------------------------------------


class Rack:
    """A simulated board with our board role in front of it, on a port that it keeps."""

    def __init__(self, simulator: Simulator) -> None:
        self.simulator = simulator
        settings = rig.settings(simulator.agent_url, simulator.config_web_url)
        self._app = board_role.build(lambda: settings)
        self._stack = contextlib.ExitStack()
        self.port = 0

    def plug_in(self) -> None:
        sockets = server.listeners([("127.0.0.1", self.port)])
        self.port = sockets[0].getsockname()[1]
        self.url = self._stack.enter_context(served.thread(self._app, sockets))

    def unplug(self) -> None:
        self._stack.close()

    @property
    def gestures(self) -> list[dict[str, Any]]:
        return [given for name, given in self.simulator.calls if name == "touch_gesture"]


@pytest.fixture
def rack() -> Iterator[Rack]:
    with Simulator(speed=100) as simulator:
        found = Rack(simulator)
        found.plug_in()
        yield found
        found.unplug()


@pytest.fixture
def board(rack: Rack) -> BoardDriver:
    return BoardDriver(rack.url)


def test_pixels_of_the_screenshot_become_the_boards_units(rack: Rack, board: BoardDriver) -> None:
    """The first and the last pixel are the edges."""
    shot = board.take_screenshot()
    assert (board.size(), shot.width, shot.height, shot.mime) == ((498, 1080), 498, 1080, "image/jpeg")
    for pixel in ((0, 0), (497, 1079), (249, 540)):
        board.tap(pixel)
    board.swipe((0, 1079), (497, 0), 250)
    taps = [{"type": "tap", "point": {"x": x, "y": y}} for x, y in ((0, 0), (1000, 1000), (501.01, 500.46))]
    ends = {"start": {"x": 0, "y": 1000}, "end": {"x": 1000, "y": 0}}
    assert rack.gestures == [*taps, {"type": "swipe", **ends, "duration_ms": 250}]


def test_text_goes_where_the_last_tap_went(rack: Rack, board: BoardDriver) -> None:
    refused(lambda: board.input_text("hello"), "tap into the text field first", delivery=NOT_SENT)
    board.launch_app("Notes")
    board.tap((249, 300))
    board.input_text("hello")
    assert rack.simulator.phone.text == "hello"
    for forget in (board.new_owner, lambda: board.launch_app("Notes"), lambda: board.swipe((0, 0), (9, 9), 9)):
        board.tap((249, 300))
        forget()
        refused(lambda: board.input_text("where somebody tapped before"), "tap into the text field first")


def test_a_board_has_no_tree_and_says_what_to_do_instead(rack: Rack, board: BoardDriver, tmp_path: Path) -> None:
    with agent(tmp_path / "data", B=board) as host:
        error = host.caller.call("get_ui_tree").error
        assert (error["code"], error["message"]) == (-32000, "no UI tree on a board; use describe_screen")


def test_what_a_board_says_comes_without_pictures(board: BoardDriver, monkeypatch: pytest.MonkeyPatch) -> None:
    """Older boards put those of their steps into the text."""
    told = "a step failed: " + base64.b64encode(b"\xff\xd8\xff" + b"x" * 2997).decode()
    raw = {"content": [{"type": "text", "text": told}], "isError": True, "structuredContent": {"delivery": DONE}}
    monkeypatch.setattr(Client, "call", lambda *_: call_result(raw))
    refused(lambda: board.launch_app("Mail"), "a step failed: (JPEG, 3 kB, left out)", delivery=DONE)
    raw["isError"] = False
    refused(board.take_screenshot, "no screenshot: a step failed: (JPEG, 3 kB, left out)")


def test_a_board_that_is_away_is_offline_and_back_without_a_restart(
    rack: Rack, board: BoardDriver, tmp_path: Path
) -> None:
    """And what it says of the delivery itself is passed on."""
    with agent(tmp_path / "data", B=board) as host:
        caller = host.caller.open()
        assert caller.call("tap", x=1, y=1).text
        error = caller.call("swipe", start_x=5, start_y=5, end_x=5, end_y=5).error
        assert (error["code"], error["data"]) == (-32000, {"delivery": NOT_SENT})
        assert "start and end must differ" in error["message"]
        rack.unplug()
        for _ in range(2):
            error = caller.call("tap", x=1, y=1).error
            assert (error["code"], error["data"]) == (-32000, {"delivery": NOT_SENT})
            assert "no connection could be made" in error["message"]
        assert json.loads(caller.call("list_devices").text)[0]["state"] == OFFLINE
        rack.plug_in()
        assert caller.call("tap", x=1, y=1).text
        assert json.loads(caller.call("list_devices").text)[0]["state"] == READY
    made = [each["type"] for each in rack.gestures]
    assert made == ["tap", "swipe", "tap"], "nothing that did not get there is made up for"


def test_a_tap_whose_response_is_lost_is_made_once_and_reported_unknown(rack: Rack, tmp_path: Path) -> None:
    """At most once: the cable breaks after the board has the tap."""

    def relay(near: socket.socket) -> None:
        near.settimeout(LIMIT_S)
        with socket.create_connection(("127.0.0.1", rack.port), LIMIT_S) as far, near.makefile("rb") as stream:
            head = b"".join(iter(stream.readline, b"\r\n")) + b"\r\n"
            length = next(line for line in head.lower().splitlines() if line.startswith(b"content-length:"))
            request = head + stream.read(int(length.split(b":")[1]))
            far.sendall(request)
            if b"touch_gesture" in request:
                far.recv(1)  # the board has answered: the deed is done
                return
            while piece := far.recv(65536):
                near.sendall(piece)

    with answering(relay) as port, agent(tmp_path / "data", B=BoardDriver(f"http://127.0.0.1:{port}/mcp")) as host:
        host.caller.call("take_screenshot")
        error = host.caller.call("tap", x=1, y=1).error
        assert (error["code"], error["data"]) == (-32000, {"delivery": UNKNOWN})
        rack.simulator.wait_for_finish("touch_gesture")
    assert len(rack.gestures) == 1


# The second is refused by the board.
NEXT_ACTIONS = [("tap", {"x": 1, "y": 1}), ("swipe", {"start_x": 5, "start_y": 5, "end_x": 5, "end_y": 5})]


@pytest.mark.parametrize(("tool", "arguments"), NEXT_ACTIONS)
def test_what_the_board_tells_of_an_earlier_action_reaches_the_client(
    rack: Rack, board: BoardDriver, tmp_path: Path, tool: str, arguments: dict[str, int]
) -> None:
    """The board tells it once, to whoever acts next, and here that is a client of the host."""
    with agent(tmp_path / "data", B=board) as host:
        host.caller.call("take_screenshot")
        with rack.simulator.hold("open_url") as hold:
            leaving = Caller(rack.url).begin("open_url", url="http://127.0.0.1/")
            assert hold.entered.wait(LIMIT_S)
            leaving.leave(reset=True)
            with contextlib.closing(BoardDriver(rack.url)) as other:
                other.probe()  # the board looks at its connections in turn: now it knows who has left
        rack.simulator.wait_for_finish("open_url")
        texts: list[str] = []
        while not texts or "running for" in texts[-1]:  # the earlier one's reply is on its way to nobody
            answer = host.caller.call(tool, **arguments)
            texts.append(answer.error["message"] if "error" in answer.json else answer.text)
        again = host.caller.call("tap", x=2, y=2).text
    assert sum("The earlier open_url finished OK" in text for text in texts) == 1, texts
    assert "The earlier" not in again


def test_a_board_is_reached_by_its_own_interface(rack: Rack) -> None:
    """All boards share one address: the interface tells them apart."""
    loopback = "lo0" if sys.platform == "darwin" else "lo"
    board, nowhere = BoardDriver(rack.url, loopback), BoardDriver(rack.url, "usb99")
    board.tap((1, 1))
    probe = board.probe()
    assert (probe.state, probe.details["url"]) == (READY, f"{rack.url} on {loopback}")
    refused(lambda: nowhere.tap((1, 1)), "no connection could be made", delivery=NOT_SENT)
    assert nowhere.probe().state == OFFLINE
    assert len(rack.gestures) == 1


# --- the factory -------------------------------------------------------------------------------


def test_each_kind_has_its_driver_or_one_that_says_why_not(monkeypatch: pytest.MonkeyPatch) -> None:
    kinds = {"board": BoardDriver, "simulated": SimulatedDriver, "android": AndroidDriver, "iphone": IPhoneDriver}
    for kind, driver in kinds.items():
        spec = DeviceSpec("a", kind)
        factory.check(spec)
        assert isinstance(factory.driver(spec), driver)
    for kind in ("iphone", "board"):
        spec = DeviceSpec("a", kind, url="ftp://x")
        with pytest.raises(ConfigError, match="a URL such as"):
            factory.check(spec)
        unavailable = factory.driver(spec)
        assert isinstance(unavailable, UnavailableDriver)
        assert unavailable.probe().state == "no driver"
        unavailable.new_owner()
        unavailable.close()
        refused(lambda: unavailable.tap((1, 1)), "remove it and add it again")  # noqa: B023
    monkeypatch.setitem(sys.modules, "mcpboard.host.drivers.simulated", None)
    assert "pip install 'mcpboard[simulator]'" in factory.driver(DeviceSpec("a", "simulated")).probe().details["error"]
