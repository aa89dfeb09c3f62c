"""`mcpboard demo`: a simulated phone behind a real server, an MCP session against it, and then it keeps serving."""

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
from mcpboard.cli.config import Verbs, add_verb, port
from mcpboard.cli.laptop.simulate import simulator
from mcpboard.errors import AddressTaken, ClientError, ConfigError

if TYPE_CHECKING:
    from mcpboard.serving.server import Server

PORT = 8080  # as on a board; any free one when it is busy
SESSION_SECONDS = 30.0  # limit for one call of the scripted session
NOTE = "Written by an MCP client: caf\u00e9, \u4f60\u597d \U0001f389"
DARK_MODE = {"x": 500, "y": 418}  # a line of the simulated phone's settings

# The steps of the session: a line for the person, the tool, its arguments. Coordinates run from 0 to 1000.
SESSION: Sequence[tuple[str, str, dict[str, Any]]] = (
    ("asks whether a phone is there", "phone_bridge_status", {}),
    ("looks at the screen", "screenshot", {}),
    ("opens the notes", "open_app", {"app": "Notes"}),
    ("writes a sentence", "enter_text", {"text": NOTE, "focus": {"x": 500, "y": 300}}),
    ("opens the settings", "open_app", {"app": "Settings"}),
    ("turns on dark mode", "touch_gesture", {"type": "tap", "point": DARK_MODE}),
    ("scrolls down", "touch_gesture", {"type": "swipe", "start": {"x": 500, "y": 800}, "end": {"x": 500, "y": 400}}),
    ("opens a page", "open_url", {"url": "https://example.com/hello-phone"}),
    ("waits until it stands still", "wait_for_stable_screen", {}),
    ("looks at all open apps", "quick_action", {"action": "app_switch"}),
    ("goes home", "quick_action", {"action": "home"}),
)


def add_to(verbs: Verbs) -> None:
    """Add the verb `demo`."""
    sentence = "Serve a simulated phone, and run one MCP session against it."
    parser = add_verb(verbs, "demo", sentence, "mcpboard demo", demo)
    default = f"{PORT}, else any free one"
    parser.add_argument("--port", metavar="N", type=port, help=f"port on 127.0.0.1 (default: {default})")
    parser.add_argument("--folder", metavar="DIR", default="demo", help="where the screenshots go (default: demo)")


def demo(arguments: argparse.Namespace) -> int:
    """Serve until SIGINT or SIGTERM; 1 when the session itself fails."""
    logs.configure("stderr", "warning")
    stopped = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stopped.set())
    with simulator(0, 0) as board, served(arguments.port, board.agent_url, board.config_web_url) as url:
        if not _session(url, Path(arguments.folder)):
            return 1
        # As this program was called, so that the line can be pasted.
        command = sys.argv[0] if Path(sys.argv[0]).name == "mcpboard" else f"{sys.executable} -m mcpboard"
        print(
            f"\nStill serving. Paste this into a client:   {url}\n"
            f"Watch the phone in a browser:              {board.agent_url}/\n"
            f"From another terminal:                     {command} call {url} screenshot -o screen.jpg\n"
            "Stop with Ctrl-C.",
            flush=True,
        )
        while not stopped.wait(1.0):  # without a limit, a signal that comes just before the wait would not end it
            pass
    return 0


@contextmanager
def served(port: int | None, agent_url: str, config_web_url: str) -> Iterator[str]:
    """Run a server in front of the simulated board, in its own thread; gives its URL."""
    from mcpboard import board
    from mcpboard.serving import server

    flags = {"agent_base_url": agent_url, "mcp_config_web_base_url": config_web_url}
    settings = config.load(flags, environ={})
    sockets = listeners(port)
    with running(server.Server(board.build(lambda: settings), sockets), "mcpboard server"):
        yield server.url(sockets[0])


@contextmanager
def running(serving: Server, name: str) -> Iterator[None]:
    """Run the server in a thread of that name until the block ends."""
    thread = threading.Thread(target=serving.run, name=name)
    thread.start()
    try:
        yield
    finally:
        serving.stop()
        thread.join()


def listeners(port: int | None) -> list[socket.socket]:
    """Listen on that port of loopback, or with None on PORT, or on any free one where that is in use."""
    from mcpboard.serving import server

    try:
        return server.listeners([("127.0.0.1", PORT if port is None else port)])
    except AddressTaken:
        if port is not None:
            raise ConfigError(f"port {port} belongs to another program; choose another with --port") from None
        return server.listeners([("127.0.0.1", 0)])


def _session(url: str, folder: Path) -> bool:
    """Run one real MCP session over HTTP, told line by line; False when it failed."""
    from mcpboard.client import Client

    folder.mkdir(parents=True, exist_ok=True)
    with Client(url, timeout=SESSION_SECONDS) as client:
        try:
            tools = client.list_tools()
            print(f"{url} speaks MCP {client.version} and offers {len(tools)} tools. A client:")
            for number, (step, tool, arguments) in enumerate(SESSION, 1):
                result = client.call(tool, arguments)
                outcome = ": " + " ".join(result.texts) if result.is_error else ": ok"
                if result.images and not result.is_error:
                    content = result.images[0].content
                    file = folder / f"{number:02}-{tool}.jpg"
                    file.write_bytes(content)
                    outcome = f" -> {file}, {len(content)} bytes"
                print(f"{number:4} {step} ({tool}){outcome}")
        except ClientError as error:
            logging.getLogger(__name__).error("the session failed: %s", error)
            return False
    return True
