"""Devices that take connections and never answer: what they keep is theirs, and everybody else is answered."""

from __future__ import annotations

import contextlib
import json
import socket
import threading
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from contextlib import ExitStack
from functools import partial
from http.client import parse_headers
from itertools import islice
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
from tests.host.rig import Fake, agent, result, session, threads
from tests.support.http import LIMIT_S, MODERN

ANSWER_SECONDS = 5.0  # for everybody who asks for nothing of a silent device
SILENT = 12
CALLERS = 8  # for each of them; one inside, some that wait, and some that are turned away


def discover(peer: socket.socket) -> None:
    """Answer the one request with which a client of a board begins."""
    with peer.makefile("rb") as file:
        file.readline()
        question = json.loads(file.read(int(parse_headers(file)["Content-Length"])))
    discovered = {"supportedVersions": [MODERN], "resultType": "complete", "capabilities": {}}
    body = json.dumps({"jsonrpc": "2.0", "id": question["id"], "result": discovered}).encode()
    head = f"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    peer.sendall(head.encode() + body)


class SilentServer:
    """Accepts every connection and never says a word, until it is closed; `shakes_hands` answers the first question."""

    def __init__(self, shakes_hands: bool = False) -> None:
        self._shakes_hands = shakes_hands
        self._listening = socket.create_server(("127.0.0.1", 0), backlog=256)
        self.port: int = self._listening.getsockname()[1]
        self._peers: list[socket.socket] = []
        self._thread = threading.Thread(target=self._accept)
        self._thread.start()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                peer = self._listening.accept()[0]
                self._peers.append(peer)
                if self._shakes_hands:
                    self._shakes_hands = False
                    discover(peer)

    def close(self) -> None:
        self._listening.shutdown(socket.SHUT_RDWR)
        self._thread.join(LIMIT_S)
        self._listening.close()
        for peer in self._peers:
            peer.close()


def silent(stack: ExitStack, shakes_hands: bool = False) -> int:
    """The port of such a server."""
    return stack.enter_context(contextlib.closing(SilentServer(shakes_hands))).port


def _board(stack: ExitStack, shakes_hands: bool = False) -> Driver:
    return BoardDriver(f"http://127.0.0.1:{silent(stack, shakes_hands)}/mcp")


def _fallen(stack: ExitStack) -> Driver:
    return _board(stack, shakes_hands=True)


def _adb(stack: ExitStack) -> Driver:
    return AndroidDriver("S1", AdbClient(port=silent(stack)))


def _wda(stack: ExitStack) -> Driver:
    return IPhoneDriver(f"http://127.0.0.1:{silent(stack)}")


KINDS = [_board, _fallen, _adb, _wda]


def test_twelve_silent_devices_keep_nobody_else_from_an_answer(tmp_path: Path) -> None:
    """Tools of another device, ping, the lists and the console, each within five seconds, while all of them are asked."""

    def within(work: Callable[[], Any]) -> Any:
        began = time.monotonic()
        answer = work()
        assert time.monotonic() - began < ANSWER_SECONDS
        return answer

    with ThreadPoolExecutor(SILENT * CALLERS) as pool, ExitStack() as silence:
        devices = {f"silent-{number}": KINDS[number % len(KINDS)](silence) for number in range(SILENT)}
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
            assert len([*islice(as_completed(calls, LIMIT_S), SILENT)]) == SILENT  # those that were turned away
            client, browser = host.caller.open(), host.browser()
            began, rounds = time.monotonic(), 0
            while rounds < 2 or time.monotonic() - began < 1:
                rounds += 1
                assert "tapped 5,5" in within(lambda: client.call("tap", device_id="phone", x=5, y=5)).text
                assert within(lambda: client.post("ping")).result == {}
                assert len(within(lambda: client.post("tools/list")).result["tools"]) == 11
                for path in ("/", "/devices", "/devices/phone", "/devices/silent-0"):
                    assert within(partial(browser.get, path)).status == 200
            listed = json.loads(within(lambda: client.call("list_devices")).text)
            assert {each["id"] for each in listed if each["state"] == "ready"} == {"phone"}
            assert within(lambda: client.call("device_status", device_id="phone")).text
            silence.close()
            for call in calls:
                error = result(call).error
                assert error["code"] == -32000
                assert error["data"]["delivery"] in ("not_sent", "unknown") if "data" in error else error["message"]


def test_a_board_that_answers_no_handshake_is_told_soon(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mcpboard.host.drivers.board.HANDSHAKE_SECONDS", 0.2)
    with ExitStack() as stack, pytest.raises(ToolFailed, match=r"no answer|no whole answer") as failed:
        _board(stack).launch_app("Notes")
    assert failed.value.data == {"delivery": NOT_SENT}


def test_every_device_may_be_silent_and_threads_are_left() -> None:
    assert MOST_CALLS >= 2 * MOST_DEVICES + SHARED_PLACES
    assert THREADS > MOST_CALLS


# --- who waits -------------------------------------------------------------------------------------


def test_few_wait_for_a_device_and_for_all_devices_together() -> None:
    """The first behind a call always may wait, the others share a few places, and the rest hear at once why not."""
    ann, phones = session("ann"), {str(number): Fake() for number in range(SHARED_PLACES // (MOST_WAITING - 1) + 2)}
    with contextlib.closing(DeviceManager()) as manager, ThreadPoolExecutor(len(phones) * (MOST_WAITING + 3)) as pool:

        def call(name: str) -> Future[None]:
            return pool.submit(manager.run, name, ann, lambda driver: driver.tap((1, 1)))

        for name, phone in phones.items():
            manager.add(name, "fake", phone)
            phone.stop_inside()
        inside = [call(name) for name in phones]
        for phone in phones.values():
            phone.wait_inside()
        behind = {call(name): name for _ in range(MOST_WAITING + 2) for name in phones}
        places = len(phones) + SHARED_PLACES
        refused = set(islice(as_completed(behind, LIMIT_S), len(behind) - places))
        for each in refused:
            with pytest.raises(ToolFailed, match=f"^too many calls for {behind[each]}: .* already") as failed:
                each.result()
            assert failed.value.data == {"delivery": NOT_SENT}
        for phone in phones.values():
            phone.go_on.set()
        for each in (*inside, *(behind.keys() - refused)):
            result(each)
        waited = Counter(behind[each] for each in behind.keys() - refused)
        assert {len(phone.done) - 1 for phone in phones.values()} == set(waited.values())
        assert (len(waited), sum(waited.values())) == (len(phones), places)
        assert max(waited.values()) <= MOST_WAITING
        result(call("0"))  # there is room again


# --- goodbyes --------------------------------------------------------------------------------------


class Clinging(Fake):
    """A device whose goodbye takes its time, or goes wrong."""

    def __init__(self, error: Exception | None = None) -> None:
        super().__init__()
        self.let_go, self.gone = threading.Event(), threading.Event()
        self._error = error

    def close(self) -> None:
        if self._error is not None:
            raise self._error
        assert self.let_go.wait(LIMIT_S)
        super().close()
        self.gone.set()


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
    assert all(phone.gone.wait(LIMIT_S) for phone in phones)


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
