"""What a board runs: bytecode alone with its dependencies, on 32-bit ARM for real, and on the oldest versions allowed."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from mcpboard.client import Client
from mcpboard.simulator import Simulator
from tests.bench.programs import MALLOC
from tests.bench.targets import INSTALLED_BYTES
from tests.deploy import armhf, boards, matrix, tree
from tests.deploy.boards import START_S, served
from tests.deploy.rooms import room, until

pytestmark = pytest.mark.slow

LARGE_BUNDLE = 4 << 20  # bytes; some eighty blocks

# What an idle server must do without: each costs a megabyte or more.
HEAVY = {"requests", "urllib3", "jinja2", "PIL", "importlib.metadata"}

# Parts of the standard library that a small system may leave out, and the helper of requests that guesses encodings.
OFTEN_MISSING = [
    "ssl", "ctypes", "sqlite3", "asyncio", "multiprocessing", "bz2", "lzma", "decimal", "charset_normalizer", "chardet",
]  # fmt: skip

# The interpreter with its standard library and what PYTHONPATH names, nothing else.
PYTHON = (sys.executable, "-S", "-B")
MODULE = ("-m", "mcpboard")


@pytest.fixture(scope="module")
def simulator() -> Iterator[Simulator]:
    with Simulator(speed=100) as simulated:
        yield simulated


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site-packages of a board: what the recipe installs and the dependencies, bytecode alone."""
    scratch = tmp_path_factory.mktemp("board")
    tree.openwrt("mcpboard", "install", BUILD_DIR=scratch / "build", ROOT=scratch / "root")
    found = scratch / "root" / tree.SITE.lstrip("/")
    boards.install_dependencies(found)
    boards.leave_bytecode_alone(found)
    assert not [*found.rglob("*.py"), *found.glob("*.dist-info")]
    return found


@pytest.fixture(scope="module")
def emulated(tmp_path_factory: pytest.TempPathFactory) -> list[object]:
    """An emulated interpreter that can import our package: Debian's Python, PyPI's wheels."""
    made = tmp_path_factory.mktemp("site")
    armhf.install(made)
    assert boards.installed_bytes(made) <= INSTALLED_BYTES
    return armhf.python(made)


@contextmanager
def board(
    simulator: Simulator, python: Sequence[object], environ: Mapping[str, str], cwd: Path = tree.ROOT
) -> Iterator[str]:
    """A server in front of the simulator; `python` are the words before its verb."""
    flags = ["--agent-base-url", simulator.agent_url, "--config-web-base-url", simulator.config_web_url]
    with served([*python, "serve", "--listen", "127.0.0.1:0", *flags], {**environ, **MALLOC}, cwd) as url:
        yield url


def fetched(url: str, path: str) -> str:
    with urllib.request.urlopen(url.replace("/mcp", path), timeout=tree.LIMIT_S) as response:
        return str(response.read().decode())


# --- it serves -------------------------------------------------------------------------------


def drive(url: str, simulator: Simulator) -> None:
    """The page for people, the tools, a status, a picture, a small and a large bundle, each whole."""
    page = fetched(url, "/")
    assert "<h1>mcpboard</h1>" in page
    assert "color-scheme:light dark" in page
    with Client(url, timeout=START_S) as client:
        assert [each["name"] for each in client.list_tools()] == boards.TOOLS
        boards.drive(client)
        simulator.faults.set("bundle", times=1, bytes=LARGE_BUNDLE)
        (bundle,) = client.call("support_bundle", {}).blobs
        assert len(bundle.content) == LARGE_BUNDLE


def test_it_serves_from_bytecode_with_a_small_standard_library(site: Path, simulator: Simulator) -> None:
    program = (
        f"import sys; sys.modules.update(dict.fromkeys({OFTEN_MISSING}));"
        "from mcpboard.cli import main; sys.exit(main())"
    )
    with board(simulator, (*PYTHON, "-c", program), {"PYTHONPATH": str(site)}, site) as url:
        drive(url, simulator)


@pytest.mark.tools
def test_it_serves_on_arm(emulated: list[object], simulator: Simulator) -> None:
    facts = (
        "import platform, sys, markupsafe._speedups, mcpboard;"
        "print(platform.machine(), sys.maxsize == 2**31 - 1, mcpboard.__version__)"
    )
    assert tree.run(*emulated, "-c", facts) == f"armv7l True {tree.VERSION}\n"
    with board(simulator, (*emulated, *MODULE), {}) as url:
        drive(url, simulator)


@pytest.mark.tools
def test_it_serves_at_the_floors(simulator: Simulator) -> None:
    """On the oldest Python where it is installed, else on this one; `make matrix` runs the suites there."""
    python = matrix.prefix(matrix.FLOORS, matrix.interpreter(matrix.FLOORS.python) or Path(sys.executable))
    names = (".".join(path.relative_to(tree.ROOT).with_suffix("").parts) for path in tree.board_modules())
    tree.run(python, "-W", "error", "-c", "\n".join(f"import {name.removesuffix('.__init__')}" for name in names))
    with board(simulator, (python, *MODULE), {"PYTHONPATH": str(tree.ROOT)}) as url:
        drive(url, simulator)


@pytest.mark.tools
def test_it_serves_where_nothing_can_be_written(site: Path, tmp_path: Path) -> None:
    """Everything read-only, no home folder: a board whose flash is worn out still serves."""
    with room(tmp_path) as inside:
        busybox = tree.tool("busybox", "busybox-static")
        inside.run("cp", "-r", str(site), "/opt/site")
        for mount in ("/", "/dev", "/run"):
            inside.run("mount", "-o", "remount,ro", mount)
        assert inside.try_("touch", "/tmp/anything").returncode != 0
        command = " ".join((*PYTHON, *MODULE, "serve", "--listen", "127.0.0.1:8080"))
        inside.run("sh", "-c", f"unset HOME; PYTHONPATH=/opt/site exec {command} < /dev/null > /dev/null 2>&1 &")
        wget = [busybox, "wget", "-q", "-O", "-", "http://127.0.0.1:8080/health"]
        until(lambda: '"mcpboard"' in inside.try_(*wget).stdout, "an answer from a server that may write nothing")


def test_an_idle_server_has_not_loaded_what_it_does_not_need_yet(
    site: Path, simulator: Simulator, tmp_path: Path
) -> None:
    loaded = tmp_path / "modules"
    program = (
        "import sys; from mcpboard.cli import main; code = main();"
        f"open({str(loaded)!r}, 'w').write(' '.join(sys.modules)); sys.exit(code)"
    )
    with board(simulator, (*PYTHON, "-c", program), {"PYTHONPATH": str(site)}, site) as url:
        assert '"mcpboard"' in fetched(url, "/health")
    assert not set(loaded.read_text("ascii").split()) & HEAVY


# --- its verbs -------------------------------------------------------------------------------

ELSEWHERE = r"(mcpboard|device-host-agent): mcpboard\.\S+ is not here: .* doctor --board; .* pip install mcpboard\n"
URL = "http://127.0.0.1:9/mcp"


def said(site: Path, *words: str) -> tuple[int, str, str]:
    """Exit code, words and errors of the board's `mcpboard`, run in its folder, where Python looks first."""
    done = subprocess.run(
        [*PYTHON, *MODULE, *words], env={"PYTHONPATH": str(site), "PATH": os.defpath}, cwd=site, timeout=tree.LIMIT_S,
        stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False,
    )  # fmt: skip
    return done.returncode, done.stdout, done.stderr


def test_a_verb_that_needs_no_other_role_runs(site: Path) -> None:
    assert said(site, "--version") == (0, f"{tree.VERSION}\n", "")
    for words in (["config"], ["serve", "--help"], ["--help"]):
        code, out, err = said(site, *words)
        assert (code, out != "", err) == (0, True, "")
    assert re.findall(r"^    (\w+) {2}", out, re.MULTILINE) == ["serve", "config", "doctor", "tools", "call"]


@pytest.mark.parametrize("words", ["host", "connect", f"bridge {URL}", f"relay {URL}", "doctor", "simulate", "demo"])
def test_a_verb_of_another_role_says_so_in_one_line(site: Path, words: str) -> None:
    code, out, err = said(site, *words.split())
    assert (code, out) == (2, "")
    assert re.fullmatch(ELSEWHERE, err)
