"""The version sets that boards bring, and the core and board suites run on one of them: `make matrix`."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.deploy import tree
from tests.support import provision

SUITES = ("tests/protocol", "tests/serving", "tests/board", "tests/config", "tests/transport")
SUITE_S = 600.0  # the suites take one minute on a quiet machine

# What these suites need beside the package.
TESTERS = ("pytest>=8", "responses>=0.25", "hypothesis>=6.100", "Pillow>=10.0.1")


@dataclass(frozen=True)
class Versions:
    """One set: its name, the Python of the system, and what the system has for it."""

    name: str
    python: str
    pins: tuple[str, ...]


SETS = (
    Versions(
        "floors", "3.10",
        # The last one is requests' own: it takes urllib3 1 as well, which is without much that 2 has.
        ("werkzeug==2.3.8", "waitress==3.0.1", "requests==2.30.0", "tomli==2.0.1", "urllib3==1.26.18"),
    ),
    Versions("OpenWrt 24.10", "3.11", ("werkzeug==2.3.8", "waitress==3.0.2", "requests==2.32.3", "urllib3==2.5.0", "idna==3.6", "markupsafe==3.0.3")),
    Versions("Buildroot 2025.02", "3.12", ("werkzeug==3.1.3", "waitress==3.0.2", "requests==2.33.1", "urllib3==2.7.0", "idna==3.10", "markupsafe==3.0.2")),
    Versions("OpenWrt 25.12", "3.13", ("werkzeug==3.1.3", "waitress==3.0.2", "requests==2.32.5", "urllib3==2.6.3", "idna==3.11", "markupsafe==3.0.3")),
)  # fmt: skip
FLOORS = SETS[0]


def main() -> int:
    """Every set on its own Python, then the latest on this one; prints one line each."""
    outcomes = [_line(each.name, each.python, _on_its_python(each)) for each in SETS]
    outcomes.append(_line("latest", ".".join(map(str, sys.version_info[:2])), suites(Path(sys.executable))))
    return 0 if all(outcomes) else 1


def _on_its_python(versions: Versions) -> str | None:
    python = interpreter(versions.python)
    if python is None:
        return f"no Python {versions.python} here: install it, or put it into PATH"
    try:
        return suites(prefix(versions, python))
    except pytest.fail.Exception as failure:
        return str(failure)


def _line(name: str, python: str, complaint: str | None) -> bool:
    print(f"{name} (Python {python}): {complaint or 'passed'}", flush=True)
    return complaint is None


def interpreter(version: str) -> Path | None:
    """A Python of that minor version, from PATH or from pyenv."""
    pyenv = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv")
    named = shutil.which(f"python{version}")
    candidates = [Path(named)] if named else []
    candidates += sorted(pyenv.glob(f"versions/{version}.*/bin/python"))
    return next((each for each in candidates if _minor(each) == version), None)


def _minor(python: Path) -> str:
    """Its version as "3.11"; "" when it does not run, as pyenv's stand-ins for other versions do."""
    ask = "import sys, venv; print('%d.%d' % sys.version_info[:2])"
    done = subprocess.run([python, "-c", ask], capture_output=True, text=True, timeout=tree.LIMIT_S, check=False)
    return done.stdout.strip()


def prefix(versions: Versions, python: Path) -> Path:
    """The Python of a virtual environment that holds the set; made once."""

    def build(place: Path) -> None:
        provision.install([python, "-I", "-m", "venv", place])
        provision.install([place / "bin/python", "-I", "-m", "pip", "install", "--quiet", *versions.pins, *TESTERS])

    return provision.kept("-".join([f"matrix-python{_minor(python)}", *versions.pins]), build) / "bin/python"


def suites(python: Path) -> str | None:
    """Run the core and board suites; None when they passed, else their last words."""
    done = subprocess.run(
        [python, "-m", "pytest", "-m", "not tools and not slow", *SUITES], cwd=tree.ROOT, stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=SUITE_S, check=False,
    )  # fmt: skip
    return None if done.returncode == 0 else "\n".join(done.stdout.splitlines()[-30:])


if __name__ == "__main__":
    sys.exit(main())
