"""One assignment from claim to finish: every way that it can end, and what the cloud is told of each."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from mcpboard.errors import NOT_SENT, InvalidParams, ToolFailed
from mcpboard.host.cloud import assignment
from mcpboard.simulator.cloud.scheduler import Scheduler
from tests.host.cloud.rig import LOOK, TAP, ShiftedClock, finishes, obeyed, taking_part, working
from tests.host.rig import Agent, Fake, session
from tests.support.http import LIMIT_S

pytestmark = pytest.mark.slow  # waits for real limits, links or processes


def kinds(scheduler: Scheduler) -> list[str]:
    return [post.kind for post in scheduler.posts() if post.kind in ("start", "progress", "finish")]


def test_an_assignment_is_started_told_of_and_finished(host: Agent, scheduler: Scheduler, phone: Fake) -> None:
    job = scheduler.dispatch("X", [TAP, LOOK])
    assert scheduler.outcome(job) == {
        "lease_id": job.lease_id,
        "status": "succeeded",
        "retryable": False,
        "results": [
            {"step": 0, "tool": "tap", "text": "tapped 1,2 on X"},
            {
                "step": 1,
                "tool": "take_screenshot",
                "text": "100x200 X",
                "image": {"mime": "image/png", "data": "cGljdHVyZQ=="},
            },
        ],
    }
    assert kinds(scheduler) == ["start", "progress", "progress", "finish"]
    assert [(each["step"], each["note"]) for each in job.progress] == [(1, "tap"), (2, "take_screenshot")]
    assert phone.done == [("tap", (1, 2)), ("take_screenshot",)]


def test_a_step_without_what_is_null_is_the_same_step() -> None:
    given = {"start_x": 1, "start_y": 2, "end_x": 3, "end_y": 4}
    steps = [{"tool": "swipe", "arguments": {**given, "duration_ms": None, "device_id": None}}]
    (step,) = assignment.parse_assignment({"timeout_s": 60, "steps": steps}, "X").steps
    assert step.arguments == given


BAD = [
    pytest.param({"steps": []}, "a list of 1 to 200 steps", id="no step"),
    pytest.param({"steps": [TAP] * 201}, "a list of 1 to 200 steps", id="too many steps"),
    pytest.param({"steps": ["tap"]}, "step 1 must be an object", id="a step that is a word"),
    pytest.param({"steps": [TAP, {"tool": "shell"}]}, "step 2 has no tool that a step may have", id="a tool we do not have"),
    pytest.param({"steps": [{"tool": "list_devices"}]}, "step 1 has no tool", id="a tool that leases no device"),
    pytest.param({"steps": [{"tool": "tap", "arguments": [1, 2]}]}, "step 1 must be an object", id="arguments in a list"),
    pytest.param({"steps": [{"tool": "tap", "arguments": {"x": 1}}]}, "argument y is missing", id="an argument too few"),
    pytest.param({"steps": [{"tool": "tap", "arguments": {"x": 1, "y": 2, "z": 3}}]}, "an argument is unknown", id="one too many"),
    pytest.param({"steps": [{"tool": "tap", "arguments": {"x": 1, "y": 2, "device_id": "Y"}}]}, "another device", id="another device"),
    pytest.param({"steps": [{"tool": "tap", "arguments": {"x": 1, "y": 2, "session_id": "new"}}]}, "or owner", id="another owner"),
    pytest.param({"steps": [TAP], "timeout_s": 0}, "timeout_s must be more than 0", id="no time"),
    pytest.param({"steps": [TAP], "timeout_s": 1e9}, "at most 3600 seconds", id="too much time"),
]  # fmt: skip


@pytest.mark.parametrize(("given", "message"), BAD)
def test_what_cannot_be_executed_is_told_before_anything_is_touched(given: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidParams, match=message):
        assignment.parse_assignment({"timeout_s": 60, **given}, "X")


def test_a_bad_step_anywhere_keeps_the_first_from_being_done(host: Agent, scheduler: Scheduler, phone: Fake) -> None:
    outcome = scheduler.outcome(scheduler.dispatch("X", [TAP, {"tool": "shell"}]))
    assert (outcome["failure_code"], outcome["retryable"], phone.done) == ("bad_assignment", False, [])
    assert kinds(scheduler) == ["finish"]


STEP_FAULTS = [
    pytest.param([LOOK], ToolFailed("offline", delivery=NOT_SENT), True, id="a look that failed may be repeated"),
    pytest.param([TAP], ToolFailed("cable out"), False, id="a tap that may have been done may not"),
    pytest.param([TAP], ToolFailed("offline", delivery=NOT_SENT), True, id="a tap that was not sent may be repeated"),
    pytest.param([TAP], RuntimeError("odd"), False, id="any exception of a driver, in its own words"),
    pytest.param([TAP], SystemExit("odd"), False, id="and what is no ordinary one"),
]


@pytest.mark.parametrize(("steps", "fault", "retryable"), STEP_FAULTS)
def test_a_step_that_fails_ends_it_and_says_whether_it_may_be_repeated(
    host: Agent, scheduler: Scheduler, phone: Fake, steps: list[Any], fault: BaseException, retryable: bool
) -> None:
    """Only what touched nothing may be given out again: nothing that moves a phone is ever repeated by itself."""
    phone.fault = fault
    outcome = scheduler.outcome(scheduler.dispatch("X", [*steps, TAP]))
    assert (outcome["status"], outcome["failure_reason"]) == ("failed", str(fault))
    assert (outcome["failure_code"], outcome["retryable"]) == ("step_failed", retryable)
    assert len(phone.done) == 1


def test_results_that_are_too_large_are_left_out_and_that_is_said(
    host: Agent, scheduler: Scheduler, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(assignment, "RESULTS_BYTES", 150)
    outcome = scheduler.outcome(scheduler.dispatch("X", [LOOK, LOOK, TAP]))
    first, second, third = outcome["results"]
    assert ("image" in first, "image" in second) == (True, False)
    assert second == {"step": 1, "tool": "take_screenshot", "omitted_bytes": second["omitted_bytes"]}
    assert third["tool"] == "tap"


# --- the lease -----------------------------------------------------------------------------------


def test_a_start_that_is_not_confirmed_touches_nothing(host: Agent, scheduler: Scheduler, phone: Fake) -> None:
    scheduler.fail("start", 503)
    outcome = scheduler.outcome(scheduler.dispatch("X", [TAP]))
    assert (outcome["failure_code"], outcome["retryable"], phone.done) == ("start_failed", True, [])


@pytest.mark.parametrize("told_by", ["progress 409", "progress 410", "heartbeat"])
def test_a_lost_lease_stops_it_frees_the_device_and_is_said(
    host: Agent, scheduler: Scheduler, phone: Fake, caplog: pytest.LogCaptureFixture, told_by: str
) -> None:
    phone.stop_inside()
    job = scheduler.dispatch("X", [TAP, TAP, TAP])
    phone.wait_inside()
    if told_by == "heartbeat":
        scheduler.lose(job)
        host.caller.call("list_devices")
        before = len(scheduler.heartbeats())
        scheduler.wait_until(lambda: len(scheduler.heartbeats()) > before, 5, "heartbeat")
    else:
        scheduler.fail("progress", int(told_by[-3:]))
    phone.go_on.set()
    scheduler.wait_until(lambda: bool(finishes(scheduler, job)), LIMIT_S, "finish")
    (finish,) = finishes(scheduler, job)
    assert (finish["status"], finish["failure_code"], finish["retryable"]) == ("failed", "lease_lost", False)
    assert len(finish["results"]) == 1
    assert phone.done == [("tap", (1, 2))]
    assert host.role.manager.leases() == {}
    assert "the lease is lost" in caplog.text
    assert host.caller.call("tap", x=3, y=3).text


def test_without_an_answer_for_as_long_as_the_lease_lasts_it_is_taken_for_lost(tmp_path: Path, phone: Fake) -> None:
    """Nobody knows by then who else was given the assignment."""
    clock = ShiftedClock()
    with Scheduler(lease_s=90) as scheduler, working(tmp_path / "data", scheduler, clock, X=phone) as (_, manager):
        phone.stop_inside()
        job = scheduler.dispatch("X", [LOOK, TAP], timeout_s=600)
        phone.wait_inside()
        scheduler.stop()
        clock.pass_by(91)
        phone.go_on.set()
        assert manager.wait_until_usable("X", session("next"), LIMIT_S)
        scheduler.start()
        outcome = scheduler.outcome(job)
    assert (outcome["failure_code"], outcome["retryable"]) == ("lease_lost", True)
    assert "no answer from the cloud for 90 s" in outcome["failure_reason"]
    assert phone.done == [("take_screenshot",)]


def test_an_assignment_out_of_time_ends_before_its_next_step(tmp_path: Path, scheduler: Scheduler, phone: Fake) -> None:
    clock = ShiftedClock()
    with working(tmp_path / "data", scheduler, clock, X=phone):
        phone.stop_inside()
        job = scheduler.dispatch("X", [TAP, TAP], timeout_s=4)
        phone.wait_inside()
        clock.pass_by(4)
        phone.go_on.set()
        outcome = scheduler.outcome(job)
    assert (outcome["failure_reason"], outcome["failure_code"]) == ("not done within 4 s", "timeout")
    assert (outcome["retryable"], len(phone.done)) == (False, 1)


# --- from outside --------------------------------------------------------------------------------


@pytest.fixture
def pair(tmp_path: Path, scheduler: Scheduler, phone: Fake) -> Iterator[Agent]:
    with taking_part(tmp_path / "pair", scheduler, X=phone, Y=Fake()) as found:
        yield found


def test_the_cloud_can_cancel_it(pair: Agent, scheduler: Scheduler, phone: Fake) -> None:
    phone.stop_inside()
    job = scheduler.dispatch("X", [TAP, TAP])
    scheduler.command("cancel", lease_id="somebody else's")
    scheduler.command("cancel", lease_id=job.lease_id)
    phone.wait_inside()
    obeyed(pair, scheduler)
    phone.go_on.set()
    outcome = scheduler.outcome(job)
    assert (outcome["status"], outcome["failure_code"], outcome["retryable"]) == ("cancelled", "cancelled", False)
    assert phone.done == [("tap", (1, 2))]


def test_a_device_that_is_removed_under_it_is_told(host: Agent, scheduler: Scheduler, phone: Fake) -> None:
    phone.stop_inside()
    job = scheduler.dispatch("X", [TAP, TAP])
    phone.wait_inside()
    host.role.manager.remove("X")
    assert not phone.closed
    phone.go_on.set()
    assert scheduler.outcome(job)["failure_reason"] == "unknown device: X"
    scheduler.wait_until(lambda: phone.closed, LIMIT_S, "closed driver")


def test_a_drained_host_claims_nothing_until_it_is_told_to_resume(
    pair: Agent, scheduler: Scheduler, phone: Fake
) -> None:
    """What runs when the command comes runs to its end."""
    phone.stop_inside()
    first = scheduler.dispatch("X", [TAP])
    phone.wait_inside()
    scheduler.command("drain")
    obeyed(pair, scheduler)
    assert scheduler.heartbeats()[-1]["draining"]
    assert pair.cloud_status().draining
    scheduler.outcome(scheduler.dispatch("Y", [LOOK]))  # on the claim that was waiting already
    phone.go_on.set()
    assert scheduler.outcome(first)["status"] == "succeeded"
    second = scheduler.dispatch("X", [LOOK])
    obeyed(pair, scheduler)
    assert (second.state, scheduler.received("claim")) == ("queued", 2)
    scheduler.command("resume")
    obeyed(pair, scheduler)
    assert scheduler.outcome(second)["status"] == "succeeded"


def test_a_device_that_becomes_free_is_offered_within_seconds(pair: Agent, scheduler: Scheduler, phone: Fake) -> None:
    """A claim that was made without it does not keep it from the cloud for as long as claims may wait."""
    phone.stop_inside()
    first = scheduler.dispatch("X", [TAP])
    phone.wait_inside()
    scheduler.wait_for_request("claim", 2)
    phone.go_on.set()
    scheduler.outcome(first)
    assert scheduler.outcome(scheduler.dispatch("X", [LOOK]))["status"] == "succeeded"
    asked = [(post.body["free_device_ids"], post.body["wait_s"]) for post in scheduler.posts("claim")]
    assert asked == [(["X", "Y"], 25.0), (["Y"], 5.0), (["X", "Y"], 25.0)]


def test_what_is_given_out_again_while_it_runs_is_done_once(pair: Agent, scheduler: Scheduler, phone: Fake) -> None:
    phone.stop_inside()
    job = scheduler.dispatch("X", [TAP])
    phone.wait_inside()
    scheduler.wait_for_request("claim", 2)  # for Y, which is free
    scheduler.deliver_again(job)
    scheduler.wait_for_request("claim", 3)  # so what the second brought was read
    phone.go_on.set()
    assert scheduler.outcome(job)["status"] == "succeeded"
    scheduler.outcome(scheduler.dispatch("X", [LOOK], blind=True))
    assert (phone.done, len(finishes(scheduler, job))) == ([("tap", (1, 2)), ("take_screenshot",)], 1)


def test_what_is_given_out_again_after_a_restart_is_not_begun_again(
    tmp_path: Path, scheduler: Scheduler, phone: Fake
) -> None:
    """Nobody here remembers it; the start asks the cloud, which says no."""
    with working(tmp_path / "data", scheduler, X=phone):
        job = scheduler.dispatch("X", [TAP])
        scheduler.outcome(job)
    with working(tmp_path / "data", scheduler, X=phone):
        scheduler.deliver_again(job)
        scheduler.wait_until(lambda: len(scheduler.posts("start")) == 2, LIMIT_S, "second start")
        scheduler.outcome(scheduler.dispatch("X", [LOOK]))
    assert phone.done == [("tap", (1, 2)), ("take_screenshot",)]


@pytest.mark.parametrize(
    "document", [{}, {"assignment": None}, {"assignment": {"id": "a", "lease_id": "", "device_id": "X"}}]
)
def test_an_assignment_without_a_name_is_a_problem_and_no_assignment(
    host: Agent, scheduler: Scheduler, phone: Fake, monkeypatch: pytest.MonkeyPatch, document: Any
) -> None:
    monkeypatch.setattr(
        "mcpboard.simulator.cloud.scheduler.Job.document", lambda job: document.get("assignment") or document
    )
    scheduler.dispatch("X", [TAP])
    scheduler.wait_until(lambda: any(post.status == 200 for post in scheduler.posts("claim")), LIMIT_S, "claim")
    monkeypatch.undo()
    assert scheduler.outcome(scheduler.dispatch("X", [LOOK]))["status"] == "succeeded"
    assert phone.done == [("take_screenshot",)]
