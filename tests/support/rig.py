"""The board role behind the real server, in this process, between backends and a client on real sockets."""

from __future__ import annotations

import contextlib
import logging
import os
import socket
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from mcpboard import board, config
from mcpboard.board import live_schemas
from mcpboard.board.tools import ROWS
from mcpboard.serving import server
from tests.support import served
from tests.support.http import LIMIT_S, Caller

NOBODY = "http://127.0.0.1:9"  # discard: a port where nothing listens


# --- the server ------------------------------------------------------------------------------


def settings(agent: str = NOBODY, config_web: str = NOBODY, **fields: Any) -> config.Settings:
    """Settings in front of these backends; `fields` also reach those that no flag can."""
    flags = {"agent_base_url": agent, "mcp_config_web_base_url": config_web}
    return replace(config.load(flags, environ={}), **fields)


@contextlib.contextmanager
def serving(
    current: Callable[[], config.Settings],
    sockets: list[socket.socket] | None = None,
    *,
    send_buffer: int | None = None,
) -> Iterator[Caller]:
    """The board role over `current`, until the block ends; a client that knows where it is."""
    listeners = sockets or server.listeners([("127.0.0.1", 0)])
    if send_buffer is not None:  # connections inherit it
        listeners[0].setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, send_buffer)
    with served.thread(board.build(current), listeners) as url:
        yield Caller(url)


@contextlib.contextmanager
def in_front_of(
    agent: str = NOBODY, config_web: str = NOBODY, *, send_buffer: int | None = None, **fields: Any
) -> Iterator[Caller]:
    """The board role in front of these backends, with `fields` of the settings changed."""
    fixed = settings(agent, config_web, **fields)
    with serving(lambda: fixed, send_buffer=send_buffer) as client:
        yield client


def shrink_deadlines(patch: pytest.MonkeyPatch, **seconds: float) -> None:
    """Give tools other deadlines, by name; to be called before the board is built."""
    rows = [replace(row, deadline_s=seconds.get(row.tool.name, row.deadline_s)) for row in ROWS]
    patch.setattr(live_schemas, "ROWS", tuple(rows))


# --- what there is to see --------------------------------------------------------------------


class Lines(logging.Handler):
    """Log lines as they come, with a wait for those that come late."""

    def __init__(self) -> None:
        super().__init__()
        self._changed = threading.Condition()
        self._seen: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        with self._changed:
            self._seen.append(self.format(record))
            self._changed.notify_all()

    def wait_for(self, part: str, count: int = 1) -> list[str]:
        """The lines that hold `part`, once there are that many."""

        def found() -> list[str]:
            return [line for line in self._seen if part in line]

        with self._changed:
            assert self._changed.wait_for(lambda: len(found()) >= count, LIMIT_S), f"no line {count} with {part!r}"
            return found()


@contextlib.contextmanager
def log_lines(level: int = logging.INFO) -> Iterator[Lines]:
    """What the `mcpboard` logger says while the block runs."""
    lines, logger = Lines(), logging.getLogger("mcpboard")
    before = logger.level
    logger.setLevel(level)
    logger.addHandler(lines)
    try:
        yield lines
    finally:
        logger.removeHandler(lines)
        logger.setLevel(before)


# --- a process of its own --------------------------------------------------------------------


@dataclass(frozen=True)
class Process:
    """`mcpboard serve` as people run it, and a client of it."""

    pid: int
    client: Caller

    def resident(self) -> int:
        """Bytes of memory in use."""
        pages = int(Path(f"/proc/{self.pid}/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE")

    def files(self) -> list[str]:
        """Paths of what it opened itself and is no device, pipe or socket."""
        folder = Path(f"/proc/{self.pid}/fd")
        found = [os.readlink(folder / number) for number in os.listdir(folder) if int(number) > 2]
        return [path for path in found if path.startswith("/") and not path.startswith("/dev/")]


@contextlib.contextmanager
def process(
    file: Path, *before: str, environ: Mapping[str, str] = os.environ, module: str = "mcpboard"
) -> Iterator[Process]:
    """`serve --config FILE` until the block ends, then it must end well; `before` is put in front of the command."""
    with served.child(file, *before, environ=environ, module=module) as (pid, url):
        yield Process(pid, Caller(url))


def settings_file(folder: Path, agent: str = NOBODY, config_web: str = NOBODY, **ours: Any) -> Path:
    """A settings file in front of these backends; `ours` are keys of [mcpboard]."""
    return served.settings_for(folder, agent, config_web, **ours)
