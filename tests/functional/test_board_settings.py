"""A running server follows its files: each change counts from the next request on."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from mcpboard import config
from tests.support import rig
from tests.support.gohttp import Exchange, GoServer, tool_answer
from tests.support.http import LIMIT_S, Caller, message

TOKEN, OTHER = "a-token-of-some-length", "another-token-of-some-length"
AGENT_TABLE = "[conversation_settings.agent]\n"


class Files:
    """Our file and the Agent's, each replaced as a whole, as editors and Config Web do."""

    def __init__(self, folder: Path, agent_url: str) -> None:
        self.ours, self.agent, self.token = (folder / name for name in ("mcpboard.toml", "agent.toml", "token"))
        self._base = [f'agent_base_url = "{agent_url}"', f'agent_config = "{self.agent}"']
        self.write_ours()
        self.write_agent("")

    def write_ours(self, *lines: str) -> None:
        replaced(self.ours, "\n".join(["[mcpboard]", *self._base, *lines, ""]))

    def write_agent(self, *lines: str) -> None:
        replaced(self.agent, "\n".join([AGENT_TABLE, *lines, ""]))

    def write_token(self, token: str) -> None:
        replaced(self.token, token + "\n")
        self.token.chmod(0o600)


def replaced(path: Path, text: str) -> None:
    fresh = path.with_suffix(".new")
    fresh.write_text(text, "utf-8")
    os.replace(fresh, path)


@pytest.fixture
def agent() -> Iterator[GoServer]:
    with GoServer(lambda went: went.reply(tool_answer("done"))) as running:
        yield running


@pytest.fixture
def files(tmp_path: Path, agent: GoServer) -> Files:
    return Files(tmp_path, agent.url)


@pytest.fixture
def client(files: Files) -> Iterator[Caller]:
    watched = config.SettingsWatcher({"config": str(files.ours)}, environ={})
    with rig.serving(watched.current) as client:
        yield client


def tools(client: Caller) -> list[str]:
    return [tool["name"] for tool in client.ask("tools/list")["tools"]]


def test_switched_off_and_on_within_one_request(files: Files, client: Caller) -> None:
    """The Agent's own file is what Config Web writes; a body says what a 404 alone could not."""
    assert client.post("ping").status == 200
    files.write_agent("mcp_enabled = false")
    refused = client.post("ping")
    assert refused.status == 404
    assert b"mcp_enabled" in refused.body
    assert client.get("/health").json["mcp_enabled"] is False
    files.write_agent("mcp_enabled = true")
    assert client.post("ping").status == 200


def test_the_shell_appears_and_disappears(files: Files, client: Caller, agent: GoServer) -> None:
    """Gated off it does not exist: neither listed nor callable, and the Agent hears nothing of it."""
    assert "shell" not in tools(client)
    refused, unknown = client.call("shell", command="true"), client.call("no_such_tool")
    assert refused.status == unknown.status == 200
    assert refused.error["code"] == unknown.error["code"] == -32602
    assert not any("shell" in path for path in agent.paths())
    files.write_agent("mcp_shell_enabled = true")
    assert tools(client).count("shell") == 1
    assert client.call("shell", command="true").text == "done"
    files.write_agent("mcp_shell_enabled = false")
    assert "shell" not in tools(client)


def test_the_token_gate_goes_up_changes_and_stays(files: Files, client: Caller) -> None:
    """Exactly this body, and the challenge that tells a client which scheme to use."""
    files.write_token(TOKEN)
    files.write_ours(f'token_file = "{files.token}"')
    refused = knock(client)
    assert refused == (401, b'{"error": "invalid token"}', "Bearer")
    assert knock(client, TOKEN)[0] == 200
    assert knock(client, TOKEN.upper()) == refused
    files.write_token(OTHER)
    assert knock(client, TOKEN) == refused
    assert knock(client, OTHER)[0] == 200
    assert client.get("/health").status == 200
    files.write_ours()  # which may be the file, cut off: only a restart opens the gate
    assert knock(client) == refused
    assert knock(client, OTHER)[0] == 200


def knock(client: Caller, token: str | None = None) -> tuple[int, bytes, str | None]:
    """Status, body and challenge for a ping with this token."""
    headers = {} if token is None else {"Authorization": f"Bearer {token}"}
    response = client.send("POST", message("ping"), **headers)
    return response.status, response.body, response.headers.get("www-authenticate")


def test_another_backend_address_counts_at_once(files: Files, client: Caller) -> None:
    with GoServer(lambda went: went.reply(tool_answer("from the other one"))) as other:
        assert "from the other one" not in client.call("open_app", app="x").text
        files.write_ours()
        replaced(files.ours, files.ours.read_text().replace(files._base[0], f'agent_base_url = "{other.url}"'))
        assert "from the other one" in client.call("open_app", app="x").text


def test_a_slower_request_brings_older_settings_to_no_other(agent: GoServer) -> None:
    """A request keeps the settings that it began with, and only that one does."""
    begun, go_on = threading.Event(), threading.Event()

    def hold(went: Exchange) -> None:
        begun.set()
        assert go_on.wait(LIMIT_S)
        went.reply(tool_answer("late"))

    with GoServer(hold) as slow:
        settings = rig.settings(slow.url)
        with rig.serving(lambda: settings) as client, client.begin("open_app", app="Notes") as first:
            assert begun.wait(LIMIT_S)
            settings = rig.settings(agent.url, mcp_shell_enabled=True)
            assert client.call("shell", command="id").text == "done"
            go_on.set()
            assert first.response().text == "late"
            assert client.call("open_app", app="Notes").text == "done"


def test_a_request_asks_once_for_its_settings(agent: GoServer) -> None:
    asked: list[config.Settings] = []

    def current() -> config.Settings:
        asked.append(rig.settings(agent.url))
        return asked[-1]

    with rig.serving(current) as client:
        client.post("ping")
        assert len(asked) == 1
        client.ask("tools/list")
        assert len(asked) == 2
        client.call("open_app", app="Notes")
        assert len(asked) == 3
        client.get("/health")
        assert len(asked) == 4
