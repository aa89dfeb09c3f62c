"""The simulated cloud by itself, over plain HTTP: assignments, reports and faults."""

from __future__ import annotations

import contextlib
import http.client
import json
import threading
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from urllib.parse import urlsplit

import pytest

from mcpboard.simulator.cloud.scheduler import Scheduler

LIMIT_S = 10.0
BEAT: Mapping[str, Any] = {"seq": 1, "mcp_busy_device_ids": [], "assignments": []}


class Peer:
    """A host that speaks to the scheduler, once it has registered."""

    def __init__(self, scheduler: Scheduler) -> None:
        self.parts = urlsplit(scheduler.url)
        self.token = ""
        status, response = self.post("/v1/hosts/register", enrol_token=scheduler.enrol_token)
        assert status == 200
        self.id, self.token, self.times = response["host_id"], response["host_token"], response

    def post(self, path: str, **body: Any) -> tuple[int, Any]:
        with contextlib.closing(http.client.HTTPConnection(self.parts.netloc, timeout=LIMIT_S)) as connection:
            connection.request("POST", path, json.dumps(body), {"Authorization": f"Bearer {self.token}"})
            response = connection.getresponse()
            content = response.read()
        return response.status, json.loads(content) if content else None

    def beat(self, **members: Any) -> Any:
        status, response = self.post(f"/v1/hosts/{self.id}/heartbeat", **{**BEAT, **members})
        return response if status == 200 else status

    def claim(self, *free: str, wait_s: float = 0) -> Any:
        status, response = self.post(f"/v1/hosts/{self.id}/claim", wait_s=wait_s, free_device_ids=free)
        return response["assignment"] if status == 200 else status

    def report(self, kind: str, job: Any, **members: Any) -> int:
        return self.post(f"/v1/assignments/{job['id']}/{kind}", lease_id=job["lease_id"], **members)[0]


@pytest.fixture
def scheduler() -> Iterator[Scheduler]:
    before = set(threading.enumerate())
    with Scheduler() as found:
        yield found
    assert set(threading.enumerate()) <= before


@pytest.fixture
def peer(scheduler: Scheduler) -> Peer:
    return Peer(scheduler)


def test_a_host_is_told_its_times_and_a_secret_of_its_own(scheduler: Scheduler, peer: Peer) -> None:
    assert (peer.times["heartbeat_s"], peer.times["claim_wait_s"], peer.times["lease_s"]) == (30.0, 25.0, 90.0)
    assert Peer(scheduler).token != peer.token
    assert {scheduler.enrol_token, peer.token} <= set(scheduler.secrets)


def test_who_has_no_token_gets_nothing(scheduler: Scheduler, peer: Peer) -> None:
    other = Peer(scheduler)
    assert peer.post("/v1/hosts/register", enrol_token="wrong")[0] == 403
    assert peer.post(f"/v1/hosts/{other.id}/heartbeat", **BEAT)[0] == 404
    assert peer.post("/v1/elsewhere")[0] == 404
    peer.token = "wrong"
    assert peer.beat() == 401
    scheduler.forget_hosts()
    assert other.beat() == 401


def test_an_assignment_is_given_once_to_a_host_whose_device_is_free(scheduler: Scheduler, peer: Peer) -> None:
    job = scheduler.dispatch("X", ["step"], timeout_s=7)
    assert peer.claim("Y") == 204
    given = peer.claim("X", "Y")
    assert given == {"id": job.id, "lease_id": job.lease_id, "device_id": "X", "timeout_s": 7, "steps": ["step"]}
    assert peer.claim("X") == 204
    scheduler.deliver_again(job)
    assert peer.claim("X") == given


def test_a_device_that_a_heartbeat_calls_busy_gets_nothing_unless_blindly(scheduler: Scheduler, peer: Peer) -> None:
    """The cloud was told that the device is busy, so it does not even try."""
    peer.beat(mcp_busy_device_ids=["X"])
    scheduler.dispatch("X", [])
    assert peer.claim("X") == 204
    blind = scheduler.dispatch("X", [], blind=True)
    assert peer.claim("X")["id"] == blind.id


def test_a_claim_waits_for_work(scheduler: Scheduler, peer: Peer) -> None:
    with ThreadPoolExecutor(1) as pool:
        claiming = pool.submit(peer.claim, "X", wait_s=LIMIT_S)
        scheduler.wait_for_request("claim")
        job = scheduler.dispatch("X", [])
        assert claiming.result(LIMIT_S)["id"] == job.id


def test_an_assignment_goes_from_start_to_finish_and_the_first_finish_counts(scheduler: Scheduler, peer: Peer) -> None:
    job = scheduler.dispatch("X", [])
    given = peer.claim("X")
    assert [peer.report("start", given), peer.report("progress", given, step=1)] == [200, 200]
    assert [peer.report("finish", given, status="succeeded"), peer.report("finish", given, status="failed")] == [
        200,
        200,
    ]
    assert scheduler.outcome(job)["status"] == "succeeded"
    assert [job.progress[0]["step"], peer.report("start", given), peer.report("progress", given)] == [1, 409, 409]


def test_a_lost_lease_is_told_by_heartbeats_and_answered_410(scheduler: Scheduler, peer: Peer) -> None:
    job = scheduler.dispatch("X", [])
    given = peer.claim("X")
    scheduler.lose(job)
    assert peer.beat(assignments=[given])["lost"] == [job.lease_id]
    assert {peer.report(kind, given) for kind in ("start", "progress", "finish")} == {410}
    assert {post.kind for post in scheduler.posts() if post.status == 410} == {"start", "progress", "finish"}
    assert job.outcome is None


def test_commands_are_given_once(scheduler: Scheduler, peer: Peer) -> None:
    scheduler.command("cancel", lease_id="x")
    assert peer.beat()["commands"] == [{"command": "cancel", "lease_id": "x"}]
    assert peer.beat()["commands"] == []


def test_what_is_read_is_acted_on_though_its_sender_has_gone(scheduler: Scheduler, peer: Peer) -> None:
    job = scheduler.dispatch("X", [])
    given = peer.claim("X")
    with scheduler.hold("finish") as held, ThreadPoolExecutor(1) as pool:
        reporting = pool.submit(peer.report, "finish", given, status="succeeded")
        assert held.entered.wait(LIMIT_S)
        assert job.outcome is None
        held.release()
        assert reporting.result(LIMIT_S) == 200
    assert scheduler.outcome(job)["status"] == "succeeded"
