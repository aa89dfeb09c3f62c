"""`mcpboard doctor`: what is wrong between this laptop and the phone, or on the board itself, and what cures it."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable, Iterator

from mcpboard import client_configs, config
from mcpboard.cli.call import token_from
from mcpboard.cli.config import Verbs
from mcpboard.doctor import CheckState, Finding
from mcpboard.text import printable

MOST = 100  # failed checks that the exit code counts; above are the codes of shells and signals
WIDTH = 22  # characters of the longest title and some air


def add_to(verbs: Verbs) -> None:
    """Add the verb `doctor`."""
    parser = verbs.add_parser("doctor", help="name what is wrong, and what cures it; exit code: failed checks")
    parser.add_argument("url", metavar="URL", nargs="?", default=client_configs.USB_URL, help="(default: %(default)s)")
    parser.add_argument("--token-file", metavar="FILE", help="file with the bearer token that the server wants")
    parser.add_argument("--board", action="store_true", help="examine the board that this runs on")
    parser.add_argument("--config", metavar="FILE", help="with --board: the settings file that the server was given")
    parser.add_argument("--json", action="store_true", help="as one JSON object")
    parser.set_defaults(run=doctor)


def doctor(arguments: argparse.Namespace) -> int:
    """Make every check, print each as it is made, and return how many failed."""
    found = []
    for finding in _findings(arguments):
        found.append(finding)
        if not arguments.json:
            print(_lines(finding), flush=True)
    count = sum(finding.verdict.state is CheckState.FAILED for finding in found)
    print(_as_json(found, count) if arguments.json else _summary(count))
    return min(count, MOST)


def _findings(arguments: argparse.Namespace) -> Iterator[Finding]:
    if arguments.board:
        from mcpboard.board.doctor import probes

        return probes.examine(lambda: config.load({"config": arguments.config}))

    from mcpboard.laptop import doctor

    token = None if arguments.token_file is None else token_from(arguments.token_file)
    return doctor.examine(arguments.url, token, config.proxy_variables(), sys.platform)


MARKS = {CheckState.OK: "ok  ", CheckState.FAILED: "FAIL", CheckState.SKIPPED: "-   "}


def _lines(finding: Finding) -> str:
    verdict = finding.verdict
    line = f"{MARKS[verdict.state]}  {finding.title:{WIDTH}}{printable(verdict.words)}"
    return f"{line}\n{'':{WIDTH + 6}}cure: {printable(verdict.cure)}" if verdict.cure else line


def _summary(count: int) -> str:
    if count == 0:
        return "All is well."
    return "1 failed." if count == 1 else f"{count} failed; the first one is usually the cause."


def _as_json(found: Iterable[Finding], count: int) -> str:
    checks = [
        {
            "check": finding.name,
            "title": finding.title,
            "state": finding.verdict.state.value,
            "words": finding.verdict.words,
            "cure": finding.verdict.cure,
        }
        for finding in found
    ]
    return json.dumps({"failed": count, "checks": checks}, indent=2)
