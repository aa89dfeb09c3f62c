"""The tree that the recipes are read from: its files, its facts, and the tools that look at them."""

from __future__ import annotations

import configparser
import re
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Mapping
from pathlib import Path

import pytest

import mcpboard
from tests.support import ROOT as ROOT

DEPLOY = ROOT / "deploy"
OPENWRT = DEPLOY / "openwrt"
BUILDROOT = DEPLOY / "buildroot"
DEBIAN = DEPLOY / "debian"
UNITS = DEPLOY / "systemd"
STUBS = Path(__file__).parent / "stubs"

# Folders of the package for other machines than boards; every recipe reads the same file.
NOT_ON_BOARDS = tuple((DEPLOY / "board-excludes").read_text("ascii").split())

# Where a wheel's modules go under --prefix /usr.
SITE = sysconfig.get_path("purelib", vars={"base": "/usr"})

LIMIT_S = 60.0  # for a program that takes a second or two on a quiet machine


def setup_cfg() -> configparser.ConfigParser:
    parser = configparser.ConfigParser()
    parser.read(ROOT / "setup.cfg", "utf-8")
    return parser


VERSION = mcpboard.__version__


def tool(name: str, package: str) -> str:
    """The program's path; the test fails with the cure when it is not there."""
    found = shutil.which(name)
    if found is None:
        pytest.fail(f"{name} is missing: apt-get install {package}", pytrace=False)
    return found


def run(*command: object, environ: Mapping[str, str] | None = None, timeout: float = LIMIT_S) -> str:
    """Standard output of a program that must end well; its last words otherwise."""
    words = [str(word) for word in command]
    done = subprocess.run(
        words, env=environ, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=timeout, check=False
    )
    assert done.returncode == 0, f"{' '.join(words)}: exit {done.returncode}\n{done.stdout}{done.stderr}"
    return done.stdout


def make(folder: Path, target: str, **variables: object) -> str:
    """Standard output of plain GNU make in `folder`."""
    assignments = [f"{name}={value}" for name, value in variables.items()]
    command = [tool("make", "make"), "--no-print-directory", "-C", folder, target]
    return run(*command, f"PYTHON={sys.executable}", *assignments)


def described(text: str) -> dict[str, str]:
    """NAME=value lines as a mapping."""
    return dict(line.split("=", 1) for line in text.splitlines() if "=" in line)


def openwrt(recipe: str, target: str, **variables: object) -> str:
    """One of our OpenWrt recipes under the stub macros."""
    stub = STUBS / "openwrt"
    return make(OPENWRT / recipe, target, TOPDIR=stub, SITE=SITE, **variables)


def buildroot(target: str, **variables: object) -> str:
    """Our external tree under the stub macro."""
    return make(STUBS / "buildroot", target, BR2_EXTERNAL_MCPBOARD_PATH=BUILDROOT, **variables)


def files(root: Path) -> dict[str, int]:
    """Path below `root` -> permission bits, of every file."""
    return {
        "/" + path.relative_to(root).as_posix(): path.stat().st_mode & 0o7777
        for path in sorted(root.rglob("*"))
        if path.is_file()
    }


def package_files() -> set[str]:
    """Every file of the package, modules and what they read, by its path below the root."""
    found = (path for path in (ROOT / "mcpboard").rglob("*") if path.is_file() and "__pycache__" not in path.parts)
    return {path.relative_to(ROOT).as_posix() for path in found}


def on_boards(path: Path) -> bool:
    """Whether this file of the package is part of the board's subset."""
    return not any(path.is_relative_to(ROOT / "mcpboard" / left_out) for left_out in NOT_ON_BOARDS)


def board_files() -> set[str]:
    """Every file of the board's subset, by its path below the root."""
    return {path for path in package_files() if on_boards(ROOT / path)}


def board_modules() -> list[Path]:
    """The sources of the board's subset."""
    return [path for path in sorted((ROOT / "mcpboard").rglob("*.py")) if on_boards(path)]


def first(pattern: str, text: str) -> str:
    """What the first group of `pattern` matches first, line by line."""
    found = re.search(pattern, text, re.MULTILINE)
    assert found, f"nothing matches {pattern}"
    return found[1]


# --- the version in the grammars of the packages ---------------------------------------------

_PEP440 = re.compile(
    r"(?P<release>\d+(\.\d+)*)((?P<stage>a|b|rc)(?P<number>\d+))?(\.post(?P<post>\d+))?(\.dev(?P<dev>\d+))?"
)
_STAGES = {"a": "alpha", "b": "beta", "rc": "rc"}


def apk_version(version: str) -> str:
    """The version (PEP 440) for apk, in the same order; ValueError for what it cannot say (epochs, local parts)."""
    found = _PEP440.fullmatch(version)
    if found is None:
        raise ValueError(f"{version} has no form in apk")
    suffixes = f"_{_STAGES[found['stage']]}{found['number']}" if found["stage"] else ""
    if found["post"]:
        suffixes += f"_p{found['post']}"
    if found["dev"]:
        # A development version comes before the first alpha; after a suffix, _pre comes before that suffix alone.
        suffixes = (suffixes or "_alpha0") + f"_pre{found['dev']}"
    return found["release"] + suffixes


def debian_version(version: str) -> str:
    """The same version for dpkg, where ~ sorts before the end, and ~~ before ~."""
    return re.sub(r"\.dev(?=\d)", "~~dev", re.sub(r"(?<=\d)(?=(a|b|rc)\d)", "~", version))
