"""Settings that follow their files while the board serves: each file and each key counts alone."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from mcpboard import config
from mcpboard.config import Address, files
from tests.config.conftest import OFF, ON, OTHER, TABLE, TOKEN, Board, switches
from tests.config.test_settings_page import ANY_FILE, FORBIDDEN

Lines = Callable[[], list[str]]
KEPT = "(until then the last good settings stay effective)"


def replaced(path: Path, text: str) -> None:
    """Write as Config Web does: beside, then renamed over."""
    beside = path.with_suffix(".new")
    beside.write_text(text)
    beside.replace(path)


def settled(path: Path) -> None:
    """Wait until the last change of the file lies back far enough for the kernel's clock to have gone on."""
    deadline = time.monotonic() + 10
    while files.settled(files.look(path)) != files.look(path):
        assert time.monotonic() < deadline


# --- files ---------------------------------------------------------------------------------------

DAMAGE = [name for name in ANY_FILE if name != FORBIDDEN]
LONG = 2.0  # seconds that no reading may take; the worst takes a tenth of one


@pytest.mark.parametrize("damage", DAMAGE)
@pytest.mark.parametrize("name", ["ours", "agent", "token"])
def test_a_damaged_file_keeps_its_settings_and_holds_up_no_other(board: Board, lines: Lines, name: str, damage: str) -> None:  # fmt: skip
    """It is said in one line; and a token that was rotated meanwhile is the one that counts, at once."""
    watched, damaged = board.watch(), getattr(board, name)
    began = time.monotonic()
    ANY_FILE[damage](damaged)
    assert watched.current().mcp_enabled
    if name != "token":
        board.token.write_text(OTHER)
    if name != "agent":
        board.agent.write_text(OFF)
    if name != "ours":
        board.write_ours("strict_meta = true")
    settings = [watched.current() for _ in range(3)][-1]
    assert time.monotonic() - began < LONG
    assert settings.token == (TOKEN if name == "token" else OTHER).encode()
    assert (settings.mcp_enabled, settings.strict_meta) == (name == "agent", name != "ours")
    (line,) = [line for line in lines() if " changed" not in line]
    assert line.startswith(f"{damaged}: ")
    if damage in ("a directory", "a FIFO", "a socket", "a device"):
        assert f"is {damage}" in line


def test_at_start_a_damaged_agents_file_disables_mcp_and_the_shell_until_it_can_be_read(board: Board) -> None:
    board.agent.write_text("[")
    watched = board.watch()
    settings = watched.current()
    assert (*switches(settings), settings.token) == (False, False, TOKEN.encode())
    assert str(settings.mcp_fault).startswith(f"{board.agent}: not valid TOML")
    assert f"{settings.mcp_fault} (until then MCP and the shell stay disabled)" in settings.warnings
    board.agent.unlink()
    assert not watched.current().mcp_enabled, "gone is not read"
    board.agent.write_text(TABLE + "mcp_shell_enabled = true\n")
    settings = watched.current()
    assert (*switches(settings), settings.mcp_fault) == (True, True, None)


@pytest.mark.parametrize("write", [replaced, Path.write_text], ids=["renamed over", "written in place"])
def test_the_switch_counts_from_the_next_request(board: Board, write: Callable[[Path, str], object]) -> None:
    watched = board.watch()
    for text, enabled in ((OFF, False), (ON, True)):
        write(board.agent, text)
        assert watched.current().mcp_enabled is enabled


def test_files_that_appear_later_are_picked_up(bare: Board, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [replace(row, default=str(bare.agent)) if row.key == "agent_config" else row for row in config.SETTINGS]
    monkeypatch.setattr(config, "SETTINGS", tuple(rows))
    watched = bare.watch()
    bare.ours.write_text("[mcpboard]\nstrict_meta = true\n")
    assert watched.current().strict_meta
    bare.agent.write_text(OFF)
    assert not watched.current().mcp_enabled


# --- the Agent's file goes -------------------------------------------------------------------------


def test_a_missing_agents_file_gives_way_to_our_own_table(board: Board) -> None:
    board.write_ours(TABLE + 'mcp_config_web_base_url = "http://127.0.0.1:1"')
    watched = board.watch()
    assert watched.current().mcp_config_web_base_url == "http://127.0.0.1"
    board.agent.unlink()
    settings = watched.current()
    assert (settings.mcp_enabled, settings.mcp_config_web_base_url) == (True, "http://127.0.0.1:1")


def test_what_it_disabled_stays_disabled_until_a_file_enables_it(board: Board) -> None:
    """Our own table may have said so all the time: that it counts now is the work of the damage."""
    board.agent.write_text(OFF + "mcp_shell_enabled = false\n")
    both = ("mcp_enabled = true", "mcp_shell_enabled = true")
    board.write_ours(TABLE, *both)
    watched = board.watch()
    board.agent.unlink()
    settings = watched.current()
    assert switches(settings) == (False, False)
    assert settings.mcp_fault == f"{board.agent}: no such file; what is disabled stays disabled until a file enables it"
    board.write_ours("strict_meta = true", TABLE, *both)
    assert not watched.current().mcp_enabled, "another change of the same file"
    board.write_ours(OFF)
    assert not watched.current().mcp_enabled
    board.write_ours(TABLE, *both)
    settings = watched.current()
    assert (*switches(settings), settings.mcp_fault) == (True, True, None)


def test_it_comes_back_with_what_it_says(board: Board) -> None:
    board.agent.write_text(OFF)
    watched = board.watch()
    for text, enabled in ((OFF, False), (TABLE, False), (ON, True), (TABLE, True)):
        board.agent.unlink()
        watched.current()
        board.agent.write_text(text)
        assert watched.current().mcp_enabled is enabled


@pytest.mark.parametrize("beside", ["", "mcp_config_web_base_url = 3\n"])
def test_a_line_that_is_gone_enables_nothing(board: Board, lines: Lines, beside: str) -> None:
    """It may have been cut off, or be a comment by a flipped bit; a restart or a word enables."""
    board.agent.write_text(OFF)
    watched = board.watch()
    board.agent.write_text(TABLE + beside)
    settings = [watched.current() for _ in range(3)][-1]
    gone = f"{board.agent}: [conversation_settings.agent] mcp_enabled = false is gone; write mcp_enabled = true to enable it"
    assert (settings.mcp_enabled, settings.mcp_fault, lines()[-1]) == (False, gone, gone)
    assert len(lines()) == (2 if beside else 1)
    assert board.load().mcp_enabled
    board.agent.write_text(ON)
    assert watched.current().mcp_enabled


# --- keys ------------------------------------------------------------------------------------------

# What the Agent's file may hold while it means that MCP is disabled.
DISABLING = [
    # A plain false, whatever stands beside it.
    *(OFF + more for more in ("mcp_shell_enabled = 1", 'mcp_config_web_base_url = "http://example.com"', "mcp_config_web_base_url = 3", "mcp_future = []")),
    *(OFF + more for more in ("mcp_enable = true", "listen = 3", f"mcp_config_web_base_url = 0x{'f' * 5000}", "[[mcpboard]]", "[agent]\nmcp_enabled = true")),
    # Two brackets for one, or a name in capitals, are slips as well: nobody meant MCP to stay on.
    *("[[conversation_settings.agent]]\nmcp_enabled = false\n", "[[conversation_settings]]\n" + OFF, "conversation_settings = [[{agent = {mcp_enabled = false}}]]\n"),
    *(TABLE + line for line in ("MCP_ENABLED = false\n", "mcpEnabled = false\n", "mcp_enable = false\n", "mcp_enaBled = false\n", "mcp.enabled = false\n")),
    *("mcp_enabled = false\n" + TABLE, "[agent]\nmcp_enabled = false\n", "[conversation_settings.agenu]\nmcp_enabled = false\n", "[a.b.c.d]\nmcp_enabled = false\n"),
]  # fmt: skip
# What may be a false that was damaged; while MCP runs, the last good value counts.
DOUBTFUL = [
    *(TABLE + f"mcp_enabled = {value}\n" for value in ('"false"', "0", "[false]")),
    "conversation_settings = 3\n",
]


@pytest.mark.parametrize(
    ("text", "running"),
    [*((text, running) for text in DISABLING for running in (False, True)), *((text, False) for text in DOUBTFUL)],
    ids=lambda value: str(value)[:60],
)
def test_no_spelling_of_off_enables(board: Board, text: str, running: bool) -> None:
    watched = board.watch()
    board.agent.write_text(text)
    settings = watched.current() if running else board.load()
    assert switches(settings) == (False, False)
    if not text.startswith(OFF):
        assert str(settings.mcp_fault).startswith(f"{board.agent}: ")
        assert any(line.startswith(str(settings.mcp_fault)) for line in settings.warnings)
    if text.startswith("[agent]"):
        assert "mcp_enabled stands in [agent], but belongs in [conversation_settings.agent]" in str(settings.mcp_fault)


@pytest.mark.parametrize("last", [ON, OFF])
def test_a_bad_key_of_the_agents_keeps_its_last_value_and_the_others_count(board: Board, lines: Lines, last: str) -> None:  # fmt: skip
    board.agent.write_text(last)
    watched = board.watch()
    board.agent.write_text(TABLE + 'mcp_enabled = "no"\nmcp_shell_enabled = true\n')
    settings = [watched.current() for _ in range(3)][-1]
    assert switches(settings) == (last == ON, True)
    place = f'{board.agent}: [conversation_settings.agent] mcp_enabled = "no"'
    assert lines() == ["mcp_shell_enabled has changed", f"{place}: only true or false, without quotes {KEPT}"]


def test_a_bad_key_of_ours_keeps_its_last_value_and_the_others_count(board: Board, lines: Lines) -> None:
    board.write_ours("strict_meta = true", "support_bundle_max_bytes = 5")
    watched = board.watch()
    board.write_ours('strict_meta = "false"', "support_bundle_max_bytes = 6", f"freebind = 0x{'f' * 5000}")
    settings = [watched.current() for _ in range(3)][-1]
    assert (settings.strict_meta, settings.support_bundle_max_bytes) == (True, 6)
    changed, *complaints = lines()
    assert changed == "support_bundle_max_bytes has changed"
    assert len(complaints) == 2
    assert all(line.startswith(f"{board.ours}: [mcpboard] ") for line in complaints)


@pytest.mark.parametrize("wrong", ["tokem_file", "[mcpbord]\ntoken_file", "[conversation_settings]\ntoken_file"])
def test_a_mistyped_key_of_ours_is_not_the_wish_for_a_default(board: Board, wrong: str) -> None:
    """A token that was required must not fall away with one letter."""
    watched = board.watch()
    board.ours.write_text(board.ours.read_text().replace("token_file", f"strict_meta = true\n{wrong}"))
    settings = watched.current()
    assert (settings.token, settings.strict_meta) == (TOKEN.encode(), True)
    assert len(settings.warnings) == 1


def test_a_token_stays_required_when_its_line_has_gone(board: Board, lines: Lines) -> None:
    """The file may have been cut off there; its token is followed all the same, and a restart begins anew."""
    watched = board.watch()
    board.lines.pop()
    board.write_ours()
    assert watched.current().token == TOKEN.encode()
    assert lines() == [f"{board.ours}: [mcpboard] token_file is gone; its token stays required until the server restarts"]  # fmt: skip
    board.token.write_text(OTHER)
    assert watched.current().token == OTHER.encode()
    assert board.load().token is None


def test_many_unknown_keys_are_told_in_few_short_lines(board: Board) -> None:
    watched = board.watch()
    board.write_ours(*(f"key{number} = 1" for number in range(8)))
    assert len(watched.current().warnings) == 8
    board.write_ours(*(f"k{number}{'k' * 500} = 1" for number in range(1000)))
    warnings = watched.current().warnings
    assert len(warnings) == 9
    assert max(map(len, warnings)) < 600
    assert "992 more keys like these" in warnings[-1]


# --- the token, and paths --------------------------------------------------------------------------


def test_a_new_token_counts_at_once_and_is_never_logged(board: Board, lines: Lines) -> None:
    watched = board.watch()
    board.token.write_text(OTHER)
    assert watched.current().token == OTHER.encode()
    assert lines() == ["the bearer token has changed"]
    board.token.write_text("short")
    assert watched.current().token == OTHER.encode()


def test_a_token_that_cannot_be_read_from_the_beginning_lets_nobody_in(board: Board) -> None:
    """Whoever wrote token_file wants one to be required; which is not known yet."""
    named = board.lines.pop()
    board.write_ours()
    watched = board.watch()
    assert watched.current().token is None
    board.token.write_text("short")
    board.write_ours(named)
    first = watched.current().token
    assert first not in (None, b"short", TOKEN.encode())
    assert watched.current().token == first
    board.token.write_text(TOKEN)
    assert watched.current().token == TOKEN.encode()


def test_a_path_that_leads_nowhere_leaves_the_last_one_followed(board: Board) -> None:
    """One flipped bit in a path must not cut the server off from a new token, or from the switch."""
    watched = board.watch()
    board.ours.write_text(board.ours.read_text().replace("/token", "/tokem").replace("agent.toml", "agent.tomm"))
    settings = watched.current()
    assert (settings.token_file, settings.agent_config) == (str(board.token), str(board.agent))
    assert len(settings.warnings) == 2
    board.token.write_text(OTHER)
    board.agent.write_text(OFF)
    settings = watched.current()
    assert (settings.token, settings.mcp_enabled) == (OTHER.encode(), False)
    board.token.with_name("tokem").write_text(TOKEN)
    board.agent.with_name("agent.tomm").write_text(ON)
    settings = watched.current()
    assert (settings.token, settings.mcp_enabled) == (TOKEN.encode(), True)


def test_the_file_that_the_flag_names_is_the_one_that_is_read(board: Board, tmp_path: Path) -> None:
    other = tmp_path / "other.toml"
    other.write_text(OFF)
    watched = board.watch(agent_config=str(other))
    settings = watched.current()
    assert (settings.agent_config, settings.mcp_enabled) == (str(other), False)
    assert settings.sources["mcp_enabled"] == str(other)
    other.write_text(ON)
    assert watched.current().mcp_enabled
    board.agent.write_text(OFF)
    assert watched.current().mcp_enabled, "the file that our own file names has no say"


# --- looking, and what is said -----------------------------------------------------------------------


def test_an_unchanged_file_is_looked_at_but_not_read(board: Board, monkeypatch: pytest.MonkeyPatch) -> None:
    watched = board.watch()
    for path in (board.ours, board.agent, board.token):
        settled(path)
    watched.current()
    monkeypatch.setattr(files, "read_file", None)
    assert watched.current() is watched.current()


def test_a_new_inode_of_the_same_size_and_time_is_a_change(board: Board) -> None:
    watched, before = board.watch(), board.agent.stat()
    beside = board.agent.with_suffix(".new")
    beside.write_text(TABLE + "mcp_enabled =false\n")
    assert beside.stat().st_size == before.st_size
    os.utime(beside, ns=(before.st_atime_ns, before.st_mtime_ns))
    beside.replace(board.agent)
    assert not watched.current().mcp_enabled


def test_no_change_is_missed_within_one_tick_of_the_clock(board: Board) -> None:
    """Written in place, as long as before, some within the same millisecond: none looks like the one before."""
    watched = board.watch()
    with board.token.open("r+b", buffering=0) as file:
        for number in range(200):
            token = b"token-%012d" % number
            os.pwrite(file.fileno(), token, 0)
            assert watched.current().token == token


def test_a_look_settles_and_a_clock_that_was_set_back_does_not_matter(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.touch()
    assert files.settled(files.look(path)) != files.look(path)
    later = time.time_ns() + 3600 * 10**9
    os.utime(path, ns=(later, later))
    assert files.settled(files.look(path)) == files.look(path)


def test_a_cured_permission_is_seen(board: Board, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError

    watched = board.watch()
    board.agent.write_text(OFF)
    with monkeypatch.context() as patch:
        patch.setattr(os, "open", refuse)
        assert watched.current().mcp_enabled
    board.agent.chmod(0o640)
    assert not watched.current().mcp_enabled


def test_a_folder_that_changes_all_the_time_is_one_line_and_what_is_cured_is_said(board: Board, lines: Lines) -> None:
    watched = board.watch()
    for _ in range(2):
        board.agent.unlink()
        board.agent.mkdir()
        for number in range(20):
            (board.agent / str(number)).touch()
            watched.current()
        for entry in board.agent.iterdir():
            entry.unlink()
        board.agent.rmdir()
        board.agent.write_text(ON)
        watched.current()
    damaged, cured, *again = lines()
    assert damaged.startswith(f"{board.agent}: is a directory")
    assert cured == "the settings files are in order again"
    assert again == [damaged, cured]


def test_what_needs_a_restart_keeps_its_value_and_says_so_once(bare: Board, lines: Lines) -> None:
    watched = bare.watch(agent_base_url="http://127.0.0.1:1")
    text = '[mcpboard]\nlisten = "127.0.0.1:1"\nagent_base_url = "http://127.0.0.1:2"\n'
    bare.ours.write_text(text + "strict_meta = true\n")
    settings = watched.current()
    assert (settings.listen, settings.sources["listen"]) == ((Address("0.0.0.0", 8080),), "default")
    assert settings.strict_meta
    assert settings.agent_base_url == "http://127.0.0.1:1", "a flag goes on beating the file"
    bare.ours.write_text(text)
    assert watched.current().listen == settings.listen
    strict = "strict_meta has changed"
    assert lines() == ["listen has changed; it takes effect at the next start", strict, strict]


def test_a_warning_that_a_change_brings_is_logged(board: Board, lines: Lines) -> None:
    watched = board.watch()
    board.agent.write_text("mcp_shell_enabled = true\n")
    watched.current()
    assert "it has no effect" in lines()[-1]


def test_many_threads_see_one_reading(board: Board, lines: Lines) -> None:
    watched = board.watch()
    replaced(board.agent, OFF)
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
