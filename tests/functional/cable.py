"""A board and a laptop in network namespaces of their own, and the USB cable between them; needs root."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass

from mcpboard.serving import server
from mcpboard.simulator import Simulator
from tests.functional.namespaces import Namespace, ip, namespace
from tests.support import rig
from tests.support.http import Caller

ADDRESS, PORT = "192.168.42.1", 8080  # the board's own on its USB link


@dataclass(frozen=True)
class Link:
    """The board's namespace and the laptop's, and the cable between them."""

    board: Namespace
    laptop: Namespace

    def up(self) -> None:
        """What the gadget does at the end of a key chord: a new interface with the old address."""
        ip(f"link add usb0 netns {self.board.name} type veth peer name usb0 netns {self.laptop.name}")
        self.board.ip(f"addr add {ADDRESS}/24 dev usb0", "link set usb0 up")
        self.laptop.ip("addr add 192.168.42.100/24 dev usb0", "link set usb0 up")

    def down(self) -> None:
        """The interface is deleted, and with it address and routes; no socket is told anything."""
        self.board.ip("link del usb0")


@contextlib.contextmanager
def unplugged() -> Iterator[Link]:
    """The two machines, the cable not yet in."""
    with namespace("board") as board, namespace("laptop") as laptop:
        yield Link(board, laptop)


@contextlib.contextmanager
def agent(link: Link) -> Iterator[Simulator]:
    """The Agent on the board's own loopback, which no flap touches."""
    simulator = Simulator(speed=50)
    link.board.run(simulator.start)
    simulator.phone.show("Notes")
    try:
        yield simulator
    finally:
        simulator.stop()


@contextlib.contextmanager
def served(link: Link, simulator: Simulator, address: str = ADDRESS, freebind: bool = False) -> Iterator[Caller]:
    """The board role, all of its sockets and threads on the board; a client that is to be run on the laptop."""
    settings = rig.settings(simulator.agent_url, simulator.config_web_url)
    with contextlib.ExitStack() as stack:

        def serve() -> None:
            listeners = server.listeners([(address, PORT)], freebind=freebind)
            stack.enter_context(rig.serving(lambda: settings, listeners))

        link.board.run(serve)
        yield Caller(f"http://{ADDRESS}:{PORT}/mcp")
