"""Real programs over files that are damaged: `mcpboard serve` and `device-host-agent` as an init system starts them."""

from __future__ import annotations

import json
import os
import urllib.error
import urllib.request
from pathlib import Path

import pytest

from mcpboard.host.access import tokens
from tests.support.processes import LIMIT_S, MCPBOARD, run, started

pytestmark = pytest.mark.slow  # starts real processes

TABLE = "[conversation_settings.agent]\n"
OFF, ON = TABLE + "mcp_enabled = false\n", TABLE + "mcp_enabled = true\nmcp_shell_enabled = true\n"
OLD, NEW = "the-old-token-of-this-test", "the-new-token-of-this-test"


def ask(url: str, token: str | None = None, method: str = "tools/list") -> tuple[int, str]:
    headers = {"Content-Type": "application/json", **({"Authorization": f"Bearer {token}"} if token else {})}
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method}).encode()
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(urllib.request.Request(url, body, headers), timeout=LIMIT_S) as response:
            return response.status, response.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read().decode()


class Files:
    def __init__(self, folder: Path) -> None:
        self.ours, self.agent, self.token = (folder / name for name in ("mcpboard.toml", "agent.toml", "token"))
        self.token.touch(0o600)
        self.token.write_text(OLD)
        self.agent.write_text(ON)
        self.ours.write_text(f'[mcpboard]\nlisten = "127.0.0.1:0"\ntoken_file = "{self.token}"\n')
        self.words = ["serve", "--config", str(self.ours), "--agent-config", str(self.agent)]


def test_a_board_that_starts_with_a_damaged_agents_file_and_is_cured(tmp_path: Path) -> None:
    files = Files(tmp_path)
    files.agent.unlink()
    os.mkfifo(files.agent)
    with started(*MCPBOARD, *files.words) as program:
        url = program.url
        status, body = ask(url, OLD)
        assert status == 404
        assert f"{files.agent}: is a FIFO; put a regular file there" in body
        files.agent.unlink()
        files.agent.write_text("[[conversation")
        status, body = ask(url, OLD)
        assert (status, "not valid TOML" in body) == (404, True)
        files.agent.write_text(ON)
        status, body = ask(url, OLD)
        assert (status, '"shell"' in body) == (200, True)
        log = program.errors
    assert log.count("(until then MCP and the shell stay disabled)") == 2
    assert OLD not in log


def test_a_board_whose_files_are_damaged_while_it_runs(tmp_path: Path) -> None:
    """The token that was replaced meanwhile: the old one 401, the new one 200."""
    files = Files(tmp_path)
    with started(*MCPBOARD, *files.words) as program:
        url = program.url
        assert ask(url, OLD)[0] == 200
        files.agent.write_text(ON[:-8])
        files.ours.write_text("[mcpboard\n")
        files.token.write_text(NEW)
        for _ in range(3):
            assert [ask(url, token)[0] for token in (OLD, NEW, None)] == [401, 200, 401]
        files.agent.write_text(OFF + "mcp_shell_enabled = 7\n")
        assert ask(url, NEW)[0] == 404
        files.agent.unlink()
        assert ask(url, NEW)[0] == 404
        files.agent.write_text(TABLE)
        assert ask(url, NEW)[0] == 404
        files.agent.write_text(ON)
        assert ask(url, NEW)[0] == 200
        lines = program.errors.splitlines()
    assert sum("mcpboard.toml: not valid TOML" in line for line in lines) == 1
    assert not any(token in line for line in lines for token in (OLD, NEW))


@pytest.mark.parametrize("by_default", [False, True], ids=["beside one in the settings", "alone"])
def test_the_file_that_a_flag_names_is_read_by_serve_as_config_shows_it(tmp_path: Path, by_default: bool) -> None:
    files = Files(tmp_path)
    if not by_default:
        other = tmp_path / "other.toml"
        other.write_text(ON)
        files.ours.write_text(f'{files.ours.read_text()}agent_config = "{other}"\n')
    files.agent.write_text(OFF)
    found = json.loads(run(*MCPBOARD, "config", *files.words[1:], "--json").stdout)
    assert found["agent_config"] == {"value": str(files.agent), "source": "--agent-config"}
    assert found["mcp_enabled"] == {"value": False, "source": str(files.agent)}
    with started(*MCPBOARD, *files.words) as program:
        url = program.url
        assert ask(url, OLD)[0] == 404


def test_a_host_whose_files_are_damaged_while_it_runs(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    with started(*MCPBOARD, "host", "run", "--data", str(folder), "--port", "0") as program:
        url = program.url
        main = tokens.read_main_token(folder)
        removed, kept = tokens.add_named(folder, "removed"), tokens.add_named(folder, "kept")
        assert [ask(url, token)[0] for token in (main, removed, kept, NEW)] == [200, 200, 200, 401]
        (folder / "devices.json").write_text("{")
        (folder / tokens.TOKEN_FILE).write_text("{")
        tokens.remove_named(folder, "removed")
        assert [ask(url, token)[0] for token in (main, removed, kept)] == [200, 401, 200]
        (folder / tokens.NAMED_FILE).unlink()
        os.mkfifo(folder / tokens.NAMED_FILE)
        replaced = f"{NEW}-which-is-long-enough"
        (folder / tokens.TOKEN_FILE).write_text(json.dumps({"token": replaced}))
        for _ in range(3):
            assert [ask(url, token)[0] for token in (main, replaced, removed, kept)] == [401, 200, 401, 200]
        log = program.errors
    assert log.count("until then") == 2
    assert not any(token in log for token in (main, removed, kept, replaced))
