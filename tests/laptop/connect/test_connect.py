"""`mcpboard connect`: printed, written, taken back; and what was written is driven, by its own parser's reading."""

from __future__ import annotations

import json
import os
import re
import shlex
import stat
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
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


def mode(path: str | Path) -> int:
    return stat.S_IMODE(os.stat(path).st_mode)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """Where a client's file is, or will be."""
    (tmp_path / "folder").mkdir()
    return tmp_path / "folder" / "mcp.json"


@pytest.fixture
def token_file(tmp_path: Path) -> Path:
    file = tmp_path / "token"
    file.write_text(TOKEN + "\n")
    return file


@pytest.fixture
def locked(token_file: Path) -> Target:
    """A server that requires the token, where nobody listens."""
    return Target(NOBODY, "left", Token(str(token_file), TOKEN))


# --- written, and driven -------------------------------------------------------------------------


@pytest.mark.parametrize("client", WRITABLE, ids=lambda client: client.key)
def test_what_is_written_leads_to_the_board(
    client: ClientConfig, board: Board, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "new folder" / "file"
    assert main(["connect", client.key, board.url, "--write", "--file", str(file)]) == 0
    assert "answers: mcpboard" in capsys.readouterr().err
    with Client(url_of(of(client, file))) as session:
        assert session.list_tools()


@pytest.fixture(scope="module")
def locked_url() -> Iterator[str]:
    with rig.in_front_of(token=TOKEN.encode()) as board:
        yield f"http://127.0.0.1:{board.address[1]}/mcp"


@pytest.mark.parametrize("client", CLIENT_CONFIGS, ids=lambda client: client.key)
def test_what_is_printed_is_the_form_for_that_url_with_the_token_only_where_it_is_demanded(
    client: ClientConfig, locked_url: str, token_file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["connect", client.key, locked_url, "--token-file", str(token_file)]) == 0
    printed, said = capsys.readouterr()
    target = Target(locked_url, token=Token(str(token_file), TOKEN), program=verb.program())
    assert printed == client.text(target) + "\n"
    assert locked_url in printed
    demanded = client.key in ("gemini", "hermes", "goose", "lm-studio")
    assert (TOKEN in printed) == demanded == ("holds the token itself" in said)
    assert TOKEN not in said


def test_the_program_of_claude_desktop_s_entry_is_started_and_answers(board: Board, file: Path) -> None:
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

GEMINI = BY_KEY["gemini"]  # whose entry holds the token


@pytest.mark.parametrize("before", [0o664, 0o640, 0o604])
@pytest.mark.parametrize("client", WRITABLE, ids=lambda client: client.key)
def test_a_written_token_is_a_reference_or_in_a_private_file(
    client: ClientConfig, before: int, token_file: Path, file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file.touch()
    file.chmod(before)
    words = ["--name", "left", "--write", "--file", str(file), "--token-file", str(token_file)]
    main(["connect", client.key, NOBODY, *words])
    expected = {"variable": "LEFT_TOKEN", "file": str(token_file), "prompt": "input:left_token", "value": TOKEN}
    assert expected[client.token] in json.dumps(of(client, file, "left"))
    held = client.token == "value"
    assert ("for you alone" in capsys.readouterr().err) == held
    assert [mode(path) for path in file.parent.iterdir()] == [0o600 if held else before] * 2


def test_the_token_never_stands_in_a_file_that_others_can_read(
    locked: Target, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file.write_text("{}")
    replaced = os.replace
    seen: list[tuple[int, bool]] = []

    def looking(source: str, target: str) -> None:
        seen.extend((mode(each), TOKEN in Path(each).read_text()) for each in (source, file))
        replaced(source, target)

    monkeypatch.setattr(os, "replace", looking)
    connect.write(GEMINI, locked, str(file))
    assert (0o600, True) in seen
    assert all(private == 0o600 for private, _ in seen)


def test_a_token_that_stands_there_already_is_taken_from_others_too(locked: Target, file: Path) -> None:
    """As an older version left it: the file and a backup with another token, both readable."""
    for token in ("another-token-of-some-length", TOKEN):
        connect.write(GEMINI, replace(locked, token=Token("/token", token)), str(file))
    for path in file.parent.iterdir():
        path.chmod(0o644)
    again = [connect.write(GEMINI, locked, str(file)) for _ in range(2)]
    assert [(written.backup, written.is_restricted) for written in again] == [("", True), ("", False)]
    assert [mode(path) for path in file.parent.iterdir()] == [0o600] * 3


def test_the_command_that_shows_a_token_survives_a_shell(tmp_path: Path) -> None:
    folder = tmp_path / 'a b\'s "c" $HOME `id`;x'
    folder.mkdir()
    (folder / "token").write_text(TOKEN, "ascii")
    shown = run("sh", "-c", Token(str(folder / "token"), TOKEN).command)
    assert (shown.stdout, shown.stderr) == (TOKEN, "")


def test_vs_code_asks_for_the_token_it_is_told_of(locked: Target, file: Path) -> None:
    connect.write(BY_KEY["vscode"], locked, str(file))
    (asked,) = json.loads(file.read_text())["inputs"]
    assert f"${{input:{asked['id']}}}" in file.read_text()
    assert asked["password"] is True


# --- the file ------------------------------------------------------------------------------------

CURSOR = BY_KEY["cursor"]
OTHERS = b'{\n  "mcpServers": {\n    "other": {"command": "x"}\n  }\n}'


def test_undo_gives_the_file_back_to_the_byte_write_after_write(file: Path) -> None:
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
    assert os.listdir(file.parent) == ["mcp.json"]


@pytest.mark.parametrize("content", [None, b""], ids=["no file", "an empty file"])
def test_undo_knows_no_file_from_an_empty_one(
    content: bytes | None, file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    if content is not None:
        file.write_bytes(content)
    connect.write(CURSOR, Target(NOBODY), str(file))
    assert main(["connect", "cursor", "--undo", "--file", str(file)]) == 0
    assert ("is gone, as it was before" in capsys.readouterr().err) == (content is None)
    assert (file.read_bytes() if file.exists() else None) == content


@pytest.mark.parametrize("change", ["edited", "removed"])
def test_undo_leaves_a_file_alone_that_has_changed_since(change: str, file: Path) -> None:
    backup = connect.write(CURSOR, Target(NOBODY), str(file)).backup
    if change == "edited":
        file.write_bytes(file.read_bytes() + b"\n")
    else:
        file.unlink()
    with pytest.raises(ConfigError, match="has changed since"):
        connect.undo(str(file))
    assert os.path.exists(backup)


def test_the_same_again_changes_nothing(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    connect.write(CURSOR, Target(NOBODY), str(file))
    before = sorted(os.listdir(file.parent)), file.stat().st_mtime_ns
    main(["connect", "cursor", NOBODY, "--write", "--file", str(file)])
    assert "is already configured" in capsys.readouterr().err
    assert (sorted(os.listdir(file.parent)), file.stat().st_mtime_ns) == before


@pytest.mark.parametrize(("is_locked", "after"), [(False, 0o640), (True, 0o600)], ids=["open", "with a token"])
def test_a_link_is_followed_and_the_mode_kept_unless_the_token_stands_there(
    is_locked: bool, after: int, locked: Target, file: Path, tmp_path: Path
) -> None:
    """What undo gives back stays private: nobody knows any more who could read it before."""
    file.write_bytes(OTHERS)
    file.chmod(0o640)
    link = tmp_path / "link"
    link.symlink_to(file)
    written = connect.write(GEMINI, locked if is_locked else Target(NOBODY), str(link))
    assert link.is_symlink()
    assert os.path.dirname(written.backup) == str(file.parent)
    assert (mode(file), mode(written.backup), written.is_restricted) == (after, after, is_locked)
    connect.undo(str(link))
    assert (file.read_bytes(), mode(file), os.listdir(file.parent)) == (OTHERS, after, ["mcp.json"])


def test_a_byte_order_mark_stays(file: Path) -> None:
    file.write_bytes(b"\xef\xbb\xbf" + OTHERS)
    connect.write(CURSOR, Target(NOBODY), str(file))
    assert file.read_bytes().startswith(b"\xef\xbb\xbf{")
    assert json.loads(file.read_text("utf-8-sig"))["mcpServers"].keys() == {"other", "phone-board"}


REFUSED = [
    pytest.param(b"{ // mine\n", "is not JSON", id="no end"),
    pytest.param(b"\xff\xfe{\x00}\x00", "not UTF-8", id="another encoding"),
    pytest.param(b"{" + b" " * (5 << 20), "larger than", id="far too large"),
]


@pytest.mark.parametrize(("content", "words"), REFUSED)
def test_a_file_that_cannot_be_kept_is_left_alone(
    content: bytes, words: str, file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file.write_bytes(content)
    assert main(["connect", "cursor", NOBODY, "--write", "--file", str(file)]) == 2
    entry, said = capsys.readouterr()
    assert json.loads(entry)["mcpServers"]["phone-board"]["url"] == NOBODY, "it is there to be added by hand"
    assert words in said
    assert str(file) in said
    assert (file.read_bytes(), os.listdir(file.parent)) == (content, ["mcp.json"])


def test_a_file_that_changes_meanwhile_is_left_alone(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file.write_bytes(OTHERS)

    def edited(*given: Any) -> str:
        file.write_bytes(b"{}")
        return "{ }"

    monkeypatch.setattr(edits, "with_entry", edited)
    with pytest.raises(ConfigError, match="changed a moment ago"):
        connect.write(CURSOR, Target(NOBODY), str(file))
    assert (file.read_bytes(), os.listdir(file.parent)) == (b"{}", ["mcp.json"])


def test_a_write_that_fails_leaves_everything_as_it_was(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file.write_bytes(OTHERS)
    replaced = os.replace

    def full(source: str, target: str) -> None:
        if target == str(file):
            raise OSError(28, "No space left on device")
        replaced(source, target)

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(ConfigError, match="No space left"):
        connect.write(CURSOR, Target(NOBODY), str(file))
    assert (file.read_bytes(), os.listdir(file.parent)) == (OTHERS, ["mcp.json"])


def test_a_write_removes_what_a_crash_left_of_an_earlier_one(file: Path) -> None:
    left = staged_file(file, b"with a token")
    os.utime(left, (0, 0))
    connect.write(CURSOR, Target(NOBODY), str(file))
    assert not os.path.exists(left)


@pytest.mark.parametrize(("make", "said"), [(os.mkfifo, "is a FIFO"), (os.mkdir, "is a directory")])
def test_what_is_no_file_is_said_and_not_waited_for(make: Callable[[Path], None], said: str, file: Path) -> None:
    make(file)
    with pytest.raises(ConfigError, match=said):
        connect.write(CURSOR, Target(NOBODY), str(file))
    with pytest.raises(ConfigError, match="nothing to undo"):
        connect.undo(str(file))


# --- where, and with what ------------------------------------------------------------------------

FOLDERS = {"~": "/home/me", "%APPDATA%": "/roaming", "%LOCALAPPDATA%": "/local"}
DESKTOP = "Claude/claude_desktop_config.json"
PLACES = [
    pytest.param("claude-desktop", "darwin", {}, f"/home/me/Library/Application Support/{DESKTOP}", id="Claude Desktop, macOS"),
    pytest.param("claude-desktop", "win32", {}, f"/roaming/{DESKTOP}", id="Claude Desktop, Windows"),
    pytest.param("claude-desktop", "linux", {}, f"/home/me/.config/{DESKTOP}", id="Claude Desktop, Linux"),
    pytest.param("claude-desktop", "linux", {"$XDG_CONFIG_HOME": "/xdg"}, f"/xdg/{DESKTOP}", id="Claude Desktop, XDG"),
    pytest.param("goose", "linux", {}, "/home/me/.config/goose/config.yaml", id="Goose, Linux"),
    pytest.param("goose", "darwin", {"$XDG_CONFIG_HOME": "/xdg"}, "/xdg/goose/config.yaml", id="Goose, XDG"),
    pytest.param("goose", "linux", {"$XDG_CONFIG_HOME": "/xdg", "$GOOSE_PATH_ROOT": "/g"}, "/g/config/config.yaml", id="Goose, a root of its own"),
    pytest.param("goose", "win32", {"$XDG_CONFIG_HOME": "/xdg"}, "/roaming/Block/goose/config/config.yaml", id="Goose, Windows"),
    pytest.param("codex", "win32", {}, "/home/me/.codex/config.toml", id="Codex, anywhere"),
    pytest.param("codex", "linux", {"$CODEX_HOME": "/codex"}, "/codex/config.toml", id="Codex, CODEX_HOME"),
    pytest.param("gemini", "darwin", {"$GEMINI_CLI_HOME": "/g"}, "/g/.gemini/settings.json", id="Gemini, GEMINI_CLI_HOME"),
    pytest.param("hermes", "linux", {}, "/home/me/.hermes/config.yaml", id="Hermes, Linux"),
    pytest.param("hermes", "win32", {}, "/local/hermes/config.yaml", id="Hermes, Windows"),
    pytest.param("goose", "linux", {"$XDG_CONFIG_HOME": "x", "$GOOSE_PATH_ROOT": "g"}, "/home/me/.config/goose/config.yaml", id="Goose, relative paths"),
    pytest.param("codex", "linux", {"$CODEX_HOME": "c"}, os.path.abspath("c/config.toml"), id="Codex, a relative path"),
    pytest.param("hermes", "win32", {"$HERMES_HOME": "/h"}, "/h/config.yaml", id="Hermes, HERMES_HOME"),
    pytest.param("vscode", "linux", {}, os.path.join(os.getcwd(), ".vscode/mcp.json"), id="VS Code, in the project"),
]  # fmt: skip


@pytest.mark.parametrize(("key", "system", "variables", "path"), PLACES)
def test_each_client_has_its_file(key: str, system: str, variables: dict[str, str], path: str) -> None:
    assert connect.path_of(BY_KEY[key], system, FOLDERS | variables) == path


def test_claude_desktop_from_a_package_has_its_file_in_the_packages_folder(tmp_path: Path) -> None:
    """As the installer of today makes it, on Windows; the other place is not read then."""
    folders = FOLDERS | {"%LOCALAPPDATA%": str(tmp_path)}
    desktop = BY_KEY["claude-desktop"]
    (tmp_path / "Packages/Other_x/LocalCache/Roaming/Claude").mkdir(parents=True)
    assert connect.path_of(desktop, "win32", folders) == f"/roaming/{DESKTOP}"
    folder = tmp_path / "Packages/Claude_pzs8sxrjxfjjc/LocalCache/Roaming/Claude"
    folder.mkdir(parents=True)
    assert connect.path_of(desktop, "win32", folders) == str(folder / "claude_desktop_config.json")


def test_the_folders_of_a_user() -> None:
    assert config.user_folders({"APPDATA": "/x"})["%APPDATA%"] == "/x"
    assert config.user_folders({})["%APPDATA%"].startswith(config.user_folders({})["~"])
    given = {"CODEX_HOME": " /c ", "HERMES_HOME": " "}
    assert {each: path for each, path in config.user_folders(given).items() if each[0] == "$"} == {"$CODEX_HOME": "/c"}


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


ORDERS = ["cursor URL --write --file FILE", "cursor --write URL --file FILE", "--file FILE cursor --write URL", "--write --file FILE cursor URL"]  # fmt: skip


@pytest.mark.parametrize("words", ORDERS)
def test_options_stand_anywhere(words: str, file: Path) -> None:
    given = {"URL": NOBODY, "FILE": str(file)}
    assert main(["connect", *(given.get(word, word) for word in words.split())]) == 1, "nobody answers there"
    assert url_of(of(CURSOR, file)) == NOBODY


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


NAMES = {"phone-board": True, "x" * 64: True, "x" * 65: False, "": False, "9": False, "null": False, "a.b": False}


@pytest.mark.parametrize(("name", "good"), NAMES.items())
def test_a_name_is_one_that_every_client_takes(name: str, good: bool) -> None:
    assert is_name(name) == good


@pytest.mark.parametrize(("key", "package"), [("codex", "tomlkit"), ("hermes", "ruamel.yaml")])
def test_without_the_extra_the_command_that_installs_it_is_said(
    key: str, package: str, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file.write_text('[mcp_servers.phone-board]\nurl = "x"\n' if key == "codex" else "a: 1\n")
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(ConfigError, match=r"pip install 'mcpboard\[connect\]'"):
        connect.write(BY_KEY[key], Target(NOBODY), str(file))


@pytest.mark.parametrize("key", ["codex", "hermes", "goose"])
def test_the_same_twice_needs_no_library(key: str, file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for package in ("tomlkit", "ruamel.yaml"):
        monkeypatch.setitem(sys.modules, package, None)
    first, again = (connect.write(BY_KEY[key], Target(NOBODY), str(file)) for _ in range(2))
    assert (first.is_new, again.backup) == (True, "")


def test_what_was_made_is_taken_back_and_nothing_empty_is_left(tmp_path: Path) -> None:
    """Folders, too, unless somebody has put something there."""
    file = tmp_path / "a/b/mcp.json"
    (tmp_path / "a").mkdir()
    connect.write(CURSOR, Target(NOBODY), str(file))
    assert all(each.stat().st_size for each in file.parent.iterdir())
    connect.undo(str(file))
    assert [*tmp_path.rglob("*")] == [tmp_path / "a"]
    file = tmp_path / "c/d/mcp.json"
    connect.write(CURSOR, Target(NOBODY), str(file))
    (tmp_path / "c/others").touch()
    connect.undo(str(file))
    assert sorted(tmp_path.rglob("*")) == [tmp_path / "a", tmp_path / "c", tmp_path / "c/others"]


def test_an_empty_backup_of_an_older_version_is_known(file: Path) -> None:
    backup = connect.write(CURSOR, Target(NOBODY), str(file)).backup
    Path(backup).write_bytes(b"")
    connect.undo(str(file))
    assert os.listdir(file.parent) == []


def test_a_refusal_leaves_the_mode_too(file: Path, locked: Target) -> None:
    file.write_bytes(OTHERS)
    file.chmod(0o444)
    with pytest.raises(ConfigError, match="--force"):
        connect.write(GEMINI, locked, str(file))
    assert (file.read_bytes(), mode(file)) == (OTHERS, 0o444)


def test_a_read_only_file_is_changed_by_force_alone(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file.write_bytes(OTHERS)
    file.chmod(0o444)
    words = ["connect", "cursor", NOBODY, "--write", "--file", str(file)]
    assert main(words) == 2
    assert "--force" in capsys.readouterr().err
    assert (file.read_bytes(), os.listdir(file.parent)) == (OTHERS, ["mcp.json"])
    main([*words, "--force"])
    assert url_of(of(CURSOR, file)) == NOBODY
    assert mode(file) == 0o444


NOTES = [
    pytest.param("cursor", '{"mcpServers": {"old": {"url": "URL"}}}', "old is there with the same URL", id="another name"),
    pytest.param("claude-desktop", '{"mcpServers": {"old": {"command": "npx", "args": ["-y", "mcp-remote", "URL"]}}}', "old is there with the same URL", id="by a program"),
    pytest.param("goose", "extensions:\n  old:\n    uri: URL\n", "old is there with the same URL", id="YAML"),
    pytest.param("codex", '[mcp_servers.old]\nurl = "URL"\n', "old is there with the same URL", id="TOML"),
    pytest.param("cursor", '{"mcpServers": {"phone-board": {"url": "x", "disabled": true}}}', "phone-board is disabled there", id="disabled"),
    pytest.param("goose", "extensions:\n  phone-board:\n    enabled: false\n", "phone-board is disabled there", id="not enabled"),
    pytest.param("cursor", '{"mcpServers": {"old": {"url": "http://127.0.0.1:10/mcp"}, "phone-board": 7}}', None, id="nothing of that sort"),
]  # fmt: skip


@pytest.mark.parametrize(("key", "content", "note"), NOTES)
def test_what_else_is_there_is_said_each_time(key: str, content: str, note: str | None, file: Path) -> None:
    file.write_text(content.replace("URL", NOBODY))
    for _ in range(2):
        (*said,) = connect.write(BY_KEY[key], Target(NOBODY), str(file)).notes
        assert (len(said), (note or "") in "".join(said)) == (int(note is not None), True)


def test_backups_of_other_files_are_not_ours(file: Path) -> None:
    connect.write(CURSOR, Target(NOBODY), str(file))
    for name in ("mcp.json.mcpboard-x", "mcp.json.bak.mcpboard-9-0123456789abcdef"):
        (file.parent / name).write_text("")
    assert [backup.number for backup in client_files.backups(str(file))] == [1]
