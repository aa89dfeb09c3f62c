"""The USB link goes and comes back in the middle of calls: interface, address and routes deleted and made anew."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator
from typing import Any

import pytest

from mcpboard.errors import ConfigError
from mcpboard.serving import server
from mcpboard.serving.undelivered import ARRIVAL_SECONDS
from mcpboard.simulator import Simulator
from tests.functional.cable import ADDRESS, PORT, Link, agent, served, unplugged
from tests.support import rig
from tests.support.http import LIMIT_S, Caller, Connection, Response

pytestmark = pytest.mark.tools

FLAPS = 20
ENTER: dict[str, Any] = {"text": "x", "focus": {"x": 500, "y": 300}}


@pytest.fixture
def link() -> Iterator[Link]:
    with unplugged() as pair:
        yield pair


@pytest.fixture
def simulator(link: Link) -> Iterator[Simulator]:
    with agent(link) as simulator:
        yield simulator


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
                assert hold.entered.wait(LIMIT_S)
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


def begin(client: Caller) -> Connection:
    return client.begin("enter_text", **ENTER)


def tap(client: Caller) -> Response:
    return client.call("keyboard_tap", keys=["enter"])


def look(client: Caller) -> Response:
    return client.call("screenshot")


def test_a_call_survives_a_flap_that_ends_before_its_answer(link: Link, simulator: Simulator) -> None:
    """Same addresses on both sides again: TCP goes on where it was, and so does the caller."""
    link.up()
    with (
        served(link, simulator, ADDRESS, False) as client,
        simulator.hold("enter_text") as hold,
        link.laptop.run(begin, client) as pending,
    ):
        assert hold.entered.wait(LIMIT_S)
        link.down()
        link.up()
        hold.release()
        assert not pending.response().is_error
        later = time.monotonic() + 2 * ARRIVAL_SECONDS
        while time.monotonic() < later:
            assert "enter_text" not in link.laptop.run(tap, client).text
    assert [name for name, _ in simulator.calls].count("enter_text") == 1


@pytest.mark.parametrize(
    "reset", [pytest.param(False, id="a caller that hung up"), pytest.param(True, id="a caller that was switched off")]
)
def test_an_answer_that_met_no_link_is_told_to_the_next_action(link: Link, simulator: Simulator, reset: bool) -> None:
    """No reset and no end of the connection came over the link: the kernel took the answer, and keeps it."""
    link.up()
    with served(link, simulator) as client, rig.log_lines() as lines:
        with simulator.hold("enter_text") as hold, link.laptop.run(begin, client) as pending:
            assert hold.entered.wait(LIMIT_S)
            link.down()
            hold.release()
            lines.wait_for("enter_text: ok")
            handed_over = time.monotonic()
            pending.leave(reset=reset)
        link.up()
        told = ""
        while "enter_text" not in told and time.monotonic() - handed_over < LIMIT_S:
            told = link.laptop.run(tap, client).text
        assert "The earlier enter_text finished OK" in told
        assert "look at the screen before repeating it" in told
        assert "enter_text" not in link.laptop.run(tap, client).text
    assert [name for name, _ in simulator.calls].count("enter_text") == 1


def test_a_listener_may_be_there_before_its_address(link: Link, simulator: Simulator) -> None:
    """freebind: the service starts with the board, the address comes with the cable."""
    with pytest.raises(ConfigError, match="freebind"):
        link.board.run(server.listeners, [(ADDRESS, PORT)])
    with served(link, simulator, ADDRESS, True) as client:
        with pytest.raises(OSError):
            link.laptop.run(socket.create_connection, (ADDRESS, PORT), 1)
        link.up()
        assert not link.laptop.run(look, client).is_error
