"""call, bridge and relay at the laptop's end of a USB cable that is pulled and put back, with a proxy that leads nowhere."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from typing import Any

import pytest

from mcpboard.errors import ToolFailed
from mcpboard.host.drivers.board import BoardDriver
from mcpboard.simulator import Simulator
from tests.functional.cable import ADDRESS, PORT, Link, agent, served, unplugged
from tests.functional.test_client import DISCOVERED
from tests.support import ROOT
from tests.support.peer import Hanging
from tests.support.piped import ENVIRONMENT, LIMIT_S, Bridged, bridge

pytestmark = pytest.mark.tools

URL = f"http://{ADDRESS}:{PORT}/mcp"
TAP: dict[str, Any] = {"type": "tap", "point": {"x": 500, "y": 500}}
CALL_TAP = ("touch_gesture", "--json", json.dumps(TAP))


@contextmanager
def plugged_in() -> Iterator[Link]:
    with unplugged() as pair:
        pair.up()
        yield pair


@pytest.fixture
def link() -> Iterator[Link]:
    with plugged_in() as pair:
        yield pair


@pytest.fixture
def simulator(link: Link) -> Iterator[Simulator]:
    with agent(link) as simulator, served(link, simulator):
        yield simulator


@contextmanager
def on(link: Link, *words: str) -> Iterator[subprocess.Popen[str]]:
    """`mcpboard WORDS` on the laptop, in a hostile environment."""
    command = [sys.executable, "-m", "mcpboard", *words]
    with link.laptop.run(
        lambda: subprocess.Popen(
            command, cwd=ROOT, env=ENVIRONMENT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
    ) as child:
        try:
            yield child
        finally:
            child.kill()


@contextmanager
def bridged(link: Link) -> Iterator[Bridged]:
    """A client at the laptop's end of a bridge."""
    with ExitStack() as stack:
        yield link.laptop.run(stack.enter_context, bridge(URL))


@contextmanager
def relayed(link: Link) -> Iterator[str]:
    """The URL of a relay on the laptop."""
    with on(link, "relay", URL, "--listen", "127.0.0.1:0") as relay:
        assert relay.stdout is not None
        yield relay.stdout.readline().split()[2]


def assert_done(child: subprocess.Popen[str]) -> None:
    """A `call` that ends well."""
    _, told = child.communicate(timeout=LIMIT_S)
    assert child.returncode == 0, told


def pull_and_put_back(link: Link, simulator: Simulator, *, lost: bool) -> None:
    """In the middle of a tap; `lost`: the tap ends while the cable is out, so that its answer meets no link."""
    with simulator.hold("touch_gesture") as hold:
        simulator.wait_for_call("touch_gesture")
        link.down()
        if lost:
            hold.release()
            simulator.wait_for_finish("touch_gesture")
        link.up()


def taps(simulator: Simulator) -> int:
    return [name for name, _ in simulator.calls].count("touch_gesture")


# How a tap's answer comes to the laptop: on the same connection in both cases, because its addresses are back.
LOST = pytest.mark.parametrize(
    "lost", [pytest.param(False, id="back before the tap ends"), pytest.param(True, id="back after the tap has ended")]
)


@LOST
def test_a_call_gets_its_answer_and_taps_once(link: Link, simulator: Simulator, lost: bool) -> None:
    with on(link, "call", URL, *CALL_TAP) as call:
        pull_and_put_back(link, simulator, lost=lost)
        assert_done(call)
    assert taps(simulator) == 1


@LOST
def test_a_client_of_the_relay_does_not_notice(link: Link, simulator: Simulator, lost: bool) -> None:
    with relayed(link) as url:
        with on(link, "call", url, *CALL_TAP) as call:
            pull_and_put_back(link, simulator, lost=lost)
            assert_done(call)
        with on(link, "call", url, "screenshot", "-o", "/dev/null") as call:
            assert_done(call)
    assert taps(simulator) == 1


@LOST
def test_a_client_of_the_bridge_does_not_notice(link: Link, simulator: Simulator, lost: bool) -> None:
    with bridged(link) as client:
        client.send(1, "tools/call", {"name": "touch_gesture", "arguments": TAP})
        pull_and_put_back(link, simulator, lost=lost)
        assert "result" in client.response(1)
        assert client.call(2, "screenshot")["result"]["content"][0]["type"] == "image"
    assert taps(simulator) == 1


def test_the_bridge_waits_for_a_cable_that_is_out_and_taps_once(link: Link, simulator: Simulator) -> None:
    with bridged(link) as client:
        assert client.call(1, "phone_bridge_status")["result"]
        link.down()
        client.send(2, "tools/call", {"name": "touch_gesture", "arguments": TAP})
        client.wait_for_log(b"waiting up to")
        link.up()
        assert "result" in client.response(2)
    assert taps(simulator) == 1


def test_a_call_into_a_cable_that_is_out_says_so_and_that_nothing_was_sent(link: Link, simulator: Simulator) -> None:
    link.down()
    with on(link, "call", URL, *CALL_TAP) as call:
        _, told = call.communicate(timeout=LIMIT_S)
    assert call.returncode == 1
    assert "its cable in" in told
    assert "nothing was executed" in told
    assert taps(simulator) == 0


# --- a cable that stays out ----------------------------------------------------------------------

TOLD_S = 60.0  # seconds within which a caller hears of it; a call itself may take 320


def unplug(link: Link) -> None:
    """The laptop loses its interface with the cable, as with a USB gadget."""
    link.down()


def cut(link: Link) -> None:
    """The laptop keeps its interface, address and route, and no packet arrives."""
    link.board.ip("link set usb0 down")


@pytest.mark.slow
def test_a_cable_out_while_the_board_works_is_told_within_a_minute() -> None:
    """Both kinds and every way in at once, because each waits half a minute for the kernel to give up."""
    with ThreadPoolExecutor() as pool:
        for done in [pool.submit(told_of, take_out) for take_out in (unplug, cut)]:
            done.result()


def told_of(take_out: Callable[[Link], None]) -> None:
    """Check that everybody on a link of its own hears, once, that the outcome is unknown."""

    def drive() -> ToolFailed:
        driver = BoardDriver(URL)
        with pytest.raises(ToolFailed) as caught:
            driver.launch_app("notes")
        return caught.value

    with (
        ExitStack() as stack,
        plugged_in() as link,
        link.board.run(Hanging, DISCOVERED, ADDRESS, PORT) as board,
        ThreadPoolExecutor() as pool,
        relayed(link) as url,
        bridged(link) as client,
    ):
        calls = [stack.enter_context(on(link, "call", each, *CALL_TAP)) for each in (URL, url)]
        driven = pool.submit(link.laptop.run, drive)
        client.send(1, "tools/call", {"name": "touch_gesture", "arguments": TAP}, modern=True)
        board.wait_for(4)
        take_out(link)
        end = time.monotonic() + TOLD_S
        error = client.response(1, TOLD_S)["error"]
        assert error["data"] == {"delivery": "unknown"}
        assert driven.result(end - time.monotonic()).data == {"delivery": "unknown"}
        told = [call.communicate(timeout=end - time.monotonic())[1] for call in calls]
        assert not board.calls.acquire(blocking=False), "a call was made again"
    for text in (error["message"], *told):
        assert "may have been executed" in text
    assert "its cable in" in error["message"]
