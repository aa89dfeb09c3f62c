"""The external tree for Buildroot: its symbols, and its recipe run for real into a scratch root."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import kconfiglib
import pytest

from mcpboard import config
from tests.deploy import tree

SELECTED = [f"PACKAGE_PYTHON_{name}" for name in ("REQUESTS", "WAITRESS", "WERKZEUG")]


@pytest.fixture
def kconfig(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Our symbols under a top file that declares those we select."""
    monkeypatch.setenv("BR2_EXTERNAL_MCPBOARD_PATH", str(tree.BUILDROOT))
    monkeypatch.setenv("CONFIG_", "BR2_")
    monkeypatch.chdir(tree.STUBS / "buildroot")
    return kconfiglib.Kconfig("Config.in", warn=True, warn_to_stderr=False)


def symbol(kconfig: Any, name: str) -> Any:
    return kconfig.syms[f"BR2_{name}"]


def test_it_parses_without_a_warning_and_names_only_what_exists(kconfig: Any) -> None:
    assert kconfig.warnings == []
    undefined = [name for name, each in kconfig.syms.items() if name.startswith("BR2_") and not each.nodes]
    assert undefined == []


def test_it_is_hidden_without_python_and_says_why(kconfig: Any) -> None:
    assert symbol(kconfig, "PACKAGE_MCPBOARD").visibility == 0
    comments = [node for node in kconfig.node_iter() if node.item == kconfiglib.COMMENT]
    assert [(node.prompt[0], kconfiglib.expr_value(node.dep)) for node in comments] == [("mcpboard needs python3", 2)]


def test_it_brings_its_three_libraries(kconfig: Any) -> None:
    symbol(kconfig, "PACKAGE_PYTHON3").set_value("y")
    assert [symbol(kconfig, name).str_value for name in SELECTED] == ["n"] * 3
    symbol(kconfig, "PACKAGE_MCPBOARD").set_value("y")
    assert [symbol(kconfig, name).str_value for name in SELECTED] == ["y"] * 3


def test_one_profile_is_chosen_standalone_by_default(kconfig: Any) -> None:
    for name in ("PACKAGE_PYTHON3", "PACKAGE_MCPBOARD"):
        symbol(kconfig, name).set_value("y")
    standalone, alongside = (symbol(kconfig, f"PACKAGE_MCPBOARD_{name}") for name in ("STANDALONE", "ALONGSIDE"))
    assert (standalone.str_value, alongside.str_value) == ("y", "n")
    alongside.set_value("y")
    assert (standalone.str_value, alongside.str_value) == ("n", "y")


def test_a_configuration_of_the_first_version_keeps_its_profile(kconfig: Any) -> None:
    """In 0.1 the profile alongside was called beside."""
    for name in ("PACKAGE_PYTHON3", "PACKAGE_MCPBOARD", "PACKAGE_MCPBOARD_BESIDE"):
        symbol(kconfig, name).set_value("y")
    assert symbol(kconfig, "PACKAGE_MCPBOARD_ALONGSIDE").str_value == "y"


@pytest.fixture(scope="module", params=["STANDALONE", "ALONGSIDE"])
def installed(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Path]]:
    """The profile, and a scratch root that the recipe has installed into."""
    tree.tool("rsync", "rsync")
    root, build = tmp_path_factory.mktemp("target"), tmp_path_factory.mktemp("build")
    umask = os.umask(0o022)
    try:
        tree.buildroot("install", TARGET_DIR=root, BUILD_DIR=build, **{f"BR2_PACKAGE_MCPBOARD_{request.param}": "y"})
        yield request.param, root
    finally:
        os.umask(umask)


@pytest.mark.tools
def test_files_and_modes_are_those_that_were_agreed(installed: tuple[str, Path]) -> None:
    _, root = installed
    modes = {path: mode for path, mode in tree.files(root).items() if not path.startswith(tree.SITE)}
    assert modes == {
        "/etc/init.d/S90mcpboard": 0o755,
        "/etc/mcpboard/mcpboard.toml": 0o640,
        "/usr/bin/mcpboard": 0o755,
        "/usr/lib/systemd/system/mcpboard.service": 0o644,
    }


@pytest.mark.tools
def test_the_boards_part_of_the_package_is_there_and_no_other(installed: tuple[str, Path]) -> None:
    _, root = installed
    site = root / tree.SITE.lstrip("/")
    found = {path.relative_to(site).as_posix() for path in site.rglob("*") if path.is_file()}
    assert {path for path in found if ".dist-info/" not in path} == tree.board_files()


@pytest.mark.tools
def test_the_settings_are_those_of_the_profile(installed: tuple[str, Path]) -> None:
    profile, root = installed
    found = config.load({"config": str(root / "etc/mcpboard/mcpboard.toml")}, {})
    assert found.listen[0].port == {"STANDALONE": 8080, "ALONGSIDE": 8090}[profile]


def test_the_recipe_says_how_it_is_built_and_who_runs_it() -> None:
    described = tree.described(tree.buildroot("describe"))
    assert (described["SITE_METHOD"], described["SETUP_TYPE"]) == ("local", "setuptools")
    assert Path(described["SITE"]).resolve() == tree.ROOT
    assert re.fullmatch(r"mcpboard -1 mcpboard -1 \* - - - \S.*", described["USERS"])
    assert described["PERMISSIONS"].split()[:5] == ["/etc/mcpboard/mcpboard.toml", "f", "640", "root", "mcpboard"]
