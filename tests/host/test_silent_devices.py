"""Devices that take connections and never answer: what they keep is theirs, and everybody else is answered."""

from __future__ import annotations

import contextlib
import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from mcpboard.errors import NOT_SENT, ToolFailed
from mcpboard.host import MOST_CALLS, THREADS
from mcpboard.host.devices import manager as managers
from mcpboard.host.devices.manager import DeviceManager
from mcpboard.host.devices.queue import MOST_WAITING, SHARED_PLACES
from mcpboard.host.devices.registry import MOST_DEVICES
from mcpboard.host.drivers.android import AndroidDriver
from mcpboard.host.drivers.android.adb import AdbClient
from mcpboard.host.drivers.base import Driver
from mcpboard.host.drivers.board import BoardDriver
from mcpboard.host.drivers.iphone import IPhoneDriver
from mcpboard.host.drivers.simulated import SimulatedDriver
from tests.host.console.rig import agent
from tests.host.rig import Fake, result, session, threads, waiting
from tests.support.http import LIMIT_S, MODERN

ANSWER_SECONDS = 5.0  # for everybody who asks for nothing of a silent device
SILENT = 12
CALLERS = 8  # for each of them; one inside, some that wait, and some that are turned away


class SilentServer:
    """Accepts every connection and never says a word, until it is closed."""

    def __init__(self) -> None:
        self._listening = socket.create_server(("127.0.0.1", 0), backlog=256)
        self.port: int = self._listening.getsockname()[1]
        self._peers: list[socket.socket] = []
        self._thread = threading.Thread(target=self._accept)
        self._thread.start()

    def _accept(self) -> None:
        while True:
            try:
                self._peers.append(self._listening.accept()[0])
            except OSError:
                return

    def close(self) -> None:
        self._listening.shutdown(socket.SHUT_RDWR)
        self._thread.join(LIMIT_S)
        self._listening.close()
        for peer in self._peers:
            peer.close()


class _FirstWord(BaseHTTPRequestHandler):
    """A board that shakes hands, and never answers a tool call."""

    go_on: threading.Event

    def do_POST(self) -> None:
        message = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if message["method"] != "server/discover":
            self.go_on.wait(LIMIT_S)
            return
        discovered = {"supportedVersions": [MODERN], "resultType": "complete", "capabilities": {}}
        body = json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": discovered}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        """Say nothing."""


@contextmanager
def falling_silent() -> Iterator[str]:
    """The URL of such a board."""
    go_on = threading.Event()
    board = ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (_FirstWord,), {"go_on": go_on}))
    thread = threading.Thread(target=board.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield f"http://127.0.0.1:{board.server_port}/mcp"
    finally:
        go_on.set()
        board.shutdown()
        thread.join(LIMIT_S)
        board.server_close()


def _board(stack: ExitStack) -> Driver:
    return BoardDriver(f"http://127.0.0.1:{stack.enter_context(contextlib.closing(SilentServer())).port}/mcp")


def _fallen(stack: ExitStack) -> Driver:
    return BoardDriver(stack.enter_context(falling_silent()))


def _adb(stack: ExitStack) -> Driver:
    return AndroidDriver("S1", AdbClient(port=stack.enter_context(contextlib.closing(SilentServer())).port))


def _wda(stack: ExitStack) -> Driver:
    return IPhoneDriver(f"http://127.0.0.1:{stack.enter_context(contextlib.closing(SilentServer())).port}")


MIXED = [_board, _fallen, _adb, _wda]
KINDS = [
    pytest.param(MIXED, id="of every kind"),
    pytest.param([_board], id="boards", marks=pytest.mark.slow),
    pytest.param([_fallen], id="boards that shook hands", marks=pytest.mark.slow),
    pytest.param([_adb], id="adb servers", marks=pytest.mark.slow),
    pytest.param([_wda], id="WebDriverAgents", marks=pytest.mark.slow),
]


@pytest.mark.parametrize("kinds", KINDS)
def test_twelve_silent_devices_keep_nobody_else_from_an_answer(
    tmp_path: Path, kinds: list[Callable[[ExitStack], Driver]]
) -> None:
    """Tools of another device, ping, the lists and the console, each within five seconds, while all of them are asked."""

    def within(work: Callable[[], Any]) -> Any:
        began = time.monotonic()
        answer = work()
        assert time.monotonic() - began < ANSWER_SECONDS
        return answer

    with ThreadPoolExecutor(SILENT * CALLERS) as pool, ExitStack() as silence:
        devices = {f"silent-{number}": kinds[number % len(kinds)](silence) for number in range(SILENT)}
        devices["phone"] = SimulatedDriver()
        # mypy fears that a device may be named like another argument.
        with agent(tmp_path / "data", real_time=True, **devices) as host, silence:  # type: ignore[arg-type]
            callers = {name: host.caller.open() for name in devices if name != "phone"}
            calls = [
                pool.submit(callers[name].call, tool, device_id=name, x=1, y=1)
                for tool in ("tap", "take_screenshot")
                for name in callers
                for _ in range(CALLERS // 2)
            ]
            _until(lambda: sum(call.done() for call in calls) >= SILENT)  # those that were turned away
            client, browser = host.caller.open(), host.browser()
            began, rounds = time.monotonic(), 0
            while rounds < 2 or time.monotonic() - began < 1:
                rounds += 1
                assert "tapped 5,5" in within(lambda: client.call("tap", device_id="phone", x=5, y=5)).text
                assert within(lambda: client.post("ping")).result == {}
                assert len(within(lambda: client.post("tools/list")).result["tools"]) == 11
                for path in ("/", "/devices", "/devices/phone", "/devices/silent-0"):
                    assert within(partial(browser.get, path)).status == 200
            listed = {
                each["id"]: each["state"] for each in json.loads(within(lambda: client.call("list_devices")).text)
            }
            assert listed.pop("phone") == "ready"
            assert within(lambda: client.call("device_status", device_id="phone")).text
            silence.close()
            for call in calls:
                error = result(call).error
                assert error["code"] == -32000
                assert error["data"]["delivery"] in ("not_sent", "unknown") if "data" in error else error["message"]


def _until(true: Callable[[], bool]) -> None:
    end = time.monotonic() + LIMIT_S
    while not true():
        assert time.monotonic() < end
        time.sleep(0.01)


def test_a_board_that_answers_no_handshake_is_told_soon(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mcpboard.host.drivers.board.HANDSHAKE_SECONDS", 0.2)
    with ExitStack() as stack, pytest.raises(ToolFailed, match=r"no answer|no whole answer") as failed:
        _board(stack).launch_app("Notes")
    assert failed.value.data == {"delivery": NOT_SENT}


def test_every_device_may_be_silent_and_threads_are_left() -> None:
    assert MOST_CALLS >= 2 * MOST_DEVICES + SHARED_PLACES
    assert THREADS > MOST_CALLS


# --- who waits -------------------------------------------------------------------------------------


def test_many_callers_of_one_device_are_turned_away_with_the_reason() -> None:
    """One is inside, some wait; all the others hear at once that too many do."""
    phone, ann = Fake(), session("ann")
    with contextlib.closing(DeviceManager()) as manager, threads() as pool:
        manager.add("X", "fake", phone)
        phone.stop_inside()
        calls = [pool.submit(manager.run, "X", ann, lambda driver: driver.tap((1, 1))) for _ in range(1 + MOST_WAITING)]
        _until(lambda: waiting(manager, "X") == MOST_WAITING)
        for _ in range(100):
            with pytest.raises(ToolFailed, match="^too many calls for X: 4 wait already") as refused:
                manager.run("X", ann, lambda driver: driver.tap((2, 2)))
            assert refused.value.data == {"delivery": NOT_SENT}
        phone.go_on.set()
        for call in calls:
            result(call)
    assert phone.done == [("tap", (1, 1))] * (1 + MOST_WAITING)


def test_those_who_wait_for_all_devices_together_are_few() -> None:
    """Each waits in a thread of the server. The first behind a call always may, whatever the others do."""
    ann, turned_away = session("ann"), "^too many calls for busy-{}: one waits already, and too many for other devices"
    busy = {f"busy-{number}": Fake() for number in range(SHARED_PLACES // (MOST_WAITING - 1) + 2)}
    with contextlib.closing(DeviceManager()) as manager, ThreadPoolExecutor(64) as pool:

        def call(name: str, times: int) -> list[Future[None]]:
            return [pool.submit(manager.run, name, ann, lambda driver: driver.tap((1, 1))) for _ in range(times)]

        for name, phone in busy.items():
            manager.add(name, "fake", phone)
            phone.stop_inside()
        *full, nearly, last = busy
        calls = [one for name in busy for one in call(name, 1)]
        for phone in busy.values():
            phone.wait_inside()
        for name in full:
            calls += call(name, MOST_WAITING)
        calls += call(nearly, 1 + SHARED_PLACES % (MOST_WAITING - 1)) + call(last, 1)
        _until(lambda: sum(waiting(manager, name) for name in busy) == len(busy) + SHARED_PLACES)
        for name in (nearly, last):
            with pytest.raises(ToolFailed, match=turned_away.format(name.partition("-")[2])) as refused:
                manager.run(name, ann, lambda driver: driver.tap((2, 2)))
            assert refused.value.data == {"delivery": NOT_SENT}
        busy[full[0]].go_on.set()
        _until(lambda: waiting(manager, full[0]) == 0)
        calls += call(last, MOST_WAITING - 1)  # there is room again
        _until(lambda: waiting(manager, last) == MOST_WAITING)
        for phone in busy.values():
            phone.go_on.set()
        for one in calls:
            result(one)
    assert sum(len(phone.done) for phone in busy.values()) == len(calls)


# --- goodbyes --------------------------------------------------------------------------------------


class Clinging(Fake):
    """A device whose goodbye takes its time, or goes wrong."""

    def __init__(self, error: Exception | None = None) -> None:
        super().__init__()
        self.let_go = threading.Event()
        self._error = error

    def close(self) -> None:
        if self._error is not None:
            raise self._error
        assert self.let_go.wait(LIMIT_S)
        super().close()


def test_silent_devices_are_left_together_and_keep_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each goodbye may take seconds: neither who removes a device nor the end waits for them one by one."""
    monkeypatch.setattr(managers, "LEAVE_SECONDS", 0.05)
    monkeypatch.setattr(managers, "CLOSE_SECONDS", 0.2)
    phones = [Clinging() for _ in range(SILENT)]
    manager = DeviceManager()
    for number, phone in enumerate(phones):
        manager.add(str(number), "fake", phone)
    began = time.monotonic()
    manager.remove("0")
    manager.close()
    assert time.monotonic() - began < 2
    for phone in phones:
        phone.let_go.set()
    _until(lambda: all(phone.closed for phone in phones))


def test_a_goodbye_that_fails_spoils_no_answer(caplog: pytest.LogCaptureFixture) -> None:
    """The device was removed under the call, so its caller is the one who lets go of it."""
    phone = Clinging(OSError("no goodbye"))
    with contextlib.closing(DeviceManager()) as manager, threads() as pool:
        manager.add("X", "fake", phone)
        phone.stop_inside()
        call = pool.submit(manager.run, "X", session("ann"), lambda driver: driver.tap((1, 1)) or "done")
        phone.wait_inside()
        manager.remove("X")
        phone.go_on.set()
        assert result(call) == "done"
    assert "could not be let go" in caplog.text
