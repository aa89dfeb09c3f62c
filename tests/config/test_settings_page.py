"""The table of docs/settings.md is run: every damage to every file, at the start and while the program runs."""

from __future__ import annotations

import json
import os
import re
import socket
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from mcpboard import config
from mcpboard.cli.call import token_from
from mcpboard.errors import ConfigError
from mcpboard.host import config as host_config
from mcpboard.host.access import tokens
from mcpboard.host.devices.registry import DEVICES_FILE, DeviceSpec, Registry, add
from tests.support import ROOT

PAGE = (ROOT / "docs" / "settings.md").read_text("utf-8")
TOKEN = "the-token-of-this-test-is-43-characters-lon"
AGENT = "[conversation_settings.agent]"
WEB = "mcp_config_web_base_url"


class Subject:
    """One file: how it looks when it is whole, how its keys go wrong, and what counts of it then.

    `run` starts with the file as it is, and returns the function that tells in a word of the page what
    counts from then on; a file that is read at the start alone does not follow.
    """

    name = ""
    text = ""  # whole
    variants: Mapping[str, str] = {}  # damage that is not that of any file -> content
    follows = True

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.path = folder / self.name
        self.path.touch(0o600)
        self.path.write_text(self.text)

    def start(self) -> str:
        """Return what counts after a start with the file as it is."""
        return self.run()()

    def run(self) -> Callable[[], str]:
        raise NotImplementedError


class OwnFile(Subject):
    name = "mcpboard.toml"
    text = "[mcpboard]\nstrict_meta = true\nsupport_bundle_max_bytes = 5\n"
    variants = {
        "a line is missing": "[mcpboard]\nsupport_bundle_max_bytes = 6\n",
        "a table of the wrong type": "mcpboard = 3\n",
        "a value of the wrong type": '[mcpboard]\nstrict_meta = "false"\nsupport_bundle_max_bytes = 6\n',
        "a value out of range": "[mcpboard]\nstrict_meta = true\nsupport_bundle_max_bytes = 0\n",
        "an unknown key": "[mcpboard]\nstrict_mete = true\nsupport_bundle_max_bytes = 6\n",
    }
    flags: Mapping[str, object] = {"agent_config": os.devnull}

    def run(self) -> Callable[[], str]:
        watched = config.SettingsWatcher(self.flags, {})
        return lambda: self.word(watched.current())

    def word(self, settings: config.Settings) -> str:
        words = {(True, 5): "kept", (True, 6): "key kept", (False, 6): "key default", (False, 33_554_432): "default"}
        return words[settings.strict_meta, settings.support_bundle_max_bytes]


class AgentFile(OwnFile):
    name = "agent.toml"
    text = f'{AGENT}\nmcp_shell_enabled = true\n{WEB} = "http://127.0.0.1:1"\n'
    variants = {
        "a line is missing": f'{AGENT}\n{WEB} = "http://127.0.0.1:2"\n',
        "a table of the wrong type": "[conversation_settings]\nagent = 3\n",
        "a value of the wrong type": f'{AGENT}\nmcp_shell_enabled = 1\n{WEB} = "http://127.0.0.1:2"\n',
        "a value out of range": f'{AGENT}\nmcp_shell_enabled = true\n{WEB} = "http://example.com"\n',
        "an unknown key": f'{AGENT}\nmcp_shell = true\n{WEB} = "http://127.0.0.1:2"\n',
    }
    flags = {}  # it is where it is by default, which nobody named

    def word(self, settings: config.Settings) -> str:
        words = {
            (True, True, "1"): "kept",
            (True, True, "2"): "key kept",
            (True, True, "//127.0.0.1"): "key default",
            (True, False, "2"): "key default",
            (True, False, "//127.0.0.1"): "default",
            (False, False, "//127.0.0.1"): "disabled",
        }
        port = settings.mcp_config_web_base_url.rpartition(":")[2]
        word = words[settings.mcp_enabled, settings.mcp_shell_enabled, port]
        assert (word == "disabled") == bool(settings.mcp_fault)
        return word


class TokenFile(OwnFile):
    name = "token"
    text = TOKEN
    variants = {"a value out of range": "short"}

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.flags = {"token_file": str(self.path), "agent_config": os.devnull}

    def word(self, settings: config.Settings) -> str:
        return {TOKEN.encode(): "kept", None: "none"}[settings.token]


class ClientToken(Subject):
    name = "client-token"
    text = TOKEN
    variants = {"a value out of range": "two lines\nof text"}
    follows = False

    def start(self) -> str:
        return "kept" if token_from(str(self.path)) == TOKEN else "counts"


class HostFile(Subject):
    name = "host.toml"
    text = "[host]\nport = 1\nadb_start = true\n"
    variants = {
        "a line is missing": "[host]\nadb_start = true\n",
        "a table of the wrong type": "host = 3\n",
        "a value of the wrong type": "[host]\nport = true\n",
        "a value out of range": f"[host]\nport = 0x{'f' * 5000}\n",
        "an unknown key": "[host]\nprot = 1\n",
    }
    follows = False

    def start(self) -> str:
        settings = host_config.load({"config": str(self.path)}, {})
        return {(8765, True): "key default"}[settings.port, settings.adb_start]


class MainToken(Subject):
    name = tokens.TOKEN_FILE
    text = json.dumps({"version": 1, "token": TOKEN})
    variants = {
        "a line is missing": '{"version": 1}',
        "a table of the wrong type": "[]",
        "a value of the wrong type": '{"token": 7}',
        "a value out of range": '{"token": "short"}',
    }

    def start(self) -> str:
        return {"none": "new"}.get(super().start(), "kept")

    def run(self) -> Callable[[], str]:
        book = tokens.Tokens(self.folder)
        return lambda: "kept" if book.authorize(f"Bearer {TOKEN}") is not None else "none"


class NamedTokens(MainToken):
    name = tokens.NAMED_FILE
    entry = {"name": "a", "id": "b", "created_at": "c", "digest": tokens._digest(TOKEN.encode())}
    text = json.dumps({"version": 1, "tokens": [entry]})
    variants = {
        "a line is missing": json.dumps({"tokens": []}),
        "a table of the wrong type": json.dumps({"tokens": {}}),
        "a value of the wrong type": json.dumps({"tokens": [entry | {"digest": 7}]}),
        "a value out of range": json.dumps({"tokens": [entry | {"digest": "00"}]}),
    }

    def start(self) -> str:
        return self.run()()


class Devices(Subject):
    name = DEVICES_FILE
    variants = {
        "a line is missing": json.dumps({"devices": []}),
        "a table of the wrong type": json.dumps({"devices": {}}),
        "a value of the wrong type": json.dumps({"devices": [{"id": "a", "kind": 7}]}),
        "a value out of range": json.dumps({"devices": [{"id": "a", "kind": "toaster"}]}),
        "an unknown key": json.dumps({"devices": [{"id": "a", "kind": "simulated", "colour": "red"}]}),
    }

    class Manager:
        def add(self, *_: object) -> None: ...
        def remove(self, *_: object) -> None: ...

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.path = folder / self.name
        add(folder, DeviceSpec("a", "simulated"))

    def run(self) -> Callable[[], str]:
        registry = Registry(self.folder, self.Manager(), lambda _: None)  # type: ignore[arg-type, return-value]

        def counts() -> str:
            registry.follow()
            return "kept" if registry.specs() else "none"

        return counts


SUBJECTS: dict[str, type[Subject]] = {
    "`mcpboard.toml`": OwnFile,
    "`agent.toml`": AgentFile,
    "`token_file`": TokenFile,
    "`--token-file`": ClientToken,
    "the host's `--config`": HostFile,
    "`host_mcp_token.json`": MainToken,
    "`host_tokens.json`": NamedTokens,
    "`devices.json`": Devices,
}


def _replaced(make: Callable[[Path], object]) -> Callable[[Path], None]:
    def damage(path: Path) -> None:
        path.unlink()
        make(path)

    return damage


def _bind(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))


MISSING, FORBIDDEN = "missing", "may not be read"
ANY_FILE: dict[str, Callable[[Path], object]] = {
    MISSING: Path.unlink,
    FORBIDDEN: lambda path: path.touch(),
    "a directory": _replaced(Path.mkdir),
    "a FIFO": _replaced(os.mkfifo),
    "a socket": _replaced(_bind),
    "a device": _replaced(lambda path: path.symlink_to("/dev/zero")),
    "a link to itself": _replaced(lambda path: path.symlink_to(path)),
    "empty": lambda path: path.write_bytes(b""),
    "larger than its limit": lambda path: os.truncate(path, 100_000_000),
    "not UTF-8": lambda path: path.write_bytes(path.read_bytes() + b"# \xe9\n"),
    # In the middle of a line; half a token is too short.
    "cut off within a line": lambda path: path.write_bytes(path.read_bytes()[:14]),
    "nested too deeply": lambda path: path.write_text("x = " + "[" * 100_000),
    "a key of 20,000 parts": lambda path: path.write_text("a." * 20_000 + "b = 1\n"),
}


@pytest.fixture(autouse=True)
def standard_places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The paths that count when nobody names one, moved into a folder of our own."""
    monkeypatch.setattr(config, "STANDARD_FILE", str(tmp_path / OwnFile.name))
    agent = str(tmp_path / AgentFile.name)
    rows = [replace(row, default=agent) if row.key == "agent_config" else row for row in config.SETTINGS]
    monkeypatch.setattr(config, "SETTINGS", tuple(rows))


def written() -> dict[tuple[str, str], str]:
    """(damage, file) -> the words of the page's first table."""
    lines = [line for line in PAGE.partition("\n## When a file is damaged")[2].splitlines() if line.startswith("| ")]
    head, *rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    assert head == ["damage", *SUBJECTS]
    return {(row[0], name): cell for row in rows for name, cell in zip(SUBJECTS, row[1:], strict=True)}


def damage_of(subject: Subject, damage: str, patch: pytest.MonkeyPatch) -> bool:
    """Do it to the file; False where it does not make sense for this one."""
    if damage in subject.variants:
        subject.path.write_text(subject.variants[damage])
        return True
    if damage not in ANY_FILE or (damage.startswith("a key") and not subject.name.endswith(".toml")):
        return False
    ANY_FILE[damage](subject.path)
    if damage == FORBIDDEN:
        really = os.open

        def refuse(path: str | os.PathLike[str], *rest: int, **more: int) -> int:
            if os.fspath(path) == str(subject.path):
                raise PermissionError(13, "Permission denied")
            return really(path, *rest, **more)

        patch.setattr(os, "open", refuse)
    return True


@pytest.mark.parametrize("damage", [*ANY_FILE, *OwnFile.variants])
@pytest.mark.parametrize("name", SUBJECTS)
def test_a_damaged_file_does_what_the_page_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, damage: str
) -> None:
    found = []
    for running in (False, True):
        folder = tmp_path / ("" if SUBJECTS[name] in (OwnFile, AgentFile) else str(running))
        folder.mkdir(exist_ok=True, mode=0o700)
        for old in folder.iterdir():
            old.rmdir() if old.is_dir() and not old.is_symlink() else old.unlink()
        subject = SUBJECTS[name](folder)
        with monkeypatch.context() as patch:
            if running:
                if not subject.follows:
                    break
                counts = subject.run()
                assert counts() == "kept"
            if not damage_of(subject, damage, patch):
                break
            try:
                found.append(counts() if running else subject.start())
            except ConfigError as error:
                assert str(error).partition(": ")[2]
                assert str(subject.path) in str(error)
                found.append("refused")
    assert written()[damage, name] == (" / ".join(found) or "-")


def test_every_row_of_the_page_is_run_and_its_words_are_explained() -> None:
    assert {damage for damage, _ in written()} == {*ANY_FILE, *OwnFile.variants}
    words = {word for cell in written().values() for word in cell.split(" / ")} - {"-"}
    assert words == set(re.findall(r"^- \*\*([a-z ]+)\*\*:", PAGE, re.MULTILINE))
