"""What a cloud that is down, slow or wrong, a killed process and an orderly end do not lose."""

from __future__ import annotations

import json
import logging
import signal
import stat
import subprocess
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from mcpboard.host.access.tokens import read_main_token
from mcpboard.host.cloud.api import CloudApi, CloudHttp
from mcpboard.host.cloud.assignment import AssignmentRun
from mcpboard.host.cloud.loop import LONGEST_PAUSE, SHORTEST_PAUSE, WorkerClock, pause
from mcpboard.host.cloud.outbox import MOST_PENDING, Outbox, OutboxEntry
from mcpboard.simulator.cloud.scheduler import KINDS, Scheduler
from tests.host.cloud.rig import LOOK, TAP, cloud_threads, enrolled, finishes, taking_part, working
from tests.host.rig import Agent, Fake, agent, session
from tests.support.http import LIMIT_S, Caller
from tests.support.processes import host as host_verb
from tests.support.processes import host_agent

pytestmark = pytest.mark.slow  # waits for real limits, links or processes

FIVE_MINUTES_S = 300.0
SPEED = 100.0  # the five minutes take three seconds


@pytest.fixture
def posted(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The path of every request that is attempted, whether or not anybody listens."""
    paths: list[str] = []
    real = CloudHttp.post

    def post(http: CloudHttp, path: str, *rest: Any) -> Any:
        paths.append(path)
        return real(http, path, *rest)

    monkeypatch.setattr(CloudHttp, "post", post)
    return paths


# --- down ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("how", ["nobody listens", "503 for everything"])
def test_five_minutes_without_a_scheduler_lose_nothing_and_keep_nobody_busy(
    tmp_path: Path, phone: Fake, posted: list[str], how: str
) -> None:
    clock = WorkerClock(SPEED)
    with (
        Scheduler(claim_wait_s=1) as scheduler,
        working(tmp_path / "data", scheduler, clock, X=phone, Y=Fake()) as (worker, manager),
    ):
        phone.stop_inside()
        job = scheduler.dispatch("X", [TAP])
        phone.wait_inside()
        if how == "nobody listens":
            scheduler.stop()
        else:
            for kind in KINDS:
                scheduler.fail(kind, 503, 1000)
        before = len(posted)
        phone.go_on.set()
        manager.run("Y", session("client"), lambda driver: None)
        clock.wait(threading.Event(), FIVE_MINUTES_S)
        during = posted[before:]
        status = worker.status()
        scheduler.recover()
        outcome = scheduler.outcome(job)
        scheduler.wait_until(
            lambda: scheduler.heartbeats()[-1]["mcp_busy_device_ids"] == ["Y"], LIMIT_S, "heartbeat with Y"
        )
    assert outcome["status"] == "succeeded"
    assert (status.pending, status.problem != "") == (1, True)
    # A heartbeat waits 15 s at least once it has failed five times, the others 30 s.
    for kind, least, most in (("heartbeat", 3, 30), ("claim", 1, 20), ("finish", 3, 20)):
        asked = sum(path.endswith(kind) for path in during)
        assert least <= asked <= most, (kind, asked)
    assert len(finishes(scheduler, job)) - finishes_refused(scheduler) == 1


def finishes_refused(scheduler: Scheduler) -> int:
    return sum(post.status == 503 for post in scheduler.posts("finish"))


def test_pauses_double_and_never_fall_below_a_second() -> None:
    for failures, full in enumerate([2, 4, 8, 16, 32, 60, 60], 1):
        assert all(max(SHORTEST_PAUSE, full / 2) <= pause(failures, LONGEST_PAUSE) <= full for _ in range(50))
    assert pause(1000, LONGEST_PAUSE) <= LONGEST_PAUSE
    assert pause(9, SHORTEST_PAUSE) == SHORTEST_PAUSE


def test_a_cloud_that_answers_claims_at_once_is_asked_once_a_second(
    host: Agent, scheduler: Scheduler, posted: list[str]
) -> None:
    """Whoever forgets to wait must not make us spin."""
    began, before = time.monotonic(), len(posted)
    scheduler.hurry()
    scheduler.wait_for_request("claim", 4)
    claims = sum(path.endswith("claim") for path in posted[before:])
    assert claims <= 3 + (time.monotonic() - began)


def test_leases_that_come_and_go_hurry_no_claim(host: Agent, scheduler: Scheduler, posted: list[str]) -> None:
    """Of a cloud that answers at once, with nothing."""
    began, before = time.monotonic(), len(posted)
    scheduler.hurry()
    while sum(path.endswith("claim") for path in posted[before:]) < 4:
        caller = host.caller.open()
        caller.call("tap", x=1, y=2, device_id="X")
        caller.end()
    claims = sum(path.endswith("claim") for path in posted[before:])
    assert claims <= 3 + (time.monotonic() - began)


def test_an_outage_ends_when_the_cloud_has_answered(tmp_path: Path, scheduler: Scheduler, caplog: pytest.LogCaptureFixture) -> None:  # fmt: skip
    """And not when there was nothing to ask it: one line says that it is gone, one that it is back."""
    scheduler.fail("claim", 503, 1000)
    with caplog.at_level("INFO"), working(tmp_path / "data", scheduler, WorkerClock(SPEED), X=Fake()) as (worker, manager):  # fmt: skip
        scheduler.wait_for_request("claim", 1)
        owner, beats = session("s"), len(scheduler.heartbeats())
        manager.run("X", owner, lambda driver: None)
        # Longer than a pause after a failure: the claims find nothing to ask for.
        scheduler.wait_until(lambda: len(scheduler.heartbeats()) > beats + 3, LIMIT_S, "heartbeats")
        assert "503" in worker.status().problem
        manager.end_owner(owner, "done")
        assert "works again" not in caplog.text
        scheduler.recover()
        scheduler.outcome(scheduler.dispatch("X", [TAP]))
        assert not worker.status().problem
    assert (caplog.text.count("answered with HTTP 503"), caplog.text.count("works again")) == (1, 1)


REFUSED = [
    pytest.param(500, True, id="500 is no response"),
    pytest.param(503, True, id="503 is no response"),
    pytest.param(401, True, id="401 may be remedied by enrolling again"),
    pytest.param(429, True, id="429 asks for patience"),
    pytest.param(302, True, id="a redirect is not followed and no response"),
    pytest.param(400, False, id="400 is one"),
    pytest.param(404, False, id="404 is one"),
    pytest.param(409, False, id="409 is one"),
    pytest.param(410, False, id="410 is one"),
]


@pytest.mark.parametrize(("status", "again"), REFUSED)
def test_a_finish_is_told_until_it_is_answered(
    tmp_path: Path, scheduler: Scheduler, phone: Fake, status: int, again: bool
) -> None:
    scheduler.fail("finish", status)
    with working(tmp_path / "data", scheduler, WorkerClock(SPEED), X=phone) as (worker, _):
        job = scheduler.dispatch("X", [TAP])
        scheduler.wait_until(lambda: len(finishes(scheduler, job)) == (2 if again else 1), LIMIT_S, "finish")
        scheduler.outcome(scheduler.dispatch("X", [LOOK]))
    assert len(finishes(scheduler, job)) == (2 if again else 1)
    assert list((tmp_path / "data" / "outbox").iterdir()) == []


def test_an_answer_that_was_lost_makes_no_second_outcome(tmp_path: Path, scheduler: Scheduler, phone: Fake) -> None:
    """The cloud took it in, and the connection broke: it comes again, word for word, under its lease."""
    scheduler.swallow("finish")
    with working(tmp_path / "data", scheduler, WorkerClock(SPEED), X=phone):
        job = scheduler.dispatch("X", [TAP])
        scheduler.wait_until(lambda: len(finishes(scheduler, job)) == 2, LIMIT_S, "second finish")
        first, second = finishes(scheduler, job)
    assert first == second == scheduler.outcome(job)
    assert phone.done == [("tap", (1, 2))]


def test_one_outcome_that_cannot_be_sent_holds_up_no_other(
    tmp_path: Path, scheduler: Scheduler, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As one from a file that somebody has damaged."""
    found = enrolled(tmp_path / "data", scheduler)
    outbox = Outbox(tmp_path / "data", found.host_id)
    for name in ("first", "second"):
        outbox.post(OutboxEntry(found.host_id, name, f"lease of {name}", {"lease_id": f"lease of {name}"}))
    real = CloudApi.finish

    def finish(api: CloudApi, assignment: str, body: Mapping[str, Any]) -> None:
        if assignment == "first":
            raise ValueError("no URL can be made of this")
        real(api, assignment, body)

    monkeypatch.setattr(CloudApi, "finish", finish)
    with working(tmp_path / "data", scheduler, WorkerClock(SPEED)):
        scheduler.wait_until(lambda: len(scheduler.posts("finish")) == 1, LIMIT_S, "the finish of the second")
        assert [post.subject for post in scheduler.posts("finish")] == ["second"]


def test_one_outcome_that_the_cloud_chokes_on_holds_up_no_other(tmp_path: Path, scheduler: Scheduler) -> None:
    found = enrolled(tmp_path / "data", scheduler)
    outbox = Outbox(tmp_path / "data", found.host_id)
    for name in ("first", "second"):
        outbox.post(OutboxEntry(found.host_id, name, f"lease of {name}", {"lease_id": f"lease of {name}"}))
    scheduler.fail("finish", 500)
    with working(tmp_path / "data", scheduler, WorkerClock(SPEED)):
        scheduler.wait_until(lambda: len(scheduler.posts("finish")) == 3, LIMIT_S, "three finishes")
        assert [post.subject for post in scheduler.posts("finish")] == ["first", "second", "first"]


def test_nothing_new_is_claimed_while_too_many_outcomes_wait(tmp_path: Path, scheduler: Scheduler, phone: Fake) -> None:
    """What the cloud does not take in must not pile up without bound."""
    found = enrolled(tmp_path / "data", scheduler)
    outbox = Outbox(tmp_path / "data", found.host_id)
    for number in range(MOST_PENDING):
        outbox.post(OutboxEntry(found.host_id, f"a{number}", f"lease {number}", {"lease_id": f"lease {number}"}))
    with scheduler.hold("finish") as held, working(tmp_path / "data", scheduler, X=phone) as (worker, _):
        assert held.entered.wait(LIMIT_S)
        scheduler.wait_for_request("heartbeat")
        assert (worker.status().pending, scheduler.received("claim")) == (MOST_PENDING, 0)
        held.release()
        scheduler.wait_for_request("claim")


# --- killed --------------------------------------------------------------------------------------


@contextmanager
def killable(folder: Path) -> Iterator[subprocess.Popen[str]]:
    """An agent in a process of its own, with a phone X in memory."""
    with host_agent("--data", str(folder)) as (agent, _):
        yield agent.process


def prepared(folder: Path, scheduler: Scheduler) -> None:
    enrolled(folder, scheduler)
    assert host_verb("devices", "add", "X", "--kind", "simulated", "--data", str(folder)).returncode == 0


@pytest.mark.parametrize("taken_in", [True, False], ids=["which the cloud took in", "which the cloud did not take in"])
def test_kill_while_a_finish_is_under_way_reports_it_once_after_the_restart(
    tmp_path: Path, scheduler: Scheduler, taken_in: bool
) -> None:
    folder = tmp_path / "data"
    prepared(folder, scheduler)
    with scheduler.hold("finish") as held, killable(folder) as child:
        job = scheduler.dispatch("X", [{"tool": "launch_app", "arguments": {"app_id": "Notes"}}, LOOK])
        assert held.entered.wait(3 * LIMIT_S)
        child.send_signal(signal.SIGKILL)
        child.wait(LIMIT_S)
        if not taken_in:
            scheduler.fail("finish", 503)
    (entry,) = (folder / "outbox").iterdir()
    assert stat.S_IMODE(entry.stat().st_mode) == 0o600
    assert stat.S_IMODE(entry.parent.stat().st_mode) == 0o700
    scheduler.wait_until(lambda: len(finishes(scheduler, job)) == 1, LIMIT_S, "the first finish's end")
    with killable(folder):
        scheduler.wait_until(lambda: len(finishes(scheduler, job)) == 2, 3 * LIMIT_S, "finish after the restart")
        outcome = scheduler.outcome(job)
        assert scheduler.outcome(scheduler.dispatch("X", [LOOK]), 3 * LIMIT_S)["status"] == "succeeded"
    assert finishes(scheduler, job) == [outcome, outcome]
    assert outcome["status"] == "succeeded"
    assert len([post for post in scheduler.posts("start") if post.subject == job.id]) == 1
    assert list((folder / "outbox").iterdir()) == []


def test_kill_in_the_middle_of_an_assignment_is_told_after_the_restart(tmp_path: Path, scheduler: Scheduler) -> None:
    """Nobody knows what it did by then, so it is neither repeated nor offered for it."""
    folder = tmp_path / "data"
    prepared(folder, scheduler)
    with scheduler.hold("progress") as held, killable(folder) as child:
        job = scheduler.dispatch("X", [{"tool": "launch_app", "arguments": {"app_id": "Notes"}}, LOOK])
        assert held.entered.wait(3 * LIMIT_S)
        child.send_signal(signal.SIGKILL)
        child.wait(LIMIT_S)
    with killable(folder):
        outcome = scheduler.outcome(job, 3 * LIMIT_S)
    assert (outcome["status"], outcome["failure_code"], outcome["retryable"]) == ("failed", "host_restarted", False)
    assert len(finishes(scheduler, job)) == 1


# --- the outbox's files --------------------------------------------------------------------------


def test_outcomes_of_another_enrolment_and_files_that_are_none_are_left_alone(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    first = Outbox(tmp_path, "host-1")
    first.post(OutboxEntry("host-1", "a", "lease/../a", {"lease_id": "lease/../a"}))
    first.reserve(OutboxEntry("host-1", "b", "lease-b", {"lease_id": "lease-b"}))
    assert [entry.assignment for entry in first.pending()] == ["a"]
    (tmp_path / "outbox" / "odd.json").write_text("[]", "utf-8")
    (tmp_path / "outbox" / ".torn.json.0011").write_text('{"ver', "utf-8")
    assert [entry.assignment for entry in Outbox(tmp_path, "host-1").pending()] == ["a", "b"]
    assert Outbox(tmp_path, "host-2").pending() == []
    assert "odd.json: is no outcome" in " ".join(caplog.text.split())
    assert sorted(path.suffix for path in (tmp_path / "outbox").iterdir()) == [".json"] * 3


def test_an_outcome_is_pending_even_when_the_disk_is_full(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(path: Path, document: Any) -> None:
        raise OSError(28, "No space left on device")

    outbox = Outbox(tmp_path, "host")
    monkeypatch.setattr("mcpboard.host.storage.replace", full)
    outbox.post(OutboxEntry("host", "a", "lease", {"lease_id": "lease"}))
    assert outbox.is_pending("lease")
    outbox.remove("lease")
    assert outbox.pending() == []


def test_nothing_is_begun_that_cannot_be_reserved(
    host: Agent, scheduler: Scheduler, phone: Fake, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(path: Path, document: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("mcpboard.host.storage.replace", full)
    outcome = scheduler.outcome(scheduler.dispatch("X", [TAP]))
    assert (outcome["failure_code"], outcome["retryable"], phone.done) == ("outbox_failed", True, [])


# --- the end -------------------------------------------------------------------------------------


def test_the_threads_are_named_and_counted_and_gone_in_the_end(
    tmp_path: Path, scheduler: Scheduler, phone: Fake
) -> None:
    with taking_part(tmp_path / "data", scheduler, X=phone, Y=Fake()):
        phone.stop_inside()
        job = scheduler.dispatch("X", [TAP])
        phone.wait_inside()
        names = sorted(thread.name for thread in cloud_threads())
        assert names == ["cloud assignment on X", "cloud claims", "cloud delivery", "cloud heartbeat"]
        phone.go_on.set()
        scheduler.outcome(job)
    assert cloud_threads() == []
    last = scheduler.heartbeats()[-1]
    assert (last["draining"], last["assignments"]) == (True, [])


def test_the_end_hands_over_what_was_under_way(
    tmp_path: Path, scheduler: Scheduler, phone: Fake, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The step inside finishes, the next is not made, and the cloud knows before the process is gone."""
    stop_called, stop = threading.Event(), AssignmentRun.stop

    def stopped(run: AssignmentRun, *why: str) -> None:
        stop(run, *why)
        stop_called.set()

    monkeypatch.setattr(AssignmentRun, "stop", stopped)
    with working(tmp_path / "data", scheduler, X=phone) as (worker, _):
        phone.stop_inside()
        job = scheduler.dispatch("X", [LOOK, TAP])
        phone.wait_inside()
        closing = threading.Thread(target=worker.close)
        closing.start()
        assert stop_called.wait(LIMIT_S)
        phone.go_on.set()
        closing.join(LIMIT_S)
        assert not closing.is_alive()
        outcome = scheduler.outcome(job, 0.1)
    assert (outcome["failure_code"], outcome["retryable"]) == ("shutting_down", True)
    assert phone.done == [("take_screenshot",)]
    assert list((tmp_path / "data" / "outbox").iterdir()) == []


@pytest.mark.parametrize("obstacle", ["a step that never ends", "a cloud that never answers", "a cloud that is gone"])
def test_nothing_keeps_the_end_for_ten_seconds(
    tmp_path: Path, scheduler: Scheduler, phone: Fake, obstacle: str
) -> None:
    """What cannot be told by then is in the outbox."""
    with working(tmp_path / "data", scheduler, X=phone) as (worker, _):
        phone.stop_inside()
        job = scheduler.dispatch("X", [TAP])
        phone.wait_inside()
        if obstacle == "a cloud that is gone":
            scheduler.stop()
        elif obstacle == "a cloud that never answers":
            for kind in ("heartbeat", "finish"):
                scheduler.hold(kind)
        if obstacle != "a step that never ends":
            phone.go_on.set()
        began = time.monotonic()
        worker.close()
        assert time.monotonic() - began < 7.0  # of the ten; the rest is the server's drain
        phone.go_on.set()
    if obstacle == "a step that never ends":
        assert scheduler.outcome(job)["failure_code"] == "host_restarted"
    else:
        (entry,) = (tmp_path / "data" / "outbox").iterdir()
        assert json.loads(entry.read_text("utf-8"))["finish"]["status"] == "succeeded"


def test_a_signal_ends_an_enrolled_agent_within_ten_seconds(tmp_path: Path, scheduler: Scheduler) -> None:
    folder = tmp_path / "data"
    prepared(folder, scheduler)
    with host_agent("--data", str(folder)) as (agent, url):
        assert Caller(url, read_main_token(folder)).call("list_devices").text  # it serves, and so heeds signals
        scheduler.wait_for_request("claim", 1, 3 * LIMIT_S)
        began = time.monotonic()
        assert agent.end() == 0
    assert time.monotonic() - began < 10
    assert scheduler.heartbeats()[-1]["draining"]


# --- what is shown, and what is not ----------------------------------------------------------------


def test_the_status_tells_how_it_stands(host: Agent, scheduler: Scheduler, phone: Fake) -> None:
    phone.stop_inside()
    job = scheduler.dispatch("X", [TAP])
    phone.wait_inside()
    status = host.cloud_status()
    assert (status.url, status.pending, status.draining) == (scheduler.url, 0, False)
    assert status.heartbeat_s is not None
    assert 0 <= status.heartbeat_s < LIMIT_S
    (under,) = status.assignments
    assert (under.id, under.device, under.phase, under.steps_done) == (job.id, "X", "running", 0)
    phone.go_on.set()
    scheduler.outcome(job)
    host.caller.open().call("tap", x=1, y=2)
    scheduler.wait_until(
        lambda: scheduler.heartbeats()[-1]["mcp_busy_device_ids"] == ["X"], LIMIT_S, "heartbeat with X"
    )
    host.role.manager.release("X")  # and so another heartbeat, after the answer to that one was read
    scheduler.wait_until(
        lambda: scheduler.heartbeats()[-1]["mcp_busy_device_ids"] == [], LIMIT_S, "heartbeat without X"
    )
    assert host.cloud_status().busy_ids_sent in ((), ("X",))
    assert host.cloud_status().assignments == ()


def test_a_host_that_the_cloud_does_not_know_any_more_is_told_what_to_do(
    tmp_path: Path, scheduler: Scheduler, caplog: pytest.LogCaptureFixture
) -> None:
    enrolled(tmp_path / "data", scheduler)
    scheduler.forget_hosts()
    with working(tmp_path / "data", scheduler, WorkerClock(SPEED)) as (worker, _):
        scheduler.wait_for_request("heartbeat", 4)
        assert worker.status().problem == "the cloud does not know this host any more (HTTP 401): enrol again"
    assert caplog.text.count("enrol again") == 1  # once for the outage, not for each attempt


def test_no_secret_is_ever_in_the_log(
    tmp_path: Path, scheduler: Scheduler, phone: Fake, caplog: pytest.LogCaptureFixture
) -> None:
    """Tokens, and what was typed into a phone."""
    caplog.set_level(logging.DEBUG)
    typed = {"tool": "input_text", "arguments": {"text": "correct horse"}}
    scheduler.fail("finish", 401)
    with taking_part(tmp_path / "data", scheduler, X=phone) as host:
        scheduler.outcome(scheduler.dispatch("X", [typed]))
        phone.fault = RuntimeError("odd")
        scheduler.outcome(scheduler.dispatch("X", [typed]))
        shown = f"{host.cloud_status()!r} {caplog.text}"
    for secret in (*scheduler.secrets, "correct horse"):
        assert secret not in shown


def test_an_agent_that_is_not_enrolled_starts_no_thread_and_sends_nothing(tmp_path: Path, posted: list[str]) -> None:
    with agent(tmp_path / "data", X=Fake()) as host:
        assert cloud_threads() == []
        assert host.role.cloud is None
        host.caller.open().call("tap", x=1, y=2)
    assert posted == []
    assert not (tmp_path / "data" / "outbox").exists()
