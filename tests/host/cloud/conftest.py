"""A simulated cloud, and a phone that tells what was done to it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from mcpboard.simulator.cloud.scheduler import Scheduler
from tests.host.cloud.rig import cloud_threads, taking_part
from tests.host.rig import Agent, Fake
from tests.support.http import LIMIT_S


@pytest.fixture(autouse=True)
def no_thread_is_left() -> Iterator[None]:
    yield
    for thread in cloud_threads():
        thread.join(LIMIT_S)  # one that was stuck in a step ends with it
    assert cloud_threads() == []


@pytest.fixture
def scheduler() -> Iterator[Scheduler]:
    with Scheduler() as found:
        yield found


@pytest.fixture
def phone() -> Fake:
    return Fake()


@pytest.fixture
def host(tmp_path: Path, scheduler: Scheduler, phone: Fake) -> Iterator[Agent]:
    with taking_part(tmp_path / "data", scheduler, X=phone) as found:
        yield found
