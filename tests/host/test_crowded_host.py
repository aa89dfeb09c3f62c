"""Slow readers take what a host has for calls, and a client with a phone of its own is answered."""

from __future__ import annotations

from pathlib import Path

import pytest

from mcpboard import host
from mcpboard.host.drivers.base import Screenshot
from tests.host.rig import Agent, Fake, agent
from tests.support import hogs
from tests.support.hogs import Crowd, waits

pytestmark = pytest.mark.slow  # waits for real limits, links or processes

SECONDS = 3.0


class Camera(Fake):
    """A phone with large pictures."""

    def take_screenshot(self) -> Screenshot:
        return Screenshot(b"\x89PNG" + bytes(3_000_000), "image/png", 100, 200)


def port(running: Agent) -> int:
    return int(running.base.rpartition(":")[2])


def test_slow_readers_in_every_slot_keep_no_action_from_running(tmp_path: Path) -> None:
    with agent(tmp_path / "data", real_time=True, camera=Camera(), phone=Fake()) as running:
        shot = hogs.call("screenshot", running.token, device_id="camera")
        asked = {
            "ping": hogs.message("ping", running.token),
            "an action": hogs.call("tap", running.token, x=1, y=1, device_id="phone"),
        }
        with Crowd(port(running), {hogs.reader(shot): host.MOST_CALLS + 8}):
            found = waits(port(running), SECONDS, asked)
    assert found.worst_s <= hogs.ANSWER_S
