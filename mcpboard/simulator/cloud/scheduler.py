"""A simulated cloud: registers hosts, gives assignments out, and records what is reported.

It answers the six requests of a host's cloud worker on one loopback port, may be stopped and
started again on that port, and has faults that a test sets.
"""

from __future__ import annotations

import json
import secrets
import threading
import time
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from mcpboard.simulator.board import go_http
from mcpboard.simulator.board.listener import Port
from mcpboard.simulator.board.runs import Dropped, ExecutionHold, Ledger, ReceivedRequest, SimulatedClock, ToolRun

HEARTBEAT_S = 30.0  # as docs/cloud.md has it
CLAIM_WAIT_S = 25.0  # how long a claim may stay unanswered, below the minute of common proxies
LEASE_S = 90.0  # three heartbeats
REMEMBERED = 10_000  # posts; a demonstration may run for days

KINDS = ("register", "heartbeat", "claim", "start", "progress", "finish")
QUEUED, CLAIMED, STARTED, FINISHED, LOST = "queued", "claimed", "started", "finished", "lost"
GONE = 410  # the status of a report under a lease that is lost


@dataclass
class Job:
    """One assignment and its state; `outcome` is the first finish, which is the only one that counts."""

    id: str
    lease_id: str
    device_id: str
    steps: list[Any]
    timeout_s: float
    blind: bool = False  # given out even when the last heartbeat says that the device is busy
    state: str = QUEUED
    progress: list[Mapping[str, Any]] = field(default_factory=list)
    outcome: Mapping[str, Any] | None = None

    def document(self) -> dict[str, Any]:
        """Return the assignment as a claim is answered."""
        names = ("id", "lease_id", "device_id", "timeout_s", "steps")
        return {name: getattr(self, name) for name in names}


@dataclass(frozen=True)
class ReceivedPost:
    """One request as it was read, and the status of its response."""

    kind: str
    subject: str  # the host's or the assignment's id, "" for a registration
    body: Mapping[str, Any]
    status: int


class Scheduler:
    """A cloud on loopback; a context manager. Port 0 takes any and keeps it over `stop()` and `start()`.

    The three times are what a host is told at its registration, in seconds.
    """

    def __init__(
        self,
        port: int = 0,
        *,
        heartbeat_s: float = HEARTBEAT_S,
        claim_wait_s: float = CLAIM_WAIT_S,
        lease_s: float = LEASE_S,
    ) -> None:
        self.enrol_token = secrets.token_urlsafe(16)
        self._times = {"heartbeat_s": heartbeat_s, "claim_wait_s": claim_wait_s, "lease_s": lease_s}
        self._stop = threading.Event()
        self._ledger = Ledger()
        self._clock = SimulatedClock(time.time, self._stop.wait, self._stop)
        self._port = Port("scheduler", ("127.0.0.1", port), self._respond, lambda *_: False, self._ledger, self._clock)
        self._changed = threading.Condition(threading.RLock())
        self._statuses: dict[str, list[int]] = {}  # kind -> the statuses of the next posts
        self._swallowed: dict[str, int] = {}  # kind -> the number of responses that will be lost
        self._tokens: dict[str, str] = {}  # host id -> its token
        self._jobs: list[Job] = []  # in the order of dispatch; each is given out once
        self._busy: dict[str, Collection[str]] = {}  # host id -> the devices that its last heartbeat called busy
        self._commands: list[Mapping[str, Any]] = []
        self._posts: list[ReceivedPost] = []

    @property
    def url(self) -> str:
        return self._port.url

    @property
    def secrets(self) -> list[str]:
        """The token for enrollment and those of the hosts, which must never be seen anywhere."""
        with self._changed:
            return [self.enrol_token, *self._tokens.values()]

    def start(self) -> Scheduler:
        """Listen; OSError when the port is taken."""
        self._stop.clear()
        self._port.start()
        return self

    def stop(self) -> None:
        """Go down: refuse from now on, cut what is open, join every thread. What is known stays known."""
        self._stop.set()
        self._ledger.release_all()
        with self._changed:
            self._changed.notify_all()
        self._port.stop()

    def __enter__(self) -> Scheduler:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()

    # --- assignments ---------------------------------------------------------------------------

    def dispatch(self, device_id: str, steps: Iterable[Any], timeout_s: float = 60.0, *, blind: bool = False) -> Job:
        """Queue an assignment; with `blind` it is given out although a heartbeat says that MCP has the device."""
        number = secrets.token_hex(4)
        job = Job(f"assignment-{number}", f"lease-{number}", device_id, list(steps), timeout_s, blind)
        with self._changed:
            self._jobs.append(job)
            self._changed.notify_all()
        return job

    def command(self, name: str, **members: Any) -> None:
        """Have the next heartbeat answered with this command: `cancel` with a lease_id, `drain`, `resume`."""
        with self._changed:
            self._commands.append({"command": name, **members})

    def lose(self, job: Job) -> None:
        """Take the lease away; what comes under it from now on is answered 410."""
        with self._changed:
            job.state = LOST
            self._changed.notify_all()

    def deliver_again(self, job: Job) -> None:
        """Give the same assignment out once more, under the same lease; reports count for the first."""
        with self._changed:
            self._jobs.append(Job(job.id, job.lease_id, job.device_id, job.steps, job.timeout_s, blind=True))
            self._changed.notify_all()

    # --- faults --------------------------------------------------------------------------------

    def fail(self, kind: str, status: int, times: int = 1) -> None:
        """Answer the next posts of that kind with `status`, unread, once those before have had theirs."""
        with self._changed:
            self._statuses.setdefault(kind, []).extend([status] * times)

    def swallow(self, kind: str, times: int = 1) -> None:
        """Act on the next posts of that kind, and cut the connection instead of answering."""
        with self._changed:
            self._swallowed[kind] = times

    def hurry(self) -> None:
        """Answer claims that find nothing at once, as no cloud should."""
        with self._changed:
            self._times["claim_wait_s"] = 0.0
            self._changed.notify_all()

    def forget_hosts(self) -> None:
        """Forget every host: whatever they send is answered 401."""
        with self._changed:
            self._tokens.clear()

    def recover(self) -> None:
        """Drop every fault, and be up."""
        with self._changed:
            self._statuses, self._swallowed = {}, {}
        if self._stop.is_set():
            self.start()

    def hold(self, kind: str) -> ExecutionHold:
        """Keep posts of that kind, read and not yet acted on, until the hold is released."""
        return self._ledger.hold(kind)

    # --- what hosts reported ---------------------------------------------------------------------

    def posts(self, kind: str | None = None) -> list[ReceivedPost]:
        """Return every request that was answered, or those of one kind, in order."""
        with self._changed:
            return [post for post in self._posts if kind in (None, post.kind)]

    def received(self, kind: str) -> int:
        """Return the number of posts of that kind that were read, answered or not."""
        return sum(request.path.endswith(f"/{kind}") for request in self._ledger.copy(self._ledger.requests))

    def wait_for_request(self, kind: str, count: int = 1, timeout: float = 10.0) -> None:
        """Return once that many posts of the kind were read; AssertionError after `timeout` seconds."""
        self._ledger.wait(lambda: self.received(kind) >= count, timeout, f"{kind} number {count}")

    def heartbeats(self) -> list[Mapping[str, Any]]:
        """Return the bodies of the heartbeats, in order."""
        return [post.body for post in self.posts("heartbeat") if post.status == 200]

    def wait_until(self, reached: Callable[[], bool], timeout: float = 10.0, what: str = "such state") -> None:
        """Return when `reached` holds; AssertionError naming `what` after `timeout` seconds."""
        with self._changed:
            if not self._changed.wait_for(reached, timeout):
                raise AssertionError(f"no {what} within {timeout:g} s")

    def outcome(self, job: Job, timeout: float = 10.0) -> Mapping[str, Any]:
        """Return the outcome of the assignment, once it is reported."""
        self.wait_until(lambda: job.outcome is not None, timeout, f"finish of {job.id}")
        assert job.outcome is not None
        return job.outcome

    # --- responses -----------------------------------------------------------------------------

    def _respond(self, request: ReceivedRequest, gone: Callable[[], bool]) -> go_http.GoReply:
        parts = request.path.strip("/").split("/")
        kind = parts[-1]
        if request.method != "POST" or parts[0] != "v1" or kind not in KINDS:
            return go_http.json_reply({"error": "no such path"}, 404)
        subject, body = "" if kind == "register" else parts[2], json.loads(request.body)
        # detached, since a request that was read is acted on, whether or not its sender still lives
        run = ToolRun(self._clock, gone, detached=True)
        run.stop_at(self._ledger.hold_on(kind))
        with self._changed:
            waiting = self._statuses.get(kind)
            failure = waiting.pop(0) if waiting else None
        if failure is not None:
            status, response = failure, {"error": "told to fail"}
        else:
            status, response = self._act(request, kind, subject, body, gone)
        with self._changed:
            self._posts = [*self._posts[-REMEMBERED:], ReceivedPost(kind, subject, body, status)]
            self._changed.notify_all()
            swallowed = self._swallowed.get(kind, 0)
            self._swallowed[kind] = max(0, swallowed - 1)
        if swallowed:
            raise Dropped(reset=False)
        return go_http.GoReply(204) if status == 204 else go_http.json_reply(response, status)

    def _act(
        self, request: ReceivedRequest, kind: str, subject: str, body: Mapping[str, Any], gone: Callable[[], bool]
    ) -> tuple[int, Any]:
        """Return the status and the body of the response."""
        if kind == "register":
            if body.get("enrol_token") != self.enrol_token:
                return 403, {"error": "unknown enrolment token"}
            host_id, host_token = f"host-{secrets.token_hex(4)}", secrets.token_urlsafe(32)
            with self._changed:
                self._tokens[host_id] = host_token
            return 200, {"host_id": host_id, "host_token": host_token, **self._times}
        token = request.headers.get("authorization", "").removeprefix("Bearer ")
        with self._changed:
            if token not in self._tokens.values():
                return 401, {"error": "unknown host token"}
            if kind in ("heartbeat", "claim") and self._tokens.get(subject) != token:
                return 404, {"error": "unknown host"}
            if kind == "claim":
                return self._claim(subject, body, gone)
            if kind != "heartbeat":
                return self._report(kind, subject, body)
            self._busy[subject] = body["mcp_busy_device_ids"]
            leases = [each["lease_id"] for each in body["assignments"]]
            lost = sorted(job.lease_id for job in self._jobs if job.state == LOST and job.lease_id in leases)
            commands, self._commands = self._commands, []
            return 200, {"commands": commands, "lost": lost}

    def _claim(self, host: str, body: Mapping[str, Any], gone: Callable[[], bool]) -> tuple[int, Any]:
        """Give the host the first job in the queue for a device that is free; wait for one, under the lock."""
        began, free = time.monotonic(), body["free_device_ids"]
        while not self._stop.is_set() and not gone():  # nothing is given to a host that has hung up
            busy = self._busy.get(host, ())
            for job in self._jobs:
                if job.state == QUEUED and (job.blind or (job.device_id in free and job.device_id not in busy)):
                    job.state = CLAIMED
                    return 200, {"assignment": job.document()}
            left = began + min(float(body["wait_s"]), self._times["claim_wait_s"]) - time.monotonic()
            if left <= 0:
                break
            self._changed.wait(left)
        return 204, None

    def _report(self, kind: str, assignment: str, body: Mapping[str, Any]) -> tuple[int, Any]:
        """Take a start, a progress or a finish, under the lock; idempotent by its lease, which alone may report."""
        job = next((each for each in self._jobs if each.id == assignment), None)
        if job is None or job.lease_id != body.get("lease_id") or job.state == LOST:
            return GONE, {"error": "the lease is lost"}
        if kind == "finish":
            job.outcome, job.state = job.outcome or body, FINISHED
        elif job.state == FINISHED:
            return 409, {"error": "the assignment has ended"}
        elif kind == "start":
            job.state = STARTED
        else:
            job.progress.append(body)
        return 200, {}
