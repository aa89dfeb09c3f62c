"""Lanes and the limit of calls on real sockets: nobody queues, and small things are answered whatever is stuck."""

from __future__ import annotations

import contextlib
import json
import re
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from mcpboard.errors import NOT_SENT
from mcpboard.serving import concurrency
from mcpboard.serving.server import TOOL_CALLS
from mcpboard.simulator import Simulator
from tests.support import rig
from tests.support.gohttp import Exchange, GoServer, tool_answer
from tests.support.http import LIMIT_S, Caller, Connection

PROMPT_S = 2.0  # a ceiling for what needs no backend, on a busy machine
# Lane by lane: the tools that fill it, and one that is then turned away.
LANES = {
    "input": (["enter_text"], "keyboard_tap"),
    "observation": (["screenshot", "wait_for_stable_screen"], "screenshot"),
    "status": (["device_status"], "phone_bridge_status"),
    "shell": (["shell"], "shell"),
    "support_bundle": (["support_bundle"], "support_bundle"),
}
ARGUMENTS: dict[str, dict[str, Any]] = {
    "enter_text": {"text": "hello", "focus": {"x": 500, "y": 300}},
    "keyboard_tap": {"keys": ["enter"]},
    "shell": {"command": "true"},
}
BIG_PICTURE = tool_answer(json.dumps({"data": "/9j/" + "A" * (1 << 20)}))  # far beyond any socket buffer here
SLOTS_TO_LOOK = TOOL_CALLS - 1  # the last one is for tools that act


@pytest.fixture
def simulator() -> Iterator[Simulator]:
    with Simulator(speed=20) as running:
        running.phone.show("Notes")
        yield running


@pytest.fixture
def client(simulator: Simulator) -> Iterator[Caller]:
    with rig.in_front_of(simulator.agent_url, simulator.config_web_url, mcp_shell_enabled=True) as client:
        yield client


@contextlib.contextmanager
def held(simulator: Simulator, client: Caller, *tools: str) -> Iterator[list[Connection]]:
    """These tools under way, each stuck inside the board until the block ends."""
    with contextlib.ExitStack() as stack:
        pending = []
        for tool in tools:
            hold = stack.enter_context(simulator.hold(tool))
            pending.append(stack.enter_context(client.begin(tool, **ARGUMENTS.get(tool, {}))))
            assert hold.entered.wait(LIMIT_S)
        yield pending


def answers_promptly(client: Caller) -> bool:
    """Tell if ping, tools/list and /health are answered in no time, each with what it must say."""
    began = time.monotonic()
    alive = client.ask("ping") is not None
    listed = len(client.ask("tools/list")["tools"]) == 13
    health = client.get("/health")
    return (
        alive and listed and health.status == 200 and health.json["mcp_enabled"] and time.monotonic() - began < PROMPT_S
    )


@pytest.mark.parametrize("lane", LANES)
def test_a_full_lane_turns_the_next_away_at_once_and_says_what_runs(
    simulator: Simulator, client: Caller, lane: str
) -> None:
    """Named with its seconds, nothing sent, and free again when the effect is over."""
    tools, late = LANES[lane]
    with held(simulator, client, *tools) as pending:
        before = len(simulator.requests)
        began = time.monotonic()
        busy = client.call(late, **ARGUMENTS.get(late, {}))
        assert time.monotonic() - began < PROMPT_S
        assert len(simulator.requests) == before
        for tool in tools:
            simulator.hold(tool).release()
        assert not any(each.response().is_error for each in pending)
    assert busy.is_error
    assert busy.text.startswith(f"{late} was not started: ")
    for tool in tools:
        assert re.search(rf"{tool} has been running for \d+ s", busy.text)
    assert busy.delivery == (NOT_SENT if lane in ("input", "shell") else None)
    assert ("look at the screen first" in busy.text) is (lane == "input")
    assert not client.call(late, **ARGUMENTS.get(late, {})).is_error


def test_six_slots_full_of_lanes_leave_room_for_small_things(simulator: Simulator, client: Caller) -> None:
    """Every slot of every lane taken; ping and its kind answer as if nothing were."""
    client.ask("tools/list")
    everything = [tool for tools, _ in LANES.values() for tool in tools]
    with held(simulator, client, *everything):
        for _ in range(5):
            assert answers_promptly(client)
        busy = client.call("screenshot")
    assert busy.is_error
    assert answers_promptly(client)


def test_stalled_readers_of_pictures_hold_their_slots_and_nothing_else(monkeypatch: pytest.MonkeyPatch) -> None:
    """A slot is kept until the last byte is sent; one is left for actions, and a thread for the small things."""
    monkeypatch.setattr(concurrency, "READING_SECONDS", 3600.0)  # so that none is broken off for another
    with (
        GoServer(lambda went: went.reply(BIG_PICTURE)) as agent,
        rig.in_front_of(agent.url, send_buffer=8192) as client,
        contextlib.ExitStack() as stack,
    ):
        stalled = []
        for number in range(SLOTS_TO_LOOK):
            stalled.append(stack.enter_context(client.begin("screenshot", receive_buffer=4096)))
            agent.wait_for(number + 1)
            assert stalled[-1].sock.recv(1)  # the reply has begun, so its lane is free
        busy = client.call("screenshot")
        assert busy.is_error
        assert f"{SLOTS_TO_LOOK} calls are under way" in busy.text
        tapped = stack.enter_context(client.begin("keyboard_tap", receive_buffer=4096, keys=["enter"]))
        agent.wait_for(SLOTS_TO_LOOK + 1)
        assert tapped.sock.recv(1)
        for _ in range(5):
            assert client.ask("ping") is not None
            assert client.get("/health").status == 200
        assert len(client.ask("tools/list")["tools"]) == 12
        with rig.log_lines() as lines:
            for each in stalled:
                each.leave()
            lines.wait_for("screenshot: ok", SLOTS_TO_LOOK)
        assert not client.call("screenshot").is_error


# 64 MiB for all that the process writes to, in KiB; stacks of the usual 8 MiB a thread would be the whole of it.
SMALL_BOX = ("sh", "-c", 'ulimit -d 65536; ulimit -s 512; exec "$@"', "sh")


@pytest.mark.parametrize(
    ("size", "words"),
    [
        pytest.param(8 << 20, "limit of 4194304 bytes", id="twice the limit"),
        pytest.param((4 << 20) - 4096, "image/jpeg", id="as large as they may be"),
    ],
)
def test_four_huge_pictures_at_once_are_two_answers_in_a_small_box(tmp_path: Path, size: int, words: str) -> None:
    """Two are turned away, two end as they should, and the server lives on."""
    release = threading.Event()

    def huge(went: Exchange) -> None:
        assert release.wait(LIMIT_S)
        went.reply(tool_answer(json.dumps({"data": "/9j/" + "A" * size})))

    with GoServer(huge) as agent, rig.process(rig.settings_file(tmp_path, agent.url), *SMALL_BOX) as served:
        with served.client.begin("screenshot") as first, served.client.begin("screenshot") as second:
            agent.wait_for(2)
            busy = [served.client.call("screenshot") for _ in range(2)]
            release.set()
            done = [first.response(), second.response()]
        assert len(agent.requests) == 2
        agent.script = lambda went: went.reply(tool_answer("fine"))
        assert served.client.call("open_app", app="Notes").text == "fine"
    assert all("was not started" in result.text for result in busy)
    assert all(words in result.text for result in done)
