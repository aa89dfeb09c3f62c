"""The cloud's part of the host's demonstration: it wants the phone that a client holds, and then one that is free."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from mcpboard import __version__
from mcpboard.host.cloud import api, enrollment
from mcpboard.host.cloud.enrollment import Enrollment
from mcpboard.simulator.cloud.scheduler import Scheduler

STEPS: list[dict[str, Any]] = [
    {"tool": "launch_app", "arguments": {"app_id": "Notes"}},
    {"tool": "take_screenshot"},
]
LIMIT_SECONDS = 30.0  # for an assignment; it takes a fraction of one


@contextmanager
def cloud() -> Iterator[tuple[Scheduler, Enrollment]]:
    """A pretend cloud, and this host's enrolment there, which no file knows."""
    with Scheduler() as scheduler:
        this_host = {"name": "demo", "version": __version__, "platform": "demo", "devices": []}
        answer = api.register(api.CloudHttp(scheduler.url), scheduler.enrol_token, this_host)
        yield scheduler, enrollment.registered(scheduler.url, answer)


def contend(scheduler: Scheduler, held: str, free: str) -> bool:
    """Two assignments told line by line: on the phone that a client holds, and on one that nobody does."""
    refused = scheduler.outcome(scheduler.dispatch(held, STEPS, blind=True), LIMIT_SECONDS)
    print(f"  a cloud wants {held}, too: {refused['status']}, {refused.get('failure_reason')}")
    done = scheduler.outcome(scheduler.dispatch(free, STEPS, blind=True), LIMIT_SECONDS)
    print(f"  so it takes {free} ({', '.join(step['tool'] for step in STEPS)}): {done['status']}")
    return (refused["status"], done["status"]) == ("failed", "succeeded")
