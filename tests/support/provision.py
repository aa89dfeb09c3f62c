"""Foreign programs that tests need, each installed once per version and kept between runs.

    ${XDG_CACHE_HOME:-~/.cache}/mcpboard-tests/python3.11-mcp-2.3.0/             a virtual environment
                                               node-22.23.3-...-sdk-1.32.2/      an npm prefix

A prefix is built beside its place and renamed into it, so it is whole or absent. Its versions are exact, so it
never grows old, and to delete the folder is always safe. Only the registries' own clients are used, and no
package's install script is run.
"""

from __future__ import annotations

import os
import platform
import re
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NoReturn

import pytest

INSTALL_S = 300.0  # seconds for one installer; fifteen are usual
SHOWN_LINES = 20  # of a program's last words
NPM_OPTIONS = ("--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error", "--fetch-retries=1")

Command = Sequence[str | Path]

FAILED: dict[Path, str] = {}  # what went wrong in this run: a registry that is away is waited for once


def python_prefix(*requirements: str) -> Path:
    """The Python of a virtual environment that holds exactly `requirements`, such as `mcp==2.3.0`.

    Run modules and files with it, not the scripts beside it: their first line names the place where they were
    built. Fails the test, with the command to make succeed, when it cannot be installed.
    """

    def build(place: Path) -> None:
        install([sys.executable, "-I", "-m", "venv", place])
        install([place / "bin/python", "-I", "-m", "pip", "install", "--quiet", *requirements])

    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    return kept("-".join([version, *requirements]), build) / "bin/python"


def node_prefix(packages: Mapping[str, str]) -> Path:
    """An npm prefix that holds exactly `packages`, name to version; `node` brings Node itself.

    Programs are in `node_modules/.bin`. Fails the test, with the command to make succeed, when it cannot be
    installed.
    """

    def build(place: Path) -> None:
        if shutil.which("npm") is None:
            _fail("npm is not here", "apt-get install npm")
        place.mkdir()
        wanted = [f"{_binary(name)}@{version}" for name, version in packages.items()]
        install(["npm", "install", *NPM_OPTIONS, "--prefix", place, *wanted])

    return kept("-".join(f"{name}-{version}" for name, version in packages.items()), build)


def run(command: Command, *, limit_s: float, cwd: Path | None = None, stdin: bytes = b"") -> bytes:
    """The standard output of a program that ends well within `limit_s` seconds; else the test fails.

    The program reaches loopback whatever proxies the environment names.
    """
    direct = {"NO_PROXY": "127.0.0.1", "no_proxy": "127.0.0.1"}
    code, out, err = _ended(command, limit_s, stdin, cwd, {**os.environ, **direct})
    if code != 0:
        pytest.fail(f"{_shown(command)}: {_fate(code, limit_s)}\n{_last_words(out + err)}", pytrace=False)
    return out


# --- the shelf -------------------------------------------------------------------------------


def kept(name: str, build: Callable[[Path], None]) -> Path:
    """The folder of that name on the shelf; where it is not there, `build` makes the one that it is given."""
    shelf = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "mcpboard-tests"
    shelf.mkdir(parents=True, exist_ok=True)
    name = re.sub(r"[^A-Za-z0-9.]+", "-", name)
    place = shelf / name
    if place in FAILED:
        pytest.fail(FAILED[place], pytrace=False)
    if not place.is_dir():
        with _alone(shelf / f".{name}.lock"):
            _build(place, shelf / f".{name}.building", build)
    return place


def _build(place: Path, building: Path, build: Callable[[Path], None]) -> None:
    if place.is_dir():  # by the one who had the lock before us
        return
    shutil.rmtree(building, ignore_errors=True)  # of a run that was killed, or failed
    try:
        build(building)
    except pytest.fail.Exception as failure:
        FAILED[place] = str(failure)
        raise
    building.rename(place)


@contextmanager
def _alone(lock: Path) -> Iterator[None]:
    """One process at a time; the wait is bounded, because the holder's installers have a limit each."""
    import fcntl  # here: tests that install nothing also run where it is missing

    with lock.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


# --- installers ------------------------------------------------------------------------------


def _binary(name: str) -> str:
    """The package itself; for npm's `node`, the one that its install script would fetch."""
    machine = {"x86_64": "x64", "aarch64": "arm64"}.get(platform.machine(), platform.machine())
    return f"node-{platform.system().lower()}-{machine}" if name == "node" else name


def install(command: Command) -> None:
    """Run an installer; the test fails with its last words and the command when it does."""
    code, out, err = _ended(command, INSTALL_S, b"", None, dict(os.environ))
    if code != 0:
        _fail(f"{_fate(code, INSTALL_S)}\n{_last_words(out + err)}", _shown(command))


def _fail(why: str, cure: str) -> NoReturn:
    told = f"a program that this test needs could not be installed: {why}\nmake this succeed, then test again: {cure}"
    pytest.fail(told, pytrace=False)


# --- programs --------------------------------------------------------------------------------


def _ended(
    command: Command, limit_s: float, stdin: bytes, cwd: Path | None, environ: Mapping[str, str]
) -> tuple[int | None, bytes, bytes]:
    """Exit code, output and errors of a program; no code when the limit ended it and all that it had started."""
    pipe = subprocess.PIPE
    with subprocess.Popen(
        [*map(str, command)], cwd=cwd, env=environ, stdin=pipe, stdout=pipe, stderr=pipe, start_new_session=True
    ) as process:
        try:
            out, err = process.communicate(stdin, limit_s)
            return process.returncode, out, err
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            return None, *process.communicate()
        except BaseException:
            os.killpg(process.pid, signal.SIGKILL)
            raise


def _fate(code: int | None, limit_s: float) -> str:
    return f"no end within {limit_s:g} s" if code is None else f"exit code {code}"


def _shown(command: Command) -> str:
    return shlex.join(map(str, command))


def _last_words(output: bytes) -> str:
    return "\n".join(output.decode("utf-8", "replace").splitlines()[-SHOWN_LINES:])
