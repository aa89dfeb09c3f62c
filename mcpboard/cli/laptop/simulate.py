"""`mcpboard simulate`: a simulated board on loopback, with a simulated phone."""

from __future__ import annotations

import argparse
import contextlib
import json
import signal
import threading
from collections.abc import Iterator
from typing import TYPE_CHECKING

from mcpboard.cli.config import Verbs, add_verb, port
from mcpboard.errors import ConfigError

if TYPE_CHECKING:
    from mcpboard.simulator import Simulator


def add_to(verbs: Verbs) -> None:
    """Add the verb `simulate`."""
    sentence = "Simulate an Agent and Config Web, and print their URLs as one JSON line."
    parser = add_verb(verbs, "simulate", sentence, "mcpboard simulate", simulate)
    for option, whose in (("--agent-port", "the Agent"), ("--config-web-port", "Config Web")):
        parser.add_argument(option, metavar="N", type=port, default=0, help=f"port of {whose} (default: any)")


def simulate(arguments: argparse.Namespace) -> int:
    """Simulate a board until SIGINT or SIGTERM."""
    stopped = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stopped.set())
    with simulator(arguments.agent_port, arguments.config_web_port) as board:
        print(json.dumps({"agent": board.agent_url, "config_web": board.config_web_url}), flush=True)
        while not stopped.wait(1.0):  # without a limit, a signal that comes just before the wait would not end it
            pass
    return 0


@contextlib.contextmanager
def simulator(agent_port: int, config_web_port: int) -> Iterator[Simulator]:
    """Give a simulated board that runs; raises ConfigError when there can be none."""
    try:
        from mcpboard.simulator import Simulator
    except ImportError as error:
        if (error.name or "").startswith("mcpboard"):
            raise ConfigError("this installation came without the simulator; install mcpboard whole") from None
        raise ConfigError(
            "the simulator draws with Pillow, which is not installed; fix: pip install 'mcpboard[simulator]'"
        ) from None
    board = Simulator(agent_port=agent_port, config_web_port=config_web_port)
    try:
        board.start()
    except OSError as error:  # a port in use, or not ours to take
        asked = f"port {agent_port} for the Agent and {config_web_port} for Config Web"
        raise ConfigError(f"{asked}: {error.strerror}; choose other ports, or 0 for any free one") from None
    try:
        yield board
    finally:
        board.stop()
