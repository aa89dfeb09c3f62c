"""The recipes of OpenWrt, Buildroot, Debian and PyPI run for real: each brings the board's part, its files and no other."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import sys
import tarfile
import zipfile
from collections.abc import Callable, Iterator
from email.parser import Parser
from pathlib import Path
from typing import Any

import kconfiglib
import pytest

from mcpboard import config
from tests.deploy import shelf, tree
from tests.support import provision

# --- into a scratch root ---------------------------------------------------------------------


@pytest.fixture(autouse=True)
def umask() -> Iterator[None]:
    before = os.umask(0o022)
    yield
    os.umask(before)


def openwrt(root: Path, build: Path) -> None:
    tree.openwrt("mcpboard", "install", BUILD_DIR=build, ROOT=root, RELEASE="25.12")


def buildroot(profile: str) -> Callable[[Path, Path], None]:
    def install(root: Path, build: Path) -> None:
        tree.tool("rsync", "rsync")
        build.mkdir()
        root.mkdir()
        tree.buildroot("install", TARGET_DIR=root, BUILD_DIR=build, **{f"BR2_PACKAGE_MCPBOARD_{profile}": "y"})

    return install


def debian(root: Path, build: Path) -> None:
    tree.tool("dpkg-deb", "dpkg")
    tree.run(tree.DEBIAN / "build", build)
    (package,) = build.iterdir()
    tree.run("dpkg-deb", "--extract", package, root)


OPENWRTS = {
    "/etc/config/mcpboard": 0o600, "/etc/init.d/mcpboard": 0o755, "/etc/uci-defaults/90-mcpboard": 0o755, "/usr/bin/mcpboard": 0o755,
    "/etc/mcpboard/mcpboard.toml": 0o644,  # the script in uci-defaults makes it 0640 once the user exists
}  # fmt: skip
BUILDROOTS = {
    "/etc/default/mcpboard": 0o644, "/etc/init.d/S90mcpboard": 0o755, "/etc/mcpboard/mcpboard.toml": 0o640, "/usr/bin/mcpboard": 0o755,
    "/usr/lib/systemd/system/mcpboard.service": 0o644,
}  # fmt: skip
DEBIANS = {
    "/etc/mcpboard/mcpboard.toml": 0o640, "/usr/bin/mcpboard": 0o755, "/usr/lib/systemd/system/mcpboard.service": 0o644,
    "/usr/lib/sysusers.d/mcpboard.conf": 0o644, "/usr/share/lintian/overrides/mcpboard": 0o644,
    "/usr/share/man/man1/mcpboard.1.gz": 0o644,
    **{f"/usr/share/doc/mcpboard/{name}": 0o644 for name in ("CHANGELOG.md.gz", "changelog.gz", "copyright")},
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize(
    ("install", "site", "modes", "port"),
    [
        pytest.param(openwrt, tree.SITE, OPENWRTS, 8080, id="OpenWrt"),
        pytest.param(buildroot("STANDALONE"), tree.SITE, BUILDROOTS, 8080, id="Buildroot", marks=pytest.mark.tools),
        pytest.param(buildroot("ALONGSIDE"), tree.SITE, BUILDROOTS, 8090, id="Buildroot, alongside", marks=pytest.mark.tools),
        pytest.param(debian, "/usr/lib/python3/dist-packages", DEBIANS, 8080, id="Debian", marks=pytest.mark.tools),
    ],
)  # fmt: skip
def test_a_recipe_installs_the_boards_part_with_its_files(
    install: Callable[[Path, Path], None], site: str, modes: dict[str, int], port: int, tmp_path: Path
) -> None:
    install(tmp_path / "root", tmp_path / "build")
    found = tree.files(tmp_path / "root")
    ours = {path.removeprefix(site + "/") for path in found if path.startswith(site)}
    assert {path for path in ours if ".dist-info/" not in path and "/__pycache__/" not in path} == tree.board_files()
    assert {path: mode for path, mode in found.items() if not path.startswith(site)} == modes
    settings = config.load({"config": str(tmp_path / "root/etc/mcpboard/mcpboard.toml")}, {})
    assert settings.listen[0].port == port


def test_what_boards_lack_is_there_elsewhere() -> None:
    """A folder that deploy/board-excludes spells wrongly would be installed."""
    assert all((tree.ROOT / "mcpboard" / folder).is_dir() for folder in tree.NOT_ON_BOARDS)


# --- OpenWrt ---------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("release", ["24.10", "25.12"])
@pytest.mark.parametrize("recipe", ["mcpboard", "python-waitress"])
def test_openwrt_packs_a_recipe_and_its_sources(recipe: str, release: str, tmp_path: Path) -> None:
    """As both are packed where every package is selected, which is how the SDK comes."""
    folders = {name: tmp_path / name for name in ("packed", "build", "root")}
    told = tree.described(tree.openwrt(recipe, "describe"))
    sdist = shelf.sdist(told["PYPI_NAME"], told["PKG_VERSION"]) if "PYPI_NAME" in told else ""
    tree.openwrt(recipe, "pack", PACKED=folders["packed"], BUILD_DIR=folders["build"], ROOT=folders["root"], RELEASE=release, SDIST=sdist)  # fmt: skip
    package, sources = told["PACKAGES"].split()
    assert sources == f"{package}-src"
    assert {path.rpartition(".")[2] for path in tree.files(folders["packed"] / sources)} == {"py"}
    settings = folders["packed"] / package / "etc/mcpboard/mcpboard.toml"
    assert not settings.exists() or settings.stat().st_mode & 0o777 == 0o644


def test_openwrt_knows_whom_to_ask_and_which_holes_to_look_for() -> None:
    for recipe in ("mcpboard", "python-waitress"):
        told = tree.described(tree.openwrt(recipe, "describe"))
        package = told["PACKAGES"].split()[0]
        assert re.fullmatch(r"[^<>]+ <[^<>@ ]+@[a-z.]+>", told["PKG_MAINTAINER"])
        assert told[f"{package}_URL"].startswith("https://")
        assert told.get("PKG_CPE_ID") == {"python-waitress": "cpe:/a:agendaless:waitress"}.get(recipe)


def test_openwrt_knows_the_user_and_what_an_upgrade_keeps() -> None:
    recipe = tree.described(tree.openwrt("mcpboard", "describe"))
    assert recipe["PACKAGES"].split() == ["mcpboard", "mcpboard-src"]
    assert recipe["mcpboard_PKGARCH"] == "all"
    assert re.fullmatch(r"mcpboard=(\d+):mcpboard=\1", recipe["mcpboard_USERID"])
    kept = {"/etc/config/mcpboard", "/etc/mcpboard/mcpboard.toml", "/etc/mcpboard/"}
    assert set(recipe["mcpboard_conffiles"].split()) == kept


@pytest.mark.tools
@pytest.mark.slow
def test_the_waitress_recipe_builds_the_source_whose_hash_it_names(tmp_path: Path) -> None:
    described = tree.described(tree.openwrt("python-waitress", "describe"))
    sdist = shelf.sdist(described["PYPI_NAME"], described["PKG_VERSION"])
    assert hashlib.sha256(sdist.read_bytes()).hexdigest() == described["PKG_HASH"]
    tree.openwrt("python-waitress", "install", BUILD_DIR=tmp_path / "build", ROOT=tmp_path / "root", SDIST=sdist, RELEASE="25.12")  # fmt: skip
    found = tree.files(tmp_path / "root")
    assert f"{tree.SITE}/waitress/server.py" in found
    assert found["/usr/bin/waitress-serve"] == 0o755
    (prepared,) = (tmp_path / "build").iterdir()
    assert (prepared / described["PKG_LICENSE_FILES"]).exists()


# --- Buildroot -------------------------------------------------------------------------------


@pytest.fixture
def kconfig(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Our symbols under a top file that declares those we select."""
    monkeypatch.setenv("BR2_EXTERNAL_MCPBOARD_PATH", str(tree.BUILDROOT))
    monkeypatch.setenv("CONFIG_", "BR2_")
    monkeypatch.chdir(tree.STUBS / "buildroot")
    return kconfiglib.Kconfig("Config.in", warn=True, warn_to_stderr=False)


def values(kconfig: Any, *names: str) -> str:
    return "".join(kconfig.syms[f"BR2_PACKAGE_{name}"].str_value for name in names)


def test_it_parses_without_a_warning_and_is_hidden_without_python(kconfig: Any) -> None:
    assert kconfig.warnings == []
    assert [name for name, each in kconfig.syms.items() if name.startswith("BR2_") and not each.nodes] == []
    assert kconfig.syms["BR2_PACKAGE_MCPBOARD"].visibility == 0
    comments = [node for node in kconfig.node_iter() if node.item == kconfiglib.COMMENT]
    assert [(node.prompt[0], kconfiglib.expr_value(node.dep)) for node in comments] == [("mcpboard needs python3", 2)]


@pytest.mark.parametrize(
    ("chosen", "standalone_alongside"),
    [
        pytest.param([], "yn", id="standalone by default"),
        pytest.param(["MCPBOARD_ALONGSIDE"], "ny", id="alongside"),
        pytest.param(["MCPBOARD_BESIDE"], "ny", id="alongside as 0.1 called it"),
    ],
)
def test_it_brings_its_libraries_and_one_profile(kconfig: Any, chosen: list[str], standalone_alongside: str) -> None:
    selected = ("PYTHON_REQUESTS", "PYTHON_WAITRESS", "PYTHON_WERKZEUG")
    assert values(kconfig, *selected) == "nnn"
    for name in ("PYTHON3", "MCPBOARD", *chosen):
        kconfig.syms[f"BR2_PACKAGE_{name}"].set_value("y")
    assert values(kconfig, *selected) == "yyy"
    assert values(kconfig, "MCPBOARD_STANDALONE", "MCPBOARD_ALONGSIDE") == standalone_alongside


def test_the_recipe_says_how_it_is_built_and_who_runs_it() -> None:
    described = tree.described(tree.buildroot("describe"))
    assert (described["SITE_METHOD"], described["SETUP_TYPE"]) == ("local", "setuptools")
    assert Path(described["SITE"]).resolve() == tree.ROOT
    assert re.fullmatch(r"mcpboard -1 mcpboard -1 \* - - - \S.*", described["USERS"])
    assert described["PERMISSIONS"].split()[:5] == ["/etc/mcpboard/mcpboard.toml", "f", "640", "root", "mcpboard"]


# --- PyPI ------------------------------------------------------------------------------------

SOURCES = ("mcpboard", "setup.cfg", "pyproject.toml", "README.md", "LICENSE")
# The oldest that each Python can run.
OLDEST = {(3, 10): "61.0.0", (3, 11): "61.0.0"}.get(sys.version_info[:2], "66.1.0")
BUILD_S = 120.0  # seconds; a wheel takes five


def copied(folder: Path, *names: str) -> Path:
    """What a wheel is made of, because setuptools writes into its tree."""
    for name in names:
        how = shutil.copytree if (tree.ROOT / name).is_dir() else shutil.copyfile
        how(tree.ROOT / name, folder / name)
    return folder


def held(wheel: Path) -> set[str]:
    return {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}


@pytest.mark.tools
@pytest.mark.slow
def test_wheel_and_sdist_hold_every_module_and_say_the_version(tmp_path: Path) -> None:
    python = provision.python_prefix("build==1.3.0", "setuptools==80.9.0")
    tree.run(python, "-m", "build", "--no-isolation", copied(tmp_path, *SOURCES), timeout=BUILD_S)
    wheel = tmp_path / f"dist/mcpboard-{tree.VERSION}-py3-none-any.whl"
    assert held(wheel) == tree.package_files()
    told = Parser().parsestr(zipfile.ZipFile(wheel).read(f"mcpboard-{tree.VERSION}.dist-info/METADATA").decode())
    assert (told["Name"], told["Version"]) == ("mcpboard", tree.VERSION)
    with tarfile.open(tmp_path / f"dist/mcpboard-{tree.VERSION}.tar.gz") as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    assert names >= tree.package_files() | set(SOURCES)


@pytest.mark.tools
@pytest.mark.slow
def test_the_oldest_setuptools_makes_the_same_wheel_without_what_a_recipe_takes_away(tmp_path: Path) -> None:
    tools = shelf.distributions(f"setuptools=={OLDEST}", "wheel==0.38.4", "build", "pyproject_hooks", "packaging")
    copied(tmp_path, *(name for name in SOURCES if name != "README.md"))
    shutil.rmtree(tmp_path / "mcpboard/simulator")
    tree.run(
        sys.executable, "-S", "-m", "build", "--no-isolation", "--skip-dependency-check", "--wheel", tmp_path,
        environ={"PATH": os.defpath, "PYTHONPATH": str(tools)},
    )  # fmt: skip
    wheel = tmp_path / f"dist/mcpboard-{tree.VERSION}-py3-none-any.whl"
    assert held(wheel) == {path for path in tree.package_files() if not path.startswith("mcpboard/simulator/")}
