"""What the console shows of the cloud: a frozen record of the moment, without any secret."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class RunningAssignment:
    """One assignment under way; `phase` is `claimed` or `running`."""

    id: str
    device: str
    phase: str
    steps_done: int


@dataclass(frozen=True)
class CloudStatus:
    """How it stands with the cloud.

    `heartbeat_s` is how many seconds ago the last heartbeat was answered, None before the first;
    `busy_ids_sent` is what that one said of devices held by MCP sessions. `owed` outcomes wait to
    be told. `problem` is why the last request came to nothing, empty when it did not.
    """

    enrolled: bool
    url: str = ""
    host_id: str = ""
    heartbeat_s: float | None = None
    busy_ids_sent: tuple[str, ...] = ()
    assignments: tuple[RunningAssignment, ...] = ()
    owed: int = 0
    draining: bool = False
    problem: str = ""
