"""Foreign programs that tests need, each installed once per version and kept between runs.

    ${XDG_CACHE_HOME:-~/.cache}/mcpboard-tests/python3.11-mcp-2.3.0/            a virtual environment
                                               node-22.23.3-...-sdk-1.32.2/     an npm prefix

A prefix is built beside its place and renamed into it, so it is whole or absent. Versions are exact, so it
never grows old; deleting the folder is always safe. Only the registries' own clients are used, and no
package's install script is run.
"""

from __future__ import annotations

import fcntl
import os
import platform
import re
import shlex
import shutil
import subprocess
import sys
import venv
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

INSTALL_S = 300.0  # seconds for one installer; a slow line needs about a third of it
SHOWN_LINES = 15  # of an installer's last words

# npm's `node` fetches its binary in an install script; this is the package which that script would fetch.
NODE_BINARY = f"node-{platform.system().lower()}-{ {'x86_64': 'x64', 'aarch64': 'arm64'}.get(platform.machine(), platform.machine()) }"


def python_prefix(*requirements: str) -> Path:
    """The Python of a virtual environment that holds exactly `requirements`, such as `mcp==2.3.0`.

    Run modules with it, not the scripts beside it: their first line names the place where they were built.
    Fails the test, with the cure, when it cannot be installed.
    """
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"

    def build(place: Path) -> None:
        try:
            venv.create(place, with_pip=True, symlinks=True)
        except (OSError, subprocess.CalledProcessError) as error:
            _fail(f"no virtual environment could be made: {error}", "apt-get install python3-venv")
        _install([str(place / "bin" / "python"), "-m", "pip", "install", "--quiet", *requirements])

    return _kept("-".join([version, *requirements]), build) / "bin" / "python"


def node_prefix(packages: Mapping[str, str]) -> Path:
    """An npm prefix that holds exactly `packages` (name to version); `node` brings Node itself.

    Programs are in `node_modules/.bin`. Fails the test, with the cure, when it cannot be installed.
    """
    named = {NODE_BINARY if name == "node" else name: version for name, version in packages.items()}

    def build(place: Path) -> None:
        if shutil.which("npm") is None:
            _fail("npm is not installed", "apt-get install npm")
        place.mkdir()
        options = ["--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error", "--prefix", str(place)]
        _install(["npm", "install", *options, *(f"{name}@{version}" for name, version in named.items())])

    return _kept("-".join(f"{name}-{version}" for name, version in packages.items()), build)


def run(command: Sequence[str | Path], *, timeout: float, cwd: Path | None = None, stdin: bytes = b"") -> bytes:
    """Standard output of a program that ends well within `timeout` seconds; else the test fails with its last words.

    It reaches loopback whatever proxies the environment names.
    """
    direct = {"NO_PROXY": "127.0.0.1", "no_proxy": "127.0.0.1"}
    # A session of its own, so that a limit ends what the program started, too.
    process = subprocess.Popen(
        [str(word) for word in command],
        cwd=cwd, env={**os.environ, **direct}, start_new_session=True,
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    with process:
        try:
            out, err = process.communicate(stdin, timeout)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, 9)
            out, err = process.communicate()
            pytest.fail(f"{_shown(command)}: no end within {timeout:g} s\n{_last_words(out, err)}", pytrace=False)
    if process.returncode:
        pytest.fail(f"{_shown(command)}: exit {process.returncode}\n{_last_words(out, err)}", pytrace=False)
    return out


# --- the shelf -------------------------------------------------------------------------------


def _kept(name: str, build: Callable[[Path], None]) -> Path:
    """The folder of that name on the shelf, made by `build` when it is not there."""
    shelf = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "mcpboard-tests"
    shelf.mkdir(parents=True, exist_ok=True)
    name = re.sub(r"[^A-Za-z0-9.]+", "-", name)
    place, building = shelf / name, shelf / f".{name}.building"
    if place.is_dir():
        return place
    with _alone(shelf / f".{name}.lock"):
        if not place.is_dir():
            shutil.rmtree(building, ignore_errors=True)  # of a run that was killed
            build(building)
            building.rename(place)
    return place


@contextmanager
def _alone(lock: Path) -> Iterator[None]:
    """Only one process at a time; the wait ends, because the holder's installers have limits of their own."""
    with lock.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _install(command: list[str]) -> None:
    try:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, timeout=INSTALL_S)
    except subprocess.TimeoutExpired as late:
        _fail(f"no end within {INSTALL_S:g} s\n{_last_words(late.stdout, late.stderr)}", _shown(command))
    if done.returncode:
        _fail(f"exit {done.returncode}\n{_last_words(done.stdout, done.stderr)}", _shown(command))


def _fail(why: str, cure: str) -> None:
    pytest.fail(f"could not install what this test needs: {why}\nmake this succeed, then test again:\n  {cure}", pytrace=False)


def _shown(command: Sequence[str | Path]) -> str:
    return shlex.join(str(word) for word in command)


def _last_words(out: bytes | None, err: bytes | None) -> str:
    lines = ((out or b"") + (err or b"")).decode("utf-8", "replace").splitlines()
    return "\n".join(lines[-SHOWN_LINES:])
