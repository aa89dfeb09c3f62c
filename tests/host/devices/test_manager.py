"""The DeviceManager: leases and slots of threads that come at the same time."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from functools import partial
from typing import Any

import pytest

from mcpboard.errors import ConfigError, DeviceBusy, ToolFailed, UnknownDevice
from mcpboard.host.devices import queue
from mcpboard.host.devices.leases import IDLE_SECONDS, Owner
from mcpboard.host.devices.manager import DeviceManager
from mcpboard.host.devices.queue import MOST_WAITING
from mcpboard.host.drivers.base import Driver
from tests.host.rig import CLOUD_OWNER, Fake, result, session, threads, waiting
from tests.support.clock import Clock
from tests.support.http import LIMIT_S

ANN, BOB, CAT = session("ann"), session("bob"), session("cat")


class Bench:
    """A manager with two devices, X and Y, and a clock that is turned by hand."""

    def __init__(self, wait_seconds: float = LIMIT_S) -> None:
        self.clock = Clock()
        self.manager = DeviceManager(self.clock, wait_seconds)
        self.x, self.y = Fake(), Fake()
        self.manager.add("X", "fake", self.x)
        self.manager.add("Y", "fake", self.y)

    def tap(self, owner: Owner, device: str = "X", **how: Any) -> None:
        self.manager.run(device, owner, _tap, **how)

    def wait_for(self, claim: Any) -> None:
        """Return once `claim` holds; there is no event for a thread that begins to wait."""
        over = time.monotonic() + LIMIT_S
        while not claim():
            assert time.monotonic() < over
            threading.Event().wait(0.001)

    def queue(self, pool: Any, owner: Owner, count: int = 1, device: str = "X") -> list[Future[None]]:
        """That many calls of `owner` waiting at the command queue."""
        return [self.queued(pool, self.tap, owner, device) for _ in range(count)]

    def queued(self, pool: Any, run: Callable[..., None], *how: Any, device: str = "X") -> Future[None]:
        """A call that has come to wait at the device's command queue."""
        before = waiting(self.manager, device)
        future: Future[None] = pool.submit(run, *how)
        self.wait_for(lambda: waiting(self.manager, device) > before)
        return future


def _tap(driver: Driver) -> None:
    driver.tap((1, 2))


def _note(order: list[int], number: int, driver: Driver) -> None:
    order.append(number)


def leased(bench: Bench) -> dict[str, str]:
    return {device: owner.label for device, owner in bench.manager.leases().items()}


# --- leases ------------------------------------------------------------------------------------


def test_a_wall_clock_that_jumps_ends_no_lease(monkeypatch: pytest.MonkeyPatch) -> None:
    manager = DeviceManager()
    manager.add("X", "fake", Fake())
    manager.run("X", ANN, _tap)
    monkeypatch.setattr(time, "time", lambda: 4e9)
    with pytest.raises(DeviceBusy):
        manager.run("X", BOB, _tap)


def test_a_call_that_fails_keeps_the_lease_and_its_own_words() -> None:
    """A tool error is the original exception message."""
    bench = Bench()
    bench.x.fault = OSError("adb: device offline")
    with pytest.raises(OSError, match=r"^adb: device offline$"):
        bench.tap(ANN)
    assert leased(bench) == {"X": "mcp_session:ann"}


def test_an_unplugged_device_keeps_its_lease_and_works_again_by_itself() -> None:
    bench = Bench()
    bench.tap(ANN)
    bench.x.fault = ToolFailed("device offline")
    for _ in range(2):
        with pytest.raises(ToolFailed, match="device offline"):
            bench.tap(ANN)
    bench.x.fault = None
    bench.tap(ANN)
    assert bench.x.done == [("tap", (1, 2))] * 4, "nothing was repeated"


ENDINGS = [
    pytest.param(lambda manager: manager.end_owner(ANN, "its session ended"), id="by DELETE"),
    pytest.param(lambda manager: manager.release("X"), id="by the operator"),
]


@pytest.mark.parametrize("end", ENDINGS)
def test_an_owner_revoked_while_it_waits_never_touches_the_device(end: Callable[[DeviceManager], Any]) -> None:
    bench = Bench()
    bench.x.stop_inside()
    with threads() as pool:
        inside = pool.submit(bench.tap, ANN)
        bench.x.wait_inside()
        revoked = bench.queue(pool, ANN, 2)
        end(bench.manager)
        bench.x.go_on.set()
        result(inside)
        for each in revoked:
            with pytest.raises(ToolFailed, match="ended while the call waited") as failed:
                result(each)
            assert failed.value.data == {"delivery": "not_sent"}
    assert len(bench.x.done) == 1
    bench.tap(BOB)
    assert len(bench.x.done) == 2


def test_a_caller_that_hung_up_while_it_waited_is_never_served() -> None:
    """A call that is still queued when its client disconnects is never made."""
    bench = Bench()
    with pytest.raises(ToolFailed, match="the caller has gone"):
        bench.tap(ANN, gone=lambda: True)
    assert bench.x.done == []


def test_each_new_lease_finds_the_driver_without_what_the_last_left() -> None:
    bench = Bench()
    bench.tap(ANN)
    bench.tap(ANN)
    assert bench.x.owners == 1
    bench.manager.release("X")
    bench.tap(ANN)
    assert bench.x.owners == 2


# --- devices come and go -----------------------------------------------------------------------


def test_a_removed_device_is_unknown_and_its_lease_is_gone() -> None:
    """-32602, and the lease disappears from what a heartbeat would tell."""
    bench = Bench()
    bench.tap(ANN)
    bench.manager.remove("X")
    assert (leased(bench), bench.manager.ids(), bench.x.closed) == ({}, ["Y"], True)
    uses: list[Callable[[Owner], object]] = [
        bench.tap, lambda owner: bench.manager.wait_until_usable("X", owner, 1), lambda owner: bench.manager.release("X"),
    ]  # fmt: skip
    for use in uses:
        with pytest.raises(UnknownDevice, match=r"^unknown device: X$"):
            use(ANN)


def test_a_device_removed_under_a_call_lets_it_finish_and_hides_its_lease_at_once() -> None:
    bench = Bench()
    bench.x.stop_inside()
    with threads() as pool:
        call = pool.submit(bench.tap, ANN)
        bench.x.wait_inside()
        (waiting,) = bench.queue(pool, ANN)
        bench.manager.remove("X")
        assert (leased(bench), bench.x.closed) == ({}, False)
        bench.x.go_on.set()
        result(call)
        with pytest.raises(ToolFailed, match="the device was removed"):
            result(waiting)
    assert (bench.x.closed, len(bench.x.done)) == (True, 1)


def test_a_device_that_is_added_again_is_a_new_one() -> None:
    bench, again = Bench(), Fake()
    bench.tap(ANN)
    bench.manager.remove("X")
    bench.manager.add("X", "fake", again)
    bench.tap(BOB)
    assert (len(bench.x.done), len(again.done)) == (1, 1)
    with pytest.raises(ConfigError, match="there is a device X already"):
        bench.manager.add("X", "fake", Fake())


# --- slots -------------------------------------------------------------------------------------


def test_four_wait_and_the_fifth_is_turned_away() -> None:
    bench = Bench()
    bench.x.stop_inside()
    with threads() as pool:
        inside = pool.submit(bench.tap, ANN)
        bench.x.wait_inside()
        waiting = bench.queue(pool, ANN, MOST_WAITING)
        with pytest.raises(ToolFailed, match="^too many calls for X"):
            bench.tap(ANN)
        bench.tap(ANN, "Y")
        bench.x.go_on.set()
        for call in (inside, *waiting):
            result(call)
    assert len(bench.x.done) == MOST_WAITING + 1


def test_nobody_waits_longer_than_the_limit() -> None:
    bench = Bench(wait_seconds=0.01)
    bench.x.stop_inside()
    with threads() as pool:
        inside = pool.submit(bench.tap, ANN)
        bench.x.wait_inside()
        with pytest.raises(ToolFailed, match="^too many calls for X"):
            bench.tap(ANN)
        bench.x.go_on.set()
        result(inside)
    assert queue.WAIT_SECONDS == 30


def test_slots_come_in_the_order_of_arrival() -> None:
    bench, order = Bench(), list[int]()
    bench.x.stop_inside()
    with threads() as pool:
        inside = pool.submit(bench.tap, ANN)
        bench.x.wait_inside()
        notes = [partial(_note, order, number) for number in range(MOST_WAITING)]
        calls = [bench.queued(pool, bench.manager.run, "X", ANN, note) for note in notes]
        bench.x.go_on.set()
        for call in (inside, *calls):
            result(call)
    assert order == [0, 1, 2, 3]


# --- wait_until_usable -------------------------------------------------------------------------


def wait_for_x(bench: Bench, pool: Any, *owners: Owner) -> list[Future[bool]]:
    """Each owner waiting for X, in that order."""
    return [_wait_for_x(bench, pool, owner) for owner in owners]


def _wait_for_x(bench: Bench, pool: Any, owner: Owner) -> Future[bool]:
    line = bench.manager._leases._waiters
    before = len(line)
    future: Future[bool] = pool.submit(bench.manager.wait_until_usable, "X", owner, LIMIT_S)
    bench.wait_for(lambda: len(line) > before)
    return future


def test_who_asked_first_gets_it_first_and_nobody_slips_in_between() -> None:
    bench = Bench()
    bench.tap(ANN)
    with threads() as pool:
        first, second = wait_for_x(bench, pool, BOB, CAT)
        bench.manager.release("X")
        assert result(first)
        assert leased(bench) == {"X": "mcp_session:bob"}
        with pytest.raises(DeviceBusy):
            bench.tap(ANN)
        bench.clock.pass_by(60)
        bench.manager.sweep()
        assert result(second)
        assert leased(bench) == {"X": "mcp_session:cat"}


def test_a_wait_that_is_over_leaves_no_trace() -> None:
    bench = Bench()
    bench.tap(ANN)
    assert not bench.manager.wait_until_usable("X", BOB, 0.01)
    bench.manager.release("X")
    assert leased(bench) == {}


def test_the_owner_that_goes_on_waits_for_nobody() -> None:
    bench = Bench()
    bench.tap(ANN)
    with threads() as pool:
        (other,) = wait_for_x(bench, pool, BOB)
        assert bench.manager.wait_until_usable("X", ANN, 0)
        bench.tap(ANN)
        bench.manager.release("X")
        assert result(other)


def test_a_wait_ends_with_its_device_and_with_the_manager() -> None:
    bench = Bench()
    bench.tap(ANN)
    with threads() as pool:
        (removed,) = wait_for_x(bench, pool, BOB)
        bench.manager.remove("X")
        with pytest.raises(UnknownDevice):
            result(removed)
    bench = Bench()
    bench.tap(ANN)
    with threads() as pool:
        (closed,) = wait_for_x(bench, pool, BOB)
        bench.manager.close()
        assert not result(closed)
    assert bench.x.closed
    assert bench.y.closed
    with pytest.raises(ToolFailed, match="shutting down"):
        bench.tap(ANN, "Y")


# --- a lease for as long as a block lasts, which is what an assignment of the cloud has ---------------

WHY = "its assignment ended"


def test_the_block_leases_without_touching_and_lets_go_at_its_end() -> None:
    bench = Bench()
    with bench.manager.lease("X", CLOUD_OWNER, WHY):
        bench.clock.pass_by(10 * IDLE_SECONDS)
        bench.manager.sweep()
        assert bench.manager.leases() == {"X": CLOUD_OWNER}
        with pytest.raises(DeviceBusy):
            bench.tap(session("other"))
        bench.tap(CLOUD_OWNER)
    assert bench.manager.leases() == {}
    ended = bench.manager.last_ended("X")
    assert ended is not None
    assert ended.why == WHY
    assert (bench.x.done, bench.x.owners) == ([("tap", (1, 2))], 1)


def test_it_waits_for_nobody() -> None:
    bench = Bench()
    bench.tap(session("first"))
    with pytest.raises(DeviceBusy), bench.manager.lease("X", CLOUD_OWNER, WHY):
        pytest.fail("inside")
    with pytest.raises(UnknownDevice), bench.manager.lease("Z", CLOUD_OWNER, WHY):
        pytest.fail("inside")
    bench.manager.close()
    with pytest.raises(ToolFailed, match="shutting down"), bench.manager.lease("X", CLOUD_OWNER, WHY):
        pytest.fail("inside")


def test_a_released_owner_gets_nothing_more_and_nobody_else_gets_in_before_its_end() -> None:
    bench = Bench()
    with bench.manager.lease("X", CLOUD_OWNER, WHY):
        assert bench.manager.release("X")
        with pytest.raises(ToolFailed, match="released by the operator"):
            bench.tap(CLOUD_OWNER)
        with pytest.raises(DeviceBusy):
            bench.tap(session("other"))
    bench.tap(session("other"))
    ended = bench.manager.last_ended("X")
    assert ended is not None
    assert ended.why == "released by the operator"


def test_the_end_of_a_block_leaves_the_lease_of_the_next_owner_alone() -> None:
    """The device goes and comes back under its id, while the block still stands."""
    bench = Bench()
    with bench.manager.lease("X", CLOUD_OWNER, WHY):
        bench.manager.remove("X")
        bench.manager.add("X", "fake", Fake())
    bench.tap(session("next"))
    assert bench.x.closed
    assert [owner.kind for owner in bench.manager.leases().values()] == ["mcp_session"]
