"""What a doctor's check is, and how a table of them is gone through.

A check looks (`probe`) and judges (`judge`) apart, so that a judgement is a calculation and its
tests are a table. One that depends on a check that did not go well is not made, and says so.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

S = TypeVar("S")  # what is examined


class CheckState(enum.Enum):
    """How a check came out."""

    OK = "ok"
    FAILED = "failed"
    SKIPPED = "skipped"


@dataclass(frozen=True)
class CheckResult:
    """What was found, in a line; when it failed, the cause, and in `cure` the one step that helps."""

    state: CheckState
    words: str
    cure: str = ""


def ok(words: str) -> CheckResult:
    """All is well, and how."""
    return CheckResult(CheckState.OK, words)


def failed(words: str, cure: str) -> CheckResult:
    """The cause and its cure."""
    return CheckResult(CheckState.FAILED, words, cure)


def skipped(words: str) -> CheckResult:
    """Nothing was found out, and why not."""
    return CheckResult(CheckState.SKIPPED, words)


@dataclass(frozen=True)
class Check(Generic[S]):
    """One row: `probe` looks at the subject, `judge` says what that means; `needs` are names of earlier rows."""

    name: str
    title: str
    needs: tuple[str, ...]
    probe: Callable[[S], Any]
    judge: Callable[[Any], CheckResult]


@dataclass(frozen=True)
class Finding:
    """One check and how it came out."""

    name: str
    title: str
    verdict: CheckResult


def run(checks: Sequence[Check[S]], subject: S) -> Iterator[Finding]:
    """The finding of each check, in order, as soon as it is there."""
    found: dict[str, Finding] = {}
    for check in checks:
        lacking = [found[need].title for need in check.needs if found[need].verdict.state is not CheckState.OK]
        verdict = skipped(f"depends on: {', '.join(lacking)}") if lacking else check.judge(check.probe(subject))
        found[check.name] = Finding(check.name, check.title, verdict)
        yield found[check.name]
