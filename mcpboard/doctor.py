"""Run the checks of a doctor and print what they found: one framework for boards, hosts and laptops."""

# A check looks (`probe`) and evaluates (`evaluate`) apart, so that a rule is a calculation and its
# tests are a table. One that depends on a check that did not go well is skipped, and says so.

from __future__ import annotations

import enum
import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from mcpboard.text import printable

S = TypeVar("S")  # the subject, which the probes look at

TITLE_WIDTH = 20  # characters of the longest fixed title and one more


class CheckState(str, enum.Enum):
    """The three ways in which a check may end."""

    OK = "ok"
    FAILED = "failed"
    SKIPPED = "skipped"


MARKS = {CheckState.OK: "ok  ", CheckState.FAILED: "FAIL", CheckState.SKIPPED: "-   "}


@dataclass(frozen=True)
class CheckResult:
    """The outcome in one line; when it failed, the cause, and in `remedy` the one step that helps."""

    state: CheckState
    message: str
    remedy: str = ""


def ok(message: str) -> CheckResult:
    """Return the result of a check that found all well."""
    return CheckResult(CheckState.OK, message)


def failed(message: str, remedy: str) -> CheckResult:
    """Return the result of a check that found a cause, with its remedy."""
    return CheckResult(CheckState.FAILED, message, remedy)


def skipped(message: str) -> CheckResult:
    """Return the result of a check that could not find anything out, with the reason."""
    return CheckResult(CheckState.SKIPPED, message)


@dataclass(frozen=True)
class Check(Generic[S]):
    """One row: `probe` looks at the subject, `evaluate` says what that means; `needs` are names of earlier rows."""

    name: str
    title: str
    needs: tuple[str, ...]
    probe: Callable[[S], Any]
    evaluate: Callable[[Any], CheckResult]


@dataclass(frozen=True)
class Finding:
    """One check with its result."""

    name: str
    title: str
    result: CheckResult


def run(checks: Iterable[Check[S]], subject: S, done: dict[str, Finding] | None = None) -> Iterator[Finding]:
    """Yield the finding of each check, in order, as soon as it is there.

    `done` has the findings of checks that ran before, by their names, and gets these as well.
    """
    done = {} if done is None else done
    for check in checks:
        lacking = [done[need].title for need in check.needs if done[need].result.state is not CheckState.OK]
        result = skipped(f"depends on: {', '.join(lacking)}") if lacking else check.evaluate(check.probe(subject))
        done[check.name] = Finding(check.name, check.title, result)
        yield done[check.name]


def report(findings: Iterable[Finding], as_json: bool) -> int:
    """Print the findings, and return the exit code: 0 when none failed, else 1.

    For people a line for each, as soon as it is there; for programs one JSON object at the end.
    """
    found = []
    for finding in findings:
        found.append(finding)
        if not as_json:
            result = finding.result
            print(f"{MARKS[result.state]}  {finding.title:{TITLE_WIDTH}}  {printable(result.message)}", flush=True)
            if result.remedy:
                print(f"{'':{TITLE_WIDTH + 8}}fix: {printable(result.remedy)}", flush=True)
    failures = sum(finding.result.state is CheckState.FAILED for finding in found)
    if as_json:
        checks = [{"check": finding.name, "title": finding.title, **vars(finding.result)} for finding in found]
        print(json.dumps({"failed": failures, "checks": checks}, indent=2))
    elif failures > 1:
        print(f"{failures} failed; the first one is usually the cause.")
    else:
        print("1 failed." if failures else "All is well.")
    return 1 if failures else 0
