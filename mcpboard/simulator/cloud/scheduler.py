"""A pretend cloud: takes hosts on, gives assignments out, and keeps what it is told.

It answers the six requests of a host's cloud worker on one loopback port, may be stopped and
started again on that port, and misbehaves when told to.
"""

from __future__ import annotations

import json
import secrets
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from mcpboard.simulator.board import go_http
from mcpboard.simulator.board.listener import Port
from mcpboard.simulator.board.runs import Dropped, ExecutionHold, Ledger, ReceivedRequest, SimulatedClock, ToolRun
from mcpboard.simulator.cloud.assignments import GONE, Assignments, Job
from mcpboard.simulator.cloud.cloud_faults import CloudFaults

HEARTBEAT_S = 30.0  # as the mission has it
CLAIM_WAIT_S = 25.0  # how long a claim may stay unanswered, below the minute of common proxies
LEASE_S = 90.0  # three heartbeats
REMEMBERED = 10_000  # posts; a demonstration may run for days

KINDS = ("register", "heartbeat", "claim", "start", "progress", "finish")


@dataclass(frozen=True)
class ReceivedPost:
    """One request as it was read, and the status it was answered with."""

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
        self._told = {"heartbeat_s": heartbeat_s, "claim_wait_s": claim_wait_s, "lease_s": lease_s}
        self._stop = threading.Event()
        self._ledger = Ledger()
        self._pace = SimulatedClock(time.time, self._sleep, self._stop)
        self._port = Port("scheduler", ("127.0.0.1", port), self._answer, lambda *_: False, self._ledger, self._pace)
        self._changed = threading.Condition(threading.RLock())
        self._mishaps = CloudFaults()
        self._tokens: dict[str, str] = {}  # host id -> its token
        self._assignments = Assignments()
        self._commands: list[Mapping[str, Any]] = []
        self._posts: list[ReceivedPost] = []
        self._late: list[ReceivedPost] = []

    @property
    def url(self) -> str:
        return self._port.url

    @property
    def secrets(self) -> list[str]:
        """What must never be seen anywhere: the token for enrolment and those that hosts were given."""
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

    # --- giving work ---------------------------------------------------------------------------

    def dispatch(self, device_id: str, steps: Iterable[Any], timeout_s: float = 60.0, *, blind: bool = False) -> Job:
        """Queue an assignment; with `blind` it is given out although a heartbeat says that MCP has the device."""
        number = secrets.token_hex(4)
        job = Job(f"assignment-{number}", f"lease-{number}", device_id, list(steps), timeout_s, blind)
        with self._changed:
            self._assignments.add(job)
            self._changed.notify_all()
        return job

    def command(self, name: str, **members: Any) -> None:
        """Have the next heartbeat answered with this command: `cancel` with a lease_id, `drain`, `resume`."""
        with self._changed:
            self._commands.append({"command": name, **members})

    def lose(self, job: Job) -> None:
        """Take the lease away; what comes under it from now on is answered 410."""
        with self._changed:
            self._assignments.lose(job)
            self._changed.notify_all()

    def deliver_again(self, job: Job) -> None:
        """Give the same assignment out once more, under the same lease."""
        with self._changed:
            self._assignments.add_again(job)
            self._changed.notify_all()

    # --- misbehaving ---------------------------------------------------------------------------

    def fail(self, kind: str, status: int, times: int = 1) -> None:
        """Answer the next posts of that kind with `status`, unread."""
        self._mishaps.fail(kind, status, times)

    def swallow(self, kind: str, times: int = 1) -> None:
        """Take the next posts of that kind in, and cut the connection instead of answering."""
        self._mishaps.swallow(kind, times)

    def slow(self, seconds: float) -> None:
        """Let every answer take that much longer."""
        self._mishaps.slow_s = seconds

    def hurry(self) -> None:
        """Answer claims that find nothing at once, as no cloud should."""
        with self._changed:
            self._told["claim_wait_s"] = 0.0
            self._changed.notify_all()

    def forget_hosts(self) -> None:
        """Know no host any more: whatever they send is answered 401."""
        with self._changed:
            self._tokens.clear()

    def recover(self) -> None:
        """Be well again, and up."""
        self._mishaps = CloudFaults()
        if self._stop.is_set():
            self.start()

    def hold(self, kind: str) -> ExecutionHold:
        """Keep posts of that kind, read and not yet acted on, until the hold is released."""
        return self._ledger.hold(kind)

    # --- what was told ---------------------------------------------------------------------------

    @property
    def late(self) -> list[ReceivedPost]:
        """What came under a lease that was lost by then; it was answered 410."""
        with self._changed:
            return list(self._late)

    def posts(self, kind: str | None = None) -> list[ReceivedPost]:
        """Every request that was answered, or those of one kind, in order."""
        with self._changed:
            return [post for post in self._posts if kind in (None, post.kind)]

    def asked(self, kind: str) -> int:
        """How many posts of that kind were read, answered or not."""
        return sum(request.path.endswith(f"/{kind}") for request in self._ledger.copy(self._ledger.requests))

    def wait_for_request(self, kind: str, count: int = 1, timeout: float = 10.0) -> None:
        """Return once that many posts of the kind were read; AssertionError after `timeout` seconds."""
        self._ledger.wait(lambda: self.asked(kind) >= count, timeout, f"{kind} number {count}")

    def heartbeats(self) -> list[Mapping[str, Any]]:
        """What the heartbeats said, in order."""
        return [post.body for post in self.posts("heartbeat") if post.status == 200]

    def wait_until(self, reached: Callable[[], bool], timeout: float = 10.0, what: str = "such state") -> None:
        """Return when `reached` holds; AssertionError naming `what` after `timeout` seconds."""
        with self._changed:
            if not self._changed.wait_for(reached, timeout):
                raise AssertionError(f"no {what} within {timeout:g} s")

    def outcome(self, job: Job, timeout: float = 10.0) -> Mapping[str, Any]:
        """What the assignment came to, once that is told."""
        self.wait_until(lambda: job.outcome is not None, timeout, f"finish of {job.id}")
        assert job.outcome is not None
        return job.outcome

    # --- answering -------------------------------------------------------------------------------

    def _sleep(self, seconds: float) -> None:
        self._stop.wait(seconds)

    def _answer(self, request: ReceivedRequest, gone: Callable[[], bool]) -> go_http.GoReply:
        kind, subject, body = _understood(request)
        if kind is None:
            return go_http.json_reply({"error": "no such path"}, 404)
        run = ToolRun(
            self._pace, gone, detached=True
        )  # what was read is acted on, whether or not its sender still lives
        run.stop_at(self._ledger.hold_on(kind))
        if self._mishaps.slow_s:
            run.stall(self._mishaps.slow_s)
        status, answer = self._mishaps.answer(kind) or self._act(request, kind, subject, body, gone)
        self._note(ReceivedPost(kind, subject, body, status))
        if self._mishaps.swallows(kind):
            raise Dropped(reset=False)
        return go_http.GoReply(204) if status == 204 else go_http.json_reply(answer, status)

    def _note(self, post: ReceivedPost) -> None:
        with self._changed:
            self._posts = [*self._posts[-REMEMBERED:], post]
            self._changed.notify_all()

    def _act(
        self, request: ReceivedRequest, kind: str, subject: str, body: Mapping[str, Any], gone: Callable[[], bool]
    ) -> tuple[int, Any]:
        if kind == "register":
            return self._register(body)
        given = request.headers.get("authorization", "").removeprefix("Bearer ")
        with self._changed:
            if given not in self._tokens.values():
                return 401, {"error": "unknown host token"}
            if kind in ("heartbeat", "claim") and self._tokens.get(subject) != given:
                return 404, {"error": "unknown host"}
        if kind == "claim":
            return self._claim(subject, body, gone)
        with self._changed:
            return self._heartbeat(subject, body) if kind == "heartbeat" else self._report(kind, subject, body)

    def _register(self, body: Mapping[str, Any]) -> tuple[int, Any]:
        if body.get("enrol_token") != self.enrol_token:
            return 403, {"error": "unknown enrolment token"}
        with self._changed:
            host_id, token = f"host-{secrets.token_hex(4)}", secrets.token_urlsafe(32)
            self._tokens[host_id] = token
        return 200, {"host_id": host_id, "host_token": token, **self._told}

    def _heartbeat(self, host: str, body: Mapping[str, Any]) -> tuple[int, Any]:
        self._assignments.note_busy(host, body["mcp_busy_device_ids"])
        lost = self._assignments.lost([each["lease_id"] for each in body["assignments"]])
        commands, self._commands = self._commands, []
        return 200, {"commands": commands, "lost": lost}

    def _claim(self, host: str, body: Mapping[str, Any], gone: Callable[[], bool]) -> tuple[int, Any]:
        began = time.monotonic()
        with self._changed:
            while not self._stop.is_set() and not gone():  # nothing is given to who has hung up
                job = self._assignments.claim(host, body["free_device_ids"])
                if job is not None:
                    return 200, {"assignment": job.document()}
                left = began + min(float(body["wait_s"]), self._told["claim_wait_s"]) - time.monotonic()
                if left <= 0:
                    break
                self._changed.wait(left)
        return 204, None

    def _report(self, kind: str, assignment: str, body: Mapping[str, Any]) -> tuple[int, Any]:
        status, answer = self._assignments.report(kind, assignment, body)
        if status == GONE:
            self._late.append(ReceivedPost(kind, assignment, body, status))
        return status, answer


def _understood(request: ReceivedRequest) -> tuple[str | None, str, dict[str, Any]]:
    """Kind, subject and body of a post; no kind for what is none."""
    parts = request.path.strip("/").split("/")
    if request.method != "POST" or parts[0] != "v1" or parts[-1] not in KINDS:
        return None, "", {}
    return parts[-1], "" if parts[-1] == "register" else parts[2], json.loads(request.body)
