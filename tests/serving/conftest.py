"""A running server for every test that asks for `served`, with limits that a test can wait for."""

from __future__ import annotations

import logging
import queue
from collections.abc import Iterator

import pytest

from mcpboard.serving import server
from mcpboard.serving.connection import IDLE, LIMITS, RECEIVING, STALLED
from tests.serving.served import Served, serving
from tests.support.http import LIMIT_S


class Lines(logging.Handler):
    """The log as it grows; a thread may write its line after the client has its answer."""

    def __init__(self) -> None:
        super().__init__()
        self._records: queue.Queue[logging.LogRecord] = queue.Queue()

    def emit(self, record: logging.LogRecord) -> None:
        self._records.put(record)

    def next(self) -> logging.LogRecord:
        return self._records.get(timeout=LIMIT_S)

    def none_left(self) -> bool:
        return self._records.empty()


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Limits of half a second, looked at twenty times a second."""
    monkeypatch.setattr(server, "SWEEP_SECONDS", 0.05)
    for state in (IDLE, RECEIVING, STALLED):
        monkeypatch.setitem(LIMITS, state, 0.5)


@pytest.fixture
def served() -> Iterator[Served]:
    with serving() as running:
        yield running


@pytest.fixture
def lines(caplog: pytest.LogCaptureFixture) -> Iterator[Lines]:
    """The log as an administrator would read it, at the levels that `cli/logs.py` sets.

    waitress warns of a full queue or connection limit, which clients cause at will.
    """
    caplog.set_level(logging.INFO)
    caplog.set_level(logging.ERROR, "waitress")
    caplog.set_level(logging.ERROR, "waitress.queue")
    handler = Lines()
    logging.getLogger().addHandler(handler)
    yield handler
    logging.getLogger().removeHandler(handler)
