"""The drivers: a phone in memory, and a board of ours at the other end of a real socket."""

from __future__ import annotations

import contextlib
import json
import socket
import struct
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from mcpboard import board as board_role
from mcpboard import config
from mcpboard.errors import ConfigError, ToolFailed
from mcpboard.host.devices.registry import DeviceSpec
from mcpboard.host.drivers import factory
from mcpboard.host.drivers.android import AndroidDriver
from mcpboard.host.drivers.base import OFFLINE, READY, UnavailableDriver
from mcpboard.host.drivers.board import BoardDriver
from mcpboard.host.drivers.images import image_size
from mcpboard.host.drivers.iphone import IPhoneDriver
from mcpboard.host.drivers.simulated import SimulatedDriver
from mcpboard.host.vision import types
from mcpboard.host.vision.find import icon_in_tree, text_in_tree
from mcpboard.serving import server
from mcpboard.simulator import Simulator
from tests.bench import traffic
from tests.host.rig import agent, result, threads
from tests.support.http import LIMIT_S

# --- the size of pictures ----------------------------------------------------------------------


# --- phones in memory --------------------------------------------------------------------------


@pytest.fixture
def phone() -> SimulatedDriver:
    return SimulatedDriver(clock=lambda: 0.0)


def center(tree: Any, name: str) -> tuple[int, int]:
    x, y = icon_in_tree(tree, name)[0]["center"]
    return x, y


@pytest.mark.parametrize("landscape", [False, True])
def test_every_icon_of_a_simulated_phone_is_where_its_tree_says(phone: SimulatedDriver, landscape: bool) -> None:
    phone.phone.turn("Landscape", landscape)
    tree = phone.ui_tree()
    assert tree is not None
    names = [node.desc for node in tree.children if node.role == "icon"]
    assert len(names) == 20
    for name in names:
        phone.phone.show("Home")
        phone.tap(center(tree, name))
        assert phone.phone.app == name


def test_a_phone_that_was_turned_is_tapped_in_the_screenshot_that_was_seen(phone: SimulatedDriver) -> None:
    assert phone.size() == (498, 1080)
    phone.take_screenshot()
    phone.phone.turn("Landscape", True)
    assert phone.size() == (498, 1080)
    shot = phone.take_screenshot()
    assert phone.size() == (shot.width, shot.height) == (1920, 886)
    phone.phone.turn("Landscape", False)
    phone.new_owner()
    assert phone.size() == (498, 1080)


def test_a_row_of_a_list_is_found_where_it_was_scrolled_to(phone: SimulatedDriver) -> None:
    phone.launch_app("settings")
    phone.swipe((249, 900), (249, 300), 300)
    tree = phone.ui_tree()
    assert tree is not None
    assert text_in_tree(tree, "Airplane Mode") == []
    x, y = text_in_tree(tree, "Battery")[0]["center"]
    phone.tap((x, y))
    assert phone.phone.view().page == "Battery"


def test_text_goes_into_the_field_that_was_tapped(phone: SimulatedDriver) -> None:
    phone.launch_app("Notes")
    with pytest.raises(ToolFailed, match="no text field has the focus: tap into one first"):
        phone.input_text("lost")
    tree = phone.ui_tree()
    assert tree is not None
    (field,) = [node for node in tree.children if node.role == "field"]
    phone.tap(types.center(field.box))
    phone.input_text("Grüße 你好\n")
    assert phone.phone.text == "Grüße 你好\n"
    tree = phone.ui_tree()
    assert tree is not None
    assert text_in_tree(tree, "Grüße 你好")


def test_what_cannot_be_typed_is_refused_whole_and_by_name(phone: SimulatedDriver) -> None:
    phone.launch_app("Notes")
    phone.tap((249, 300))
    with pytest.raises(ToolFailed, match=r"cannot type U\+0007 control character.*nothing was typed"):
        phone.input_text("ring\a")
    assert phone.phone.text == ""


def test_an_unknown_app_is_told_with_those_that_there_are(phone: SimulatedDriver) -> None:
    with pytest.raises(ToolFailed, match="no app is called 'Chess'; there are Settings, Notes"):
        phone.launch_app("Chess")


@pytest.mark.parametrize("app", ["Home", "Settings", "Notes", "Browser", "Maps"])
def test_every_screen_has_a_picture_and_a_tree_inside_it(phone: SimulatedDriver, app: str) -> None:
    phone.phone.show(app)
    shot, tree = phone.take_screenshot(), phone.ui_tree()
    assert image_size(shot.content) == (shot.width, shot.height) == phone.size()
    assert tree is not None
    assert phone.app_info() == {"id": app, "name": app}
    for node in tree.walk():
        left, top, right, bottom = node.box
        assert 0 <= left < right <= shot.width
        assert 0 <= top < bottom <= shot.height


# --- boards ------------------------------------------------------------------------------------


class Rack:
    """A simulated board with our board role in front of it, on a port that it keeps."""

    def __init__(self, simulator: Simulator) -> None:
        self.simulator = simulator
        flags = {"agent_base_url": simulator.agent_url, "mcp_config_web_base_url": simulator.config_web_url}
        settings = config.load(flags, environ={})
        self._app = board_role.build(lambda: settings)
        self._stack = contextlib.ExitStack()
        self.port = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/mcp"

    def plug_in(self) -> None:
        sockets = server.listeners([("127.0.0.1", self.port)])
        self.port = sockets[0].getsockname()[1]
        serving = server.Server(self._app, sockets)
        thread = threading.Thread(target=serving.run)
        thread.start()
        self._stack.callback(thread.join)
        self._stack.callback(serving.stop)

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


CORNERS = [
    pytest.param((0, 0), (0, 0), id="the first pixel is the edge"),
    pytest.param((497, 1079), (1000, 1000), id="the last pixel is the other edge"),
    pytest.param((249, 540), (501.01, 500.46), id="about the middle"),
]


@pytest.mark.parametrize(("pixel", "point"), CORNERS)
def test_pixels_become_the_boards_units(rack: Rack, board: BoardDriver, pixel: Any, point: Any) -> None:
    board.tap(pixel)
    assert rack.gestures == [{"type": "tap", "point": {"x": point[0], "y": point[1]}}]


def test_the_size_is_that_of_the_screenshot_that_was_seen(rack: Rack, board: BoardDriver) -> None:
    assert board.size() == (498, 1080)
    shot = board.take_screenshot()
    assert (shot.width, shot.height, shot.mime) == (498, 1080, "image/jpeg")
    assert rack.gestures == []


def test_a_swipe_has_both_ends_and_its_time(rack: Rack, board: BoardDriver) -> None:
    board.swipe((0, 1079), (497, 0), 250)
    ends = {"start": {"x": 0, "y": 1000}, "end": {"x": 1000, "y": 0}}
    assert rack.gestures == [{"type": "swipe", **ends, "duration_ms": 250}]


def test_text_goes_where_the_last_tap_went(rack: Rack, board: BoardDriver) -> None:
    with pytest.raises(ToolFailed, match="tap into the text field first"):
        board.input_text("hello")
    board.launch_app("Notes")
    board.tap((249, 300))
    board.input_text("hello")
    assert rack.simulator.phone.text == "hello"
    board.new_owner()
    with pytest.raises(ToolFailed, match="tap into the text field first"):
        board.input_text("where another owner tapped")


def test_a_board_has_no_tree_and_says_what_to_do_instead(rack: Rack, tmp_path: Path) -> None:
    """Refused with -32000 "no UI tree on a board; use describe_screen"; the rest says what to install."""
    with agent(tmp_path / "data", B=BoardDriver(rack.url)) as host:
        error = host.caller.call("get_ui_tree").error
        assert (error["code"], error["message"]) == (-32000, "no UI tree on a board; use describe_screen")
        for tool, arguments in (("find_text", {"query": "x"}), ("find_icon", {"name": "x"}), ("describe_screen", {})):
            error = host.caller.call(tool, **arguments).error
            assert error["code"] == -32000
            assert "pip install 'mcpboard[vision]'" in error["message"]


def test_what_the_board_says_of_the_delivery_is_passed_on(rack: Rack, tmp_path: Path) -> None:
    with agent(tmp_path / "data", B=BoardDriver(rack.url)) as host:
        host.caller.call("take_screenshot")
        still = {"start_x": 5, "start_y": 5, "end_x": 5, "end_y": 5}
        error = host.caller.call("swipe", **still).error
        assert (error["code"], error["data"]) == (-32000, {"delivery": "not_sent"})
        assert "start and end must differ" in error["message"]


def test_a_board_that_is_away_is_offline_and_back_without_a_restart(
    rack: Rack, board: BoardDriver, tmp_path: Path
) -> None:
    with agent(tmp_path / "data", B=board) as host:
        caller = host.caller.open()
        assert caller.call("tap", x=1, y=1).text
        rack.unplug()
        for _ in range(2):
            error = caller.call("tap", x=1, y=1).error
            assert (error["code"], error["data"]) == (-32000, {"delivery": "not_sent"})
            assert "no connection could be made" in error["message"]
        assert json.loads(caller.call("list_devices").text)[0]["state"] == OFFLINE
        rack.plug_in()
        assert caller.call("tap", x=1, y=1).text
        assert json.loads(caller.call("list_devices").text)[0]["state"] == READY
    assert len(rack.gestures) == 2, "nothing that was refused was made up for"


def test_a_tap_whose_response_is_lost_is_made_once_and_reported_unknown(rack: Rack, tmp_path: Path) -> None:
    """At most once: the cable breaks after the board has the tap."""
    with lossy_cable(rack.port) as cable, agent(tmp_path / "data", B=BoardDriver(cable.url)) as host:
        host.caller.call("take_screenshot")
        cable.cut_behind = b"touch_gesture"
        error = host.caller.call("tap", x=1, y=1).error
        assert (error["code"], error["data"]) == (-32000, {"delivery": "unknown"})
        rack.simulator.wait_for_finish("touch_gesture")
    assert len(rack.gestures) == 1


NEXT_ACTIONS = [
    pytest.param("tap", {"x": 1, "y": 1}, id="tap"),
    pytest.param("swipe", {"start_x": 5, "start_y": 5, "end_x": 5, "end_y": 5}, id="a swipe that is refused"),
    pytest.param("launch_app", {"app_id": "Notes"}, id="app"),
]


@pytest.mark.parametrize(("tool", "arguments"), NEXT_ACTIONS)
def test_what_the_board_tells_of_an_earlier_action_reaches_the_client(
    rack: Rack, tmp_path: Path, tool: str, arguments: dict[str, int]
) -> None:
    """The board tells it once, to whoever acts next, and here that is a client of the host."""
    asked = traffic.post("tools/call", name="open_url", arguments={"url": "http://127.0.0.1/"})
    with agent(tmp_path / "data", B=BoardDriver(rack.url)) as host:
        host.caller.call("take_screenshot")
        with rack.simulator.hold("open_url") as hold:
            with socket.create_connection(("127.0.0.1", rack.port), LIMIT_S) as leaving:
                leaving.sendall(asked)
                assert hold.entered.wait(LIMIT_S)
                leaving.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            board = BoardDriver(rack.url)
            board.probe()  # the board looks at its connections in turn: now it knows who has left
            board.close()
        rack.simulator.wait_for_finish("open_url")
        texts: list[str] = []
        while not texts or "running for" in texts[-1]:  # the earlier one's reply is on its way to nobody
            answer = host.caller.call(tool, **arguments)
            texts.append(answer.error["message"] if "error" in answer.json else answer.text)
        again = host.caller.call("tap", x=2, y=2).text
    assert sum("The earlier open_url finished OK" in text for text in texts) == 1, texts
    assert "The earlier" not in again


class LossyCable:
    """A relay to a port; a response to a request that holds `cut_behind` gets lost."""

    def __init__(self, listener: socket.socket, port: int) -> None:
        self.cut_behind: bytes | None = None
        self.url = f"http://127.0.0.1:{listener.getsockname()[1]}/mcp"
        self._listener = listener
        self._port = port

    def relay(self) -> None:
        """Until the listener is shut."""
        with contextlib.suppress(OSError):
            while True:
                near, _ = self._listener.accept()
                with near, socket.create_connection(("127.0.0.1", self._port), LIMIT_S) as far:
                    self._pass_on(near, far)

    def _pass_on(self, near: socket.socket, far: socket.socket) -> None:
        near.settimeout(LIMIT_S)
        request = _request(near)
        far.sendall(request)
        if self.cut_behind is not None and self.cut_behind in request:
            far.recv(1)  # the board has answered: the deed is done
            return
        while piece := far.recv(65536):
            near.sendall(piece)


@contextlib.contextmanager
def lossy_cable(port: int) -> Iterator[LossyCable]:
    with socket.create_server(("127.0.0.1", 0)) as listener, threads() as pool:
        cable = LossyCable(listener, port)
        relaying = pool.submit(cable.relay)
        yield cable
        listener.shutdown(socket.SHUT_RDWR)
        result(relaying)


def _request(near: socket.socket) -> bytes:
    got = near.recv(65536)
    while b"\r\n\r\n" not in got:
        got += near.recv(65536)
    head, _, body = got.partition(b"\r\n\r\n")
    lengths = [line.split(b":")[1] for line in head.lower().split(b"\r\n") if line.startswith(b"content-length")]
    length = int(lengths[0])
    while len(body) < length:
        body += near.recv(65536)
    return head + b"\r\n\r\n" + body


def test_a_board_is_reached_by_its_own_interface(rack: Rack) -> None:
    """All boards share one address: the interface tells them apart."""
    loopback = "lo0" if sys.platform == "darwin" else "lo"
    board = BoardDriver(rack.url, loopback)
    board.tap((1, 1))
    assert len(rack.gestures) == 1
    probe = board.probe()
    assert (probe.state, probe.details["url"]) == (READY, f"{rack.url} on {loopback}")
    nowhere = BoardDriver(rack.url, "usb99")
    with pytest.raises(ToolFailed, match="no connection could be made") as failed:
        nowhere.tap((1, 1))
    assert failed.value.data == {"delivery": "not_sent"}
    assert nowhere.probe().state == OFFLINE
    assert len(rack.gestures) == 1


# --- the factory -------------------------------------------------------------------------------


def test_each_kind_has_its_driver_or_one_that_says_why_not() -> None:
    assert isinstance(factory.driver(DeviceSpec("a", "board")), BoardDriver)
    assert isinstance(factory.driver(DeviceSpec("a", "simulated")), SimulatedDriver)
    assert isinstance(factory.driver(DeviceSpec("a", "android", serial="x")), AndroidDriver)
    assert isinstance(factory.driver(DeviceSpec("a", "iphone")), IPhoneDriver)
    for spec in (DeviceSpec("a", "iphone", url="ftp://x"), DeviceSpec("a", "board", url="ftp://x")):
        driver = factory.driver(spec)
        assert isinstance(driver, UnavailableDriver)
        assert driver.probe().state == "no driver"
        driver.new_owner()
        driver.close()
        with pytest.raises(ToolFailed):
            driver.tap((1, 1))


def test_a_simulated_phone_without_pillow_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "mcpboard.host.drivers.simulated", None)
    assert "pip install 'mcpboard[simulator]'" in factory.driver(DeviceSpec("a", "simulated")).probe().details["error"]


def test_a_board_whose_address_is_none_is_told_when_it_is_added() -> None:
    with pytest.raises(ConfigError, match="a URL such as"):
        factory.check(DeviceSpec("a", "board", url="ftp://x"))
    factory.check(DeviceSpec("a", "board"))
    factory.check(DeviceSpec("a", "simulated"))
