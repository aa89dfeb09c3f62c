"""Where the log goes, and that one message is one line there."""

from __future__ import annotations

import logging
import os
import socket
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from mcpboard.board.backend import Backend
from mcpboard.cli import logs
from mcpboard.errors import ConfigError
from tests.support.peer import Raw

LIMIT = 20  # seconds


@pytest.fixture(autouse=True)
def own_logging() -> Iterator[None]:
    """The loggers of libraries as they were, afterwards."""
    yield
    logging.raiseExceptions = True
    for name in logs.QUIETER:
        logging.getLogger(name).setLevel(logging.NOTSET)


def test_a_file_gets_one_line_a_message(tmp_path: Path) -> None:
    file = tmp_path / "log"
    logs.configure(str(file), "info")
    logging.getLogger("mcpboard.x").info("called %s", "evil\n2026 forged \x1b[31m \udcff é")
    logging.getLogger("mcpboard.x").debug("not said")
    lines = file.read_text(encoding="utf-8").splitlines()
    assert len(lines) == 1
    assert lines[0].endswith("INFO mcpboard.x: called evil\\n2026 forged \\x1b[31m \\udcff é")


def test_a_traceback_keeps_its_lines(tmp_path: Path) -> None:
    file = tmp_path / "log"
    logs.configure(str(file), "info")
    try:
        raise ValueError("x")
    except ValueError:
        logging.getLogger("mcpboard.x").exception("broken")
    assert file.read_text().splitlines()[-1] == "ValueError: x"


def test_waitress_is_quieter(tmp_path: Path) -> None:
    logs.configure(str(tmp_path / "log"), "debug")
    assert not logging.getLogger("waitress.queue").isEnabledFor(logging.WARNING)
    assert not logging.getLogger("waitress").isEnabledFor(logging.WARNING)
    assert logging.getLogger("waitress").isEnabledFor(logging.ERROR)


def test_no_address_that_is_asked_for_is_logged(tmp_path: Path) -> None:
    """At any level: what urllib3 tells of each request may hold what is nobody else's business."""
    file = tmp_path / "log"
    logs.configure(str(file), "debug")
    logging.getLogger("mcpboard.x").debug("said")
    answer = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"
    with Raw(lambda sock, over: sock.sendall(answer)) as raw:
        Backend("agent", raw.url.removesuffix("/mcp")).call("GET", "/x?secret", None, 5.0)
    assert "said" in file.read_text()
    assert "secret" not in file.read_text()


def test_a_fifo_without_a_reader_is_refused_and_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "log")
    with pytest.raises(ConfigError, match="is a FIFO that nobody reads"):
        logs.configure(str(tmp_path / "log"), "info")


def test_syslog_gets_the_program_and_the_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as daemon:
        daemon.settimeout(LIMIT)
        daemon.bind(str(tmp_path / "log"))
        monkeypatch.setattr(logs, "SYSLOG_SOCKET", str(tmp_path / "log"))
        logs.configure("syslog", "info")
        logging.getLogger("mcpboard.x").warning("hello")
        assert daemon.recv(1000).startswith(f"<28>mcpboard[{os.getpid()}]: WARNING mcpboard.x: hello".encode())


def test_without_a_syslog_daemon_it_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logs, "SYSLOG_SOCKET", str(tmp_path / "none"))
    with pytest.raises(ConfigError, match="start a syslog daemon, or log to stderr or a file"):
        logs.configure("syslog", "info")


def test_the_time_is_that_of_each_line() -> None:
    """Though it is made once a second: what the formatter of logging itself writes."""
    ours, plain = logs.OneLine("%(asctime)s"), logging.Formatter("%(asctime)s")
    for created in (1000.25, 1000.5, 1001.0, 999.999, 1e9 + 0.125):
        record = logging.makeLogRecord({"created": created, "msecs": created % 1 * 1000})
        assert ours.format(record) == plain.format(record)


class TestBounded:
    @pytest.fixture
    def clock(self, monkeypatch: pytest.MonkeyPatch) -> Iterator[SimpleNamespace]:
        clock = SimpleNamespace(now=1000.0)
        monkeypatch.setattr(logs, "time", SimpleNamespace(monotonic=lambda: clock.now))
        yield clock

    @pytest.mark.parametrize(("level", "most"), [
        pytest.param(logging.WARNING, logs.WARNINGS, id="warnings"),
        pytest.param(logging.ERROR, logs.WARNINGS, id="errors"),
        pytest.param(logging.INFO, logs.OTHERS, id="calls"),
    ])  # fmt: skip
    def test_lines_of_one_kind_are_so_many(self, tmp_path: Path, clock: SimpleNamespace, level: int, most: int) -> None:
        file = tmp_path / "log"
        logs.configure(str(file), "info")
        for number in range(1000):
            logging.getLogger("mcpboard.x").log(level, "a wrong token from %s", f"10.0.0.{number}")
        lines = file.read_text().splitlines()
        assert len(lines) == most
        assert "10.0.0.0" in lines[0]
        assert lines[-1].endswith(f"10.0.0.{most - 1} (more lines like this are left out for up to 60 s)")

    def test_others_are_written_meanwhile_and_the_same_again_later(
        self, tmp_path: Path, clock: SimpleNamespace
    ) -> None:
        file = tmp_path / "log"
        logs.configure(str(file), "info")
        log = logging.getLogger("mcpboard.x")
        for _ in range(100):
            log.warning("one kind")
        log.warning("another kind")
        logging.getLogger("mcpboard.y").warning("one kind")
        clock.now += logs.PERIOD_SECONDS
        log.warning("one kind")
        ends = [line.rpartition(" ")[0].split()[-2:] for line in file.read_text().splitlines()[logs.WARNINGS :]]
        assert ends == [["mcpboard.x:", "another"], ["mcpboard.y:", "one"], ["mcpboard.x:", "one"]]
