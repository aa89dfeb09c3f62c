"""Fourteen threads, seven owners and assignments, three devices, releases and deaths at random: never two owners in one."""

from __future__ import annotations

import os
import random
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from mcpboard.errors import DeviceBusy, ToolFailed
from mcpboard.host.devices.leases import CLOUD, IDLE_SECONDS, Owner
from mcpboard.host.devices.manager import DeviceManager
from mcpboard.host.drivers.base import Driver
from tests.host.rig import Fake, session, threads
from tests.support.clock import Clock
from tests.support.http import LIMIT_S

THREADS, OWNERS, ROUNDS = 14, 7, 300
ENOUGH = THREADS * ROUNDS // 20  # commands that were executed; what a busy machine lets through varies
DEVICES = ("X", "Y", "Z")


class Watch:
    """Notes who is in which device, and every time that two are."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.inside: dict[str, Owner] = {}
        self.collisions: list[tuple[str, Owner, Owner]] = []
        self.intruders: list[tuple[str, Owner, Owner | None]] = []
        self.done = 0

    @contextmanager
    def in_device(self, device: str, owner: Owner) -> Iterator[None]:
        with self.lock:
            other = self.inside.get(device)
            if other is not None:
                self.collisions.append((device, other, owner))
            self.inside[device] = owner
        os.sched_yield()  # so that whoever should not be here has every chance to come
        try:
            yield
        finally:
            with self.lock:
                self.done += 1
                if self.inside.get(device) == owner:
                    del self.inside[device]


class Player:
    """One thread that uses, waits for, releases and abandons devices as its dice say."""

    def __init__(self, seed: int, manager: DeviceManager, clock: Clock, watch: Watch, start: threading.Barrier) -> None:
        self.dice = random.Random(seed)
        self.owner = session(f"owner-{seed % OWNERS}")
        self.manager, self.clock, self.watch, self.start = manager, clock, watch, start

    def play(self) -> None:
        self.start.wait(LIMIT_S)
        moves = [self.use] * 6 + [self.assign, self.release, self.end, self.wait, self.die]
        deadline = time.monotonic() + LIMIT_S
        played = 0
        while played < ROUNDS or (self.watch.done <= ENOUGH and time.monotonic() < deadline):
            played += 1
            try:
                self.dice.choice(moves)(self.dice.choice(DEVICES))
            except (DeviceBusy, ToolFailed):
                continue

    def use(self, device: str) -> None:
        self.command(device, self.owner)

    def command(self, device: str, owner: Owner) -> None:
        def command(driver: Driver) -> None:
            with self.watch.in_device(device, owner):
                other = self.manager.state(device).owner
                if other != owner:
                    self.watch.intruders.append((device, owner, other))
                driver.tap((self.dice.randrange(100), 1))

        self.manager.run(device, owner, command)

    def assign(self, device: str) -> None:
        """The cloud's way: one lease for a block of two commands."""
        owner = Owner(CLOUD, f"assignment {self.dice.random()}")
        with self.manager.lease(device, owner, "its assignment ended"):
            self.command(device, owner)
            self.command(device, owner)

    def release(self, device: str) -> None:
        self.manager.release(device)

    def end(self, device: str) -> None:
        self.manager.end_owner(self.owner, "its session ended")

    def wait(self, device: str) -> None:
        if self.manager.wait_until_usable(device, self.owner, 0.002):
            self.use(device)

    def die(self, device: str) -> None:
        """A minute passes in which nobody calls."""
        self.clock.pass_by(IDLE_SECONDS)
        self.manager.sweep()


@pytest.fixture(autouse=True)
def restless() -> Iterator[None]:
    """Threads change places all the time."""
    usual = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(usual)


@pytest.mark.parametrize("seed", range(4))
def test_no_two_owners_are_ever_inside_one_device(seed: int) -> None:
    clock, watch, start = Clock(), Watch(), threading.Barrier(THREADS)
    manager, drivers = DeviceManager(clock), {name: Fake() for name in DEVICES}
    for name, driver in drivers.items():
        manager.add(name, "fake", driver)
    players = [Player(seed * THREADS + number, manager, clock, watch, start) for number in range(THREADS)]
    with threads() as pool:
        for played in [pool.submit(player.play) for player in players]:
            played.result(60)
    assert (watch.collisions, watch.intruders) == ([], [])
    assert {driver.most_inside for driver in drivers.values()} == {1}
    assert watch.done > ENOUGH, "hardly anything happened"
    clock.pass_by(IDLE_SECONDS)
    assert manager.leases() == {}
    manager.close()
    assert all(driver.closed for driver in drivers.values())
