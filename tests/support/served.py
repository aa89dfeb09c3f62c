"""mcpboard as people run it, a process of its own in front of a simulated board; and any WSGI app in a thread."""

from __future__ import annotations

import json
import os
import socket
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mcpboard.serving import server
from mcpboard.simulator import Simulator
from tests.support.processes import started

STOP_S = 10.0  # the drain's grace is four


@dataclass(frozen=True)
class Board:
    """A simulated board, and the MCP URL in front of it."""

    simulator: Simulator
    url: str


def settings_file(folder: Path, simulator: Simulator, **ours: Any) -> Path:
    """A settings file for `serve` in front of `simulator`; `ours` are keys of [mcpboard]."""
    return settings_for(folder, simulator.agent_url, simulator.config_web_url, **ours)


def settings_for(folder: Path, agent: str, config_web: str, **ours: Any) -> Path:
    """The same in front of any two backends."""
    keys = {"listen": "127.0.0.1:0", "agent_base_url": agent, **ours}
    lines = ["[mcpboard]", *(f"{key} = {json.dumps(value)}" for key, value in keys.items())]
    lines += ["[conversation_settings.agent]", f"mcp_config_web_base_url = {json.dumps(config_web)}"]
    file = folder / "mcpboard.toml"
    file.write_text("\n".join(lines) + "\n", "utf-8")
    return file


@contextmanager
def process(config: Path) -> Iterator[str]:
    """The MCP URL of `mcpboard serve --config CONFIG`, until the block ends; then it must end well, too."""
    with child(config) as (_, url):
        yield url


@contextmanager
def child(
    config: Path, *before: str, environ: Mapping[str, str] = os.environ, module: str = "mcpboard"
) -> Iterator[tuple[int, str]]:
    """The same with its process id, under this environment; `before` is put in front of the command."""
    command = (*before, sys.executable, "-m", module, "serve", "--config", str(config))
    with started(*command, env=environ) as program:
        yield program.process.pid, program.url
        assert program.end() == 0, program.errors


@contextmanager
def thread(app: Any, sockets: Sequence[socket.socket] = (), **options: int) -> Iterator[str]:
    """The MCP URL of `app` behind the real server, in a thread that is gone when the block ends; `options` are the server's."""
    sockets = sockets or server.listeners([("127.0.0.1", 0)])
    url = server.url(sockets[0])
    serving = server.Server(app, sockets, **options)
    running = threading.Thread(target=serving.run, name="served")
    running.start()
    try:
        yield url
    finally:
        serving.stop()
        running.join(STOP_S)
        assert not running.is_alive(), "the server did not end"
