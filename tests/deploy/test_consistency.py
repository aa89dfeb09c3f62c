"""What several packages say, they say alike: version, licence, ports, dependencies, what is on the board."""

from __future__ import annotations

import ast
import configparser
import hashlib
import re
import sys
from pathlib import Path

import pytest

from mcpboard import config
from mcpboard.config.board import SETTINGS
from mcpboard.serving.server import GRACE_SECONDS
from tests.deploy import tree, versions

INIT = tree.OPENWRT / "mcpboard/files/mcpboard.init"
RECIPE = tree.OPENWRT / "mcpboard/Makefile"
MK = tree.BUILDROOT / "package/mcpboard/mcpboard.mk"
S_SCRIPT = tree.BUILDROOT / "package/mcpboard/S90mcpboard"
UNIT = tree.UNITS / "mcpboard.service"
SETTINGS_FILE = tree.BUILDROOT / "package/mcpboard/mcpboard.toml"
CONTROL = tree.DEBIAN / "control"

MALLOC = {"MALLOC_ARENA_MAX": "1", "MALLOC_TRIM_THRESHOLD_": "2097152", "MALLOC_MMAP_THRESHOLD_": "1048576"}

# What setup.cfg requires -> the names that OpenWrt, Buildroot and Debian have for it.
NAMES = {
    "werkzeug": ("python3-werkzeug", "BR2_PACKAGE_PYTHON_WERKZEUG", "python3-werkzeug"),
    "waitress": ("python3-waitress", "BR2_PACKAGE_PYTHON_WAITRESS", "python3-waitress"),
    "requests": ("python3-requests", "BR2_PACKAGE_PYTHON_REQUESTS", "python3-requests"),
}

# Parts of the standard library that OpenWrt packs apart, of those that we could come to use.
SPLITS = {
    "asyncio", "ctypes", "dbm", "decimal", "email", "logging", "lzma", "multiprocessing", "sqlite3", "unittest",
    "urllib", "uuid", "xml",
}  # fmt: skip


def requirements() -> dict[str, str]:
    """Name -> floor of what a board needs; tomli is for Pythons that no board has."""
    lines = tree.setup_cfg()["options"]["install_requires"].split("\n")
    found = dict(line.split(">=") for line in lines if line and ";" not in line)
    assert set(found) == set(NAMES)
    return found


def text(path: Path) -> str:
    return path.read_text("utf-8")


def test_one_version() -> None:
    """Recipes that cannot read mcpboard/__init__.py say what stands there."""
    recipe = tree.described(tree.openwrt("mcpboard", "describe"))
    assert recipe["PKG_VERSION"] == versions.apk(tree.VERSION)
    assert recipe["PYTHON3_PKG_WHEEL_VERSION"] == tree.VERSION
    assert tree.described(tree.buildroot("describe"))["VERSION"] == tree.VERSION


def test_the_packages_named_in_the_instructions_have_that_version() -> None:
    named = {path.parent.name: re.findall(r"mcpboard[_-](\d[\w.~]*?)(?:-r\d+)?(?:_all)?\.(?:ipk|apk|deb)", text(path))
             for path in tree.DEPLOY.glob("*/README.md")}  # fmt: skip
    assert set(named["openwrt"]) == {versions.apk(tree.VERSION)}
    assert set(named["debian"]) == {versions.debian(tree.VERSION)}


def test_one_licence() -> None:
    licence = tree.setup_cfg()["metadata"]["license"]
    recipe, mk = tree.described(tree.openwrt("mcpboard", "describe")), tree.described(tree.buildroot("describe"))
    assert (recipe["PKG_LICENSE"], recipe["PKG_LICENSE_FILES"]) == (licence, "LICENSE")
    assert (mk["LICENSE"], mk["LICENSE_FILES"]) == (licence, "LICENSE")


def test_the_licence_is_the_one_whose_hash_is_kept() -> None:
    digest = hashlib.sha256((tree.ROOT / "LICENSE").read_bytes()).hexdigest()
    assert f"\nsha256  {digest}  LICENSE\n" in text(MK.with_suffix(".hash"))


def test_one_list_of_dependencies() -> None:
    needed = set(requirements())
    recipe = tree.described(tree.openwrt("mcpboard", "describe"))["mcpboard_DEPENDS"]
    selected = re.findall(r"^\tselect (\S+) # runtime$", text(MK.with_name("Config.in")), re.MULTILINE)
    depends = tree.first(r"^Depends: (.*)", text(CONTROL))
    assert {name for name, (openwrt, _, _) in NAMES.items() if f"+{openwrt}" in recipe.split()} == needed
    assert selected == sorted(buildroot for _, buildroot, _ in NAMES.values())
    assert {name for name, (_, _, debian) in NAMES.items() if f"{debian} (" in depends} == needed


def test_debian_asks_for_the_same_floors() -> None:
    depends = tree.first(r"^Depends: (.*)", text(CONTROL))
    floors = dict(re.findall(r"(\S+) \(>= ([^)]+)\)", depends))
    assert {NAMES[name][2]: floor for name, floor in requirements().items()}.items() <= floors.items()


def test_openwrt_depends_on_each_split_of_python_that_our_code_names() -> None:
    used = {module for path in tree.board_modules() for module in _modules(path)} & SPLITS
    depends = tree.described(tree.openwrt("mcpboard", "describe"))["mcpboard_DEPENDS"].split()
    assert {f"+python3-{name}" for name in used} <= set(depends)


def _modules(path: Path) -> set[str]:
    nodes = list(ast.walk(ast.parse(text(path))))
    plain = {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
    named = {node.module or "" for node in nodes if isinstance(node, ast.ImportFrom) and not node.level}
    return {name.split(".")[0] for name in plain | named} & set(sys.stdlib_module_names)


@pytest.mark.parametrize(
    ("path", "form"),
    [
        pytest.param(INIT, "{}={}", id="procd"),
        pytest.param(S_SCRIPT, "export {}={}\n", id="S-script"),
        pytest.param(UNIT, "Environment={}={}\n", id="unit"),
    ],
)
def test_the_malloc_variables_are_set_wherever_the_server_is_started(path: Path, form: str) -> None:
    for name, value in MALLOC.items():
        assert form.format(name, value) in text(path)
    assert set(re.findall(r"\bMALLOC_\w+", text(path))) == set(MALLOC)


STANDALONE = ("0.0.0.0:8080", "http://127.0.0.1:8081")
ALONGSIDE = ("0.0.0.0:8090", "http://127.0.0.1:8080")


def settings_of(file: Path) -> tuple[str, str]:
    found = config.load({"config": str(file)}, {})
    return str(found.listen[0]), found.agent_base_url


def test_the_shipped_settings_are_the_profile_standalone() -> None:
    assert settings_of(SETTINGS_FILE) == STANDALONE


def test_its_two_lines_taken_in_are_the_profile_alongside(tmp_path: Path) -> None:
    alongside = tmp_path / "mcpboard.toml"
    alongside.write_text(re.sub(r"^#(?=\w)", "", text(SETTINGS_FILE), flags=re.MULTILINE), "utf-8")
    assert settings_of(alongside) == ALONGSIDE


def test_openwrt_has_the_same_profiles() -> None:
    cases = re.findall(r"(\w+) \| \w+\)\n\t+port=(\d+)\n\t+agent=(\S+)", text(INIT))
    found = {(name, f"0.0.0.0:{port}", agent) for name, port, agent in cases}
    assert found == {("standalone", *STANDALONE), ("alongside", *ALONGSIDE)}


def test_every_setting_shown_in_a_shipped_file_exists_and_shows_its_default() -> None:
    defaults = {row.key: row.default for row in SETTINGS}
    shown = dict(re.findall(r"^# (\w+) = (.+)$", text(SETTINGS_FILE), re.MULTILINE))
    assert set(shown) <= set(defaults)
    examples = {"freebind", "token_file"}  # shown as an example, not as it is
    for key in set(shown) - examples:
        assert shown[key].strip('"') == str(defaults[key]).replace("True", "true").replace("False", "false")


def test_openwrts_settings_listen_on_an_address_that_may_be_gone() -> None:
    found = config.load({"config": str(tree.OPENWRT / "mcpboard/files/mcpboard.toml")}, {})
    assert found.freebind


@pytest.mark.parametrize("recipe", [RECIPE, MK, tree.DEBIAN / "build"], ids=["openwrt", "buildroot", "debian"])
def test_each_recipe_reads_the_one_list_of_what_boards_lack(recipe: Path) -> None:
    """A folder for other machines is named once, in deploy/board-excludes, and nowhere in a recipe."""
    assert "deploy/board-excludes" in text(recipe)
    assert not [folder for folder in tree.NOT_ON_BOARDS if f"mcpboard/{folder}" in text(recipe)]
    assert all((tree.ROOT / "mcpboard" / folder).is_dir() for folder in tree.NOT_ON_BOARDS)


def test_debians_command_is_the_entry_point() -> None:
    points = tree.setup_cfg()["options.entry_points"]["console_scripts"]
    module, function = tree.first(r"^mcpboard = (.*)", points).split(":")
    assert f"from {module} import {function}\n" in text(tree.DEBIAN / "mcpboard")


def test_every_start_runs_the_program_where_packages_put_it() -> None:
    unit = configparser.ConfigParser(strict=False, interpolation=None)
    unit.read(UNIT)
    assert unit["Service"]["ExecStart"].split()[0] == "/usr/bin/mcpboard"
    assert "PROG=/usr/bin/mcpboard\n" in text(INIT)
    assert "--exec /usr/bin/python3 -- /usr/bin/mcpboard " in text(S_SCRIPT)


def test_a_stop_takes_longer_than_the_servers_own_drain() -> None:
    limits = [
        tree.first(r"procd_set_param term_timeout (\d+)", text(INIT)),
        tree.first(r"^TimeoutStopSec=(\d+)", text(UNIT)),
        tree.first(r'"\$seconds" -eq (\d+)', text(S_SCRIPT)),
    ]
    assert min(map(float, limits)) > GRACE_SECONDS + 1


def test_no_start_ever_gives_up() -> None:
    assert "procd_set_param respawn 3600 5 0\n" in text(INIT)
    assert "StartLimitIntervalSec=0\n" in text(UNIT)
    assert "Restart=on-failure\n" in text(UNIT)
