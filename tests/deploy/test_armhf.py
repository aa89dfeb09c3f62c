"""The server on 32-bit ARM for real: Debian's Python, PyPI's wheels, emulated; the simulated phone runs natively."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from mcpboard.simulator import Simulator
from tests.bench.targets import INSTALLED_BYTES
from tests.deploy import armhf, boards, tree
from tests.deploy.boards import Served
from tests.deploy.test_consistency import MALLOC

pytestmark = [pytest.mark.tools, pytest.mark.slow]

LARGE_BUNDLE = 4 << 20  # bytes; some eighty blocks


@pytest.fixture(scope="module")
def simulator() -> Iterator[Simulator]:
    with Simulator(speed=100) as simulated:
        yield simulated


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("site")
    armhf.install(made)
    return made


@pytest.fixture(scope="module")
def interpreter(site: Path) -> list[object]:
    """The emulated interpreter that can import our package."""
    return armhf.python(site)


@pytest.fixture(scope="module")
def board(interpreter: list[object], simulator: Simulator) -> Iterator[Served]:
    """The server; it must end well at SIGTERM."""
    flags = ["--agent-base-url", simulator.agent_url, "--config-web-base-url", simulator.config_web_url]
    command = [*interpreter, "-m", "mcpboard", "serve", "--listen", "127.0.0.1:0", *flags]
    with boards.served(command, MALLOC) as running:
        yield running


def test_it_is_a_32_bit_arm(interpreter: list[object]) -> None:
    facts = "import platform, sys; print(platform.machine(), sys.maxsize == 2**31 - 1)"
    assert tree.run(*interpreter, "-c", facts) == "armv7l True\n"


def test_its_parts_in_c_are_those_of_arm(interpreter: list[object]) -> None:
    assert "speedups" in tree.run(*interpreter, "-c", "import markupsafe._speedups as parts; print(parts.__name__)")


def test_it_knows_its_version(interpreter: list[object]) -> None:
    assert tree.run(*interpreter, "-m", "mcpboard", "--version") == f"{tree.VERSION}\n"


def test_it_fits(site: Path) -> None:
    assert boards.installed_bytes(site) <= INSTALLED_BYTES


def test_it_lists_its_tools(board: Served) -> None:
    with board.client() as client:
        assert [each["name"] for each in client.list_tools()] == boards.TOOLS


def test_it_answers_a_status_a_picture_and_a_bundle(board: Served) -> None:
    with board.client() as client:
        boards.drive(client)


def test_a_large_bundle_arrives_whole(board: Served, simulator: Simulator) -> None:
    simulator.faults.set("bundle", times=1, bytes=LARGE_BUNDLE)
    with board.client() as client:
        (bundle,) = client.call("support_bundle", {}).blobs
    assert len(bundle.content) == LARGE_BUNDLE
