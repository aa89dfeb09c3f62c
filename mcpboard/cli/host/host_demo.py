"""`device-host-agent run --demo`: three phones and a board, clients and a cloud that want the same, then it serves."""

from __future__ import annotations

import contextlib
import json
import logging
import signal
import socket
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from mcpboard import host
from mcpboard.cli.host import host_demo_cloud
from mcpboard.cli.host.serve import listeners
from mcpboard.cli.laptop.demo import running, served
from mcpboard.cli.laptop.simulate import simulator
from mcpboard.client import Client
from mcpboard.errors import AddressTaken, ClientError, PeerError
from mcpboard.host.access import tokens
from mcpboard.host.config import HostSettings
from mcpboard.host.drivers.base import Driver
from mcpboard.host.drivers.board import BoardDriver
from mcpboard.host.drivers.simulated import SimulatedDriver
from mcpboard.serving import server
from mcpboard.simulator.cloud.scheduler import Scheduler

PHONES = ("phone-1", "phone-2", "phone-3")
CALL_SECONDS = 30.0  # limit for one call of the scripted session


def demo(settings: HostSettings) -> int:
    """Serve until SIGINT or SIGTERM; 1 when the session itself fails."""
    stopped = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stopped.set())
    logging.getLogger("mcpboard").setLevel(logging.WARNING)  # the session is told line by line
    with (
        simulator(0, 0) as board,
        served(0, board.agent_url, board.config_web_url) as board_url,
        host_demo_cloud.cloud() as (scheduler, enrolled),
        contextlib.closing(host.build(settings, _devices(board_url), enrolled=enrolled)) as role,
        _serving(role, settings) as url,
    ):
        secret = tokens.read_main_token(settings.folder)
        if not _session(role, url, secret, scheduler):
            return 1
        print(_invitation(url, secret, board.agent_url), flush=True)
        stopped.wait()
    return 0


def _devices(board_url: str) -> Mapping[str, tuple[str, Driver]]:
    phones: dict[str, tuple[str, Driver]] = {
        name: ("simulated", SimulatedDriver(seed=seed)) for seed, name in enumerate(PHONES)
    }
    return {**phones, "board-1": ("board", BoardDriver(board_url))}


@contextmanager
def _serving(role: host.HostRole, settings: HostSettings) -> Iterator[str]:
    """The role behind a real server, in its own thread; gives its URL."""
    sockets = _listeners(settings)
    with running(server.Server(role.app, sockets, host.THREADS, host.CONNECTIONS), "host server"):
        yield server.url(sockets[0])


def _listeners(settings: HostSettings) -> list[socket.socket]:
    try:
        return listeners(settings)
    except AddressTaken:
        if settings.sources["port"] != "default":
            raise
        return listeners(replace(settings, port=0))


# --- two clients ---------------------------------------------------------------------------------


def _session(role: host.HostRole, url: str, secret: str, scheduler: Scheduler) -> bool:
    """Two clients and a cloud that want one phone, told line by line; False when it goes otherwise."""
    with Client(url, secret, timeout=CALL_SECONDS) as client:
        try:
            print(f"{url} speaks MCP {client.version or _opened(client)}; it has these devices:")
            for device in json.loads(client.call("list_devices").text):
                print(f"  {device['id']}, {device['kind']}: {device['state']}")
            return _contend(role, client, scheduler)
        except ClientError as error:
            logging.getLogger(__name__).error("the session failed: %s", error)
            return False


def _opened(client: Client) -> str | None:
    client.open()
    return client.version


def _contend(role: host.HostRole, client: Client, scheduler: Scheduler) -> bool:
    first = _told(client, "the first client taps on phone-1", "tap", device_id="phone-1", x=75, y=356, session_id="new")
    told = _told(client, "the second wants it, too", "tap", device_id="phone-1", x=75, y=356, session_id="new")
    if first is None or told is not None:
        return False
    _told(client, "so it takes phone-2", "find_text", device_id="phone-2", query="Notes", session_id="new")
    _told(client, "the first goes on", "describe_screen", device_id="phone-1", session_id=first["session_id"])
    role.manager.release("phone-1")
    print("  the operator releases phone-1")
    last = _told(client, "now the second has it", "tap", device_id="phone-1", x=250, y=500, session_id="new")
    _told(client, "and looks through the board", "take_screenshot", device_id="board-1")
    shared = host_demo_cloud.contend(scheduler, held="phone-2", free="phone-3")
    for device in ("phone-1", "phone-2", "board-1"):
        role.manager.release(device)
    return last is not None and shared


def _told(client: Client, what: str, tool: str, **arguments: Any) -> Mapping[str, Any] | None:
    """Call the tool and print what came of it; its structured content, None when it was refused."""
    try:
        result = client.call(tool, arguments)
    except PeerError as error:
        print(f"  {what} ({tool}): refused, {error.message}")
        return None
    first_line = (result.text.splitlines() or ["ok"])[0]
    print(f"  {what} ({tool}): {first_line[:100]}")
    return result.structured or {}


def _invitation(url: str, secret: str, phone_url: str) -> str:
    configuration = {"mcpServers": {"phones": {"url": url, "headers": {"Authorization": f"Bearer {secret}"}}}}
    return (
        f"\nStill serving. Paste this into a client:\n\n{json.dumps(configuration, indent=2)}\n\n"
        f"The console in a browser, for the same token: {url.removesuffix('mcp')}\n"
        f"The phone of board-1 in a browser: {phone_url}/\n"
        "Stop with Ctrl-C."
    )
