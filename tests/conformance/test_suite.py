"""The public conformance suite, at both revisions, against the server as shipped and against the core alone."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

from mcpboard.serving.app import Application
from mcpboard.serving.concurrency import ConcurrencyLimit
from tests.conformance.fixture_role import FixtureRole
from tests.support import provision, served
from tests.support.served import Board

pytestmark = pytest.mark.tools

HERE = Path(__file__).parent
PACKAGES = {"node": "22.23.3", "@modelcontextprotocol/conformance": "0.2.0-alpha.12"}
SUITE_S = 120.0  # seconds for one revision; it takes three on an idle machine
MODERN, LEGACY = "2026-07-28", "2025-11-25"
SCORED = {MODERN: 37, LEGACY: 30}  # scenarios, as the suite has frozen them

# Each name is a file here, NAME-REVISION.yml, with a reason for every check that may fail.
STRICT = {MODERN: ["excluded", "own-tools"], LEGACY: ["excluded", "own-tools"]}
DEFAULT = {**STRICT, MODERN: [*STRICT[MODERN], "header-only"]}
FIXTURE = {MODERN: ["excluded"], LEGACY: ["excluded"]}

# Run by the suite without a score, and therefore without a word in its exit code.
UNSCORED = {MODERN: ["http-header-validation"], LEGACY: ["server-session-lifecycle"]}
UNSCORED_FIXTURE = {revision: [*names, "json-schema-2020-12"] for revision, names in UNSCORED.items()}


@pytest.fixture(scope="module")
def fixture_role() -> Iterator[str]:
    role = FixtureRole(strict_meta=True)
    with served.thread(Application(lambda: role, ConcurrencyLimit(6))) as url:
        yield url


@pytest.mark.parametrize("revision", [MODERN, LEGACY])
class TestConformance:
    """Every scored check passes but for the expected failures, of which none is stale."""

    def test_of_the_server_told_to_be_strict(self, strict_board: Board, revision: str, tmp_path: Path) -> None:
        conforms(strict_board.url, revision, STRICT[revision], UNSCORED[revision], tmp_path)

    def test_of_the_server_as_shipped(self, board: Board, revision: str, tmp_path: Path) -> None:
        conforms(board.url, revision, DEFAULT[revision], UNSCORED[revision], tmp_path)

    def test_of_the_core_with_the_tools_of_the_suite(self, fixture_role: str, revision: str, tmp_path: Path) -> None:
        conforms(fixture_role, revision, FIXTURE[revision], UNSCORED_FIXTURE[revision], tmp_path)


def conforms(url: str, revision: str, reasons: list[str], unscored: list[str], folder: Path) -> None:
    """Run one revision against `url`, judged by the suite itself; `unscored` scenarios have to pass, too."""
    expected = folder / "expected.yml"
    expected.write_text(joined(HERE / f"{name}-{revision}.yml" for name in reasons), "utf-8")
    modules = provision.node_prefix(PACKAGES) / "node_modules"
    suite = modules / "@modelcontextprotocol/conformance/dist/index.js"
    command: provision.Command = [
        *(modules / ".bin/node", suite, "server", "--url", url, "--requirements", revision),
        *("--expected-failures", expected, "-o", folder / "out"),
    ]
    provision.run(command, limit_s=SUITE_S)
    assert len(list((folder / "out").iterdir())) >= SCORED[revision]
    assert {name: failures(folder / "out", name) for name in unscored} == {name: [] for name in unscored}


def joined(files: Iterable[Path]) -> str:
    """One list of expected failures out of several."""
    lines = [line for file in files for line in file.read_text("utf-8").splitlines() if line.startswith("  - ")]
    return "\n".join(["server:", *lines, ""])


def failures(out: Path, scenario: str) -> list[str]:
    """The checks of a scenario that failed; a scenario that was not run is an error."""
    (folder,) = out.glob(f"server-{scenario}-2*")
    checks = json.loads((folder / "checks.json").read_text("utf-8"))
    return [check["id"] for check in checks if check["status"] == "FAILURE"]
