"""The USB link goes and comes back in the middle of calls: interface, address and routes deleted and made anew."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from mcpboard.errors import ConfigError
from mcpboard.serving import server
from mcpboard.simulator import Simulator
from tests.functional import rig
from tests.functional.namespaces import Namespace, ip, namespace

pytestmark = pytest.mark.tools

ADDRESS, PORT = "192.168.42.1", 8080  # the board's own on its USB link
FLAPS = 20
ENTER: dict[str, Any] = {"text": "x", "focus": {"x": 500, "y": 300}}


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


@pytest.fixture
def link() -> Iterator[Link]:
    with namespace("board") as board, namespace("laptop") as laptop:
        yield Link(board, laptop)


@pytest.fixture
def simulator(link: Link) -> Iterator[Simulator]:
    """The Agent on the board's own loopback, which no flap touches."""
    pretend = Simulator(speed=50)
    link.board.run(pretend.start)
    pretend.phone.show("Notes")
    try:
        yield pretend
    finally:
        pretend.stop()


@contextlib.contextmanager
def served(link: Link, simulator: Simulator, address: str, freebind: bool) -> Iterator[rig.Client]:
    """The board role, all of its sockets and threads on the board; a client that is to be run on the laptop."""
    settings = rig.settings(simulator.agent_url, simulator.config_web_url)
    with contextlib.ExitStack() as stack:

        def serve() -> None:
            listeners = server.listeners([(address, PORT)], freebind=freebind)
            stack.enter_context(rig.serving(lambda: settings, listeners))

        link.board.run(serve)
        yield rig.Client(ADDRESS, PORT)


LISTENERS = [
    pytest.param(ADDRESS, False, id="bound to the link's address"),
    pytest.param(ADDRESS, True, id="bound with freebind"),
    pytest.param("0.0.0.0", False, id="bound to every address"),
]


@pytest.mark.parametrize(("address", "freebind"), LISTENERS)
def test_twenty_flaps_in_the_middle_of_calls(link: Link, simulator: Simulator, address: str, freebind: bool) -> None:
    """The listener stays, each action is done once, and the next call works as soon as the link is back."""
    link.up()
    with served(link, simulator, address, freebind) as client, rig.log_lines() as lines:
        for flap in range(1, FLAPS + 1):
            with simulator.hold("enter_text") as hold, link.laptop.run(begin, client) as pending:
                assert hold.entered.wait(rig.LIMIT_S)
                link.down()
                hold.release()
                lines.wait_for("enter_text: ok", flap)  # done, although nobody can hear of it
                pending.leave(reset=True)
            link.up()
            after = link.laptop.run(look, client)
            assert not after.is_error, after.text
            assert after.kinds == ["image", "text"]
    assert [name for name, _ in simulator.calls] == ["enter_text", "screenshot"] * FLAPS
    assert simulator.phone.text == "x" * FLAPS


def begin(client: rig.Client) -> rig.Pending:
    return client.begin("enter_text", **ENTER)


def look(client: rig.Client) -> rig.Result:
    return client.call("screenshot")


def test_a_call_survives_a_flap_that_ends_before_its_answer(link: Link, simulator: Simulator) -> None:
    """Same addresses on both sides again: TCP goes on where it was, and so does the caller."""
    link.up()
    with (
        served(link, simulator, ADDRESS, False) as client,
        simulator.hold("enter_text") as hold,
        link.laptop.run(begin, client) as pending,
    ):
        assert hold.entered.wait(rig.LIMIT_S)
        link.down()
        link.up()
        hold.release()
        assert not pending.answer().is_error
    assert len(simulator.calls) == 1


def test_a_listener_may_be_there_before_its_address(link: Link, simulator: Simulator) -> None:
    """freebind: the service starts with the board, the address comes with the cable."""
    with pytest.raises(ConfigError, match="freebind"):
        link.board.run(server.listeners, [(ADDRESS, PORT)])
    with served(link, simulator, ADDRESS, True) as client:
        with pytest.raises(OSError):
            link.laptop.run(socket.create_connection, (ADDRESS, PORT), 1)
        link.up()
        assert not link.laptop.run(look, client).is_error
