"""The folder in which a program keeps its data, by platform and environment."""

from __future__ import annotations

import os
from collections.abc import Mapping

import pytest

from mcpboard import config
from mcpboard.config import files
from mcpboard.errors import ConfigError

LINUX, MAC, WINDOWS = "linux", "darwin", "win32"
HOME, ROAMING = "/home/ann", "C:\\Users\\Ann"

FOLDERS = [
    pytest.param(LINUX, {"HOME": HOME}, "/home/ann/.local/share/p", id="linux"),
    pytest.param(LINUX, {"HOME": HOME, "XDG_DATA_HOME": "/data"}, "/data/p", id="linux, its data elsewhere"),
    pytest.param(LINUX, {"HOME": HOME, "XDG_DATA_HOME": "data"}, "/home/ann/.local/share/p", id="a relative variable"),
    pytest.param(LINUX, {"HOME": HOME, "XDG_DATA_HOME": ""}, "/home/ann/.local/share/p", id="an empty variable"),
    pytest.param(LINUX, {"XDG_DATA_HOME": "/data"}, "/data/p", id="no home is needed"),
    pytest.param("freebsd14", {"HOME": HOME}, "/home/ann/.local/share/p", id="another Unix"),
    pytest.param(MAC, {"HOME": "/Users/ann"}, "/Users/ann/Library/Application Support/p", id="macos"),
    pytest.param(MAC, {"HOME": "/Users/ann", "XDG_DATA_HOME": "/data"}, "/Users/ann/Library/Application Support/p", id="macos knows no XDG"),
    pytest.param(WINDOWS, {"LOCALAPPDATA": "D:\\Local", "USERPROFILE": ROAMING}, "D:\\Local\\p", id="windows"),
    pytest.param(WINDOWS, {"USERPROFILE": ROAMING}, "C:\\Users\\Ann\\AppData\\Local\\p", id="windows without it"),
    pytest.param(WINDOWS, {"LOCALAPPDATA": "Local", "USERPROFILE": ROAMING}, "C:\\Users\\Ann\\AppData\\Local\\p", id="windows, a relative variable"),
]  # fmt: skip


@pytest.mark.parametrize(("platform", "environ", "folder"), FOLDERS)
def test_each_platform_has_a_folder_of_its_own(platform: str, environ: Mapping[str, str], folder: str) -> None:
    assert config.data_folder("p", environ, platform) == folder


@pytest.mark.parametrize(
    "environ", [{}, {"HOME": ""}, {"HOME": "ann"}], ids=["no home", "an empty one", "a relative one"]
)
@pytest.mark.parametrize("platform", [LINUX, MAC])
def test_a_service_without_a_home_has_that_of_its_user(
    platform: str, environ: Mapping[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(config, "user_home", lambda: "/var/lib/agent")
    assert config.data_folder("p", environ, platform).startswith("/var/lib/agent/")


@pytest.mark.parametrize("platform", [LINUX, MAC, WINDOWS])
def test_nobody_s_folder_is_never_guessed(platform: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(config, "user_home", lambda: "")
    with pytest.raises(ConfigError, match="no home folder; name a folder for the files with --data DIR"):
        config.data_folder("p", {}, platform)


def test_a_user_that_the_system_does_not_list_has_no_home(monkeypatch: pytest.MonkeyPatch) -> None:
    assert os.path.isabs(files.user_home())

    def unknown(number: int) -> None:
        raise KeyError(number)

    monkeypatch.setattr(files.pwd, "getpwuid", unknown)
    assert files.user_home() == ""
