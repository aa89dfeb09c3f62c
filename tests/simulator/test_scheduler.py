"""The simulated cloud by itself, over plain HTTP: what it must not do, whatever a host does."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from mcpboard.simulator.cloud.scheduler import Scheduler
from tests.support.http import LIMIT_S, Caller

BEAT: Mapping[str, Any] = {"seq": 1, "mcp_busy_device_ids": [], "assignments": []}


class Peer(Caller):
    """A host that speaks to the scheduler, once it has registered."""

    def __init__(self, scheduler: Scheduler) -> None:
        super().__init__(scheduler.url)
        status, response = self.tell("/v1/hosts/register", enrol_token=scheduler.enrol_token)
        assert status == 200
        self.id, self.token = response["host_id"], response["host_token"]

    def tell(self, path: str, **body: Any) -> tuple[int, Any]:
        response = self.send("POST", json.dumps(body).encode(), path)
        return response.status, response.json

    def beat(self, **members: Any) -> Any:
        status, response = self.tell(f"/v1/hosts/{self.id}/heartbeat", **{**BEAT, **members})
        return response if status == 200 else status

    def claim(self, *free: str, wait_s: float = 0) -> Any:
        status, response = self.tell(f"/v1/hosts/{self.id}/claim", wait_s=wait_s, free_device_ids=free)
        return response["assignment"] if status == 200 else status

    def report(self, kind: str, job: Any, **members: Any) -> int:
        return self.tell(f"/v1/assignments/{job['id']}/{kind}", lease_id=job["lease_id"], **members)[0]


@pytest.fixture
def scheduler() -> Iterator[Scheduler]:
    before = set(threading.enumerate())
    with Scheduler() as found:
        yield found
    assert set(threading.enumerate()) <= before


def test_who_has_no_token_gets_nothing(scheduler: Scheduler) -> None:
    peer, other = Peer(scheduler), Peer(scheduler)
    assert {scheduler.enrol_token, peer.token, other.token} == set(scheduler.secrets)
    assert peer.tell("/v1/hosts/register", enrol_token="wrong")[0] == 403
    assert peer.tell(f"/v1/hosts/{other.id}/heartbeat", **BEAT)[0] == 404
    assert peer.tell("/v1/elsewhere")[0] == 404
    peer.token = "wrong"
    assert peer.beat() == 401
    scheduler.forget_hosts()
    assert other.beat() == 401


def test_an_assignment_is_given_once_to_a_host_whose_device_is_free(scheduler: Scheduler) -> None:
    """Not one that a heartbeat calls busy, unless it is to be blind; a claim waits for work."""
    peer = Peer(scheduler)
    job = scheduler.dispatch("X", ["step"], timeout_s=7)
    assert peer.claim("Y") == 204
    peer.beat(mcp_busy_device_ids=["X"])
    assert peer.claim("X") == 204
    assert peer.claim("Z", wait_s=0) == 204
    blind = scheduler.dispatch("X", [], blind=True)
    assert peer.claim("X")["id"] == blind.id
    peer.beat()
    given = peer.claim("X", "Y")
    assert given == {"id": job.id, "lease_id": job.lease_id, "device_id": "X", "timeout_s": 7, "steps": ["step"]}
    assert peer.claim("X") == 204
    with ThreadPoolExecutor(1) as pool:
        claiming = pool.submit(peer.claim, "X", wait_s=LIMIT_S)
        scheduler.wait_for_request("claim", 7)
        late = scheduler.dispatch("X", [])
        assert claiming.result(LIMIT_S)["id"] == late.id


def test_the_first_finish_counts_and_a_lost_lease_is_410(scheduler: Scheduler) -> None:
    peer = Peer(scheduler)
    job, lost = scheduler.dispatch("X", []), scheduler.dispatch("Y", [])
    given, gone = peer.claim("X"), peer.claim("Y")
    assert [peer.report("start", given), peer.report("progress", given, step=1)] == [200, 200]
    assert {peer.report("finish", given, status=status) for status in ("succeeded", "failed")} == {200}
    assert scheduler.outcome(job)["status"] == "succeeded"
    assert [job.progress[0]["step"], peer.report("start", given), peer.report("progress", given)] == [1, 409, 409]
    scheduler.lose(lost)
    assert peer.beat(assignments=[gone])["lost"] == [lost.lease_id]
    assert {peer.report(kind, gone) for kind in ("start", "progress", "finish")} == {410}
    assert lost.outcome is None


def test_what_is_read_is_acted_on_though_its_sender_has_gone(scheduler: Scheduler) -> None:
    peer = Peer(scheduler)
    job = scheduler.dispatch("X", [])
    body = json.dumps({"lease_id": peer.claim("X")["lease_id"], "status": "succeeded"}).encode()
    with scheduler.hold("finish") as held:
        with peer.connect() as connection:
            connection.send(peer.request("POST", body, f"/v1/assignments/{job.id}/finish"))
            assert held.entered.wait(LIMIT_S)
        assert job.outcome is None
        held.release()
    assert scheduler.outcome(job)["status"] == "succeeded"
