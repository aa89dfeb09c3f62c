"""A 32-bit ARM userland: Debian's Python and the wheels of PyPI, run by qemu's user emulation."""

from __future__ import annotations

from pathlib import Path

from tests import provision
from tests.deploy import boards, shelf, tree

SUITE = "bookworm"
PYTHON = "3.11"  # the suite's
PACKAGES = ("python3-minimal", "libpython3-stdlib", "busybox-static", "ca-certificates")

# So that the emulator compiles them once: half of a start-up otherwise.
WARM_UP = "import argparse, logging.handlers, tomllib, werkzeug.wrappers, waitress.server, requests"


def root() -> Path:
    """The unpacked system."""
    return shelf.debian(SUITE, "extract", *PACKAGES, architecture="armhf")


def wheels() -> Path:
    """The dependencies for that system, as PyPI has them for it."""

    def download(place: Path) -> None:
        target = ["--platform", "manylinux_2_17_armv7l", "--python-version", PYTHON, "--implementation", "cp"]
        shelf.pip("install", "--no-compile", "--only-binary", ":all:", *target, "--target", place, *boards.ROOTS)
        tree.run(*python(place, bytecode=True), "-c", WARM_UP)

    return provision.kept(f"wheels-armv7l-{PYTHON}", download)


def python(*sites: Path, bytecode: bool = False) -> list[object]:
    """The emulated interpreter with these folders to import from."""
    emulator = tree.tool("qemu-arm-static", "qemu-user-static")
    path = ":".join(map(str, sites))
    options = [] if bytecode else ["-B"]
    return [emulator, "-L", root(), "-E", f"PYTHONPATH={path}", root() / f"usr/bin/python{PYTHON}", *options]
