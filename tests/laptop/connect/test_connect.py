"""`mcpboard connect`: printed, written, taken back; and what was written is driven, by its own parser's reading."""

from __future__ import annotations

import json
import os
import re
import shlex
import stat
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from mcpboard import config
from mcpboard.cli import main
from mcpboard.cli.laptop import connect as verb
from mcpboard.client import Client
from mcpboard.client_configs import CLIENT_CONFIGS, ClientConfig, Target, Token, is_name
from mcpboard.config.files import staged_file
from mcpboard.errors import ConfigError
from mcpboard.laptop import connect
from mcpboard.laptop.connect import client_files, edits
from tests.laptop.connect.test_edits import WRITABLE, parsed
from tests.laptop.test_portability import foreign
from tests.support import rig
from tests.support.piped import ENVIRONMENT
from tests.support.processes import run
from tests.support.served import Board

TOKEN = "a-token-of-some-length"
NOBODY = "http://127.0.0.1:9/mcp"
BY_KEY = {client.key: client for client in CLIENT_CONFIGS}


def of(client: ClientConfig, path: Path, name: str = "phone-board") -> Mapping[str, Any]:
    """The entry in a client's file, read by the parser of its format."""
    entry: Mapping[str, Any] = parsed(client.format, path.read_text("utf-8"))[client.table][name]
    return entry


def url_of(entry: Mapping[str, Any]) -> str:
    """The URL of an entry, wherever its client wants it."""
    found = next((entry[key] for key in ("url", "httpUrl", "uri") if key in entry), None)
    return str(found or next(word for word in entry["args"] if word.startswith("http://")))


# --- written, and driven -------------------------------------------------------------------------


@pytest.mark.parametrize("client", WRITABLE, ids=lambda client: client.key)
def test_what_is_written_leads_to_the_board(
    client: ClientConfig, board: Board, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "folder" / "file"
    assert main(["connect", client.key, board.url, "--write", "--file", str(file)]) == 0
    assert "answers: mcpboard" in capsys.readouterr().err
    with Client(url_of(of(client, file))) as session:
        assert session.list_tools()


@pytest.mark.parametrize("client", CLIENT_CONFIGS, ids=lambda client: client.key)
def test_what_is_printed_is_the_form_for_that_url(
    client: ClientConfig, board: Board, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["connect", client.key, board.url]) == 0
    printed = capsys.readouterr().out
    assert printed == client.text(Target(board.url, program=verb.program())) + "\n"
    assert board.url in printed


def test_the_program_of_claude_desktop_s_entry_is_started_and_answers(board: Board, tmp_path: Path) -> None:
    file = tmp_path / "claude_desktop_config.json"
    assert main(["connect", "claude-desktop", board.url, "--write", "--file", str(file)]) == 0
    entry = of(BY_KEY["claude-desktop"], file)
    asked = '{"jsonrpc":"2.0","id":1,"method":"tools/list"}\n'
    done = run(entry["command"], *entry["args"], input=asked, env=ENVIRONMENT)
    assert json.loads(done.stdout)["result"]["tools"]


def test_a_board_that_is_not_there_is_said_and_the_form_is_there_all_the_same(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["connect", "cursor", NOBODY]) == 1
    printed = capsys.readouterr()
    assert json.loads(printed.out)["mcpServers"]["phone-board"]["url"] == NOBODY
    assert f"mcpboard doctor {NOBODY}" in printed.err


def test_the_list_names_every_client(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["connect", "--list"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines[1:]] == [
        "claude-desktop", "claude-code", "cursor", "vscode", "codex", "gemini", "hermes", "goose", "lm-studio",
        "open-webui", "chatgpt",
    ]  # fmt: skip


# --- the token -----------------------------------------------------------------------------------


@pytest.fixture
def token_file(tmp_path: Path) -> Path:
    file = tmp_path / "token"
    file.write_text(TOKEN + "\n")
    return file


@pytest.mark.parametrize("client", CLIENT_CONFIGS, ids=lambda client: client.key)
def test_the_token_is_shown_only_where_the_form_demands_it_and_then_that_is_said(
    client: ClientConfig, token_file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with rig.in_front_of(token=TOKEN.encode()) as board:
        url = f"http://127.0.0.1:{board.address[1]}/mcp"
        assert main(["connect", client.key, url, "--token-file", str(token_file)]) == 0
    printed = capsys.readouterr()
    assert TOKEN not in printed.err
    demanded = client.key in ("gemini", "hermes", "goose", "lm-studio")
    assert (TOKEN in printed.out) == demanded == ("holds the token itself" in printed.err)


@pytest.mark.parametrize("client", WRITABLE, ids=lambda client: client.key)
def test_a_written_token_is_a_reference_or_a_private_file(
    client: ClientConfig, token_file: Path, tmp_path: Path
) -> None:
    file = tmp_path / "file"
    target = Target(NOBODY, "left", Token(str(token_file), TOKEN))
    connect.write(client, target, str(file))
    entry = json.dumps(of(client, file, "left"))
    expected = {"variable": "LEFT_TOKEN", "file": str(token_file), "prompt": "input:left_token", "value": TOKEN}
    assert expected[client.token] in entry
    assert stat.S_IMODE(file.stat().st_mode) == (0o600 if client.token == "value" else 0o644)


def mode(path: str | Path) -> int:
    return stat.S_IMODE(os.stat(path).st_mode)


def kept(file: Path) -> list[str]:
    """The backups beside it."""
    return [backup.path for backup in client_files.backups(str(file))]


def write_by_verb(client: ClientConfig, file: Path, token_file: Path, capsys: pytest.CaptureFixture[str]) -> str:
    """Return the output of `connect --write`; nobody listens at that address."""
    main(["connect", client.key, NOBODY, "--write", "--file", str(file), "--token-file", str(token_file)])
    return capsys.readouterr().err


SHOWS = [client for client in WRITABLE if client.token == "value"]
HIDES = [client for client in WRITABLE if client.token != "value"]


@pytest.mark.parametrize("before", [0o644, 0o664, 0o640, 0o604])
@pytest.mark.parametrize("client", SHOWS, ids=lambda client: client.key)
def test_group_and_others_lose_a_file_that_the_token_stands_in(
    client: ClientConfig, before: int, token_file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "file"
    file.touch()
    file.chmod(before)
    assert "for you alone" in write_by_verb(client, file, token_file, capsys)
    assert [mode(path) for path in (str(file), *kept(file))] == [0o600, 0o600]


@pytest.mark.parametrize("client", HIDES, ids=lambda client: client.key)
def test_an_entry_without_the_token_leaves_modes_alone(
    client: ClientConfig, token_file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "file"
    file.touch()
    file.chmod(0o664)
    assert "for you alone" not in write_by_verb(client, file, token_file, capsys)
    assert [mode(path) for path in (str(file), *kept(file))] == [0o664, 0o664]


GEMINI = BY_KEY["gemini"]


def test_the_token_never_stands_in_a_file_that_others_can_read(
    token_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "settings.json"
    file.write_text("{}")
    replace = os.replace
    seen: list[tuple[int, bool]] = []

    def looking(source: str, target: str) -> None:
        seen.extend((mode(each), TOKEN in Path(each).read_text()) for each in (source, file))
        replace(source, target)

    monkeypatch.setattr(os, "replace", looking)
    connect.write(GEMINI, Target(NOBODY, "left", Token(str(token_file), TOKEN)), str(file))
    assert (0o600, True) in seen
    assert all(private == 0o600 for private, _ in seen)


def test_a_token_that_stands_there_already_is_taken_from_others_too(
    token_file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """As an older version left it: the file and a backup with another token, both readable."""
    file = tmp_path / "settings.json"
    for token in ("another-token-of-some-length", TOKEN):
        connect.write(GEMINI, Target(NOBODY, token=Token(str(token_file), token)), str(file))
    paths = [str(file), *kept(file)]
    for path in paths:
        os.chmod(path, 0o644)
    said = write_by_verb(GEMINI, file, token_file, capsys)
    assert "is already configured" in said
    assert "for you alone" in said
    assert [mode(path) for path in paths] == [0o600] * 3
    assert "for you alone" not in write_by_verb(GEMINI, file, token_file, capsys)


def test_a_fifo_in_the_place_of_a_file_is_not_waited_for(tmp_path: Path, token_file: Path) -> None:
    os.mkfifo(tmp_path / "settings")
    with pytest.raises(ConfigError, match="is a FIFO"):
        connect.write(GEMINI, Target(NOBODY, token=Token(str(token_file), TOKEN)), str(tmp_path / "settings"))
    with pytest.raises(ConfigError, match="nothing to undo"):
        connect.undo(str(tmp_path / "settings"))


def test_the_command_that_shows_a_token_survives_a_shell(tmp_path: Path) -> None:
    folder = tmp_path / 'a b\'s "c" $HOME `id`;x'
    folder.mkdir()
    (folder / "token").write_text(TOKEN, "ascii")
    shown = run("sh", "-c", Token(str(folder / "token"), TOKEN).command)
    assert (shown.stdout, shown.stderr) == (TOKEN, "")


def test_behind_a_link_it_is_the_file_that_is_taken_from_others(token_file: Path, tmp_path: Path) -> None:
    (tmp_path / "dotfiles").mkdir()
    file, link = tmp_path / "dotfiles" / "settings.json", tmp_path / "settings.json"
    file.write_text("{}")
    link.symlink_to(file)
    written = connect.write(GEMINI, Target(NOBODY, token=Token(str(token_file), TOKEN)), str(link))
    assert link.is_symlink()
    assert (mode(file), mode(written.backup), written.is_restricted) == (0o600, 0o600, True)


def test_undo_gives_a_file_back_that_stays_private(token_file: Path, tmp_path: Path) -> None:
    """It may hold a token from before, and nobody knows any more who could read it then."""
    file = tmp_path / "settings.json"
    file.write_text("{}")
    connect.write(GEMINI, Target(NOBODY, token=Token(str(token_file), TOKEN)), str(file))
    connect.undo(str(file))
    assert (file.read_text(), mode(file), os.listdir(tmp_path)) == ("{}", 0o600, ["settings.json", "token"])


def test_vs_code_asks_for_the_token_it_is_told_of(token_file: Path, tmp_path: Path) -> None:
    file = tmp_path / "mcp.json"
    connect.write(BY_KEY["vscode"], Target(NOBODY, token=Token(str(token_file), TOKEN)), str(file))
    (asked,) = json.loads(file.read_text())["inputs"]
    assert f"${{input:{asked['id']}}}" in file.read_text()
    assert asked["password"] is True


# --- the file ------------------------------------------------------------------------------------

CURSOR = BY_KEY["cursor"]
OTHERS = b'{\n  "mcpServers": {\n    "other": {"command": "x"}\n  }\n}'


def test_undo_gives_the_file_back_to_the_byte_write_after_write(tmp_path: Path) -> None:
    file = tmp_path / "mcp.json"
    file.write_bytes(OTHERS)
    seen = [OTHERS]
    for port in (1, 2, 1):  # the third write makes again what the first did
        connect.write(CURSOR, Target(f"http://127.0.0.1:{port}/mcp"), str(file))
        seen.append(file.read_bytes())
    assert seen[1] == seen[3]
    for before in reversed(seen[:-1]):
        connect.undo(str(file))
        assert file.read_bytes() == before
    with pytest.raises(ConfigError, match="nothing to undo"):
        connect.undo(str(file))
    assert os.listdir(tmp_path) == ["mcp.json"]


@pytest.mark.parametrize("content", [None, b""], ids=["no file", "an empty file"])
def test_undo_knows_no_file_from_an_empty_one(content: bytes | None, tmp_path: Path) -> None:
    file = tmp_path / "mcp.json"
    if content is not None:
        file.write_bytes(content)
    connect.write(CURSOR, Target(NOBODY), str(file))
    connect.undo(str(file))
    assert (file.read_bytes() if file.exists() else None) == content


@pytest.mark.parametrize("change", ["edited", "removed"])
def test_undo_leaves_a_file_alone_that_has_changed_since(change: str, tmp_path: Path) -> None:
    file = tmp_path / "mcp.json"
    backup = connect.write(CURSOR, Target(NOBODY), str(file)).backup
    if change == "edited":
        file.write_bytes(file.read_bytes() + b"\n")
    else:
        file.unlink()
    with pytest.raises(ConfigError, match="has changed since"):
        connect.undo(str(file))
    assert os.path.exists(backup)


def test_the_same_again_changes_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "mcp.json"
    connect.write(CURSOR, Target(NOBODY), str(file))
    before = sorted(os.listdir(tmp_path)), file.stat().st_mtime_ns
    main(["connect", "cursor", NOBODY, "--write", "--file", str(file)])
    assert "is already configured" in capsys.readouterr().err
    assert (sorted(os.listdir(tmp_path)), file.stat().st_mtime_ns) == before


def test_a_link_is_followed_and_the_mode_kept(tmp_path: Path) -> None:
    (tmp_path / "dotfiles").mkdir()
    file, link = tmp_path / "dotfiles" / "mcp.json", tmp_path / "mcp.json"
    file.write_bytes(OTHERS)
    file.chmod(0o640)
    link.symlink_to(file)
    backup = connect.write(CURSOR, Target(NOBODY), str(link)).backup
    assert link.is_symlink()
    assert os.path.dirname(backup) == str(tmp_path / "dotfiles")
    assert stat.S_IMODE(file.stat().st_mode) == stat.S_IMODE(os.stat(backup).st_mode) == 0o640
    connect.undo(str(link))
    assert (file.read_bytes(), stat.S_IMODE(file.stat().st_mode)) == (OTHERS, 0o640)


def test_a_byte_order_mark_stays(tmp_path: Path) -> None:
    file = tmp_path / "mcp.json"
    file.write_bytes(b"\xef\xbb\xbf" + OTHERS)
    connect.write(CURSOR, Target(NOBODY), str(file))
    assert file.read_bytes().startswith(b"\xef\xbb\xbf{")
    assert json.loads(file.read_text("utf-8-sig"))["mcpServers"].keys() == {"other", "phone-board"}


REFUSED = [
    pytest.param(b"{ // mine\n}", "not plain JSON", id="comments"),
    pytest.param(b"\xff\xfe{\x00}\x00", "not UTF-8", id="another encoding"),
    pytest.param(b"{" + b" " * (5 << 20), "larger than", id="far too large"),
]


@pytest.mark.parametrize(("content", "words"), REFUSED)
def test_a_file_that_cannot_be_kept_is_left_alone(
    content: bytes, words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "mcp.json"
    file.write_bytes(content)
    assert main(["connect", "cursor", NOBODY, "--write", "--file", str(file)]) == 2
    entry, said = capsys.readouterr()
    assert json.loads(entry)["mcpServers"]["phone-board"]["url"] == NOBODY, "it is there to be added by hand"
    assert words in said
    assert str(file) in said
    assert file.read_bytes() == content
    assert os.listdir(tmp_path) == ["mcp.json"]


def test_a_file_that_changes_meanwhile_is_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "mcp.json"
    file.write_bytes(OTHERS)

    def edited(*given: Any) -> str:
        file.write_bytes(b"{}")
        return "{ }"

    monkeypatch.setattr(edits, "with_entry", edited)
    with pytest.raises(ConfigError, match="changed a moment ago"):
        connect.write(CURSOR, Target(NOBODY), str(file))
    assert file.read_bytes() == b"{}"
    assert os.listdir(tmp_path) == ["mcp.json"]


def test_a_write_that_fails_leaves_everything_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "mcp.json"
    file.write_bytes(OTHERS)
    replaced = os.replace

    def full(source: str, target: str) -> None:
        if target == str(file):
            raise OSError(28, "No space left on device")
        replaced(source, target)

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(ConfigError, match="No space left"):
        connect.write(CURSOR, Target(NOBODY), str(file))
    assert file.read_bytes() == OTHERS
    assert os.listdir(tmp_path) == ["mcp.json"]


def test_a_write_removes_what_a_crash_left_of_an_earlier_one(tmp_path: Path) -> None:
    file = tmp_path / "mcp.json"
    left = staged_file(file, b"with a token")
    os.utime(left, (0, 0))
    connect.write(CURSOR, Target(NOBODY), str(file))
    assert not os.path.exists(left)


def test_a_folder_in_the_file_s_place_is_said(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="is a directory"):
        connect.write(CURSOR, Target(NOBODY), str(tmp_path))


# --- where, and with what ------------------------------------------------------------------------

FOLDERS = {"~": "/home/me", "%APPDATA%": "/appdata"}
PLACES = [
    pytest.param("claude-desktop", "darwin", "/home/me/Library/Application Support/Claude/claude_desktop_config.json", id="Claude Desktop, macOS"),
    pytest.param("claude-desktop", "win32", "/appdata/Claude/claude_desktop_config.json", id="Claude Desktop, Windows"),
    pytest.param("goose", "linux", "/home/me/.config/goose/config.yaml", id="Goose, Linux"),
    pytest.param("codex", "win32", "/home/me/.codex/config.toml", id="Codex, anywhere"),
    pytest.param("vscode", "linux", os.path.join(os.getcwd(), ".vscode/mcp.json"), id="VS Code, in the project"),
]  # fmt: skip


@pytest.mark.parametrize(("key", "system", "path"), PLACES)
def test_each_client_has_its_file(key: str, system: str, path: str) -> None:
    assert connect.path_of(BY_KEY[key], system, FOLDERS) == path


def test_the_folders_of_a_user() -> None:
    assert config.user_folders({"APPDATA": "/x"})["%APPDATA%"] == "/x"
    assert config.user_folders({})["%APPDATA%"].startswith(config.user_folders({})["~"])


USAGE = [
    pytest.param(["connect"], "name a client", id="no client"),
    pytest.param(["connect", "netscape"], "netscape is not known; there are: claude-desktop", id="an unknown client"),
    pytest.param(["connect", "cursor", "192.168.42.1"], "http://192.168.42.1:8080/mcp", id="no URL"),
    pytest.param(["connect", "cursor", NOBODY, "--name", "a b"], "--name: a letter", id="no name"),
    pytest.param(["connect", "cursor", NOBODY, "--token-file", "/nowhere"], "--token-file", id="no token file"),
    pytest.param(["connect", "chatgpt", NOBODY, "--write"], "do the steps", id="a client set up by hand"),
    pytest.param(["connect", "chatgpt", NOBODY, "--undo", "--file", "/x"], "do the steps", id="the same, taken back"),
    pytest.param(["connect", "cursor", "--undo", "--file", "/nowhere/x"], "nothing to undo", id="nothing written"),
]


ORDERS = [
    pytest.param(["cursor", NOBODY, "--write", "--file", "FILE"], id="options last"),
    pytest.param(["cursor", "--write", NOBODY, "--file", "FILE"], id="an option between the words"),
    pytest.param(["cursor", "--write", "--file", "FILE", NOBODY], id="the URL last"),
    pytest.param(["--file", "FILE", "cursor", NOBODY, "--write"], id="options around the words"),
    pytest.param(["--write", "--file", "FILE", "cursor", NOBODY], id="options first"),
]


@pytest.mark.parametrize("words", ORDERS)
def test_options_stand_anywhere(words: list[str], tmp_path: Path) -> None:
    file = tmp_path / "mcp.json"
    assert main(["connect", *(str(file) if word == "FILE" else word for word in words)]) == 1, "nobody answers there"
    assert url_of(of(CURSOR, file)) == NOBODY


def test_the_help_shows_that_both_words_may_be_left_out(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["connect", "--help"])
    assert "[CLIENT] [URL]" in capsys.readouterr().out


@pytest.mark.parametrize(("words", "said"), USAGE)
def test_usage_that_is_wrong_is_said_in_a_line(words: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(words) == 2
    told = capsys.readouterr().err
    assert said in told
    assert told.count("\n") == 1


def test_the_command_that_is_offered_writes_what_was_printed(
    board: Board, tmp_path: Path, token_file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "with a space.json"
    words = ["cursor", board.url, "--name", "mine", "--token-file", str(token_file), "--file", str(file)]
    main(["connect", *words])
    printed, told = capsys.readouterr()
    offered = re.search(r"`mcpboard (.*)` puts it there", told)
    assert offered
    main(shlex.split(offered[1]))
    assert f"{file} is written; there was none before" in capsys.readouterr().err
    assert file.read_text() == printed


def test_undo_by_the_verb(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "mcp.json"
    connect.write(CURSOR, Target(NOBODY), str(file))
    assert main(["connect", "cursor", "--undo", "--file", str(file)]) == 0
    assert "is gone, as it was before" in capsys.readouterr().err
    assert not file.exists()


@pytest.mark.parametrize(
    ("name", "good"),
    [
        ("phone-board", True),
        ("x" * 64, True),
        ("x" * 65, False),
        ("", False),
        ("9", False),
        ("null", False),
        ("a.b", False),
    ],
)
def test_a_name_is_one_that_every_client_takes(name: str, good: bool) -> None:
    assert is_name(name) == good


@pytest.mark.parametrize(("key", "package"), [("codex", "tomlkit"), ("hermes", "ruamel.yaml")])
def test_without_the_extra_the_command_that_installs_it_is_said(
    key: str, package: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "file"
    file.write_text("a = 1\n" if key == "codex" else "a: 1\n")
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(ConfigError, match=r"pip install 'mcpboard\[connect\]'"):
        connect.write(BY_KEY[key], Target(NOBODY), str(file))


def test_connect_works_where_only_windows_is(board: Board, tmp_path: Path) -> None:
    done = foreign("connect", "codex", board.url, "--write", "--file", str(tmp_path / "config.toml"))
    assert done.returncode == 0, done.stderr
    assert of(BY_KEY["codex"], tmp_path / "config.toml")["url"] == board.url


def test_backups_of_other_files_are_not_ours(tmp_path: Path) -> None:
    file = tmp_path / "mcp.json"
    connect.write(CURSOR, Target(NOBODY), str(file))
    (tmp_path / "mcp.json.mcpboard-x").write_text("")
    (tmp_path / "mcp.json.bak.mcpboard-9-0123456789abcdef").write_text("")
    assert [backup.number for backup in client_files.backups(str(file))] == [1]
