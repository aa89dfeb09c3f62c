"""What the tests download, kept between runs in ${XDG_CACHE_HOME:-~/.cache}/mcpboard-tests.

Each thing is made beside its place and renamed into it, so it is there whole or not at all;
deleting the folder is always safe.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import platform
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

from tests.deploy import tree

DOWNLOAD_S = 300.0  # for the largest of them on a slow line


def kept(name: str, build: Callable[[Path], None]) -> Path:
    """The folder of that name; `build` fills a fresh one when it is not there yet."""
    shelf = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "mcpboard-tests"
    shelf.mkdir(parents=True, exist_ok=True)
    place, building = shelf / name, shelf / f".{name}.building"
    with (shelf / f".{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # its holder's programs have limits, so the wait ends
        if not place.is_dir():
            shutil.rmtree(building, ignore_errors=True)  # of a run that was killed
            building.mkdir()
            build(building)
            building.rename(place)
    return place


def sdist(name: str, version: str) -> Path:
    """The source archive of a distribution on PyPI."""

    def download(place: Path) -> None:
        pip("download", "--no-deps", "--no-binary", ":all:", "--no-build-isolation", "--dest", place, f"{name}=={version}")

    (archive,) = kept(f"sdist-{name}-{version}", download).iterdir()
    return archive


def distributions(*requirements: str) -> Path:
    """A folder to import exactly these from, for this Python."""

    def install(place: Path) -> None:
        pip("install", "--no-deps", "--target", place, *requirements)

    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    return kept("-".join([version, *requirements]).replace("==", "-"), install)


def pip(*words: object) -> None:
    """Run pip; the test fails with its words when it fails."""
    tree.run(sys.executable, "-m", "pip", "--quiet", *words, timeout=DOWNLOAD_S)


def debian(suite: str, variant: str, *packages: str, architecture: str = "") -> Path:
    """A folder whose `root` is a Debian tree with these packages; `extract` unpacks and runs nothing of it."""

    def bootstrap(place: Path) -> None:
        options = [f"--variant={variant}", f"--include={','.join(packages)}"]
        options += [f"--architectures={architecture}"] if architecture else []
        mmdebstrap = tree.tool("mmdebstrap", "mmdebstrap debian-archive-keyring")
        tree.run(mmdebstrap, "--quiet", *options, suite, place / "root", *_mirror(), timeout=DOWNLOAD_S)

    digest = hashlib.sha256(" ".join(packages).encode()).hexdigest()[:12]
    return kept(f"{suite}-{architecture or 'native'}-{variant}-{digest}", bootstrap)


def _mirror() -> list[str]:
    """Where this machine's own Debian comes from; empty leaves the choice to mmdebstrap."""
    codename = platform.freedesktop_os_release().get("VERSION_CODENAME", "")
    lines = tree.run("apt-get", "indextargets", "--format", "$(RELEASE) $(COMPONENT) $(REPO_URI)", "Created-By: Packages")
    found = [line.split()[-1] for line in lines.splitlines() if line.startswith(f"{codename} main ")]
    return found[:1]
