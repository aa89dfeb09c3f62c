"""Clients that people use, in front of the host role: two of them want one phone, and one comes without a token."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from mcpboard.host.access import tokens
from mcpboard.host.drivers.simulated import SimulatedDriver
from mcpboard.host.tools.rows import ROWS
from tests.host.rig import Agent, agent
from tests.support.visitors import CLIENTS, LEGACY, MODERN, OLDER, Client, VisitFailed, Visitor, visit

pytestmark = pytest.mark.tools


@dataclass(frozen=True)
class Guest:
    """A client, the version that it negotiates with a host, and whether it ends its session when it leaves."""

    name: str
    version: str
    says_goodbye: bool = False
    mode: str = "as it comes"

    @property
    def client(self) -> Client:
        return next(each for each in CLIENTS if (each.name, each.mode) == (self.name, self.mode))

    def __str__(self) -> str:
        return f"{self.name}, {self.mode}"


GUESTS = [
    Guest("Python mcp 1.20", OLDER, says_goodbye=True),
    Guest("Python mcp 1.23", LEGACY, says_goodbye=True),
    Guest("Python mcp 1.30", LEGACY, says_goodbye=True),
    Guest("Python mcp 2.3", MODERN),
    Guest("Python mcp 2.3", LEGACY, True, "asked for a handshake"),
    Guest("fastmcp 4.2", MODERN),
    Guest("TypeScript sdk 1.32", LEGACY),
    Guest("TypeScript client 2.4", MODERN, False, "asked to probe"),
    Guest("TypeScript client 2.4", LEGACY),
]


@pytest.fixture
def host(tmp_path: Path) -> Iterator[Agent]:
    with agent(tmp_path / "data", X=SimulatedDriver(clock=lambda: 0.0)) as running:
        yield running


def tap(visitor: Visitor, **more: Any) -> Any:
    return visitor.ask("tools/call", "tap", {"x": 1, "y": 1, **more})


def text(result: Any) -> str:
    return str(result["content"][0]["text"])


@pytest.mark.parametrize("guest", GUESTS, ids=str)
def test_two_clients_exclude_each_other_until_one_has_gone(host: Agent, guest: Guest) -> None:
    """Two sessions where the client has them, else two named tokens: the busy error reaches scripts."""
    secrets = [tokens.add_named(host.folder, name) for name in ("first", "second")]
    if guest.version != MODERN:
        secrets[1] = secrets[0]
    with visit(guest.client, [host.url], secrets[1]) as second:
        with visit(guest.client, [host.url], secrets[0]) as first:
            assert (first.version, second.version) == (guest.version,) * 2
            assert [tool["name"] for tool in first.ask("tools/list")["tools"]] == [row.tool.name for row in ROWS]
            assert text(tap(first)) == "tapped 1,1 on X"
            assert text(tap(first, x="2")) == "tapped 2,1 on X", "a second call is not busy with itself"
            error = tap(second)["error"]
            assert error["code"] == -32000
            assert error["data"]["busy_owner"].startswith("mcp_session:")
            assert second.ask("tools/call", "list_devices", {})["structuredContent"]["devices"][0]["id"] == "X"
        assert (host.role.manager.leases() == {}) == guest.says_goodbye
        host.clock.pass_by(60)
        assert text(tap(second)) == "tapped 1,1 on X"
        assert tap(second, device_id="Z")["error"]["message"].endswith("unknown device: Z")


@pytest.mark.parametrize("guest", [GUESTS[2], GUESTS[3], GUESTS[7]], ids=str)  # one of each SDK's ways
def test_a_client_without_a_token_is_turned_away(host: Agent, guest: Guest) -> None:
    """It gives up at once, with a message of its own."""
    with pytest.raises(VisitFailed), visit(guest.client, [host.url]):
        pass
    assert host.role.owners.sessions() == []
