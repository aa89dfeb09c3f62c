"""The files of the host: their modes, the first writer, what may stand in their place, and the tokens that are accepted."""

from __future__ import annotations

import json
import logging
import os
import re
import socket
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from mcpboard.errors import ConfigError
from mcpboard.host import running, storage
from mcpboard.host.access import tokens
from mcpboard.host.access.identity import identity
from mcpboard.host.access.tokens import NAMED_FILE, TOKEN_FILE, Tokens, main_token, read_main_token
from mcpboard.host.cloud import enrollment
from mcpboard.host.cloud.outbox import Outbox, OutboxEntry
from mcpboard.host.devices import registry
from mcpboard.host.running import RUNNING_FILE
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


def test_the_token_stays_until_its_file_is_deleted(tmp_path: Path) -> None:
    """Delete the file and restart: the old token stops working at once."""
    old = main_token(tmp_path)
    assert old == main_token(tmp_path) == read_main_token(tmp_path)
    (tmp_path / TOKEN_FILE).unlink()
    book = Tokens(tmp_path)
    assert book.authorize(f"Bearer {old}") is None
    assert book.authorize(f"Bearer {read_main_token(tmp_path)}") is not None


# What may stand in the token's file; the names are those of the ways in which it gets there.
UNUSABLE = {
    "an empty file": "", "an empty object": "{}", "broken JSON": "{", "JSON nested too deeply": "[" * 100_000, "no object": '"text"',
    "an empty token": '{"token": ""}', "a short token": '{"token": "short"}', "a number for a token": '{"token": 7}',
    "a token with a line break": json.dumps({"token": GOOD + "\n"}), "a token that no header carries": json.dumps({"token": GOOD + "é"}),
}  # fmt: skip


@pytest.mark.parametrize("content", UNUSABLE.values(), ids=UNUSABLE)
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


def _endless(file: Path) -> None:
    file.symlink_to("/dev/zero")


def _socket(file: Path) -> None:
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(str(file))


def _huge(file: Path) -> None:
    with file.open("wb") as opened:
        opened.truncate(1 << 40)  # a hole: no disk holds that many bytes


ODD: list[Callable[[Path], None]] = [_symlink, _endless, _socket, _huge, os.mkfifo, Path.mkdir]
LOCK = f"{RUNNING_FILE}.lock"
READERS: dict[str, Callable[[Path], object]] = {
    "host_identity.json": lambda folder: identity(folder / "host_identity.json"),
    TOKEN_FILE: main_token,
    NAMED_FILE: tokens.named,
    registry.DEVICES_FILE: registry.specs,
    enrollment.ENROLLMENT_FILE: enrollment.read,
    LOCK: lambda folder: running.exclusive(folder).__enter__(),  # which reads nothing of it
}


@pytest.mark.parametrize(
    ("name", "make"), [(name, make) for name in READERS for make in ODD if (name, make) != (LOCK, _huge)]
)
def test_what_is_no_file_of_ours_is_refused_and_never_waited_for(
    tmp_path: Path, name: str, make: Callable[[Path], None]
) -> None:
    make(tmp_path / name)
    with pytest.raises(ConfigError, match=f"{name}: .*delete it") as refused:
        READERS[name](tmp_path)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("make", ODD)
@pytest.mark.parametrize("name", ["odd.json", ".torn.json.00000000"])
def test_an_outcome_that_is_owed_is_told_whatever_lies_beside_it(
    tmp_path: Path, name: str, make: Callable[[Path], None]
) -> None:
    Outbox(tmp_path, "h").post(OutboxEntry("h", "a", "lease", {"lease_id": "lease"}))
    make(tmp_path / "outbox" / name)
    assert [entry.assignment for entry in Outbox(tmp_path, "h").pending()] == ["a"]


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


def test_what_is_no_folder_of_ours_is_refused_and_left_alone(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    (tmp_path / "shared").mkdir()
    (tmp_path / "shared").chmod(0o1777)
    for name in ("shared", "file", "file/below"):
        with pytest.raises(ConfigError, match="--data DIR"):
            main_token(tmp_path / name)
    assert mode(tmp_path / "shared") == 0o1777


@pytest.mark.slow
def test_six_processes_that_start_at_once_agree_on_one_token(tmp_path: Path) -> None:
    program = (
        "import sys; from pathlib import Path; from mcpboard.host.access.tokens import main_token; sys.stdin.read(); "
        "print(main_token(Path(sys.argv[1])))"
    )
    command = [sys.executable, "-c", program, str(tmp_path / "folder")]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    processes = [subprocess.Popen(command, cwd=ROOT, text=True, **pipes) for _ in range(6)]  # type: ignore[call-overload]
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

SPELLINGS = {
    True: ["Bearer {}", "bearer {}", "BEARER {}", "Bearer  {}", "Bearer {} "],
    False: ["Bearer\t{}", 'Bearer "{}"', "Bearer {}x", "Basic {}", "{}", "Bearer {0}, Bearer {0}", "Bearer ", "Bearer", "", "Bearer \xe9"],
}  # fmt: skip


@pytest.mark.parametrize("well", SPELLINGS)
def test_the_scheme_is_tolerant_and_the_token_exact(tmp_path: Path, well: bool) -> None:
    book, token = Tokens(tmp_path), read_main_token(tmp_path)
    assert {each for each in SPELLINGS[well] if (book.authorize(each.format(token)) is not None) != well} == set()
    assert (book.authorize(None), book.authorize(f"Bearer {token.swapcase()}")) == (None, None)


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


DAMAGE: dict[str, Callable[[Path], object]] = {
    **{name: lambda file, text=text: file.write_text(text) for name, text in UNUSABLE.items()},  # type: ignore[misc]
    **{make.__name__: lambda file, make=make: (file.unlink(), make(file)) for make in ODD},  # type: ignore[misc]
    "no file": Path.unlink,
}


@pytest.mark.parametrize("damage", DAMAGE.values(), ids=DAMAGE)
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


def test_a_digest_may_be_in_capitals(tmp_path: Path) -> None:
    """As some tools print it, for whoever writes the file by hand."""
    token = tokens.add_named(tmp_path, "hermes")
    file = tmp_path / NAMED_FILE
    document = json.loads(file.read_text())
    document["tokens"][0]["digest"] = f" {document['tokens'][0]['digest'].upper()}"
    file.write_text(json.dumps(document))
    assert Tokens(tmp_path).authorize(f"Bearer {token}")


SPOILS: list[dict[str, object]] = [{"digest": "no hex"}, {"digest": "00"}, {"digest": 7}, {"name": "another", "digest": ""}, {"id": "another", "digest": ""}]  # fmt: skip


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


@pytest.mark.parametrize(
    "content", ["{", "{}", '{"tokens": {}}', '{"tokens": ""}', '{"tokens": [{}]}', '{"tokens": [7]}']
)
def test_a_broken_list_leaves_the_tokens_as_they_were_and_an_empty_one_takes_them_all(
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
    storage.replace(tmp_path / NAMED_FILE, {"tokens": []})
    assert book.authorize(f"Bearer {token}") is None
