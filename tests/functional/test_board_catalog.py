"""tools/list, asked over real sockets: the Agent's schemas when they can be had, the whole allowlist always."""

from __future__ import annotations

import time
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
import responses

from mcpboard import board
from mcpboard.simulator import Simulator
from tests.support import rig
from tests.support.clock import Clock
from tests.support.gohttp import Exchange, GoServer
from tests.support.http import Caller

URL = "http://127.0.0.1:8081"
LIST = f"{URL}/api/tools"
ALLOWLIST = [
    *("phone_bridge_status", "screenshot", "wait_for_stable_screen", "touch_gesture", "enter_text", "keyboard_tap"),
    *("open_app", "open_url", "quick_action", "bridge_clipboard", "device_status", "support_bundle"),
]
SCHEMA = {"type": "object", "properties": {"mood": {"type": "string", "description": "how it should feel"}}}


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    found = Clock(time.monotonic())
    monkeypatch.setattr(board, "time", SimpleNamespace(monotonic=found))
    return found


@pytest.fixture
def agent() -> Iterator[responses.RequestsMock]:
    with responses.mock as agent:
        yield agent


def offering(*entries: object) -> dict[str, Any]:
    return {"json": {"tools": entries}}


def listed(client: Caller) -> dict[str, Any]:
    """Name -> input schema, in order."""
    return {tool["name"]: tool["inputSchema"] for tool in client.ask("tools/list")["tools"]}


def test_the_agent_is_read_once_a_minute_and_never_before_it_is_needed(
    clock: Clock, agent: responses.RequestsMock
) -> None:
    """Nothing at start or for other methods; then one reading for all lists of a minute."""
    agent.upsert("GET", LIST, **offering())
    with rig.in_front_of(URL) as client:
        client.ask("ping")
        client.get("/health")
        assert len(agent.calls) == 0
        for _ in range(3):
            client.ask("tools/list")
        clock.now += 59
        client.ask("tools/list")
        assert len(agent.calls) == 1
        clock.now += 2
        client.ask("tools/list")
        assert len(agent.calls) == 2


def test_a_live_schema_is_what_arguments_are_checked_against(agent: responses.RequestsMock) -> None:
    agent.upsert("GET", LIST, **offering({"name": "open_app", "args_schema": {**SCHEMA, "required": ["mood"]}}))
    with rig.in_front_of(URL) as client:
        client.ask("tools/list")
        refused = client.call("open_app", app="Settings")
    assert len(agent.calls) == 1
    assert refused.is_error
    assert "mood" in refused.text


def test_a_hanging_agent_delays_the_list_by_a_second_and_the_next_one_not_at_all() -> None:
    """One second, then the built-in table."""
    with GoServer(Exchange.hang) as agent, rig.in_front_of(agent.url) as client:
        began = time.monotonic()
        assert list(listed(client)) == ALLOWLIST
        first = time.monotonic()
        assert list(listed(client)) == ALLOWLIST
        assert time.monotonic() - first < 0.9
        assert len(agent.requests) == 1
    assert 0.9 < first - began < 2


ODD = [
    pytest.param({"status": 503, "body": "Server is shutting down"}, id="503"),
    pytest.param({"body": b"[" * 100_000}, id="nesting without end"),
    pytest.param({"body": b'{"tools":[' + b"1," * (3 << 20)}, id="6 MB"),
    pytest.param(offering({"name": "rm_rf", "args_schema": SCHEMA}), id="a tool that is not ours"),
]  # fmt: skip


@pytest.mark.parametrize("odd", ODD)
def test_whatever_the_agent_says_the_list_is_whole_and_built_in(agent: responses.RequestsMock, odd: Any) -> None:
    """The same tools in the same order, whatever the Agent has, lacks or invents."""
    agent.get(LIST, **odd)
    with rig.in_front_of(URL) as client:
        found = listed(client)
    assert len(agent.calls) == 1
    with rig.in_front_of() as client:
        assert found == listed(client)
    assert list(found) == ALLOWLIST


@pytest.fixture
def simulator() -> Iterator[Simulator]:
    with Simulator(speed=20) as running:
        yield running


def test_the_real_catalog_passes_whole(simulator: Simulator) -> None:
    """Every schema that the simulated Agent offers is one that clients take, so each is shown."""
    with rig.in_front_of(simulator.agent_url, mcp_shell_enabled=True) as client:
        shown = listed(client)
    assert list(shown) == [*ALLOWLIST[:10], "shell", *ALLOWLIST[10:]]
    assert "background" in shown["shell"]["properties"]


def test_a_listed_tool_that_the_board_lacks(simulator: Simulator) -> None:
    """It stays listed, and the call says that this board does not offer it."""
    simulator.faults.set("missing_tool", "enter_text")
    with rig.in_front_of(simulator.agent_url) as client:
        assert list(listed(client)) == ALLOWLIST
        failed = client.call("enter_text", text="x", focus={"x": 1, "y": 1})
    assert failed.is_error
    assert "This board does not offer the tool" in failed.text
    assert failed.delivery == "not_sent"
