"""The book of a pretend cloud: each assignment is given out once, and only its lease may report on it.

Not locked: who owns the book owns the lock.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

QUEUED, CLAIMED, STARTED, FINISHED, LOST = "queued", "claimed", "started", "finished", "lost"

GONE = 410  # the status of a report under a lease that is lost


@dataclass
class Job:
    """One assignment and what became of it; `outcome` is the first finish, which alone counts."""

    id: str
    lease_id: str
    device_id: str
    steps: list[Any]
    timeout_s: float
    blind: bool = False  # given out whatever the last heartbeat says is busy
    state: str = QUEUED
    progress: list[Mapping[str, Any]] = field(default_factory=list)
    outcome: Mapping[str, Any] | None = None

    def document(self) -> dict[str, Any]:
        """As a claim is answered."""
        named = {"id": self.id, "lease_id": self.lease_id, "device_id": self.device_id}
        return {**named, "timeout_s": self.timeout_s, "steps": self.steps}


class Assignments:
    """Every assignment in the order of dispatch, and which devices the hosts call busy."""

    def __init__(self) -> None:
        self._jobs: list[Job] = []
        self._busy: dict[str, Collection[str]] = {}  # by host, as its last heartbeat had it

    def add(self, job: Job) -> None:
        """Have it given out to the next claim that fits."""
        self._jobs.append(job)

    def add_again(self, job: Job) -> None:
        """Have the same given out once more, under the same lease; what is reported counts for the first."""
        self._jobs.append(Job(job.id, job.lease_id, job.device_id, job.steps, job.timeout_s, blind=True))

    def lose(self, job: Job) -> None:
        """Take the lease away: nothing that comes under it counts any more."""
        job.state = LOST

    def note_busy(self, host: str, devices: Collection[str]) -> None:
        """Give the host nothing for these devices until it says otherwise."""
        self._busy[host] = devices

    def claim(self, host: str, free: Collection[str]) -> Job | None:
        """The first in the queue for a device that is free, given to the host; None where there is none."""
        busy = self._busy.get(host, ())
        for job in self._jobs:
            if job.state == QUEUED and (job.blind or (job.device_id in free and job.device_id not in busy)):
                job.state = CLAIMED
                return job
        return None

    def lost(self, leases: Collection[str]) -> list[str]:
        """Those of the leases that were taken away."""
        return sorted(job.lease_id for job in self._jobs if job.state == LOST and job.lease_id in leases)

    def report(self, kind: str, assignment: str, body: Mapping[str, Any]) -> tuple[int, Any]:
        """The status and the answer to a start, a progress or a finish; idempotent by its lease."""
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
