"""As many connections as the limit of open files has room for, beside the server's own requests."""

from __future__ import annotations

import pytest

from mcpboard.serving import descriptors
from mcpboard.serving.descriptors import FEWEST, OWN, fit
from tests.serving.conftest import Lines

INFINITY = -1
OPEN = 10


class Limits:
    """The module `resource` of a process with these limits."""

    RLIMIT_NOFILE = 7
    RLIM_INFINITY = INFINITY

    def __init__(self, soft: int, hard: int, forbidden: bool = False) -> None:
        self.now = (soft, hard)
        self.forbidden = forbidden

    def getrlimit(self, which: int) -> tuple[int, int]:
        return self.now

    def setrlimit(self, which: int, limits: tuple[int, int]) -> None:
        if self.forbidden:
            raise PermissionError
        assert limits[1] == self.now[1]
        self.now = limits


@pytest.mark.parametrize(("limits", "threads", "connections", "fitting", "soft"), [
    pytest.param(Limits(1024, 4096), 8, 24, 24, 1024, id="a board with the usual limit"),
    pytest.param(Limits(256, 4096), 48, 256, 256, OPEN + OWN + 48 + 256, id="a host on macOS: raised"),
    pytest.param(Limits(256, INFINITY), 48, 256, 256, OPEN + OWN + 48 + 256, id="raised without a hard limit"),
    pytest.param(Limits(INFINITY, INFINITY), 48, 256, 256, INFINITY, id="no limit"),
    pytest.param(Limits(32, 32), 8, 24, FEWEST, 32, id="a board with 32"),
    pytest.param(Limits(32, 40), 8, 24, 40 - OPEN - OWN - 8, 40, id="a board with 32, raised to 40"),
    pytest.param(Limits(32, 4096, forbidden=True), 8, 24, FEWEST, 32, id="raising is forbidden"),
])  # fmt: skip
def test_connections_fit(
    monkeypatch: pytest.MonkeyPatch,
    lines: Lines,
    limits: Limits,
    threads: int,
    connections: int,
    fitting: int,
    soft: int,
) -> None:
    monkeypatch.setattr(descriptors, "resource", limits)
    monkeypatch.setattr(descriptors, "_in_use", lambda: OPEN)
    assert fit(connections, threads) == fitting
    assert limits.now[0] == soft
    if fitting < connections:
        wanted = OPEN + OWN + threads + connections
        message = f"only {fitting} connections at once, not {connections}: the limit of open files is {soft}; set it to {wanted}"
        assert lines.next().getMessage().startswith(message)
    assert lines.none_left()


def test_where_there_is_no_such_limit_nothing_is_fitted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(descriptors, "resource", None)
    assert fit(256, 48) == 256
