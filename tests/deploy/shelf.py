"""What these tests download, on the shelf of `provision`."""

from __future__ import annotations

import hashlib
import platform
import sys
from pathlib import Path

from tests.deploy import tree
from tests.support import provision


def sdist(name: str, version: str) -> Path:
    """The source archive of a distribution on PyPI."""

    def download(place: Path) -> None:
        options: list[str | Path] = ["--no-deps", "--no-binary", ":all:", "--no-build-isolation", "--dest", place]
        pip("download", *options, f"{name}=={version}")

    (archive,) = provision.kept(f"sdist-{name}-{version}", download).iterdir()
    return archive


def distributions(*requirements: str) -> Path:
    """A folder to import exactly these from, with this Python."""

    def install(place: Path) -> None:
        pip("install", "--no-deps", "--target", place, *requirements)

    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    return provision.kept("-".join(["folder", version, *requirements]), install)


def debian(suite: str, variant: str, *packages: str, architecture: str = "") -> Path:
    """A Debian tree with these packages; the variant `extract` unpacks them and runs nothing of it."""

    def bootstrap(place: Path) -> None:
        options = [f"--variant={variant}", f"--include={','.join(packages)}"]
        options += [f"--architectures={architecture}"] if architecture else []
        mmdebstrap = tree.tool("mmdebstrap", "mmdebstrap debian-archive-keyring")
        provision.install([mmdebstrap, "--quiet", *options, suite, place, *_mirror()])

    digest = hashlib.sha256(" ".join(packages).encode()).hexdigest()[:12]
    return provision.kept(f"{suite}-{architecture or 'native'}-{variant}-{digest}", bootstrap)


def _mirror() -> list[str]:
    """Where this machine's own Debian comes from; empty leaves the choice to mmdebstrap."""
    codename = platform.freedesktop_os_release().get("VERSION_CODENAME", "")
    form = "$(RELEASE) $(COMPONENT) $(REPO_URI)"
    lines = tree.run("apt-get", "indextargets", "--format", form, "Created-By: Packages").splitlines()
    return [line.split()[-1] for line in lines if line.startswith(f"{codename} main ")][:1]


def pip(*words: str | Path) -> None:
    """Run pip; the test fails with its words when it does."""
    provision.install([sys.executable, "-m", "pip", "--quiet", *words])
