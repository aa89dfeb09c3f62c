"""The files of the host: their modes, the first writer, and the tokens that are accepted."""

from __future__ import annotations

import json
import logging
import os
import re
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from mcpboard.errors import ConfigError
from mcpboard.host import storage
from mcpboard.host.access import tokens
from mcpboard.host.access.identity import identity
from mcpboard.host.access.tokens import NAMED_FILE, TOKEN_FILE, Tokens, main_token, read_main_token
from tests.support import ROOT

GOOD = "x" * 43
FORM = re.compile(r"[A-Za-z0-9_-]{43}")  # 256 bits, url-safe


@pytest.fixture(params=[0o000, 0o022], ids=["umask 000", "umask 022"])
def umask(request: pytest.FixtureRequest) -> Iterator[None]:
    before = os.umask(request.param)
    yield
    os.umask(before)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.mark.usefixtures("umask")
def test_the_first_start_generates_a_token_that_nobody_else_may_read(tmp_path: Path) -> None:
    """The first start generates a random bearer token and writes it to host_mcp_token.json."""
    folder = tmp_path / "not" / "there"
    token = main_token(folder)
    written = json.loads((folder / TOKEN_FILE).read_text())
    assert FORM.fullmatch(token)
    assert (written["version"], written["token"], set(written)) == (1, token, {"version", "token", "created_at"})
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", written["created_at"])
    assert (mode(folder), mode(folder / TOKEN_FILE)) == (0o700, 0o600)
    assert [each.name for each in folder.iterdir()] == [TOKEN_FILE], "no temporary file is left"


def test_a_later_start_finds_the_same_token(tmp_path: Path) -> None:
    assert main_token(tmp_path) == main_token(tmp_path) == read_main_token(tmp_path)


def test_rotation_is_to_delete_the_file_and_start_again(tmp_path: Path) -> None:
    """Delete the file and restart: the old token stops working at once."""
    old = main_token(tmp_path)
    (tmp_path / TOKEN_FILE).unlink()
    tokens = Tokens(tmp_path)
    assert tokens.authorize(f"Bearer {old}") is None
    assert tokens.authorize(f"Bearer {read_main_token(tmp_path)}") is not None


UNUSABLE = [
    pytest.param("", id="an empty file"),
    pytest.param("{}", id="an empty object"),
    pytest.param("{", id="broken JSON"),
    pytest.param("[" * 100_000, id="JSON nested too deeply"),
    pytest.param('"text"', id="no object"),
    pytest.param('{"token": ""}', id="an empty token"),
    pytest.param('{"token": "short"}', id="a short token"),
    pytest.param('{"token": 7}', id="a number for a token"),
    pytest.param(json.dumps({"token": GOOD + "\n"}), id="a token with a line break"),
    pytest.param(json.dumps({"token": GOOD + "é"}), id="a token that no header carries"),
]


@pytest.mark.parametrize("content", UNUSABLE)
def test_an_unusable_token_file_refuses_to_start_and_stays_as_it_is(tmp_path: Path, content: str) -> None:
    """Never an empty token that matches an empty header."""
    file = tmp_path / TOKEN_FILE
    file.write_text(content)
    with pytest.raises(ConfigError, match=f"^{re.escape(str(file))}: .*delete it") as refused:
        main_token(tmp_path)
    assert "\n" not in str(refused.value)
    assert file.read_text() == content


def _symlink(file: Path) -> None:
    (file.parent / "target").write_text(json.dumps({"token": GOOD}))
    file.symlink_to(file.parent / "target")


def _dangling(file: Path) -> None:
    file.symlink_to(file.parent / "nowhere")


ODD = [
    pytest.param(_symlink, "symbolic link", id="a symbolic link"),
    pytest.param(_dangling, "symbolic link", id="a symbolic link to nowhere"),
    pytest.param(Path.mkdir, "no regular file", id="a folder"),
    pytest.param(os.mkfifo, "no regular file", id="a pipe, which is not waited for"),
]


@pytest.mark.parametrize(("make", "complaint"), ODD)
def test_what_is_no_file_of_ours_is_refused(tmp_path: Path, make: Callable[[Path], None], complaint: str) -> None:
    make(tmp_path / TOKEN_FILE)
    with pytest.raises(ConfigError, match=complaint):
        main_token(tmp_path)


def test_another_users_file_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    main_token(tmp_path)
    stranger = os.geteuid() + 1
    monkeypatch.setattr(os, "geteuid", lambda: stranger)
    with pytest.raises(ConfigError, match="belongs to another user; delete it"):
        read_main_token(tmp_path)
    with pytest.raises(ConfigError, match="a folder of this user alone"):
        main_token(tmp_path)


def test_a_loose_mode_is_tightened_with_a_warning(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    token = main_token(tmp_path)
    (tmp_path / TOKEN_FILE).chmod(0o644)
    tmp_path.chmod(0o755)
    assert main_token(tmp_path) == token
    assert (mode(tmp_path), mode(tmp_path / TOKEN_FILE)) == (0o700, 0o600)
    assert [record.levelno for record in caplog.records] == [logging.WARNING] * 2
    assert token not in caplog.text


def test_a_shared_folder_is_refused_and_left_alone(tmp_path: Path) -> None:
    tmp_path.chmod(0o1777)
    with pytest.raises(ConfigError, match="name another with --data DIR"):
        main_token(tmp_path)
    assert mode(tmp_path) == 0o1777


def test_a_file_that_stands_for_a_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for folder in (tmp_path / "file", tmp_path / "file" / "below"):
        with pytest.raises(ConfigError, match="--data DIR"):
            main_token(folder)


@pytest.mark.slow
def test_sixteen_processes_that_start_at_once_agree_on_one_token(tmp_path: Path) -> None:
    program = (
        "import sys; from pathlib import Path; from mcpboard.host.access.tokens import main_token; sys.stdin.read(); "
        "print(main_token(Path(sys.argv[1])))"
    )
    command = [sys.executable, "-c", program, str(tmp_path / "folder")]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    processes = [subprocess.Popen(command, cwd=ROOT, text=True, **pipes) for _ in range(16)]  # type: ignore[call-overload]
    for each in processes:  # all are loaded and wait for the end of their input
        each.stdin.flush()
    for each in processes:
        each.stdin.close()
    printed = []
    for each in processes:
        printed.append(each.stdout.read())
        each.stdout.close()
        assert each.wait(30) == 0
    assert set(printed) == {read_main_token(tmp_path / "folder") + "\n"}


def test_the_identity_is_generated_once_and_kept(tmp_path: Path) -> None:
    path = tmp_path / "folder" / "host_identity.json"
    first = identity(path)
    assert re.fullmatch(r"[0-9a-f]{32}", first.id)
    assert identity(path) == first
    assert mode(path) == 0o600
    path.write_text("{}")
    with pytest.raises(ConfigError, match=f"{path}: holds no identity; delete it"):
        identity(path)


def test_a_write_that_fails_leaves_the_old_file_and_no_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "file"
    storage.replace(path, {"old": True})

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    for write in (storage.replace, storage.create):
        with pytest.raises(OSError, match="No space left"):
            write(path, {"new": True})
    assert storage.read(path) == {"old": True}
    assert list(tmp_path.iterdir()) == [path]


# --- the header --------------------------------------------------------------------------------

SPELLINGS = [
    pytest.param("Bearer {}", True, id="as documented"),
    pytest.param("bearer {}", True, id="the scheme in lower case"),
    pytest.param("BEARER {}", True, id="the scheme in upper case"),
    pytest.param("Bearer  {}", True, id="two spaces"),
    pytest.param("Bearer {} ", True, id="a space behind"),
    pytest.param("Bearer\t{}", False, id="a tab"),
    pytest.param('Bearer "{}"', False, id="quotes"),
    pytest.param("Bearer {}x", False, id="a character too many"),
    pytest.param("Basic {}", False, id="another scheme"),
    pytest.param("{}", False, id="no scheme"),
    pytest.param("Bearer {0}, Bearer {0}", False, id="two headers, joined"),
    pytest.param("Bearer ", False, id="an empty token"),
    pytest.param("Bearer", False, id="the scheme only"),
    pytest.param("", False, id="an empty header"),
    pytest.param(None, False, id="no header"),
    pytest.param("Bearer \xe9", False, id="a character beyond ASCII"),
]


@pytest.mark.parametrize(("header", "well"), SPELLINGS)
def test_the_scheme_is_tolerant_and_the_token_exact(tmp_path: Path, header: str | None, well: bool) -> None:
    tokens = Tokens(tmp_path)
    sent = None if header is None else header.format(read_main_token(tmp_path))
    assert (tokens.authorize(sent) is not None) == well


def test_the_case_of_the_token_matters(tmp_path: Path) -> None:
    tokens, token = Tokens(tmp_path), read_main_token(tmp_path)
    assert tokens.authorize(f"Bearer {token.swapcase()}") is None


# --- named tokens ------------------------------------------------------------------------------


def test_named_tokens_come_and_go_without_a_restart(tmp_path: Path) -> None:
    removed: list[str] = []
    book = Tokens(tmp_path, removed.append)
    token = tokens.add_named(tmp_path, "hermes")
    main, named = (book.authorize(f"Bearer {each}") for each in (read_main_token(tmp_path), token))
    assert None not in (main, named)
    assert main != named
    tokens.add_named(tmp_path, "other")
    assert book.authorize(f"Bearer {token}") == named
    tokens.remove_named(tmp_path, "hermes")
    assert book.authorize(f"Bearer {token}") is None
    assert removed == [named]
    assert [each.name for each in tokens.named(tmp_path)] == ["other"]


def test_a_named_token_is_kept_as_a_digest_only(tmp_path: Path) -> None:
    token = tokens.add_named(tmp_path, "hermes")
    content = (tmp_path / NAMED_FILE).read_text()
    assert mode(tmp_path / NAMED_FILE) == 0o600
    assert not any(token[at : at + 8] in content for at in range(len(token) - 7))


def test_names_are_given_once_and_can_be_typed(tmp_path: Path) -> None:
    tokens.add_named(tmp_path, "hermes")
    for name, complaint in (("hermes", "already"), ("main", "not main"), ("a b", "letters"), ("", "letters")):
        with pytest.raises(ConfigError, match=complaint):
            tokens.add_named(tmp_path, name)
    with pytest.raises(ConfigError, match="there is no token nobody"):
        tokens.remove_named(tmp_path, "nobody")


BROKEN = [
    pytest.param("{", id="broken JSON"),
    pytest.param("{}", id="no list"),
    pytest.param('{"tokens": [{}]}', id="a token without members"),
    pytest.param('{"tokens": [{"name": "a", "id": "b", "created_at": "c", "digest": ""}]}', id="an empty digest"),
]


@pytest.mark.parametrize("content", BROKEN)
def test_a_broken_list_leaves_the_tokens_as_they_were(
    tmp_path: Path, content: str, caplog: pytest.LogCaptureFixture
) -> None:
    book, token = Tokens(tmp_path), tokens.add_named(tmp_path, "hermes")
    assert book.authorize(f"Bearer {token}") is not None
    (tmp_path / NAMED_FILE).write_text(content)
    assert book.authorize(f"Bearer {token}") is not None
    assert book.authorize("Bearer ") is None
    assert "stay as they were" in caplog.text
    with pytest.raises(ConfigError, match="delete it"):
        tokens.named(tmp_path)


# --- files that change while the agent runs ----------------------------------------------------


def rewrite(folder: Path, token: str) -> None:
    (folder / TOKEN_FILE).write_text(json.dumps({"version": 1, "token": token}))


def test_a_main_token_that_is_replaced_counts_at_once_and_the_old_one_no_more(tmp_path: Path) -> None:
    removed: list[str] = []
    book, old = Tokens(tmp_path, removed.append), read_main_token(tmp_path)
    principal = book.authorize(f"Bearer {old}")
    storage.replace(tmp_path / NAMED_FILE, {"tokens": "damaged"})
    rewrite(tmp_path, GOOD)
    assert book.authorize(f"Bearer {old}") is None
    assert book.authorize(f"Bearer {GOOD}") not in (None, principal)
    assert (book.is_main(old), book.is_main(GOOD)) == (False, True)
    assert removed == [principal]


def _gone(file: Path) -> None:
    file.unlink()


def _folder(file: Path) -> None:
    file.unlink()
    file.mkdir()


def _fifo(file: Path) -> None:
    file.unlink()
    os.mkfifo(file)


def _large(file: Path) -> None:
    with file.open("wb") as opened:
        opened.truncate(100_000_000)


def _link(file: Path) -> None:
    file.unlink()
    _symlink(file)


DAMAGE = [
    *(pytest.param(lambda file, text=each.values[0]: file.write_text(text), id=str(each.id)) for each in UNUSABLE),
    *(pytest.param(each, id=each.__name__[1:]) for each in (_gone, _folder, _fifo, _large, _link)),
]


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_damaged_main_token_stays_and_holds_up_no_named_one(
    tmp_path: Path, damage: Callable[[Path], object], caplog: pytest.LogCaptureFixture
) -> None:
    """A token that is removed meanwhile is refused at once; the log says what is wrong once, and no token."""
    book, main = Tokens(tmp_path), read_main_token(tmp_path)
    gone, kept = tokens.add_named(tmp_path, "gone"), tokens.add_named(tmp_path, "kept")
    assert None not in [book.authorize(f"Bearer {each}") for each in (main, gone, kept)]
    damage(tmp_path / TOKEN_FILE)
    tokens.remove_named(tmp_path, "gone")
    for _ in range(3):
        accepted = [book.authorize(f"Bearer {each}") is not None for each in (main, gone, kept)]
        assert accepted == [True, False, True]
    lines = [record.getMessage() for record in caplog.records if "until then" in record.getMessage()]
    assert len(lines) == 1
    assert lines[0].startswith(f"{tmp_path / TOKEN_FILE}: ")
    assert lines[0].endswith("(until then its token stays as it was)")
    assert not any(each in caplog.text for each in (main, GOOD, gone, kept))
    if (tmp_path / TOKEN_FILE).is_dir():
        (tmp_path / TOKEN_FILE).rmdir()
    storage.replace(tmp_path / TOKEN_FILE, {"version": 1, "token": GOOD})
    assert book.authorize(f"Bearer {main}") is None
    assert book.authorize(f"Bearer {GOOD}") is not None


SPOILS: list[dict[str, object]] = [
    {"digest": "no hex"},
    {"digest": "00"},
    {"digest": 7},
    {"name": "another", "digest": ""},
    {"id": "another", "digest": ""},
]


@pytest.mark.parametrize("spoil", SPOILS, ids=str)
def test_a_damaged_entry_keeps_its_own_token_and_no_removed_one(
    tmp_path: Path, spoil: dict[str, object], caplog: pytest.LogCaptureFixture
) -> None:
    removed: list[str] = []
    book = Tokens(tmp_path, removed.append)
    given = {name: tokens.add_named(tmp_path, name) for name in ("damaged", "removed", "whole")}
    ids = {name: book.authorize(f"Bearer {token}") for name, token in given.items()}
    document = json.loads((tmp_path / NAMED_FILE).read_text())
    document["tokens"] = [
        each | spoil if each["name"] == "damaged" else each for each in document["tokens"] if each["name"] != "removed"
    ]
    storage.replace(tmp_path / NAMED_FILE, document)
    accepted = {name for name, token in given.items() if book.authorize(f"Bearer {token}")}
    assert accepted == {"damaged", "whole"}
    assert removed == [ids["removed"]]
    assert caplog.text.count("holds an entry that is no token") == 1
    with pytest.raises(ConfigError, match="delete it and add the tokens again"):
        tokens.add_named(tmp_path, "more")


def test_a_list_of_no_entries_is_no_damage_and_no_list_is(tmp_path: Path) -> None:
    book, token = Tokens(tmp_path), tokens.add_named(tmp_path, "hermes")
    assert book.authorize(f"Bearer {token}") is not None
    contents: list[dict[str, object]] = [{"tokens": {}}, {"tokens": ""}, {"tokens": 0}, {}]
    for content in contents:
        storage.replace(tmp_path / NAMED_FILE, content)
        assert book.authorize(f"Bearer {token}") is not None
    storage.replace(tmp_path / NAMED_FILE, {"tokens": []})
    assert book.authorize(f"Bearer {token}") is None
