"""`device-host-agent enrol`: join a cloud that gives out assignments."""

from __future__ import annotations

import argparse
import getpass
import sys
from pathlib import Path

from mcpboard.cli.config import Verbs
from mcpboard.cli.host import add_verb, settings
from mcpboard.host import cloud
from mcpboard.host.cloud.enrollment import LONGEST_TOKEN


def add_to(verbs: Verbs) -> None:
    """Add the verb `enrol`."""
    sentence = "Join a cloud that gives out assignments; its token is read from standard input."
    parser = add_verb(verbs, "enrol", enroll, sentence, "enrol https://cloud.example < token")
    parser.add_argument("url", metavar="URL", help="https, or http to this machine itself")


def enroll(arguments: argparse.Namespace) -> int:
    """Join the cloud at the URL; from a terminal the token is read without being shown."""
    effective = settings(arguments)
    longest = LONGEST_TOKEN + 2  # with its end of line, and one that is too long shows
    token = getpass.getpass("enrolment token: ") if sys.stdin.isatty() else sys.stdin.readline(longest)
    found = cloud.enroll(arguments.url, token, Path(effective.identity_path), effective.cloud_proxy)
    print(f"device-host-agent: enrolled at {found.url} as {found.host_id}; it counts from the next start on")
    return 0
