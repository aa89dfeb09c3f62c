"""What the bench needs and is not here is named, with the command that installs it, before anything is measured."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.bench import needs, rows
from tests.support import ROOT

LIMIT_S = 30.0  # seconds for what takes one


@pytest.mark.parametrize("module", ["tests.bench", "tests.bench.needs"])
def test_a_missing_package_ends_the_run_before_it_begins(module: str, tmp_path: Path) -> None:
    """A machine with bash and id alone, and so without a package manager, too; all that is missing is named at once."""
    for program in ("bash", "id"):
        (tmp_path / program).symlink_to(shutil.which(program) or "")
    done = subprocess.run(
        [sys.executable, "-m", module, "list", "instructions", "vision"], cwd=ROOT, env={"PATH": str(tmp_path)},
        stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=LIMIT_S, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (1, "")
    assert re.search(r"packages that are not here: apt-get install valgrind util-linux npm\b", done.stderr)


def test_needs_are_those_of_rows() -> None:
    assert needs.TOOLS.keys() | needs.FIRST.keys() <= rows.ROWS.keys()


def test_what_a_machine_does_not_allow_is_said_first(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """As in a container, where `unshare` is there and refused."""
    unshare = tmp_path / "unshare"
    unshare.write_text("#!/bin/sh\necho Operation not permitted >&2\nexit 1\n", "ascii")
    unshare.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(pytest.fail.Exception, match="Operation not permitted"):
        needs.prepare(["vision"])
