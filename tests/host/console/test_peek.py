"""A look at a device without a lease, and the end of one lease and no other: the manager for the console."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator

import pytest
from PIL import Image

from mcpboard.client import CallResult, Picture
from mcpboard.errors import ToolFailed, UnknownDevice
from mcpboard.host.devices.manager import DeviceManager
from mcpboard.host.devices.queue import MOST_WAITING
from mcpboard.host.drivers.android import AndroidDriver
from mcpboard.host.drivers.android.adb_protocol import ShellResult
from mcpboard.host.drivers.base import Driver
from mcpboard.host.drivers.board import BoardDriver
from mcpboard.host.drivers.iphone import IPhoneDriver
from mcpboard.host.drivers.simulated import SimulatedDriver
from tests.host.rig import Fake, result, session, threads, waiting
from tests.support.clock import Clock

ALICE, BOB = session("alice123"), session("bob45678")


@pytest.fixture
def phone() -> Fake:
    return Fake()


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def manager(phone: Fake, clock: Clock) -> Iterator[DeviceManager]:
    made = DeviceManager(clock)
    made.add("X", "fake", phone)
    yield made
    phone.go_on.set()
    made.close()


def tap(driver: Driver) -> None:
    driver.tap((1, 1))


def test_a_look_takes_no_lease_ends_none_and_keeps_none_alive(
    manager: DeviceManager, phone: Fake, clock: Clock
) -> None:
    assert manager.peek("X") == phone.peek()
    assert (manager.leases(), manager.last_ended("X"), phone.owners) == ({}, None, 0)
    manager.run("X", ALICE, tap)
    clock.pass_by(59)
    assert manager.peek("X")
    assert manager.leases() == {"X": ALICE}
    clock.pass_by(1)
    assert manager.leases() == {}


def test_a_look_gives_way_to_who_is_there(manager: DeviceManager, phone: Fake) -> None:
    phone.stop_inside()
    with threads() as pool:
        call = pool.submit(manager.run, "X", ALICE, tap)
        phone.wait_inside()
        assert manager.peek("X") is None
        phone.go_on.set()
        result(call)
    assert phone.done == [("tap", (1, 1))]


def test_a_look_takes_nobodys_place_in_the_queue(manager: DeviceManager, phone: Fake) -> None:
    """One inside and MOST_WAITING behind it are promised; a look at the same time does not make them fewer."""
    phone.stop_inside()
    with threads() as pool:
        look = pool.submit(manager.peek, "X")
        phone.wait_inside()
        calls = [pool.submit(manager.run, "X", ALICE, tap) for _ in range(1 + MOST_WAITING)]
        while waiting(manager, "X") < 1 + MOST_WAITING:
            assert not any(call.done() for call in calls)
        with pytest.raises(ToolFailed, match="too many calls for X"):
            manager.run("X", ALICE, tap)
        assert manager.peek("X") is None
        phone.go_on.set()
        assert result(look)
        for call in calls:
            result(call)
    assert (phone.most_inside, len(phone.done)) == (1, 2 + MOST_WAITING)


def test_a_look_that_fails_leaves_the_device_to_others(manager: DeviceManager, phone: Fake) -> None:
    phone.fault = OSError("away")
    with pytest.raises(OSError, match="away"):
        manager.peek("X")
    phone.fault = None
    manager.run("X", ALICE, tap)
    with pytest.raises(UnknownDevice):
        manager.peek("Y")
    manager.close()
    with pytest.raises(ToolFailed, match="shutting down"):
        manager.peek("X")


def test_a_device_removed_under_a_look_is_let_go_after_it(manager: DeviceManager, phone: Fake) -> None:
    phone.stop_inside()
    with threads() as pool:
        look = pool.submit(manager.peek, "X")
        phone.wait_inside()
        manager.remove("X")
        assert not phone.closed
        phone.go_on.set()
        assert result(look)
    assert phone.closed


def test_a_release_that_means_somebody_leaves_others_alone(manager: DeviceManager, clock: Clock) -> None:
    manager.run("X", BOB, tap)
    assert manager.release("X", only=ALICE.label) is False
    assert manager.leases() == {"X": BOB}
    assert manager.release("X", only=BOB.label) is True
    assert manager.release("X", only=BOB.label) is False
    manager.run("X", BOB, tap)
    clock.pass_by(60)
    assert manager.release("X", only=BOB.label) is False, "it has ended by itself"


# --- the drivers ---------------------------------------------------------------------------------


TALL, WIDE = (90, 160), (160, 90)


def turning() -> Callable[[], bytes]:
    """A phone that is turned after its first screenshot."""

    def picture(size: tuple[int, int]) -> bytes:
        image = io.BytesIO()
        Image.new("RGB", size, "white").save(image, "png")
        return image.getvalue()

    return map(picture, (TALL, WIDE, WIDE)).__next__


def _android(monkeypatch: pytest.MonkeyPatch) -> Driver:
    take = turning()
    monkeypatch.setattr(AndroidDriver, "_capture", lambda _: ShellResult(take(), "", 0))
    return AndroidDriver("serial")


def _iphone(monkeypatch: pytest.MonkeyPatch) -> Driver:
    driver = IPhoneDriver("http://127.0.0.1:1")
    monkeypatch.setattr(driver._wda, "screenshot", turning())
    return driver


def _board(monkeypatch: pytest.MonkeyPatch) -> Driver:
    take = turning()
    shot = lambda *_, **__: CallResult((), (Picture(take(), "image/png"),), (), None, False, {})  # noqa: E731
    monkeypatch.setattr(BoardDriver, "_call", shot)
    return BoardDriver("http://127.0.0.1:1/mcp")


@pytest.mark.parametrize("make", [_android, _iphone, _board])
def test_a_look_does_not_move_the_points_of_the_clients_own_screenshot(
    monkeypatch: pytest.MonkeyPatch, make: Callable[[pytest.MonkeyPatch], Driver]
) -> None:
    """Else a tap on what the client saw before the phone was turned would land somewhere else."""
    driver = make(monkeypatch)
    driver.take_screenshot()
    assert driver.size() == TALL
    peeked = driver.peek()
    assert ((peeked.width, peeked.height), driver.size()) == (WIDE, TALL)
    driver.take_screenshot()
    assert driver.size() == WIDE


def test_a_look_at_a_simulated_phone_moves_no_points_either() -> None:
    driver = SimulatedDriver()
    driver.take_screenshot()
    before = driver.size()
    driver.phone.turn("Landscape", True)
    assert driver.peek().width > driver.peek().height
    assert driver.size() == before
