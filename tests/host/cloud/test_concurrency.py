"""The rules of concurrency, sentence by sentence: the cloud and MCP clients want one phone."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import Any

import pytest

from mcpboard.host.devices.leases import IDLE_SECONDS
from mcpboard.host.drivers.simulated import SimulatedDriver
from mcpboard.simulator.cloud.scheduler import Scheduler
from tests.host.cloud.rig import LOOK, REASON, TAP, taking_part
from tests.host.rig import Agent, Fake, result, threads
from tests.support.http import LIMIT_S

pytestmark = pytest.mark.slow  # waits for real limits, links or processes

CLOUD_BUSY = {
    "code": -32000,
    "message": "device X is busy (held by cloud assignment)",
    "data": {"busy_owner": "cloud_assignment", "delivery": "not_sent"},
}


def busy_ids(scheduler: Scheduler) -> list[Any]:
    return [beat["mcp_busy_device_ids"] for beat in scheduler.heartbeats()]


# --- "share the same DeviceManager" --------------------------------------------------------------

STEPS: dict[str, dict[str, Any]] = {
    "take_screenshot": {},
    "tap": {"x": "1", "y": 2.4},
    "swipe": {"start_x": 1, "start_y": 2, "end_x": 3, "end_y": 4},
    "launch_app": {"app_id": "Notes"},
    "find_text": {"query": "Settings"},
    "find_icon": {"name": "gear"},
    "get_ui_tree": {},
    "describe_screen": {},
}


def test_the_steps_of_an_assignment_are_the_operations_of_the_tools(tmp_path: Path, scheduler: Scheduler) -> None:
    """Each step on one phone comes to what the MCP tool of its name comes to on its twin."""
    frozen = 1000.0
    phones = {name: SimulatedDriver(lambda: frozen) for name in "XY"}
    with taking_part(tmp_path / "data", scheduler, **phones) as host:
        job = scheduler.dispatch("X", [{"tool": name, "arguments": given} for name, given in STEPS.items()])
        outcome = scheduler.outcome(job, LIMIT_S)
        responses = [host.caller.call(name, device_id="Y", **given).result for name, given in STEPS.items()]
    assert outcome["status"] == "succeeded", outcome
    for step, response in zip(outcome["results"], responses, strict=True):
        text = "\n".join(block["text"] for block in response["content"] if block["type"] == "text")
        assert step["text"].splitlines()[:1] == [
            line.replace(" on Y", " on X").replace(" Y", " X") for line in text.splitlines()[:1]
        ]
        assert step.get("structured") == response.get("structuredContent")
        images = [block["data"] for block in response["content"] if block["type"] == "image"]
        assert [step["image"]["data"]] * len(images) == images if images else "image" not in step


# --- "the first caller holds it; the other side sees a busy error" -------------------------------


def test_cloud_first_the_client_is_told_word_for_word(host: Agent, scheduler: Scheduler, phone: Fake) -> None:
    phone.stop_inside()
    job = scheduler.dispatch("X", [TAP])
    phone.wait_inside()
    for caller in (host.caller.open(), host.caller.modern()):
        assert caller.call("take_screenshot").error == CLOUD_BUSY
    phone.go_on.set()
    assert scheduler.outcome(job)["status"] == "succeeded"
    assert phone.done == [("tap", (1, 2))]
    assert host.caller.call("take_screenshot").text


def test_client_first_the_assignment_fails_fast_and_the_device_stays_untouched(
    host: Agent, scheduler: Scheduler, phone: Fake
) -> None:
    """The fail-fast of the 30-second window: the reason word for word, retryable, within a second."""
    host.caller.open().call("tap", x=1, y=2)
    scheduler.wait_until(lambda: busy_ids(scheduler)[-1:] == [["X"]], LIMIT_S, "heartbeat with X")
    began = time.monotonic()
    job = scheduler.dispatch("X", [LOOK], blind=True)
    outcome = scheduler.outcome(job)
    assert outcome == {
        "lease_id": job.lease_id,
        "status": "failed",
        "failure_reason": REASON,
        "failure_code": "device_busy_mcp",
        "retryable": True,
        "results": [],
    }
    assert phone.done == [("tap", (1, 2))]
    assert not scheduler.posts("start")
    assert time.monotonic() - began < LIMIT_S


# --- "until the session ends OR 60 seconds of inactivity" ------------------------------------------


@pytest.mark.parametrize("how", ["the session ends", "60 seconds pass"])
def test_the_cloud_gets_the_device_once_the_client_is_done(
    host: Agent, scheduler: Scheduler, phone: Fake, how: str
) -> None:
    """And until then a scheduler that listens to heartbeats does not even try."""
    caller = host.caller.open()
    caller.call("tap", x=1, y=2)
    scheduler.wait_until(lambda: busy_ids(scheduler)[-1:] == [["X"]], LIMIT_S, "heartbeat with X")
    job = scheduler.dispatch("X", [LOOK])
    if how == "the session ends":
        caller.end()
    else:
        host.clock.pass_by(IDLE_SECONDS)
        host.caller.call("list_devices")
    assert scheduler.outcome(job)["status"] == "succeeded"
    assert phone.done == [("tap", (1, 2)), ("take_screenshot",)]


# --- "Cloud assignments hold theirs until the assignment terminates" -------------------------------


def test_no_time_ends_the_lease_of_an_assignment(host: Agent, scheduler: Scheduler, phone: Fake) -> None:
    """Neither inside a step nor between two of them, where progress is being told."""
    with scheduler.hold("progress") as telling:
        job = scheduler.dispatch("X", [TAP, LOOK])
        assert telling.entered.wait(LIMIT_S)
        host.clock.pass_by(10 * IDLE_SECONDS)
        host.role.manager.sweep()
        assert host.caller.call("tap", x=1, y=2).error == CLOUD_BUSY
    assert scheduler.outcome(job)["status"] == "succeeded"
    assert phone.done == [("tap", (1, 2)), ("take_screenshot",)]
    assert host.role.manager.leases() == {}
    ended = host.role.manager.last_ended("X")
    assert ended is not None
    assert (ended.owner.label, ended.why) == ("cloud_assignment", "its assignment ended")


def test_the_status_of_a_device_names_the_cloud_and_no_time(host: Agent, scheduler: Scheduler, phone: Fake) -> None:
    phone.stop_inside()
    scheduler.dispatch("X", [TAP])
    phone.wait_inside()
    status = host.caller.call("device_status", device_id="X").result["structuredContent"]
    assert (status["held_by"], status["free_in_s"]) == ("cloud_assignment", None)
    phone.go_on.set()


# --- "told via the heartbeat `mcp_busy_device_ids` field" -------------------------------------------


def test_heartbeats_say_which_devices_clients_use(tmp_path: Path, scheduler: Scheduler) -> None:
    """Sorted, an empty list for none, told at once when it changes, and gone with a removed device."""
    with taking_part(tmp_path / "data", scheduler, Z=Fake(), X=Fake(), Y=Fake()) as host:
        assert busy_ids(scheduler)[0] == []
        caller = host.caller.open()
        for device in "ZX":
            caller.call("tap", device_id=device, x=1, y=2)
        scheduler.wait_until(lambda: busy_ids(scheduler)[-1] == ["X", "Z"], 5, "heartbeat with X and Z")
        host.role.manager.remove("Z")
        scheduler.wait_until(lambda: busy_ids(scheduler)[-1] == ["X"], 5, "heartbeat without Z")
        caller.end()
        scheduler.wait_until(lambda: busy_ids(scheduler)[-1] == [], 5, "heartbeat without any")
        beat = scheduler.heartbeats()[-1]
    assert beat["devices"] == [
        {"id": "X", "kind": "fake", "state": "ready"},
        {"id": "Y", "kind": "fake", "state": "ready"},
    ]
    assert (beat["assignments"], beat["draining"]) == ([], False)
    assert [each["seq"] for each in scheduler.heartbeats()] == list(range(1, len(scheduler.heartbeats()) + 1))
    assert len({each["boot_id"] for each in scheduler.heartbeats()}) == 1


def test_many_changes_are_told_once_a_second_at_most(host: Agent, scheduler: Scheduler) -> None:
    """Forty leases come and go; the last state is told all the same."""
    began, before = time.monotonic(), len(scheduler.heartbeats())
    for _ in range(20):
        caller = host.caller.open()
        caller.call("tap", x=1, y=2)
        caller.end()
    host.caller.open().call("tap", x=1, y=2)
    scheduler.wait_until(lambda: busy_ids(scheduler)[-1] == ["X"], 5, "heartbeat with X")
    assert len(scheduler.heartbeats()) - before <= 2 + (time.monotonic() - began)


def test_the_clouds_own_leases_are_no_business_of_that_field(host: Agent, scheduler: Scheduler, phone: Fake) -> None:
    phone.stop_inside()
    job = scheduler.dispatch("X", [TAP])
    phone.wait_inside()
    scheduler.wait_until(lambda: bool(scheduler.heartbeats()[-1]["assignments"]), 5, "heartbeat with the assignment")
    beat = scheduler.heartbeats()[-1]
    assert beat["mcp_busy_device_ids"] == []
    assert beat["assignments"] == [{"id": job.id, "lease_id": job.lease_id, "phase": "running", "progress": 0}]
    phone.go_on.set()
    scheduler.outcome(job)


# --- "a 30-second window exists": the race, in both orders ------------------------------------------


@pytest.mark.parametrize("attempt", range(5))
def test_of_a_client_and_the_cloud_that_want_a_device_at_once_one_gets_it(
    host: Agent, scheduler: Scheduler, phone: Fake, attempt: int
) -> None:
    """Both start at a barrier; whoever loses is told so in its own way, and nothing of it is done."""
    start = threading.Barrier(2)
    caller = host.caller.open()
    scheduler.wait_until(lambda: bool(scheduler.posts("heartbeat")), LIMIT_S)

    def tap() -> Any:
        start.wait(LIMIT_S)
        return caller.call("tap", x=9, y=9)

    with threads() as pool:
        tapped = pool.submit(tap)
        start.wait(LIMIT_S)
        job = scheduler.dispatch("X", [LOOK], blind=True)
        response, outcome = result(tapped), scheduler.outcome(job)
    assert phone.most_inside == 1
    if outcome["status"] == "succeeded":
        assert response.json.get("error") in (None, CLOUD_BUSY)
    else:
        assert outcome["failure_reason"] == REASON
        assert response.text == "tapped 9,9 on X"
        assert phone.done == [("tap", (9, 9))]
