"""`mcpboard demo`: a pretend phone behind a real server, an MCP session against it, and then it keeps serving."""

from __future__ import annotations

import argparse
import logging
import signal
import socket
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mcpboard import config
from mcpboard.cli import logs
from mcpboard.cli.settings import Verbs
from mcpboard.cli.simulate import simulator
from mcpboard.errors import AddressTaken, ClientError

if TYPE_CHECKING:
    from mcpboard.client import Client

PORT = 8080  # the mission's; any free one when it is busy
SESSION_S = 30.0  # limit for one call of the scripted session

# What the session does: a line for the person, the tool, its arguments.
SESSION: Sequence[tuple[str, str, dict[str, Any]]] = (
    ("asks whether a phone is there", "phone_bridge_status", {}),
    ("looks at the screen", "screenshot", {}),
    ("opens the notes", "open_app", {"app": "Notes"}),
    ("waits for the animation", "wait_for_stable_screen", {}),
    ("goes home", "quick_action", {"action": "home"}),
)


def add_to(verbs: Verbs) -> None:
    """Add the verb `demo`."""
    parser = verbs.add_parser("demo", help="a pretend phone behind a real server, driven once, then kept serving")
    parser.add_argument("--port", metavar="N", type=int, help=f"port on 127.0.0.1 (default: {PORT}, else any free one)")
    parser.add_argument("--folder", metavar="DIR", default="demo", help="where the pictures go (default: demo)")
    parser.set_defaults(run=demo)


def demo(arguments: argparse.Namespace) -> int:
    """Serve until SIGINT or SIGTERM; 1 when the session itself fails."""
    logs.configure("stderr", "warning")
    stopped = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stopped.set())
    with simulator(0, 0) as board, _served(arguments.port, board.agent_url, board.config_web_url) as url:
        if not _session(url, Path(arguments.folder)):
            return 1
        print(_invitation(url, board.agent_url), flush=True)
        stopped.wait()
    return 0


@contextmanager
def _served(port: int | None, agent_url: str, config_web_url: str) -> Iterator[str]:
    """A server in front of the pretend board, in its own thread; gives its URL."""
    from mcpboard import board
    from mcpboard.serving import server

    flags = {"agent_base_url": agent_url, "mcp_config_web_base_url": config_web_url}
    settings = config.load(flags, environ={})
    sockets = _listeners(port)
    serving = server.Server(board.build(lambda: settings), sockets)
    thread = threading.Thread(target=serving.run, name="mcpboard server")
    thread.start()
    try:
        yield server.url(sockets[0])
    finally:
        serving.stop()
        thread.join()


def _listeners(port: int | None) -> list[socket.socket]:
    from mcpboard.serving import server

    try:
        return server.listeners([("127.0.0.1", PORT if port is None else port)])
    except AddressTaken:
        if port is not None:
            raise
        return server.listeners([("127.0.0.1", 0)])


def _session(url: str, folder: Path) -> bool:
    """One real MCP session over HTTP, told line by line; False when it failed."""
    from mcpboard.client import Client

    folder.mkdir(parents=True, exist_ok=True)
    with Client(url, timeout=SESSION_S) as client:
        try:
            tools = client.list_tools()
            print(f"{url} speaks MCP {client.version} and offers {len(tools)} tools. A client:")
            for what, tool, arguments in SESSION:
                print(f"  {what} ({tool}){_saved(client, tool, arguments, folder)}")
        except ClientError as error:
            logging.getLogger(__name__).error("the session failed: %s", error)
            return False
    return True


def _saved(client: Client, tool: str, arguments: dict[str, Any], folder: Path) -> str:
    """Call the tool; the words that tell where its picture went."""
    result = client.call(tool, arguments)
    if result.is_error:
        return ": " + " ".join(result.texts)
    for picture in result.images:
        file = folder / f"{tool}.jpg"
        file.write_bytes(picture.content)
        return f" -> {file}, {len(picture.content)} bytes"
    return ": ok"


def _invitation(url: str, phone_url: str) -> str:
    return (
        f"\nStill serving. Paste this into a client:   {url}\n"
        f"Watch the phone in a browser:              {phone_url}/\n"
        f"From another terminal:                     {_command()} call {url} screenshot -o screen.jpg\n"
        "Stop with Ctrl-C."
    )


def _command() -> str:
    """How this program was called, so that the line can be pasted."""
    return sys.argv[0] if Path(sys.argv[0]).name == "mcpboard" else f"{sys.executable} -m mcpboard"
