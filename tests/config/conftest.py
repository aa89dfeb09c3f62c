"""The three settings files of a board, in a folder of the test's own."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path

import pytest

from mcpboard import config
from mcpboard.config import Settings, SettingsWatcher, load

TABLE = "[conversation_settings.agent]\n"
OFF, ON = TABLE + "mcp_enabled = false\n", TABLE + "mcp_enabled = true\n"
TOKEN, OTHER = "0123456789abcdef", "fedcba9876543210"


class Board:
    """The settings files at their standard places, none of them there yet."""

    def __init__(self, folder: Path) -> None:
        self.ours, self.agent, self.token = (folder / name for name in ("mcpboard.toml", "agent.toml", "token"))

    def filled(self, agent: str = ON) -> Board:
        """Write all three; ours names the others."""
        self.token.touch(0o600)
        self.token.write_text(TOKEN)
        self.agent.write_text(agent)
        self.lines = [f'agent_config = "{self.agent}"', f'token_file = "{self.token}"']
        self.write_ours()
        return self

    def write_ours(self, *more: str) -> None:
        self.ours.write_text("\n".join(["[mcpboard]", *self.lines, *more, ""]))

    def watch(self, **flags: object) -> SettingsWatcher:
        return SettingsWatcher(flags, {})

    def load(self, ours: str | None = None, **flags: object) -> Settings:
        if ours is not None:
            self.ours.write_text(ours)
        return load(flags, {})


@pytest.fixture
def bare(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Board:
    """A board without any of the files."""
    monkeypatch.setattr(config, "STANDARD_FILE", str(tmp_path / "mcpboard.toml"))
    return Board(tmp_path)


@pytest.fixture
def board(bare: Board) -> Board:
    """A board with MCP enabled and a token."""
    return bare.filled()


@pytest.fixture
def lines(caplog: pytest.LogCaptureFixture) -> Callable[[], list[str]]:
    """What the configuration has logged so far."""
    caplog.set_level(logging.INFO, "mcpboard.config")
    return lambda: [record.getMessage() for record in caplog.records]


def switches(settings: Settings) -> tuple[bool, bool]:
    return settings.mcp_enabled, settings.mcp_shell_enabled
