"""A host agent that takes part in a simulated cloud, both behind real sockets."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from mcpboard.host import cloud
from mcpboard.host.access.identity import identity
from mcpboard.host.cloud import enrollment
from mcpboard.host.cloud.enrollment import Enrollment
from mcpboard.host.cloud.loop import WorkerClock
from mcpboard.host.cloud.worker import Worker
from mcpboard.host.config import IDENTITY_FILE
from mcpboard.host.devices.manager import DeviceManager
from mcpboard.host.drivers.base import Driver
from mcpboard.host.vision.service import VisionService
from mcpboard.simulator.cloud.scheduler import Job, Scheduler
from tests.host.rig import Agent, agent
from tests.support.http import LIMIT_S

TAP = {"tool": "tap", "arguments": {"x": 1, "y": 2}}
LOOK = {"tool": "take_screenshot"}
REASON = "device held by an active MCP session"


def enrolled(folder: Path, scheduler: Scheduler) -> Enrollment:
    """The enrolment of a new host in `folder`."""
    return cloud.enroll(scheduler.url, scheduler.enrol_token + "\n", folder / IDENTITY_FILE)


@contextmanager
def taking_part(folder: Path, scheduler: Scheduler, **devices: Driver) -> Iterator[Agent]:
    """An agent, enrolled, whose first heartbeat has been answered."""
    if enrollment.read(folder) is None:
        enrolled(folder, scheduler)
    before = len(scheduler.heartbeats())
    # mypy fears that a device may be named like another argument.
    with agent(folder, hold_scope="session", **devices) as found:  # type: ignore[arg-type]
        scheduler.wait_until(lambda: len(scheduler.heartbeats()) > before, LIMIT_S, "heartbeat")
        yield found


@contextmanager
def working(
    folder: Path, scheduler: Scheduler, clock: WorkerClock | None = None, **devices: Driver
) -> Iterator[tuple[Worker, DeviceManager]]:
    """A worker without the agent around it."""
    identity(folder / IDENTITY_FILE)
    joined = enrollment.read(folder) or enrolled(folder, scheduler)
    manager = DeviceManager()
    for name, driver in devices.items():
        manager.add(name, "fake", driver)
    with (
        contextlib.closing(VisionService(None, folder)) as vision,
        contextlib.closing(manager),
        contextlib.closing(Worker(manager, list, vision, joined, folder, None, clock)) as worker,
    ):
        yield worker, manager


class ShiftedClock(WorkerClock):
    """Real time, and what a test adds to it."""

    def __init__(self) -> None:
        super().__init__()
        self._added = 0.0

    def now(self) -> float:
        return super().now() + self._added

    def pass_by(self, seconds: float) -> None:
        self._added += seconds


def obeyed(host: Agent, scheduler: Scheduler) -> None:
    """Return once every command given so far was obeyed: a heartbeat brings it, and the one after it tells so.

    Needs a device Y that nobody uses: its leases come and go, and each change makes a heartbeat.
    """
    caller = host.caller.open()
    for taken in (True, False):
        beats = scheduler.posts("heartbeat")
        if taken:
            caller.call("tap", device_id="Y", x=1, y=1)
        else:
            caller.end()
        scheduler.wait_until(partial(_more, scheduler, len(beats)), LIMIT_S, "heartbeat")


def _more(scheduler: Scheduler, beats: int) -> bool:
    return len(scheduler.posts("heartbeat")) > beats


def finishes(scheduler: Scheduler, job: Job) -> list[dict[str, Any]]:
    """Every finish that came for this assignment, whatever it was answered."""
    return [dict(post.body) for post in scheduler.posts("finish") if post.subject == job.id]


def cloud_threads() -> list[threading.Thread]:
    """The worker's threads that run now."""
    return [thread for thread in threading.enumerate() if thread.name.startswith("cloud ")]
