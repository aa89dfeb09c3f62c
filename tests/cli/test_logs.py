"""Where the log goes, and that one message is one line there."""

from __future__ import annotations

import logging
import os
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from mcpboard.cli import logs
from mcpboard.errors import ConfigError

LIMIT = 20  # seconds


@pytest.fixture(autouse=True)
def own_logging() -> Iterator[None]:
    """The root logger as it was, afterwards."""
    root, handlers, level = logging.getLogger(), logging.getLogger().handlers[:], logging.getLogger().level
    root.handlers = []
    yield
    for handler in root.handlers:
        handler.close()
    root.handlers, logging.raiseExceptions = handlers, True
    root.setLevel(level)


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
