"""`mcpboard simulate`: a pretend board on loopback, with a pretend phone."""

from __future__ import annotations

import argparse
import contextlib
import json
import signal
import threading

from mcpboard.cli.settings import Verbs
from mcpboard.errors import ConfigError


def add_to(verbs: Verbs) -> None:
    """Add the verb `simulate`."""
    parser = verbs.add_parser("simulate", help="run a pretend Agent and Config Web; print their URLs as one JSON line")
    parser.add_argument("--agent-port", metavar="N", type=int, default=0, help="port of the Agent (default: any)")
    parser.add_argument("--config-web-port", metavar="N", type=int, default=0, help="port of Config Web (default: any)")
    parser.set_defaults(run=simulate)


def simulate(arguments: argparse.Namespace) -> int:
    """Pretend until SIGINT or SIGTERM, both a normal end here."""
    try:
        from mcpboard.simulator import Simulator
    except ImportError as error:
        raise ConfigError(_missing(error)) from None
    # SIGINT as well: a shell starts background programs with it ignored.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.default_int_handler)
    simulator = Simulator(agent_port=arguments.agent_port, config_web_port=arguments.config_web_port)
    try:
        simulator.start()
    except (OSError, OverflowError) as error:  # a port in use, not ours to take, or no port at all
        raise ConfigError(f"cannot listen: {error}; choose other ports, or 0 for any free one") from None
    try:
        print(json.dumps({"agent": simulator.agent_url, "config_web": simulator.config_web_url}), flush=True)
        with contextlib.suppress(KeyboardInterrupt):
            threading.Event().wait()
    finally:
        simulator.stop()
    return 0


def _missing(error: ImportError) -> str:
    if (error.name or "").startswith("mcpboard"):
        return "this installation came without the simulator; install mcpboard whole"
    return "the simulator draws with Pillow, which is not installed; cure: pip install 'mcpboard[simulator]'"
