"""A host agent with a console and two phones that do as they are told."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.host.rig import Agent, Fake, agent


@pytest.fixture
def phone() -> Fake:
    return Fake()


@pytest.fixture
def host(tmp_path: Path, phone: Fake) -> Iterator[Agent]:
    with agent(tmp_path / "data", X=phone, Y=Fake()) as found:
        yield found
