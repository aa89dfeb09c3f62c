"""What a board runs: our recipe's files and the dependencies, bytecode alone, in little space and memory."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import urllib.request
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import mcpboard
from mcpboard.simulator import Simulator
from tests.bench.targets import RSS_AFTER_CALLS, RSS_IDLE
from tests.deploy import boards, shelf, tree
from tests.deploy.boards import Served, served
from tests.deploy.rooms import room, until
from tests.deploy.test_consistency import MALLOC

pytestmark = pytest.mark.slow

CALLS = 1_000

# What an idle server must do without: each costs a megabyte or more.
HEAVY = {"requests", "urllib3", "jinja2", "PIL", "importlib.metadata"}

# Parts of the standard library that a small system may leave out, and the helper of requests that guesses encodings.
OFTEN_MISSING = (
    "ssl", "ctypes", "sqlite3", "asyncio", "multiprocessing", "bz2", "lzma", "decimal", "charset_normalizer", "chardet",
)  # fmt: skip


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site-packages of a board: what the recipe installs and the dependencies, bytecode alone."""
    scratch = tmp_path_factory.mktemp("board")
    tree.openwrt("mcpboard", "install", BUILD_DIR=scratch / "build", ROOT=scratch / "root")
    found = scratch / "root" / tree.SITE.lstrip("/")
    boards.install_dependencies(found)
    boards.leave_bytecode_alone(found)
    return found


@pytest.fixture(scope="module")
def simulator() -> Iterator[Simulator]:
    with Simulator(speed=100) as simulated:
        yield simulated


def python(*words: str) -> list[str]:
    """The interpreter with its standard library and what PYTHONPATH names, nothing else."""
    return [sys.executable, "-S", "-B", *words]


@contextmanager
def board(site: Path, simulator: Simulator, *program: str) -> Iterator[Served]:
    """A server of that `site` in front of the simulator; `-m mcpboard` unless `program` says otherwise."""
    flags = ["--agent-base-url", simulator.agent_url, "--config-web-base-url", simulator.config_web_url]
    command = python(*(program or ("-m", "mcpboard")), "serve", "--listen", "127.0.0.1:0", *flags)
    with served(command, {"PYTHONPATH": str(site), **MALLOC}, cwd=site) as running:
        yield running


def test_no_source_and_no_metadata_is_left(site: Path) -> None:
    assert {path.suffix for path in site.rglob("*") if path.is_file()} & {".py"} == set()
    assert not list(site.glob("*.dist-info"))


def said(site: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """What the board's `mcpboard` says; run in its own folder, because Python looks in the current one first."""
    return subprocess.run(
        python("-m", "mcpboard", *words), env={"PYTHONPATH": str(site)}, cwd=site, timeout=tree.LIMIT_S,
        stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False,
    )  # fmt: skip


def test_it_knows_its_version(site: Path) -> None:
    assert said(site, "--version").stdout == f"{mcpboard.__version__}\n" == f"{tree.VERSION}\n"


@pytest.mark.parametrize("verb", [["config"], ["--help"], ["serve", "--help"]], ids=" ".join)
def test_a_verb_that_needs_no_other_role_runs(site: Path, verb: list[str]) -> None:
    done = said(site, *verb)
    assert done.stdout
    assert (done.returncode, done.stderr) == (0, "")


def test_the_menu_has_the_verbs_that_are_there(site: Path) -> None:
    verbs = re.findall(r"^    (\w+) {2}", said(site, "--help").stdout, re.MULTILINE)
    assert verbs == ["serve", "tools", "call", "doctor", "config"]


@pytest.mark.parametrize(
    "verb",
    [
        ["host"],
        ["connect"],
        ["bridge", "http://127.0.0.1:9/mcp"],
        ["relay", "http://127.0.0.1:9/mcp"],
        ["doctor"],
        ["simulate"],
        ["demo"],
    ],
    ids=lambda verb: verb[0],
)
def test_a_verb_of_another_role_says_so_in_one_line(site: Path, verb: list[str]) -> None:
    done = said(site, *verb)
    assert (done.returncode, done.stdout) == (2, "")
    assert re.fullmatch(
        r"(mcpboard|device-host-agent): mcpboard\.\S+ is not here: .* doctor --board; .* pip install mcpboard\n",
        done.stderr,
    )


def test_it_serves(site: Path, simulator: Simulator) -> None:
    with board(site, simulator) as running, running.client() as client:
        assert [each["name"] for each in client.list_tools()] == boards.TOOLS
        boards.drive(client)


def test_the_page_for_people_has_its_template_and_style(site: Path, simulator: Simulator) -> None:
    with board(site, simulator) as running, fetched(running, "/") as response:
        page = response.read().decode()
    assert "<h1>mcpboard</h1>" in page
    assert "color-scheme:light dark" in page


def test_an_idle_server_has_not_loaded_what_it_does_not_need_yet(
    site: Path, simulator: Simulator, tmp_path: Path
) -> None:
    loaded = tmp_path / "modules"
    program = (
        "import sys; from mcpboard.cli import main; code = main();"
        f"open({str(loaded)!r}, 'w').write(' '.join(sys.modules)); sys.exit(code)"
    )
    with board(site, simulator, "-c", program) as running:
        assert healthy(running)
    assert not set(loaded.read_text("ascii").split()) & HEAVY


def healthy(running: Served) -> bool:
    with fetched(running, "/health") as response:
        return bool(response.status == 200)


def fetched(running: Served, path: str) -> Any:
    return urllib.request.urlopen(running.url.replace("/mcp", path), timeout=tree.LIMIT_S)


def test_memory_stays_below_its_ceilings(site: Path, simulator: Simulator) -> None:
    with board(site, simulator) as running, running.client() as client:
        client.ping()
        idle = running.memory_kb()
        for number in range(CALLS):
            assert not client.call(*boards.MIX[number % len(boards.MIX)]).is_error
        worked = running.memory_kb()
    print(f"RSS idle {idle} kB, after {CALLS} calls {worked} kB")
    assert idle <= RSS_IDLE * 1024
    assert worked <= RSS_AFTER_CALLS * 1024


def test_a_small_standard_library_is_enough(site: Path, simulator: Simulator) -> None:
    program = (
        "import sys; sys.modules.update(dict.fromkeys(sys.argv.pop(1).split(',')));"
        "from mcpboard.cli import main; sys.exit(main())"
    )
    with board(site, simulator, "-c", program, ",".join(OFTEN_MISSING)) as running, running.client() as client:
        boards.drive(client)


@pytest.mark.tools
def test_it_serves_where_nothing_can_be_written(site: Path, tmp_path: Path) -> None:
    """Everything read-only, no home folder: a board whose flash is worn out still serves."""
    with room(tmp_path) as inside:
        busybox = tree.tool("busybox", "busybox-static")
        inside.run("cp", "-r", str(site), "/opt/site")
        for mount in ("/", "/dev", "/run"):
            inside.run("mount", "-o", "remount,ro", mount)
        assert inside.try_("touch", "/tmp/anything").returncode != 0
        command = " ".join(python("-m", "mcpboard", "serve", "--listen", "127.0.0.1:8080"))
        inside.run("sh", "-c", f"unset HOME; PYTHONPATH=/opt/site exec {command} < /dev/null > /dev/null 2>&1 &")
        wget = [busybox, "wget", "-q", "-O", "-", "http://127.0.0.1:8080/health"]
        until(lambda: '"mcpboard"' in inside.try_(*wget).stdout, "an answer")
        inside.end("mcpboard serve")


# The oldest setuptools that runs on each Python, as setup.cfg's build system claims 61 and later.
OLDEST_SETUPTOOLS = {(3, 10): "61.0.0", (3, 11): "61.0.0"}


@pytest.mark.tools
def test_the_oldest_setuptools_makes_the_same_wheel(tmp_path: Path) -> None:
    oldest = OLDEST_SETUPTOOLS.get(sys.version_info[:2], "66.1.0")
    tools = shelf.distributions(f"setuptools=={oldest}", "wheel==0.38.4", "build", "pyproject_hooks", "packaging")
    for name in ("mcpboard", "setup.cfg", "pyproject.toml", "LICENSE"):
        copy = shutil.copytree if (tree.ROOT / name).is_dir() else shutil.copyfile
        copy(tree.ROOT / name, tmp_path / name)
    shutil.rmtree(tmp_path / "mcpboard/simulator")
    tree.run(
        sys.executable, "-S", "-m", "build", "--no-isolation", "--skip-dependency-check", "--wheel", tmp_path,
        environ={"PATH": os.defpath, "PYTHONPATH": str(tools)},
    )  # fmt: skip
    (wheel,) = (tmp_path / "dist").iterdir()
    assert wheel.name == f"mcpboard-{tree.VERSION}-py3-none-any.whl"
    kept = {path for path in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in path}
    assert kept == {path for path in tree.package_files() if not path.startswith("mcpboard/simulator/")}
