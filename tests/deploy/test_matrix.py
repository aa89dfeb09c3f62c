"""The oldest versions that setup.cfg allows. The latest are what this test run itself has."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from mcpboard.simulator import Simulator
from tests.deploy import boards, matrix, tree


def test_the_floors_are_those_of_setup_cfg() -> None:
    required = [line.partition(";")[0] for line in tree.setup_cfg()["options"]["install_requires"].split("\n") if line]
    pins = [pin for pin in matrix.FLOORS.pins if not pin.startswith("urllib3")]  # which requests requires
    floors = [pin.replace("==", ">=").removesuffix(".0") for pin in pins]
    assert floors == required
    assert tree.setup_cfg()["options"]["python_requires"] == f">={matrix.FLOORS.python}"


# The first releases whose libwebp does not write out of bounds for a hostile picture (CVE-2023-4863).
SAFE = {"Pillow": (10, 0, 1), "opencv-python-headless": (4, 8, 1, 78)}


def test_no_extra_allows_a_library_that_a_picture_can_take_over() -> None:
    """Pictures come from devices, which are not to be trusted more than anybody else."""
    extras = tree.setup_cfg()["options.extras_require"]
    found = re.findall(r"^([A-Za-z-]+)>=([0-9.]+)", "\n".join(extras.values()), re.MULTILINE)
    floors = [(name, tuple(map(int, floor.split(".")))) for name, floor in [*found, *_testers()] if name in SAFE]
    assert len(floors) >= len(SAFE) + 2
    assert all(floor >= SAFE[name] for name, floor in floors)


def _testers() -> list[tuple[str, str]]:
    return [(name, floor) for name, _, floor in (each.partition(">=") for each in matrix.TESTERS)]


@pytest.mark.tools
@pytest.mark.slow
def test_a_board_works_at_the_floors() -> None:
    """On the oldest Python where it is installed, else on this one; `make matrix` runs the suites there."""
    python = matrix.prefix(matrix.FLOORS, matrix.interpreter(matrix.FLOORS.python) or Path(sys.executable))
    names = [path.relative_to(tree.ROOT).with_suffix("").parts for path in tree.board_modules()]
    imports = "\n".join(f"import {'.'.join(name).removesuffix('.__init__')}" for name in names)
    tree.run(python, "-W", "error", "-c", imports)
    with Simulator(speed=100) as simulator:
        flags = ["--agent-base-url", simulator.agent_url, "--config-web-base-url", simulator.config_web_url]
        command = [python, "-m", "mcpboard", "serve", "--listen", "127.0.0.1:0", *flags]
        with boards.served(command, {}) as board, board.client() as client:
            boards.drive(client)
