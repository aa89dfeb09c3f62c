"""What tests need from the registries is installed once, whole, by one process, or the test fails with the cure."""

from __future__ import annotations

import os
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.support import provision

PACKAGES = {"node": "22.23.3", "@scope/thing": "1.2.3"}
LIMIT_S = 20.0  # seconds for what takes none
RUNS = 4
NPM = """#!/bin/sh
echo "$@" >> "$LOG"
while [ "$1" != --prefix ]; do shift; done
touch "$2/half"
exit ${NPM_EXIT:-0}
"""


@pytest.fixture
def shelf(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty shelf, and an `npm` that notes what it is asked; NPM_EXIT is its exit code."""
    npm = tmp_path / "bin/npm"
    npm.parent.mkdir()
    npm.write_text(NPM, "utf-8")
    npm.chmod(0o755)
    monkeypatch.setenv("PATH", f"{npm.parent}:{os.environ['PATH']}")
    monkeypatch.setenv("LOG", str(tmp_path / "asked"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(provision, "FAILED", {})
    return tmp_path / "cache/mcpboard-tests"


def asked(shelf: Path) -> list[str]:
    """What `npm` was asked, a line a run."""
    return (shelf.parent.parent / "asked").read_text("utf-8").splitlines()


def folders(shelf: Path) -> list[str]:
    return [entry.name for entry in shelf.iterdir() if entry.is_dir()]


def test_a_second_look_installs_nothing(shelf: Path) -> None:
    assert provision.node_prefix(PACKAGES) == provision.node_prefix(PACKAGES)
    assert len(asked(shelf)) == 1


def test_each_version_has_a_place_of_its_own(shelf: Path) -> None:
    assert provision.node_prefix(PACKAGES) != provision.node_prefix({**PACKAGES, "@scope/thing": "1.2.4"})
    assert len(asked(shelf)) == 2


def test_versions_are_exact_and_no_install_script_runs(shelf: Path) -> None:
    provision.node_prefix(PACKAGES)
    (words,) = asked(shelf)
    assert words.endswith("@22.23.3 @scope/thing@1.2.3")
    assert "--ignore-scripts" in words


def test_a_failed_install_fails_the_test_with_the_command_and_leaves_no_half_prefix(
    shelf: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NPM_EXIT", "7")
    with pytest.raises(pytest.fail.Exception, match=r"exit code 7(?s:.*)then test again: npm install .*thing@1\.2\.3"):
        provision.node_prefix(PACKAGES)
    assert not [name for name in folders(shelf) if not name.startswith(".")]


def test_a_registry_that_is_away_is_asked_once(shelf: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NPM_EXIT", "7")
    for _ in range(2):
        with pytest.raises(pytest.fail.Exception, match="exit code 7"):
            provision.node_prefix(PACKAGES)
    assert len(asked(shelf)) == 1


def test_what_a_killed_run_left_behind_is_not_built_upon(shelf: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NPM_EXIT", "7")
    with pytest.raises(pytest.fail.Exception):
        provision.node_prefix(PACKAGES)
    (building,) = folders(shelf)
    (shelf / building / "rubbish").touch()
    monkeypatch.delenv("NPM_EXIT")
    provision.FAILED.clear()  # as in the next run
    assert [entry.name for entry in provision.node_prefix(PACKAGES).iterdir()] == ["half"]


def test_npm_missing_is_a_failure_that_names_its_package(shelf: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nonexistent")
    with pytest.raises(pytest.fail.Exception, match="apt-get install npm"):
        provision.node_prefix(PACKAGES)


def test_runs_at_the_same_time_install_once(shelf: Path) -> None:
    together = threading.Barrier(RUNS, timeout=LIMIT_S)

    def look(_: int) -> Path:
        together.wait()
        return provision.node_prefix(PACKAGES)

    with ThreadPoolExecutor(RUNS) as runs:
        places = set(runs.map(look, range(RUNS)))
    assert len(places) == len(asked(shelf)) == 1


def test_a_program_that_does_not_end_is_ended_and_fails_the_test() -> None:
    with pytest.raises(pytest.fail.Exception, match=r"no end within 0\.2 s\nhello"):
        provision.run(["sh", "-c", "echo hello; sleep 60 & wait"], limit_s=0.2)


def test_a_program_that_fails_fails_the_test_with_its_last_words() -> None:
    with pytest.raises(pytest.fail.Exception, match=r"exit code 3\nso it is"):
        provision.run(["sh", "-c", "echo so it is >&2; exit 3"], limit_s=LIMIT_S)
