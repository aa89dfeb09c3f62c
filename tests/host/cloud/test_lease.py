"""The DeviceManager for the cloud worker: a lease for as long as a block lasts, and news of leases."""

from __future__ import annotations

import random
import sys
import threading
from collections.abc import Iterator

import pytest

from mcpboard.errors import DeviceBusy, ToolFailed, UnknownDevice
from mcpboard.host.devices.leases import CLOUD, IDLE_SECONDS, Owner
from mcpboard.host.devices.manager import DeviceManager
from mcpboard.host.drivers.base import Driver
from tests.host.rig import CLOUD_OWNER, Fake, result, session, threads
from tests.support.clock import Clock

WHY = "its assignment ended"


class Bench:
    def __init__(self) -> None:
        self.clock, self.driver, self.changes = Clock(), Fake(), 0
        self.manager = DeviceManager(self.clock)
        self.manager.add("X", "fake", self.driver)
        self.manager.watch(self.count)

    def count(self) -> None:
        self.changes += 1

    def tap(self, owner: Owner) -> None:
        self.manager.run("X", owner, lambda driver: driver.tap((1, 1)))


@pytest.fixture
def bench() -> Bench:
    return Bench()


def test_the_block_leases_without_touching_and_lets_go_at_its_end(bench: Bench) -> None:
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
    assert (bench.driver.done, bench.driver.owners) == ([("tap", (1, 1))], 1)


def test_it_waits_for_nobody(bench: Bench) -> None:
    bench.tap(session("first"))
    with pytest.raises(DeviceBusy), bench.manager.lease("X", CLOUD_OWNER, WHY):
        pytest.fail("inside")
    with pytest.raises(UnknownDevice), bench.manager.lease("Y", CLOUD_OWNER, WHY):
        pytest.fail("inside")
    bench.manager.close()
    with pytest.raises(ToolFailed, match="shutting down"), bench.manager.lease("X", CLOUD_OWNER, WHY):
        pytest.fail("inside")


def test_a_released_owner_gets_nothing_more_and_nobody_else_gets_in_before_its_end(bench: Bench) -> None:
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


def test_the_end_of_a_block_leaves_the_lease_of_the_next_owner_alone(bench: Bench) -> None:
    """The device goes and comes back under its id, while the block still stands."""
    with bench.manager.lease("X", CLOUD_OWNER, WHY):
        bench.manager.remove("X")
        bench.manager.add("X", "fake", Fake())
    bench.tap(session("next"))
    assert bench.driver.closed
    assert [owner.kind for owner in bench.manager.leases().values()] == ["mcp_session"]


def test_news_of_every_lease_that_begins_or_ends_and_of_nothing_else(bench: Bench) -> None:
    one = session("one")
    bench.tap(one)
    bench.tap(one)
    assert bench.changes == 1
    bench.manager.end_owner(one, "its session ended")
    assert bench.changes == 2
    bench.tap(one)
    bench.clock.pass_by(IDLE_SECONDS)
    bench.manager.sweep()
    assert bench.changes == 4
    assert bench.manager.wait_until_usable("X", one, 0)
    assert bench.changes == 5
    bench.manager.release("X")
    with bench.manager.lease("X", CLOUD_OWNER, WHY):
        assert bench.changes == 7
    assert bench.changes == 8


@pytest.fixture
def restless() -> Iterator[None]:
    """Threads change places all the time."""
    usual = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(usual)


@pytest.mark.usefixtures("restless")
@pytest.mark.parametrize("seed", range(3))
def test_assignments_and_sessions_at_random_are_never_in_one_device_at_once(bench: Bench, seed: int) -> None:
    start, inside, wrong = threading.Barrier(8), set[Owner](), []

    def command(owner: Owner) -> None:
        def look(driver: Driver) -> None:
            inside.add(owner)
            wrong.extend([set(inside)] if len(inside) > 1 else [])
            driver.tap((1, 1))
            inside.discard(owner)

        bench.manager.run("X", owner, look)

    def play(number: int) -> int:
        dice, mine = random.Random(seed * 8 + number), 0
        start.wait(10)
        for turn in range(200):
            owner = Owner(CLOUD, f"{number}-{turn}") if number % 2 else session(f"client-{number}")
            try:
                if owner.kind == CLOUD:
                    with bench.manager.lease("X", owner, WHY):
                        command(owner)
                        wrong.extend([{owner}] if bench.manager.leases().get("X") not in (owner, None) else [])
                        command(owner)
                else:
                    command(owner)
                    if dice.random() < 0.7:
                        bench.manager.end_owner(owner, "its session ended")
                mine += 1
            except (DeviceBusy, ToolFailed):
                if dice.random() < 0.2:
                    bench.manager.release("X")
        return mine

    with threads() as pool:
        finished = [result(each) for each in [pool.submit(play, number) for number in range(8)]]
    assert (wrong, bench.driver.most_inside) == ([], 1)
    assert sum(finished), "nobody ever got through"
