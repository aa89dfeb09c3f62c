"""Callers of the host who leave while their action runs: the device's next action tells what became of it, once."""

from __future__ import annotations

import json
import logging
import socket
import struct
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from mcpboard.errors import DONE, NOT_SENT, ToolFailed
from mcpboard.host.access import tokens
from tests.deploy.rooms import until
from tests.host.rig import Agent, Fake, agent
from tests.support.http import Caller

GONE = "after its caller had gone; look at the screen before repeating it"
RESET = struct.pack("ii", 1, 0)  # SO_LINGER: closing sends RST


@pytest.fixture
def phones() -> dict[str, Fake]:
    return {"A": Fake(), "B": Fake()}


@pytest.fixture
def host(tmp_path: Path, phones: dict[str, Fake], caplog: pytest.LogCaptureFixture) -> Iterator[Agent]:
    caplog.set_level(logging.INFO)
    with agent(tmp_path / "data", A=phones["A"], B=phones["B"]) as made:
        yield made


Leave = Callable[..., None]


@pytest.fixture(params=[False, True], ids=["closed", "reset"])
def leave(
    request: pytest.FixtureRequest, host: Agent, phones: dict[str, Fake], caplog: pytest.LogCaptureFixture
) -> Leave:
    """Make a call of A, and leave while the phone is at it."""

    def abandon(tool: str, token: str = "", **arguments: object) -> None:
        phones["A"].stop_inside()
        message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call"}
        body = json.dumps({**message, "params": {"name": tool, "arguments": {"device_id": "A", **arguments}}})
        parts = urlsplit(host.url)
        head = {
            "Host": parts.netloc,
            "Content-Type": "application/json",
            "Content-Length": len(body),
            "Authorization": f"Bearer {token or host.caller.token}",
        }
        lines = "".join(f"{name}: {value}\r\n" for name, value in head.items())
        with socket.create_connection((str(parts.hostname), parts.port or 0)) as connection:
            connection.sendall(f"POST {parts.path} HTTP/1.1\r\n{lines}\r\n{body}".encode())
            phones["A"].wait_inside()
            if request.param:
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
        host.caller.post("ping")  # the server looks at its sockets in rounds: it has seen by now who left
        before = caplog.text.count(f"{tool}: ")
        phones["A"].go_on.set()
        until(lambda: caplog.text.count(f"{tool}: ") > before, "the end of the call")

    return abandon


def test_the_next_action_on_the_device_tells_it_once(host: Agent, leave: Leave, phones: dict[str, Fake]) -> None:
    leave("tap", x=1, y=1)
    host.clock.pass_by(3)
    first, second = (host.caller.call("tap", device_id="A", x=2, y=2) for _ in range(2))
    assert first.text == f"The earlier tap finished OK 3 s ago, {GONE}.\ntapped 2,2 on A"
    assert second.text == "tapped 2,2 on A"
    assert phones["A"].done == [("tap", (1, 1)), ("tap", (2, 2)), ("tap", (2, 2))]


def test_another_device_and_a_look_tell_nothing(host: Agent, leave: Leave) -> None:
    leave("tap", x=1, y=1)
    assert host.caller.call("tap", device_id="B", x=2, y=2).text == "tapped 2,2 on B"
    assert "earlier" not in host.caller.call("take_screenshot", device_id="A").text
    assert "earlier" not in host.caller.call("get_ui_tree", device_id="A").text
    assert host.caller.call("swipe", device_id="A", start_x=1, start_y=1, end_x=2, end_y=2).text.startswith(
        "The earlier"
    )


def test_who_is_turned_away_hears_nothing_and_uses_nothing_up(host: Agent, leave: Leave) -> None:
    """A device that is in use is none of theirs."""
    leave("tap", x=1, y=1)
    other = Caller(host.url, tokens.add_named(host.folder, "other"))
    assert other.call("tap", device_id="A", x=2, y=2).error["message"].startswith("device A is busy")
    assert host.caller.call("tap", device_id="A", x=2, y=2).text.startswith("The earlier tap finished OK")


FAULTS = [
    pytest.param(ToolFailed("it burns", delivery=DONE), "took place, although something after it failed", id="done"),
    pytest.param(ToolFailed("it burns"), "ended with an error", id="not known"),
    pytest.param(RuntimeError("a driver's own"), "ended with an error", id="a driver's own"),
    pytest.param(ToolFailed("not now", delivery=NOT_SENT), "", id="not sent"),
]


@pytest.mark.parametrize(("fault", "told"), FAULTS)
def test_an_action_that_failed_is_told_by_what_became_of_it(
    host: Agent, leave: Leave, phones: dict[str, Fake], fault: Exception, told: str
) -> None:
    phones["A"].fault = fault
    leave("launch_app", app_id="Notes")
    phones["A"].fault = None
    text = host.caller.call("input_text", device_id="A", text="x").text
    assert text.startswith(f"The earlier launch_app {told} 0 s ago, {GONE}.\n") if told else "earlier" not in text


def test_an_error_begins_with_it_too(host: Agent, leave: Leave, phones: dict[str, Fake]) -> None:
    leave("tap", x=1, y=1)
    phones["A"].fault = ToolFailed("it burns", delivery=DONE)
    error = host.caller.call("tap", device_id="A", x=2, y=2).error
    assert error["message"] == f"The earlier tap finished OK 0 s ago, {GONE}.\nit burns"
    assert error["data"] == {"delivery": DONE}


def test_what_was_to_be_told_and_got_lost_is_told_later(host: Agent, leave: Leave) -> None:
    leave("tap", x=1, y=1)
    leave("launch_app", app_id="Notes")
    text = host.caller.call("tap", device_id="A", x=2, y=2).text
    assert text.index("The earlier tap finished OK") < text.index("The earlier launch_app finished OK")


def test_a_session_that_was_to_begin_with_it_is_begun_all_the_same(host: Agent, leave: Leave) -> None:
    leave("tap", x=1, y=1)
    host.clock.pass_by(60)  # its lease ends
    told = host.caller.call("tap", device_id="A", x=2, y=2, session_id="new")
    assert told.text.startswith("The earlier tap finished OK 60 s ago")
    assert told.result["structuredContent"]["session_id"].startswith("hs_")
