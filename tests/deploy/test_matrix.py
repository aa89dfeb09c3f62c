"""The oldest versions that setup.cfg allows. The latest are what this test run itself has."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.deploy import matrix, tree


def test_the_floors_are_those_of_setup_cfg() -> None:
    required = [line.partition(";")[0] for line in tree.setup_cfg()["options"]["install_requires"].split("\n") if line]
    floors = [pin.replace("==", ">=").removesuffix(".0") for pin in matrix.FLOORS.pins]
    assert floors == required
    assert tree.setup_cfg()["options"]["python_requires"] == f">={matrix.FLOORS.python}"


@pytest.mark.tools
@pytest.mark.slow
def test_the_core_and_board_suites_pass_at_the_floors() -> None:
    """On the oldest Python where it is installed, else on this one."""
    python = matrix.interpreter(matrix.FLOORS.python) or Path(sys.executable)
    assert matrix.suites(matrix.prefix(matrix.FLOORS, python)) is None
