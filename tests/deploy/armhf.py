"""A 32-bit ARM userland: Debian's Python and the wheels of PyPI, run by qemu's user emulation."""

from __future__ import annotations

import shutil
from pathlib import Path

from tests.deploy import boards, shelf, tree
from tests.support import provision

SUITE = "bookworm"
PYTHON = "3.11"  # the suite's
PACKAGES = ("python3-minimal", "libpython3-stdlib", "busybox-static", "ca-certificates")

# So that the emulator compiles once what these import of the standard library: half of a start-up otherwise.
WARM_UP = "import argparse, logging.handlers, tomllib, werkzeug.wrappers, waitress.server, requests"

COMPILE_S = 300.0  # for all dependencies, emulated on a busy machine


def root() -> Path:
    """The unpacked system."""
    return shelf.debian(SUITE, "extract", *PACKAGES, architecture="armhf")


def wheels() -> Path:
    """The dependencies for that system, as PyPI has them for it, in bytecode alone."""

    def download(place: Path) -> None:
        target = ["--platform", "manylinux_2_17_armv7l", "--python-version", PYTHON, "--implementation", "cp"]
        shelf.pip("install", "--no-compile", "--only-binary", ":all:", *target, "--target", place, *boards.ROOTS)
        leave_bytecode_alone(place)
        tree.run(*python(place, bytecode=True), "-c", WARM_UP)

    return provision.kept(f"bytecode-armv7l-{PYTHON}", download)


def leave_bytecode_alone(site: Path) -> None:
    """What both build systems do, by that system's own interpreter."""
    tree.run(*python(), "-m", "compileall", "-q", "-b", site, timeout=COMPILE_S)
    boards.remove_sources(site)


def python(*sites: Path, bytecode: bool = False) -> list[object]:
    """The emulated interpreter with these folders to import from."""
    emulator = tree.tool("qemu-arm-static", "qemu-user-static")
    path = ":".join(map(str, sites))
    options = ["-P"] if bytecode else ["-P", "-B"]  # nothing is imported from the folder where it runs
    return [emulator, "-L", root(), "-E", f"PYTHONPATH={path}", root() / f"usr/bin/python{PYTHON}", *options]


def install(site: Path) -> None:
    """The site-packages of a board, in bytecode alone."""
    boards.install_ours(site)
    leave_bytecode_alone(site)
    shutil.copytree(wheels(), site, dirs_exist_ok=True)
