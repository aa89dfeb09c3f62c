"""The laptop's and the host's side on a system that lacks what only POSIX, or only Linux, has.

`tests/foreign` takes it away from every Python that is started, the clients' bridges among them.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.support import ROOT
from tests.support.piped import ENVIRONMENT

FOREIGN = os.pathsep.join(map(str, (ROOT / "tests/foreign", ROOT)))
RUN_S = 120.0  # seconds for the tests of a whole room; ten on an idle machine
PROOF = "import socket; assert not hasattr(socket, 'TCP_USER_TIMEOUT')\nimport fcntl"

ROOMS = [room for room in ("laptop", "host") if (ROOT / "mcpboard" / room).is_dir()]
# What takes seconds and has nothing to do with the system underneath.
LEFT_OUT = (
    "portability", "killed", "boots", "sixteen", "too_many", "answered", "beyond_ascii", "breaks_off", "stress", "windows",
    "own_interface", "at_once_lose_nothing", "just_left", "launchd",  # what such a system cannot do
)  # fmt: skip


def python(*words: str, variables: Mapping[str, str] = os.environ) -> subprocess.CompletedProcess[bytes]:
    """What such a Python does, in an environment of `variables`."""
    return subprocess.run(
        [sys.executable, *words], check=False, stdin=subprocess.DEVNULL, capture_output=True, timeout=RUN_S, cwd=ROOT,
        env={**variables, "PYTHONPATH": FOREIGN, "HYPOTHESIS_NO_PLUGINS": "1"},  # else it loads a guest that is for POSIX only
    )  # fmt: skip


def foreign(*words: str) -> subprocess.CompletedProcess[bytes]:
    """The command line there, in the hostile environment of the bridge's tests."""
    return python("-m", "mcpboard", *words, variables=ENVIRONMENT)


def test_what_is_to_be_missing_is_missing() -> None:
    assert b"import of fcntl halted" in python("-c", PROOF).stderr


# What the vision extra brings its libraries for, loaded on the first use of vision only.
WITH_VISION = tuple(
    f"mcpboard.host.vision.{name}" for name in ("icons.index", "icons.blobs", "icons.descriptor", "ocr", "engine")
)


def modules() -> list[str]:
    """Every module of these roles and of the command line, by its dotted name."""
    found = [path for room in (*ROOMS, "cli") for path in sorted((ROOT / "mcpboard" / room).rglob("*.py"))]
    names = [".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__") for path in found]
    return [name for name in names if name not in WITH_VISION]


def test_every_module_can_be_imported() -> None:
    done = python("-W", "error", "-c", "\n".join(f"import {name}" for name in modules()))
    assert (done.returncode, done.stderr) == (0, b"")


@pytest.mark.slow
@pytest.mark.parametrize("room", [room for room in ROOMS if Path(ROOT, "tests", room).is_dir()])
def test_the_rooms_own_tests_pass(room: str) -> None:
    chosen = " and ".join(f"not {word}" for word in LEFT_OUT)
    done = python("-m", "pytest", f"tests/{room}", "-m", "not tools and not slow", "-k", chosen)
    assert done.returncode == 0, done.stdout.decode()
    assert b" passed" in done.stdout


@pytest.mark.parametrize(
    "words",
    [
        pytest.param(["relay", "http://192.168.42.1:8080", "--print-service"], id="a service to print"),
        pytest.param(["--help"], id="help"),
    ],
)
def test_every_verb_can_be_started(words: list[str]) -> None:
    done = foreign(*words)
    assert done.returncode == 0, done.stderr
