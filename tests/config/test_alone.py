"""Each settings file and each key counts alone: what one of them lost, the others keep on saying."""

from __future__ import annotations

import logging
import os
import socket
import stat
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from mcpboard.config import SettingsWatcher, files, load
from mcpboard.errors import ConfigError

TABLE = "[conversation_settings.agent]\n"
TOKEN, OTHER = "0123456789abcdef", "fedcba9876543210"
OFF, ON = TABLE + "mcp_enabled = false\n", TABLE + "mcp_enabled = true\n"


class Board:
    """The three files of a board, each with something in it, and the watcher over them."""

    def __init__(self, folder: Path, agent: str = ON) -> None:
        self.ours, self.agent, self.token = (folder / name for name in ("mcpboard.toml", "agent.toml", "token"))
        self.token.touch(0o600)
        self.token.write_text(TOKEN)
        self.agent.write_text(agent)
        self.lines = [f'agent_config = "{self.agent}"', f'token_file = "{self.token}"']
        self.write_ours()

    def write_ours(self, *more: str) -> None:
        self.ours.write_text("\n".join(["[mcpboard]", *self.lines, *more, ""]))

    def watch(self) -> SettingsWatcher:
        return SettingsWatcher({"config": str(self.ours)}, {})


@pytest.fixture
def board(tmp_path: Path) -> Board:
    return Board(tmp_path)


@pytest.fixture
def lines(caplog: pytest.LogCaptureFixture) -> Callable[[], list[str]]:
    """The warnings so far."""
    caplog.set_level(logging.WARNING, "mcpboard")
    return lambda: [record.getMessage() for record in caplog.records]


# --- files ---------------------------------------------------------------------------------------


def _emptied(path: Path) -> None:
    path.write_text("")


def _cut(path: Path) -> None:
    path.write_text("[conversation")


def _latin(path: Path) -> None:
    path.write_bytes(b"# \xe9\n")


def _large(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(100_000_000)


def _folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


def _fifo(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def _socket(path: Path) -> None:
    path.unlink()
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))


def _device(path: Path) -> None:
    path.unlink()
    path.symlink_to("/dev/zero")


def _loop(path: Path) -> None:
    path.unlink()
    path.symlink_to(path)


def _endless_key(path: Path) -> None:
    path.write_text("a." * 20_000 + "b = 1\n")


def _deep(path: Path) -> None:
    path.write_text("x = " + "[" * 4000 + "]" * 4000 + "\n")


def _wide(path: Path) -> None:
    path.write_text("x = [" + "[]," * 300_000 + "]\n")


# What becomes of a file -> a word of the complaint about it.
DAMAGE = [
    pytest.param(_emptied, "empty", id="emptied"),
    pytest.param(_cut, "not valid TOML", id="cut off"),
    pytest.param(_latin, "not UTF-8", id="not UTF-8"),
    pytest.param(_large, "larger than", id="100 MB"),
    pytest.param(_folder, "is a directory", id="a directory"),
    pytest.param(_fifo, "is a FIFO", id="a FIFO"),
    pytest.param(_socket, "is a socket", id="a socket"),
    pytest.param(_device, "is a device", id="a device without end"),
    pytest.param(_loop, "symbolic links", id="a link to itself"),
    pytest.param(_endless_key, "more than 16 parts", id="a key of 20000 parts"),
    pytest.param(_deep, "deeper than 16 levels", id="4000 levels"),
    pytest.param(_wide, "more than 10000 tables", id="300000 lists"),
]
LONG = 2.0  # seconds that no reading may take; the worst takes a tenth of one


@pytest.mark.parametrize(("damage", "word"), DAMAGE)
def test_a_damaged_agents_file_holds_up_neither_ours_nor_the_token(
    board: Board, lines: Callable[[], list[str]], damage: Callable[[Path], None], word: str
) -> None:
    """A token that was rotated meanwhile is the one that counts, at once."""
    watched = board.watch()
    began = time.monotonic()
    damage(board.agent)
    assert watched.current().mcp_enabled
    board.token.write_text(OTHER)
    board.write_ours("strict_meta = true")
    settings = [watched.current() for _ in range(3)][-1]
    assert time.monotonic() - began < LONG
    assert (settings.token, settings.strict_meta, settings.mcp_enabled) == (OTHER.encode(), True, True)
    assert [line for line in lines() if line.startswith(f"{board.agent}: ") and word in line] == lines()
    assert len(lines()) == 1


@pytest.mark.parametrize(("damage", "word"), DAMAGE)
def test_a_damaged_file_of_ours_holds_up_neither_the_agents_nor_the_token(
    board: Board, lines: Callable[[], list[str]], damage: Callable[[Path], None], word: str
) -> None:
    watched = board.watch()
    damage(board.ours)
    board.token.write_text(OTHER)
    board.agent.write_text(OFF)
    settings = [watched.current() for _ in range(3)][-1]
    assert (settings.token, settings.mcp_enabled) == (OTHER.encode(), False)
    assert len(lines()) == 1
    assert lines()[0].startswith(f"{board.ours}: ")
    assert word in lines()[0]


@pytest.mark.parametrize(("damage", "word"), DAMAGE[:9])
def test_a_damaged_token_file_keeps_its_token_and_holds_up_no_other(
    board: Board, lines: Callable[[], list[str]], damage: Callable[[Path], None], word: str
) -> None:
    watched = board.watch()
    word = "the token" if damage in (_cut, _latin) else word
    damage(board.token)
    board.agent.write_text(OFF)
    settings = [watched.current() for _ in range(3)][-1]
    assert (settings.token, settings.mcp_enabled) == (TOKEN.encode(), False)
    assert len(lines()) == 1
    assert lines()[0].startswith(f"{board.token}: ")
    assert word in lines()[0]


@pytest.mark.parametrize(("damage", "word"), DAMAGE)
def test_at_start_a_damaged_agents_file_disables_mcp_and_the_shell_until_it_can_be_read(
    tmp_path: Path, damage: Callable[[Path], None], word: str
) -> None:
    board = Board(tmp_path, TABLE + "mcp_shell_enabled = true\n")
    damage(board.agent)
    watched = board.watch()
    settings = watched.current()
    assert (settings.mcp_enabled, settings.mcp_shell_enabled, settings.token) == (False, False, TOKEN.encode())
    assert settings.mcp_fault
    assert settings.mcp_fault.startswith(f"{board.agent}: ")
    assert word in settings.mcp_fault
    assert f"{settings.mcp_fault} (until then MCP and the shell stay disabled)" in settings.warnings
    board.agent.rmdir() if board.agent.is_dir() else board.agent.unlink()
    assert not watched.current().mcp_enabled, "gone is not read"
    board.agent.write_text(TABLE + "mcp_shell_enabled = true\n")
    settings = watched.current()
    assert (settings.mcp_enabled, settings.mcp_shell_enabled, settings.mcp_fault) == (True, True, None)


@pytest.mark.parametrize(("damage", "word"), DAMAGE)
def test_at_start_a_damaged_file_of_ours_is_refused(board: Board, damage: Callable[[Path], None], word: str) -> None:
    damage(board.ours)
    began = time.monotonic()
    with pytest.raises(ConfigError, match=word) as refused:
        board.watch()
    assert time.monotonic() - began < LONG
    assert str(refused.value).startswith(f"{board.ours}: ")


def test_a_token_file_of_100_mb_is_refused_after_4_kib(board: Board) -> None:
    board.token.write_bytes(b"x" * 5000)
    with pytest.raises(ConfigError, match="larger than the 4096 bytes"):
        board.watch()


def test_nothing_stands_for_no_settings(tmp_path: Path) -> None:
    assert load({"config": os.devnull}, {}).sources["listen"] == "default"


def test_dots_and_brackets_in_strings_are_no_levels(board: Board) -> None:
    text = '"""' + "a.[" * 40 + '""""'
    board.agent.write_text(f"prompt = {text}\nother = '{'[{.' * 40}' # {'[' * 40}\n" + OFF)
    assert not load({"config": str(board.ours)}, {}).mcp_enabled
    board.agent.write_text(
        "numbers = [" + "1.5, " * 200 + "]\n" + "".join(f"[t{n}]\nx = [1]\n" for n in range(99)) + ON
    )
    assert load({"config": str(board.ours)}, {}).mcp_enabled


def test_a_string_that_ends_in_a_quote_hides_no_levels(board: Board) -> None:
    """Four quotes end a text of three: what follows on the line counts again."""
    board.agent.write_text('x = [ """a"""", ' + "[" * 40 + "]" * 40 + " ]\n")
    assert "deeper than 16 levels" in str(load({"config": str(board.ours)}, {}).mcp_fault)


# --- the Agent's file goes -------------------------------------------------------------------------


def test_a_missing_agents_file_gives_way_to_our_own_table(board: Board) -> None:
    board.write_ours(TABLE + 'mcp_config_web_base_url = "http://127.0.0.1:1"')
    watched = board.watch()
    assert watched.current().mcp_config_web_base_url == "http://127.0.0.1"
    board.agent.unlink()
    settings = watched.current()
    assert (settings.mcp_enabled, settings.mcp_config_web_base_url) == (True, "http://127.0.0.1:1")


def test_what_it_disabled_stays_disabled_until_a_file_enables_it(tmp_path: Path) -> None:
    """Our own table may have said so all the time: that it counts now is the work of the damage."""
    board = Board(tmp_path, TABLE + "mcp_enabled = false\nmcp_shell_enabled = false\n")
    both = ("mcp_enabled = true", "mcp_shell_enabled = true")
    board.write_ours(TABLE, *both)
    watched = board.watch()
    board.agent.unlink()
    settings = watched.current()
    assert (settings.mcp_enabled, settings.mcp_shell_enabled) == (False, False)
    assert settings.mcp_fault == f"{board.agent}: no such file; what is disabled stays disabled until a file enables it"
    board.write_ours("strict_meta = true", TABLE, *both)
    assert not watched.current().mcp_enabled, "another change of the same file"
    board.write_ours(TABLE, "mcp_enabled = false")
    assert not watched.current().mcp_enabled
    board.write_ours(TABLE, *both)
    settings = watched.current()
    assert (settings.mcp_enabled, settings.mcp_shell_enabled, settings.mcp_fault) == (True, True, None)


def test_it_comes_back_with_what_it_says(tmp_path: Path) -> None:
    board = Board(tmp_path, OFF)
    watched = board.watch()
    for text, enabled in ((OFF, False), (TABLE, False), (ON, True), (TABLE, True)):
        board.agent.unlink()
        watched.current()
        board.agent.write_text(text)
        assert watched.current().mcp_enabled is enabled


def test_a_line_that_is_gone_enables_nothing(tmp_path: Path, lines: Callable[[], list[str]]) -> None:
    """It may have been cut off, or be a comment by a flipped bit; a restart or a word enables."""
    board = Board(tmp_path, OFF)
    watched = board.watch()
    board.agent.write_text(TABLE)
    settings = [watched.current() for _ in range(3)][-1]
    assert not settings.mcp_enabled
    place = f"{board.agent}: [conversation_settings.agent]"
    assert lines() == [f"{place} mcp_enabled = false is gone; write mcp_enabled = true to enable it"]
    assert settings.mcp_fault == lines()[0]
    assert board.watch().current().mcp_enabled
    board.agent.write_text(ON)
    assert watched.current().mcp_enabled


# --- keys ------------------------------------------------------------------------------------------

BESIDE = [
    "mcp_shell_enabled = 1",
    'mcp_config_web_base_url = "http://example.com"',
    "mcp_config_web_base_url = 3",
    "mcp_future = []",
    "mcp_enable = true",
    "listen = 3",
    f"mcp_config_web_base_url = 0x{'f' * 5000}",
    "[[mcpboard]]",
    "[agent]\nmcp_enabled = true",
]


@pytest.mark.parametrize("beside", BESIDE, ids=lambda text: text[:40])
@pytest.mark.parametrize("running", [False, True], ids=["at start", "while running"])
def test_mcp_enabled_false_disables_whatever_stands_beside_it(board: Board, beside: str, running: bool) -> None:
    watched = board.watch()
    board.agent.write_text(f"{OFF}{beside}\n")
    settings = (watched if running else board.watch()).current()
    assert not settings.mcp_enabled
    assert not settings.mcp_shell_enabled


@pytest.mark.parametrize(
    "text",
    [
        "mcp_enabled = false\n" + TABLE,
        "[agent]\nmcp_enabled = false\n",
        "[conversation_settings.agenu]\nmcp_enabled = false\n",
        "[a.b.c.d]\nmcp_enabled = false\n",
        TABLE + "mcp_enable = false\n",
        TABLE + "mcp_enaBled = false\n",
        TABLE + "mcp.enabled = false\n",
        TABLE + 'mcp_enabled = "false"\n',
        TABLE + "mcp_enabled = 0\n",
        TABLE + "mcp_enabled = [false]\n",
        "conversation_settings = 3\n",
        "[[conversation_settings.agent]]\nmcp_enabled = false\n",
    ],
)
def test_at_start_a_misspelt_off_is_no_on(board: Board, text: str) -> None:
    board.agent.write_text(text)
    settings = board.watch().current()
    assert not settings.mcp_enabled
    assert settings.mcp_fault
    assert settings.mcp_fault.startswith(f"{board.agent}: ")
    assert any(line.startswith(settings.mcp_fault) for line in settings.warnings)


@pytest.mark.parametrize(
    "text",
    [
        "[[conversation_settings.agent]]\nmcp_enabled = false\n",
        "[[conversation_settings]]\n" + TABLE + "mcp_enabled = false\n",
        "conversation_settings = [[{agent = {mcp_enabled = false}}]]\n",
        TABLE + "MCP_ENABLED = false\n",
        TABLE + "mcpEnabled = false\n",
    ],
)
@pytest.mark.parametrize("running", [False, True], ids=["at start", "while running"])
def test_an_off_in_a_list_or_in_other_letters_disables(board: Board, text: str, running: bool) -> None:
    """Two brackets for one, or a name in capitals, are slips as well: nobody meant MCP to stay on."""
    watched = board.watch()
    board.agent.write_text(text)
    settings = (watched if running else board.watch()).current()
    assert not settings.mcp_enabled
    assert "mcp_enabled" in str(settings.mcp_fault)


def test_other_switches_of_the_agent_are_none_of_ours(board: Board) -> None:
    board.agent.write_text(TABLE + "mcp_shell_enabled = false\nother_mcp_enabled = false\nmcp_future = false\n")
    assert board.watch().current().mcp_enabled


@pytest.mark.parametrize("last", ["true", "false"])
def test_a_bad_key_of_the_agents_keeps_its_last_value_and_the_others_count(
    board: Board, lines: Callable[[], list[str]], last: str
) -> None:
    board.agent.write_text(TABLE + f"mcp_enabled = {last}\n")
    watched = board.watch()
    board.agent.write_text(TABLE + 'mcp_enabled = "no"\nmcp_shell_enabled = true\n')
    settings = [watched.current() for _ in range(3)][-1]
    assert (settings.mcp_enabled, settings.mcp_shell_enabled) == (last == "true", True)
    place = f'{board.agent}: [conversation_settings.agent] mcp_enabled = "no"'
    assert lines() == [
        f"{place}: only true or false, without quotes (until then the last good settings stay effective)"
    ]


def test_a_bad_key_of_ours_keeps_its_last_value_and_the_others_count(
    board: Board, lines: Callable[[], list[str]]
) -> None:
    board.write_ours("strict_meta = true", "support_bundle_max_bytes = 5")
    watched = board.watch()
    board.write_ours('strict_meta = "false"', "support_bundle_max_bytes = 6", f"freebind = 0x{'f' * 5000}")
    settings = [watched.current() for _ in range(3)][-1]
    assert (settings.strict_meta, settings.support_bundle_max_bytes) == (True, 6)
    assert len(lines()) == 2
    assert all(line.startswith(f"{board.ours}: [mcpboard] ") for line in lines())


@pytest.mark.parametrize("wrong", ["tokem_file", "[mcpbord]\ntoken_file", "[conversation_settings]\ntoken_file"])
def test_a_mistyped_key_of_ours_is_not_the_wish_for_a_default(
    board: Board, lines: Callable[[], list[str]], wrong: str
) -> None:
    """A token that was required must not fall away with one letter."""
    watched = board.watch()
    board.ours.write_text(
        f'[mcpboard]\nagent_config = "{board.agent}"\nstrict_meta = true\n{wrong} = "{board.token}"\n'
    )
    settings = watched.current()
    assert (settings.token, settings.strict_meta) == (TOKEN.encode(), True)
    assert len(lines()) == 1


def test_a_token_stays_required_when_its_line_has_gone(board: Board, lines: Callable[[], list[str]]) -> None:
    """The file may have been cut off there; its token is followed all the same, and a restart begins anew."""
    watched = board.watch()
    board.lines.pop()
    board.write_ours()
    assert watched.current().token == TOKEN.encode()
    assert lines() == [
        f"{board.ours}: [mcpboard] token_file is gone; its token stays required until the server restarts"
    ]
    board.token.write_text(OTHER)
    assert watched.current().token == OTHER.encode()
    assert board.watch().current().token is None


def test_many_unknown_keys_are_told_in_few_short_lines(board: Board, lines: Callable[[], list[str]]) -> None:
    watched = board.watch()
    board.write_ours(*(f"k{number}{'k' * 500} = 1" for number in range(1000)))
    watched.current()
    assert len(lines()) == 9
    assert max(map(len, lines())) < 600
    assert "992 more keys like these" in lines()[-1]


def test_a_token_file_that_is_not_there_yet_is_followed(board: Board, lines: Callable[[], list[str]]) -> None:
    watched = board.watch()
    other = board.token.with_name("other")
    board.lines[1] = f'token_file = "{other}"'
    board.write_ours()
    assert watched.current().token == TOKEN.encode()
    assert lines() == [f"{other}: no such file; token_file names it (until then the last good settings stay effective)"]
    other.touch(0o600)
    other.write_text(OTHER)
    assert watched.current().token == OTHER.encode()


def test_a_token_that_cannot_be_read_from_the_beginning_lets_nobody_in(tmp_path: Path) -> None:
    """Whoever wrote token_file wants one to be required; which is not known yet."""
    board = Board(tmp_path)
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


def test_a_path_that_leads_nowhere_leaves_the_last_one_followed(board: Board, lines: Callable[[], list[str]]) -> None:
    """One flipped bit in a path must not cut the server off from a new token, or from the switch."""
    watched = board.watch()
    board.ours.write_text(board.ours.read_text().replace("/token", "/tokem").replace("agent.toml", "agent.tomm"))
    settings = watched.current()
    assert (settings.token_file, settings.agent_config) == (str(board.token), str(board.agent))
    assert len(lines()) == 2
    board.token.write_text(OTHER)
    board.agent.write_text(OFF)
    settings = watched.current()
    assert (settings.token, settings.mcp_enabled) == (OTHER.encode(), False)
    board.token.with_name("tokem").write_text(TOKEN)
    board.agent.with_name("agent.tomm").write_text(ON)
    settings = watched.current()
    assert (settings.token, settings.mcp_enabled) == (TOKEN.encode(), True)


# --- looking -------------------------------------------------------------------------------------


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


def test_a_folder_that_changes_all_the_time_is_one_line(board: Board, lines: Callable[[], list[str]]) -> None:
    watched = board.watch()
    _folder(board.agent)
    for number in range(20):
        (board.agent / str(number)).touch()
        watched.current()
    assert len(lines()) == 1


def test_what_is_cured_is_said(board: Board, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "mcpboard")
    watched = board.watch()
    for text in ("[", ON, "[", ON):
        board.agent.write_text(text)
        watched.current()
    said = [record.getMessage().rpartition(":")[2].strip()[:30] for record in caplog.records]
    assert len(said) == 4
    assert said[1] == said[3] == "the settings files are in orde"


# --- flags -----------------------------------------------------------------------------------------


def test_the_file_that_the_flag_names_is_the_one_that_is_read(board: Board, tmp_path: Path) -> None:
    other = tmp_path / "other.toml"
    other.write_text(OFF)
    watched = SettingsWatcher({"config": str(board.ours), "agent_config": str(other)}, {})
    settings = watched.current()
    assert (settings.agent_config, settings.mcp_enabled) == (str(other), False)
    assert settings.sources["mcp_enabled"] == str(other)
    other.write_text(ON)
    assert watched.current().mcp_enabled
    board.agent.write_text(OFF)
    assert watched.current().mcp_enabled, "the file that our own file names has no say"


def test_a_file_that_the_flag_names_and_is_not_there_is_refused(board: Board, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"gone: no such file; --agent-config names it$"):
        load({"config": str(board.ours), "agent_config": str(tmp_path / "gone")}, {})


# --- staged files ----------------------------------------------------------------------------------


def test_a_staged_file_is_private_from_its_first_byte(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        staged = files.staged_file(tmp_path / "token", b"secret")
    finally:
        os.umask(before)
    assert stat.S_IMODE(os.stat(staged).st_mode) == 0o600


def test_what_a_crash_left_is_removed_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "token.json"
    old = time.time() - 7200
    left, young = files.staged_file(path, b"secret"), files.staged_file(path, b"secret")
    alike = [".token.json.UPPER123", ".token.json.short", "token.json.abcdefgh", ".other.json.abcdefgh", "token.json"]
    for name in alike:
        (tmp_path / name).touch()
    (tmp_path / ".token.json.linklink").symlink_to(path)
    (tmp_path / ".token.json.folderfo").mkdir()
    for entry in tmp_path.iterdir():
        if str(entry) != young:
            os.utime(entry, (old, old), follow_symlinks=False)
    files.remove_leftovers(path)
    names = {entry.name for entry in tmp_path.iterdir()}
    assert names == {*alike, ".token.json.linklink", ".token.json.folderfo", os.path.basename(young)}
    assert not os.path.exists(left)
    files.remove_leftovers(tmp_path / "nowhere" / "token.json")
