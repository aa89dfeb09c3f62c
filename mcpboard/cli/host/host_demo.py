"""`device-host-agent run --demo`: three phones and a board, clients and a cloud that want the same, then it serves."""

from __future__ import annotations

import json
import logging
import signal
import socket
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from typing import Any

from mcpboard import __version__, host
from mcpboard.cli.laptop.demo import running, served
from mcpboard.cli.laptop.simulate import simulator
from mcpboard.client import Client
from mcpboard.errors import ClientError, PeerError
from mcpboard.host.access import tokens
from mcpboard.host.cloud import api, enrollment
from mcpboard.host.cloud.enrollment import Enrollment
from mcpboard.host.config import HostSettings
from mcpboard.host.drivers.base import Driver
from mcpboard.host.drivers.board import BoardDriver
from mcpboard.host.drivers.simulated import SimulatedDriver
from mcpboard.serving import server
from mcpboard.simulator.cloud.scheduler import Scheduler

PHONES = ("phone-1", "phone-2", "phone-3")
CALL_SECONDS = 30.0  # limit for one call of the scripted session

# What the cloud's assignments do; each takes a fraction of the limit.
STEPS: list[dict[str, Any]] = [
    {"tool": "launch_app", "arguments": {"app_id": "Notes"}},
    {"tool": "take_screenshot"},
]
ASSIGNMENT_SECONDS = 30.0


def demo(settings: HostSettings, sockets: Sequence[socket.socket]) -> int:
    """Serve at the one bound socket until SIGINT or SIGTERM; 1 when the session itself fails."""
    stopped = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stopped.set())
    logging.getLogger("mcpboard").setLevel(logging.WARNING)  # the session is printed line by line
    devices: dict[str, tuple[str, Driver]] = {
        name: ("simulated", SimulatedDriver(seed=seed)) for seed, name in enumerate(PHONES)
    }
    with (
        simulator(0, 0) as board,
        served(0, board.agent_url, board.config_web_url) as board_url,
        _cloud() as (scheduler, cloud),
        closing(host.build(settings, devices | {"board-1": ("board", BoardDriver(board_url))}, enrolled=cloud)) as role,
        running(server.Server(role.app, sockets, host.THREADS, host.CONNECTIONS), "host server"),
    ):
        url, token = server.url(sockets[0]), tokens.read_main_token(settings.folder)
        if not _session(role, url, token, scheduler):
            return 1
        entry = {"mcpServers": {"phones": {"url": url, "headers": {"Authorization": f"Bearer {token}"}}}}
        print(
            f"\nStill serving. Paste this into a client:\n\n{json.dumps(entry, indent=2)}\n\n"
            f"The console in a browser, for the same token: {url.removesuffix('mcp')}\n"
            f"The phone of board-1 in a browser: {board.agent_url}/\n"
            "Stop with Ctrl-C.",
            flush=True,
        )
        while not stopped.wait(1.0):  # without a limit, a signal that comes just before the wait would not end it
            pass
    return 0


@contextmanager
def _cloud() -> Iterator[tuple[Scheduler, Enrollment]]:
    """Run a simulated cloud, and give this host's enrollment there, which no file knows."""
    with Scheduler() as scheduler:
        this_host = {"name": "demo", "version": __version__, "platform": "demo", "devices": []}
        answer = api.register(api.CloudHttp(scheduler.url), scheduler.enrol_token, this_host)
        yield scheduler, enrollment.parse_enrollment(scheduler.url, answer)


def _session(role: host.HostRole, url: str, token: str, scheduler: Scheduler) -> bool:
    """Let two clients and a cloud want one phone, and print it line by line; False when it goes otherwise."""
    with Client(url, token, timeout=CALL_SECONDS) as client:
        try:
            client.open()
            print(f"{url} speaks MCP {client.version}; it has these devices:")
            for device in json.loads(client.call("list_devices").text):
                print(f"  {device['id']}, {device['kind']}: {device['state']}")
            return _contend(role, client, scheduler)
        except ClientError as error:
            logging.getLogger(__name__).error("the session failed: %s", error)
            return False


def _contend(role: host.HostRole, client: Client, scheduler: Scheduler) -> bool:
    first = _call(client, "the first client taps on phone-1", "tap", device_id="phone-1", x=75, y=356, session_id="new")
    second = _call(client, "the second wants it, too", "tap", device_id="phone-1", x=75, y=356, session_id="new")
    if first is None or second is not None:
        return False
    _call(client, "so it takes phone-2", "find_text", device_id="phone-2", query="Notes", session_id="new")
    _call(client, "the first goes on", "describe_screen", device_id="phone-1", session_id=first["session_id"])
    role.manager.release("phone-1")
    print("  the operator releases phone-1")
    last = _call(client, "now the second has it", "tap", device_id="phone-1", x=250, y=500, session_id="new")
    _call(client, "and looks through the board", "take_screenshot", device_id="board-1")
    refused = scheduler.outcome(scheduler.dispatch("phone-2", STEPS, blind=True), ASSIGNMENT_SECONDS)
    print(f"  a cloud wants phone-2, too: {refused['status']}, {refused.get('failure_reason')}")
    done = scheduler.outcome(scheduler.dispatch("phone-3", STEPS, blind=True), ASSIGNMENT_SECONDS)
    print(f"  so it takes phone-3 ({', '.join(step['tool'] for step in STEPS)}): {done['status']}")
    for device in ("phone-1", "phone-2", "board-1"):
        role.manager.release(device)
    return last is not None and (refused["status"], done["status"]) == ("failed", "succeeded")


def _call(client: Client, what: str, tool: str, **arguments: Any) -> Mapping[str, Any] | None:
    """Call the tool and print what came of it; return its structured content, None when it was refused."""
    try:
        result = client.call(tool, arguments)
    except PeerError as error:
        print(f"  {what} ({tool}): refused, {error.message}")
        return None
    first_line = (result.text.splitlines() or ["ok"])[0]
    print(f"  {what} ({tool}): {first_line[:100]}")
    return result.structured or {}
