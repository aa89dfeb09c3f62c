"""Settings that follow their files while the board serves."""

from __future__ import annotations

import dataclasses
import logging
import os
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from mcpboard import config
from mcpboard.config import Address, SettingsWatcher, files
from mcpboard.errors import ConfigError

AGENT_TABLE = "[conversation_settings.agent]\n"
TOKEN = "0123456789abcdef"


@pytest.fixture(autouse=True)
def ours(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "mcpboard.toml"
    monkeypatch.setattr(config, "STANDARD_FILE", str(path))
    return path


@pytest.fixture
def agent(ours: Path, tmp_path: Path) -> Path:
    """An Agent's file that our file names, with MCP on."""
    path = tmp_path / "agent.toml"
    path.write_text(AGENT_TABLE + "mcp_enabled = true\n")
    ours.write_text(f'[mcpboard]\nagent_config = "{path}"\n')
    return path


@pytest.fixture
def lines(caplog: pytest.LogCaptureFixture) -> Callable[[], list[str]]:
    """The lines that the watcher has logged so far."""
    caplog.set_level(logging.INFO, "mcpboard.config")
    return lambda: [record.getMessage() for record in caplog.records]


def watch(flags: dict[str, object] | None = None) -> SettingsWatcher:
    return SettingsWatcher(flags, {})


def replaced(path: Path, text: str) -> None:
    """Written the way Config Web does it: beside, then renamed over."""
    beside = path.with_suffix(".new")
    beside.write_text(text)
    beside.replace(path)


def settled(path: Path) -> None:
    """Wait until the last change of the file lies back far enough for the kernel's clock to have gone on."""
    deadline = time.monotonic() + 10
    while files.settled(files.look(path)) != files.look(path):
        assert time.monotonic() < deadline


def test_the_same_object_comes_back_while_nothing_changes(agent: Path) -> None:
    watched = watch()
    assert watched.current() is watched.current()


def test_an_unchanged_file_is_looked_at_but_not_read(agent: Path, ours: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    watched = watch()
    settled(agent)
    settled(ours)
    watched.current()
    monkeypatch.setattr(files, "read_file", None)
    assert watched.current().mcp_enabled


@pytest.mark.parametrize(
    "write", [pytest.param(replaced, id="renamed over"), pytest.param(Path.write_text, id="written in place")]
)
def test_the_switch_counts_from_the_next_request(agent: Path, write: Callable[[Path, str], object]) -> None:
    watched = watch()
    assert watched.current().mcp_enabled
    write(agent, AGENT_TABLE + "mcp_enabled = false\n")
    assert not watched.current().mcp_enabled
    write(agent, AGENT_TABLE + "mcp_enabled = true\n")
    assert watched.current().mcp_enabled


def test_a_new_inode_of_the_same_size_and_time_is_a_change(agent: Path) -> None:
    watched = watch({"config": None})
    before = agent.stat()
    beside = agent.with_suffix(".new")
    beside.write_text(AGENT_TABLE + "mcp_enabled =false\n")
    assert beside.stat().st_size == before.st_size
    os.utime(beside, ns=(before.st_atime_ns, before.st_mtime_ns))
    beside.replace(agent)
    assert not watched.current().mcp_enabled


@pytest.mark.parametrize(
    "spoil",
    [
        pytest.param(lambda path: path.unlink(), id="gone"),
        pytest.param(lambda path: path.write_text(""), id="emptied"),
        pytest.param(lambda path: path.write_text("[conversation"), id="cut off"),
        pytest.param(lambda path: path.write_text(AGENT_TABLE + 'mcp_enabled = "true"\n'), id="a quoted boolean"),
        pytest.param(lambda path: path.write_bytes(b"\xef\xbb\xbf"), id="a BOM"),
    ],
)
def test_a_spoilt_file_leaves_the_last_good_settings_and_one_line(
    agent: Path, lines: Callable[[], list[str]], spoil: Callable[[Path], object]
) -> None:
    agent.write_text(AGENT_TABLE + "mcp_enabled = false\n")
    watched = watch()
    spoil(agent)
    settings = [watched.current() for _ in range(3)]
    assert not any(each.mcp_enabled for each in settings)
    assert settings[0].mcp_fault
    assert str(agent) in settings[0].mcp_fault
    assert len(lines()) == 1
    assert lines()[0].startswith(f"{agent}: ")
    replaced(agent, AGENT_TABLE + "mcp_enabled = true\n")
    assert watched.current().mcp_enabled


def test_our_own_file_gone_leaves_the_gate_closed(ours: Path, tmp_path: Path, lines: Callable[[], list[str]]) -> None:
    """A token must not fall away because a file is being replaced."""
    token = tmp_path / "token"
    token.touch(0o600)
    token.write_text(TOKEN)
    text = f'[mcpboard]\ntoken_file = "{token}"\n'
    ours.write_text(text)
    watched = watch()
    ours.unlink()
    assert watched.current().token == TOKEN.encode()
    ours.write_text("")
    assert watched.current().token == TOKEN.encode()
    assert len(lines()) == 2
    ours.write_text(text + "strict_meta = true\n")
    assert watched.current().strict_meta


def test_a_change_behind_a_broken_file_is_no_second_line(
    agent: Path, ours: Path, lines: Callable[[], list[str]]
) -> None:
    watched = watch()
    ours.write_text("[mcpboard")
    watched.current()
    replaced(agent, AGENT_TABLE + "mcp_enabled = false\n")
    for _ in range(3):
        watched.current()
    assert len(lines()) <= 2
    ours.write_text(f'[mcpboard]\nagent_config = "{agent}"\n')
    assert not watched.current().mcp_enabled


def test_files_that_appear_later_are_picked_up(ours: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    agent = tmp_path / "default-agent.toml"
    default = next(row for row in config.SETTINGS if row.key == "agent_config")
    rows = tuple(dataclasses.replace(row, default=str(agent)) if row is default else row for row in config.SETTINGS)
    monkeypatch.setattr(config, "SETTINGS", rows)
    watched = watch()
    ours.write_text("[mcpboard]\nstrict_meta = true\n")
    assert watched.current().strict_meta
    agent.write_text(AGENT_TABLE + "mcp_enabled = false\n")
    assert not watched.current().mcp_enabled


def test_a_new_token_counts_at_once(ours: Path, tmp_path: Path, lines: Callable[[], list[str]]) -> None:
    token = tmp_path / "token"
    token.touch(0o600)
    token.write_text(TOKEN)
    ours.write_text(f'[mcpboard]\ntoken_file = "{token}"\n')
    watched = watch()
    replaced(token, "fedcba9876543210")
    assert watched.current().token == b"fedcba9876543210"
    assert "fedcba98" not in "".join(lines())
    token.write_text("short")
    assert watched.current().token == b"fedcba9876543210"


def test_a_cured_permission_is_seen(agent: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    watched = watch()
    agent.write_text(AGENT_TABLE + "mcp_enabled = false\n")

    def refuse(*_: object) -> None:
        raise PermissionError

    with monkeypatch.context() as patch:
        patch.setattr(os, "open", refuse)
        assert watched.current().mcp_enabled
    agent.chmod(0o640)
    assert not watched.current().mcp_enabled


def test_what_needs_a_restart_keeps_its_value_and_says_so_once(ours: Path, lines: Callable[[], list[str]]) -> None:
    watched = watch()
    ours.write_text('[mcpboard]\nlisten = "127.0.0.1:1"\nstrict_meta = true\n')
    settings = watched.current()
    assert settings.listen == (Address("0.0.0.0", 8080),)
    assert settings.sources["listen"] == "default"
    assert settings.strict_meta
    ours.write_text('[mcpboard]\nlisten = "127.0.0.1:1"\n')
    assert watched.current().listen == settings.listen
    assert lines() == [
        "listen has changed; it takes effect at the next start",
        "strict_meta has changed",
        "strict_meta has changed",
    ]


def test_a_flag_goes_on_beating_the_file(ours: Path) -> None:
    watched = watch({"agent_base_url": "http://127.0.0.1:1"})
    ours.write_text('[mcpboard]\nagent_base_url = "http://127.0.0.1:2"\n')
    assert watched.current().agent_base_url == "http://127.0.0.1:1"


def test_a_warning_that_a_change_brings_is_logged(agent: Path, lines: Callable[[], list[str]]) -> None:
    watched = watch()
    agent.write_text("mcp_shell_enabled = true\n")
    watched.current()
    assert "it has no effect" in lines()[-1]


def test_at_start_a_broken_file_is_refused(ours: Path) -> None:
    ours.write_text("[mcpboard")
    with pytest.raises(ConfigError, match="not valid TOML"):
        watch()


def test_many_threads_see_one_reading(agent: Path, lines: Callable[[], list[str]]) -> None:
    watched = watch()
    replaced(agent, AGENT_TABLE + "mcp_enabled = false\n")
    together = threading.Barrier(8, timeout=10)
    seen = []

    def look() -> None:
        together.wait()
        seen.append(watched.current())

    threads = [threading.Thread(target=look) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)
    assert len(seen) == 8
    assert all(settings is seen[0] for settings in seen)
    assert lines() == ["mcp_enabled has changed"]
