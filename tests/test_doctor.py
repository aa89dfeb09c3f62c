"""The framework of all doctors: in which order checks run, and how findings are printed."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from mcpboard.doctor import Check, CheckResult, Finding, failed, ok, report, run, skipped


def row(name: str, result: CheckResult, *needs: str, made: list[str] | None = None) -> Check[None]:
    """A check that notes that its probe has looked."""

    def probe(_: None) -> None:
        if made is not None:
            made.append(name)

    return Check(name, name.upper(), needs, probe, lambda _: result)


def test_a_check_that_depends_on_a_failed_one_is_not_made_and_says_so() -> None:
    made: list[str] = []
    rows = [
        row("a", ok("fine"), made=made),
        row("b", failed("broken", "fix it"), made=made),
        row("c", ok("fine"), "a", "b", made=made),
        row("d", ok("fine"), "c", made=made),
        row("e", skipped("nothing to see"), made=made),
        row("f", ok("fine"), "e", made=made),
        row("g", ok("fine"), "a", made=made),
    ]
    found = {finding.name: finding.result for finding in run(rows, None)}
    assert made == ["a", "b", "e", "g"]
    assert found["c"] == skipped("depends on: B")
    assert found["d"] == skipped("depends on: C")
    assert found["f"] == skipped("depends on: E")


def test_a_second_table_may_depend_on_the_first() -> None:
    done: dict[str, Finding] = {}
    first = list(run([row("a", failed("broken", "fix it")), row("b", ok("fine"))], None, done))
    second = list(run([row("c", ok("fine"), "a"), row("d", ok("fine"), "b")], None, done))
    assert [finding.result for finding in second] == [skipped("depends on: A"), ok("fine")]
    assert list(done.values()) == first + second


BROKEN = Finding("b", "A title", failed("broken\x1b[2J", "fix it"))
WELL = Finding("a", "Another title", ok("fine"))
UNKNOWN = Finding("c", "A third", skipped("depends on: A title"))
LINES = {
    "a": "ok    Another title         fine\n",
    "b": "FAIL  A title               broken\N{REPLACEMENT CHARACTER}[2J\n                            fix: fix it\n",
    "c": "-     A third               depends on: A title\n",
}


@pytest.mark.parametrize(("findings", "code", "ending"), [
    pytest.param([], 0, "All is well.\n", id="nothing examined"),
    pytest.param([WELL, UNKNOWN], 0, "All is well.\n", id="none failed"),
    pytest.param([WELL, BROKEN], 1, "1 failed.\n", id="one failed"),
    pytest.param([BROKEN] * 3, 1, "3 failed; the first one is usually the cause.\n", id="several failed"),
])  # fmt: skip
def test_a_report_is_lines_that_the_last_sums_up_or_one_object(findings: list[Finding], code: int, ending: str, capsys: pytest.CaptureFixture[str]) -> None:  # fmt: skip
    """A line has state, title and message, and the remedy stands below."""
    assert report(findings, as_json=False) == code
    assert capsys.readouterr().out == "".join(LINES[each.name] for each in findings) + ending
    assert report(findings, as_json=True) == code
    checks = [{"check": each.name, "title": each.title, "state": each.result.state.value, "message": each.result.message, "remedy": each.result.remedy} for each in findings]  # fmt: skip
    assert json.loads(capsys.readouterr().out) == {"failed": findings.count(BROKEN), "checks": checks}


def test_findings_are_printed_as_they_come(capsys: pytest.CaptureFixture[str]) -> None:
    def findings() -> Iterator[Finding]:
        yield WELL
        assert "Another title" in capsys.readouterr().out
        yield BROKEN

    report(findings(), as_json=False)
