"""Files of a program's own: where they are by platform, and how they are written."""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Mapping
from pathlib import Path

import pytest

from mcpboard import config
from mcpboard.config import files
from mcpboard.errors import ConfigError

LINUX, MAC, WINDOWS = "linux", "darwin", "win32"
HOME, ANN = {"HOME": "/home/ann"}, {"USERPROFILE": "C:\\Users\\Ann"}
SUPPORT = "/home/ann/Library/Application Support/p"


@pytest.mark.parametrize(
    ("platform", "environ", "folder"),
    [
        (LINUX, HOME, "/home/ann/.local/share/p"),
        ("freebsd14", HOME, "/home/ann/.local/share/p"),
        (LINUX, HOME | {"XDG_DATA_HOME": "/data"}, "/data/p"),
        (LINUX, {"XDG_DATA_HOME": "/data"}, "/data/p"),
        *((LINUX, HOME | {"XDG_DATA_HOME": relative}, "/home/ann/.local/share/p") for relative in ("data", "")),
        *((MAC, HOME | more, SUPPORT) for more in ({}, {"XDG_DATA_HOME": "/data"})),
        (WINDOWS, ANN | {"LOCALAPPDATA": "D:\\Local"}, "D:\\Local\\p"),
        *((WINDOWS, ANN | more, "C:\\Users\\Ann\\AppData\\Local\\p") for more in ({}, {"LOCALAPPDATA": "Local"})),
    ],
)
def test_each_platform_has_a_folder_of_its_own(platform: str, environ: Mapping[str, str], folder: str) -> None:
    assert config.data_folder("p", environ, platform) == folder


@pytest.mark.parametrize("environ", [{}, {"HOME": ""}, {"HOME": "ann"}])
def test_a_service_without_a_home_has_that_of_its_user(environ: Mapping[str, str], monkeypatch: pytest.MonkeyPatch) -> None:  # fmt: skip
    monkeypatch.setattr(config, "user_home", lambda: "/var/lib/agent")
    for platform in (LINUX, MAC):
        assert config.data_folder("p", environ, platform).startswith("/var/lib/agent/")


@pytest.mark.parametrize("platform", [LINUX, MAC, WINDOWS])
def test_nobody_s_folder_is_never_guessed(platform: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(config, "user_home", lambda: "")
    with pytest.raises(ConfigError, match="no home folder; name a folder for the files with --data DIR"):
        config.data_folder("p", {}, platform)


def test_a_user_that_the_system_does_not_list_has_no_home(monkeypatch: pytest.MonkeyPatch) -> None:
    assert os.path.isabs(files.user_home())
    monkeypatch.setattr(files.pwd, "getpwuid", {}.__getitem__)
    assert files.user_home() == ""


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
