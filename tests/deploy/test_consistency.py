"""The files of the packages as text: what several of them say, they say alike, and each as its build system wants it."""

from __future__ import annotations

import ast
import configparser
import hashlib
import plistlib
import re
import subprocess
import sys
from pathlib import Path

import pytest

from mcpboard import config
from mcpboard.config.board import SETTINGS
from mcpboard.serving.server import GRACE_SECONDS
from tests.bench.programs import MALLOC
from tests.deploy import matrix, tree

INIT = tree.OPENWRT / "mcpboard/files/mcpboard.init"
OPENWRTS_SETTINGS = tree.OPENWRT / "mcpboard/files/mcpboard.toml"
RECIPE = tree.OPENWRT / "mcpboard/Makefile"
PACKAGE = tree.BUILDROOT / "package/mcpboard"
MK, CONFIG_IN, S_SCRIPT, SETTINGS_FILE, HASHES = (
    PACKAGE / name for name in ("mcpboard.mk", "Config.in", "S90mcpboard", "mcpboard.toml", "mcpboard.hash")
)
UNIT, HOSTS_UNIT = tree.UNITS / "mcpboard.service", tree.UNITS / "device-host-agent.service"
CONTROL, COMMAND, BUILD = (tree.DEBIAN / name for name in ("control", "mcpboard", "build"))

ALL = sorted(path for path in tree.DEPLOY.rglob("*") if path.is_file())
CFG = tree.setup_cfg()
DEPENDS = tree.first(r"^Depends: (.*)", CONTROL.read_text("utf-8"))

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


def text(path: Path) -> str:
    return path.read_text("utf-8")


@pytest.fixture(scope="module")
def openwrt() -> dict[str, str]:
    return tree.described(tree.openwrt("mcpboard", "describe"))


@pytest.fixture(scope="module")
def buildroot() -> dict[str, str]:
    return tree.described(tree.buildroot("describe"))


def requirements() -> dict[str, str]:
    """Name -> floor of what a board needs; tomli is for Pythons that no board has."""
    lines = CFG["options"]["install_requires"].split("\n")
    found = dict(line.split(">=") for line in lines if line and ";" not in line)
    assert set(found) == set(NAMES)
    return found


# --- what a file says, and never says --------------------------------------------------------

MODULE, FUNCTION = tree.first(r"^mcpboard = (.*)", CFG["options.entry_points"]["console_scripts"]).split(":")
LICENSE_HASH = hashlib.sha256((tree.ROOT / "LICENSE").read_bytes()).hexdigest()

SAYS = [
    ("the program is where packages put it: procd", INIT, r"PROG=/usr/bin/mcpboard\n"),
    ("the program is where packages put it: S-script", S_SCRIPT, r"--exec /usr/bin/python3 -- /usr/bin/mcpboard "),
    ("the program is where packages put it: unit", UNIT, r"^ExecStart=/usr/bin/mcpboard "),
    ("no start gives up: procd", INIT, r"procd_set_param respawn 3600 5 0\n"),
    ("no start gives up: unit", UNIT, r"^StartLimitIntervalSec=0$(?s:.*)^Restart=on-failure$"),
    ("one list of what boards lack: OpenWrt", RECIPE, r"deploy/board-excludes"),
    ("one list of what boards lack: Buildroot", MK, r"deploy/board-excludes"),
    ("one list of what boards lack: Debian", BUILD, r"deploy/board-excludes"),
    ("Debian's command is the entry point", COMMAND, rf"from {MODULE} import {FUNCTION}\n"),
    ("the licence is the one whose hash is kept", HASHES, rf"^sha256  {LICENSE_HASH}  LICENSE$"),
    # As Buildroot's own check wants its files, read from its rules.
    ("a recipe begins with its box", MK, rf"\A{'#' * 80}\n#\n# mcpboard\n#\n{'#' * 80}\n\n"),
    ("a recipe ends with its macro", MK, r"\n\n\$\(eval \$\(python-package\)\)\n\Z"),
    ("the help text ends with its page", CONFIG_IN, r"loopback\.\n\n\t  https://\S+\n"),
    ("the S-script is named like its daemon", S_SCRIPT, r'^DAEMON="mcpboard"$'),
    ("the S-script keeps its pid where all do", S_SCRIPT, r'^PIDFILE="/var/run/\$DAEMON\.pid"$'),
    ("the external tree says who it is", tree.BUILDROOT / "external.desc", r"\Aname: \w+\ndesc: .{1,40}\n\Z"),
]  # fmt: skip
NEVER = [
    ("a variable without the package's name", MK, r"^(?!MCPBOARD_)\w+\s*\+?="),
    ("an assignment without blanks", MK, r"^\w+(?! \+?= )\s*\+?="),
    ("a recipe indented with blanks", MK, r"^(?!\t+\S)[ \t]"),
    ("a dependency that the macro brings, or that only runs", MK, r"_DEPENDENCIES"),
    ("attributes behind more than a tab, help behind other than two blanks more", CONFIG_IN, r"^(?!\t(  )?\S)[ \t]"),
    ("help beyond column 72, a tab counting eight", CONFIG_IN, r"^\t  .{63}"),
    ("a hash of another form", HASHES, r"^(?!# .+$|sha256  [0-9a-f]{64}  \S+$).+"),
    ("an S-script indented with blanks", S_SCRIPT, r"^ "),
    ("a short option", S_SCRIPT, r"start-stop-daemon(?: \S+)* -[a-zA-Z]\b"),
    *((f"a folder for other machines in {path.name}", path, rf"mcpboard/({'|'.join(tree.NOT_ON_BOARDS)})") for path in (RECIPE, MK, BUILD)),
]  # fmt: skip


@pytest.mark.parametrize(("path", "pattern"), [pytest.param(*row, id=name) for name, *row in SAYS])
def test_a_file_says(path: Path, pattern: str) -> None:
    assert re.search(pattern, text(path), re.MULTILINE)


@pytest.mark.parametrize(("path", "pattern"), [pytest.param(*row, id=name) for name, *row in NEVER])
def test_a_file_never_has(path: Path, pattern: str) -> None:
    assert not re.search(pattern, text(path), re.MULTILINE)


def test_each_file_ends_with_one_newline_and_no_line_with_a_blank() -> None:
    assert [path for path in ALL if re.search(r"[ \t]$|\n\n\Z|(?<!\n)\Z", path.read_text("ascii"), re.MULTILINE)] == []


def test_nothing_in_buildroots_package_folder_is_executable() -> None:
    """The S-script becomes so when it is installed."""
    assert [path.name for path in PACKAGE.iterdir() if path.stat().st_mode & 0o111] == []


def test_attributes_of_buildroot_keep_their_order() -> None:
    order = ("bool", "prompt", "default", "depends", "select", "help")
    for block in text(CONFIG_IN).split("\n\n"):
        found = re.findall(r"^\t(\w+)", block, re.MULTILINE)
        assert found == sorted(found, key=order.index)


# --- version, licence, dependencies ----------------------------------------------------------


def test_one_version_and_licence(openwrt: dict[str, str], buildroot: dict[str, str]) -> None:
    """Recipes that cannot read mcpboard/__init__.py say what stands there, and so do the instructions."""
    licence = CFG["metadata"]["license"]
    assert (openwrt["PKG_VERSION"], openwrt["PYTHON3_PKG_WHEEL_VERSION"]) == (
        tree.apk_version(tree.VERSION),
        tree.VERSION,
    )
    assert buildroot["VERSION"] == tree.VERSION
    assert (openwrt["PKG_LICENSE"], openwrt["PKG_LICENSE_FILES"]) == (licence, "LICENSE")
    assert (buildroot["LICENSE"], buildroot["LICENSE_FILES"]) == (licence, "LICENSE")
    pages = text(tree.ROOT / "docs/packages.md") + text(tree.DEBIAN / "README.md")
    named = {kind: set(re.findall(rf"mcpboard[_-](\d[\w.~]*?)(?:-r\d+)?(?:_all)?\.{kind}", pages)) for kind in ("ipk", "apk", "deb")}  # fmt: skip
    assert named["ipk"] == named["apk"] == {tree.apk_version(tree.VERSION)}
    assert named["deb"] == {tree.debian_version(tree.VERSION)}


def test_one_list_of_dependencies_with_one_floor_each(openwrt: dict[str, str]) -> None:
    selected = re.findall(r"^\tselect (\S+) # runtime$", text(CONFIG_IN), re.MULTILINE)
    assert {f"+{name}" for name, _, _ in NAMES.values()} <= set(openwrt["mcpboard_DEPENDS"].split())
    assert selected == sorted(buildroot for _, buildroot, _ in NAMES.values())
    floors = dict(re.findall(r"(\S+) \(>= ([^)]+)\)", DEPENDS))
    assert {NAMES[name][2]: floor for name, floor in requirements().items()}.items() <= floors.items()


def test_openwrt_depends_on_each_split_of_python_that_our_code_names(openwrt: dict[str, str]) -> None:
    nodes = [node for path in tree.board_modules() for node in ast.walk(ast.parse(text(path)))]
    used = {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
    used |= {node.module or "" for node in nodes if isinstance(node, ast.ImportFrom) and not node.level}
    splits = {name.split(".")[0] for name in used} & set(sys.stdlib_module_names) & SPLITS
    assert {f"+python3-{name}" for name in splits} <= set(openwrt["mcpboard_DEPENDS"].split())


def test_the_floors_that_are_tested_are_those_of_setup_cfg() -> None:
    required = [line.partition(";")[0] for line in CFG["options"]["install_requires"].split("\n") if line]
    pins = [pin for pin in matrix.FLOORS.pins if not pin.startswith("urllib3")]  # which requests requires
    assert [pin.replace("==", ">=").removesuffix(".0") for pin in pins] == required
    assert CFG["options"]["python_requires"] == f">={matrix.FLOORS.python}"


# The first releases whose libwebp does not write out of bounds for a hostile picture (CVE-2023-4863).
SAFE = {"Pillow": (10, 0, 1), "opencv-python-headless": (4, 8, 1, 78)}


def test_no_extra_allows_a_library_that_a_picture_can_take_over() -> None:
    """Pictures come from devices, which are not to be trusted more than anybody else."""
    lines = "\n".join([*CFG["options.extras_require"].values(), *matrix.TESTERS])
    found = re.findall(r"^([A-Za-z-]+)>=([0-9.]+)", lines, re.MULTILINE)
    floors = [(name, tuple(map(int, floor.split(".")))) for name, floor in found if name in SAFE]
    assert len(floors) >= len(SAFE) + 2
    assert all(floor >= SAFE[name] for name, floor in floors)


# Oldest first: ours, apk's, dpkg's.
VERSIONS = (
    ("1.2.0.dev3", "1.2.0_alpha0_pre3", "1.2.0~~dev3"),
    ("1.2.0a1", "1.2.0_alpha1", "1.2.0~a1"),
    ("1.2.0b2.dev1", "1.2.0_beta2_pre1", "1.2.0~b2~~dev1"),
    ("1.2.0b2", "1.2.0_beta2", "1.2.0~b2"),
    ("1.2.0rc1", "1.2.0_rc1", "1.2.0~rc1"),
    ("1.2.0", "1.2.0", "1.2.0"),
    ("1.2.0.post1", "1.2.0_p1", "1.2.0.post1"),
)


@pytest.mark.parametrize(("ours", "apk", "debian"), VERSIONS)
def test_a_version_in_the_grammars_of_the_packages(ours: str, apk: str, debian: str) -> None:
    """Debian's build has its own expression; the one of test.sh meets no development version on a feed."""
    assert (tree.apk_version(ours), tree.debian_version(ours)) == (apk, debian)
    assert _sed(tree.first(r"\| (sed -E '[^']+')\)$", text(BUILD)), ours) == debian
    if "dev" not in ours and "post" not in ours:
        assert _sed(tree.first(r"\| (sed -E '[^']+')\)", text(tree.OPENWRT / "mcpboard/test.sh")), ours) == apk


def _sed(command: str, line: str) -> str:
    done = subprocess.run(["sh", "-c", command], input=line, capture_output=True, text=True, check=True, timeout=10)
    return done.stdout.strip()


def test_a_version_that_apk_cannot_say_is_refused() -> None:
    for ours in ("1!1.2.0", "1.2.0+board", "1.2.0-1", "latest"):
        with pytest.raises(ValueError, match="no form in apk"):
            tree.apk_version(ours)


@pytest.mark.tools
def test_dpkg_sorts_versions_as_we_do() -> None:
    for (_, _, older), (_, _, newer) in zip(VERSIONS, VERSIONS[1:], strict=False):
        tree.run(tree.tool("dpkg", "dpkg"), "--compare-versions", older, "lt", newer)


# --- settings and starts ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("path", "form"), [(INIT, "{}={}"), (tree.BUILDROOT / "README.md", " {}={} "), (S_SCRIPT, "export {}={}\n"), (UNIT, "Environment={}={}\n")],
    ids=["procd", "respawn", "S-script", "unit"],
)  # fmt: skip
def test_the_malloc_variables_are_set_wherever_the_server_is_started(path: Path, form: str) -> None:
    assert all(form.format(*variable) in text(path) for variable in MALLOC.items())
    assert set(re.findall(r"\bMALLOC_\w+", text(path))) == set(MALLOC)


STANDALONE = ("0.0.0.0:8080", "http://127.0.0.1:8081")
ALONGSIDE = ("0.0.0.0:8090", "http://127.0.0.1:8080")


def test_the_profiles_are_the_same_everywhere(tmp_path: Path) -> None:
    """The shipped settings are the profile standalone, and with its two lines taken in the other one."""
    alongside = tmp_path / "mcpboard.toml"
    alongside.write_text(re.sub(r"^#(?=\w)", "", text(SETTINGS_FILE), flags=re.MULTILINE), "utf-8")
    for file, profile in ((SETTINGS_FILE, STANDALONE), (alongside, ALONGSIDE)):
        found = config.load({"config": str(file)}, {})
        assert (str(found.listen[0]), found.agent_base_url) == profile
    cases = re.findall(r"(\w+) \| \w+\)\n\t+port=(\d+)\n\t+agent=(\S+)", text(INIT))
    found_there = {(name, f"0.0.0.0:{port}", agent) for name, port, agent in cases}
    assert found_there == {("standalone", *STANDALONE), ("alongside", *ALONGSIDE)}


def test_every_setting_shown_in_a_shipped_file_exists_and_shows_its_default() -> None:
    defaults = {row.key: str(row.default).replace("True", "true").replace("False", "false") for row in SETTINGS}
    shown = dict(re.findall(r"^# (\w+) = (.+)$", text(SETTINGS_FILE), re.MULTILINE))
    assert set(shown) <= set(defaults)
    examples = {"freebind", "token_file"}  # shown as an example, not as it is
    assert {key: shown[key].strip('"') for key in set(shown) - examples}.items() <= defaults.items()


def test_openwrts_settings_listen_on_an_address_that_may_be_gone() -> None:
    assert config.load({"config": str(OPENWRTS_SETTINGS)}, {}).freebind


def test_a_stop_takes_longer_than_the_servers_own_drain() -> None:
    limits = [
        tree.first(r"procd_set_param term_timeout (\d+)", text(INIT)),
        tree.first(r"^TimeoutStopSec=(\d+)", text(UNIT)),
        tree.first(r'"\$seconds" -eq (\d+)', text(S_SCRIPT)),
    ]
    assert min(map(float, limits)) > GRACE_SECONDS + 1


def test_the_unit_names_no_key_twice_that_would_replace_itself() -> None:
    keys = re.findall(r"^(\w+)=", text(UNIT), re.MULTILINE)
    assert {key for key in keys if keys.count(key) > 1} == {"Environment", "SystemCallFilter"}  # lists


def test_launchd_and_systemd_start_the_same_host_agent() -> None:
    agent = plistlib.loads((tree.UNITS / "device-host-agent.plist").read_bytes())
    assert agent["Label"] == "mcpboard.device-host-agent"
    assert (agent["RunAtLoad"], agent["KeepAlive"]) == (True, {"SuccessfulExit": False})
    unit = configparser.ConfigParser(strict=False, interpolation=None)
    unit.read(HOSTS_UNIT)
    plain = agent["ProgramArguments"][-1].removeprefix("exec ").replace('"', "").replace("$HOME", "%h")
    assert unit["Service"]["ExecStart"] == plain


# --- the shell scripts -----------------------------------------------------------------------

# Path -> the shell that runs it, and what shellcheck cannot know: procd reads START and STOP (2034), libraries of
# OpenWrt are not here (1091), config_foreach calls by name (2317).
SCRIPTS = {
    "buildroot/package/mcpboard/S90mcpboard": ("sh", ""),
    "openwrt/mcpboard/files/mcpboard.init": ("dash", "2034,1091"),
    "openwrt/mcpboard/files/mcpboard.defaults": ("dash", "1091,2317"),
    **dict.fromkeys(("openwrt/mcpboard/test.sh", "openwrt/python-waitress/test.sh", "mcpb/build"), ("dash", "")),
    "openwrt/python-waitress/test-version.sh": ("dash", ""),
    **dict.fromkeys(("debian/build", "debian/postinst", "debian/prerm", "debian/postrm"), ("dash", "")),
}


@pytest.mark.tools
def test_shellcheck_finds_nothing_and_busyboxs_shell_can_read_it() -> None:
    found = {path.relative_to(tree.DEPLOY).as_posix() for path in ALL if path.read_bytes().startswith(b"#!/bin/sh")}
    assert found == set(SCRIPTS)
    for path, (shell, unknowable) in SCRIPTS.items():
        options = ["-s", shell, *(["-e", unknowable] if unknowable else [])]
        tree.run(tree.tool("shellcheck", "shellcheck"), *options, tree.DEPLOY / path)
        tree.run(tree.tool("busybox", "busybox-static"), "ash", "-n", tree.DEPLOY / path)
        if path.startswith("openwrt/"):  # as its feeds want scripts to be laid out
            tree.run(tree.tool("shfmt", "shfmt"), "-d", "-sr", "-s", "-ln", "posix", tree.DEPLOY / path)
