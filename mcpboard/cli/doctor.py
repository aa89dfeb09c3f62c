"""`mcpboard doctor`: name what is wrong between this laptop and a server, or on the board itself, and what fixes it."""

from __future__ import annotations

import argparse
import sys

from mcpboard import client_configs, config
from mcpboard.cli.call import token_from
from mcpboard.cli.config import Verbs, add_verb
from mcpboard.doctor import report
from mcpboard.errors import ConfigError


def add_to(verbs: Verbs) -> None:
    """Add the verb `doctor`."""
    sentence = "Name what is wrong on the way to a phone, and what fixes it; exit code 1 when a check failed."
    parser = add_verb(verbs, "doctor", sentence, f"mcpboard doctor {client_configs.USB_URL}", doctor)
    whose = "of a board or host agent (default: %(default)s)"
    parser.add_argument("url", metavar="URL", nargs="?", default=client_configs.USB_URL, help=whose)
    parser.add_argument("--token-file", metavar="FILE", help="file with the bearer token that the server requires")
    parser.add_argument("--host", action="store_true", help="the host agent of this computer: its URL and its token")
    parser.add_argument("--data", metavar="DIR", help="with --host: where its files are, if not in their usual place")
    parser.add_argument("--board", action="store_true", help="examine the board that this runs on")
    parser.add_argument("--config", metavar="FILE", help="with --board: the settings file that the server was given")
    parser.add_argument("--json", action="store_true", help="as one JSON object")


def doctor(arguments: argparse.Namespace) -> int:
    """Run every check and print each finding; 0 when none failed, else 1."""
    is_default = arguments.url == client_configs.USB_URL and arguments.token_file is None
    if arguments.host and (arguments.board or not is_default):
        # What was named would not be examined, and nobody would say so.
        raise ConfigError("--host finds URL and token by itself; leave out URL, --token-file and --board, or --host")
    if arguments.board:
        from mcpboard.board import doctor as board_doctor

        return report(board_doctor.examine(lambda: config.load({"config": arguments.config})), arguments.json)

    from mcpboard.laptop import doctor as laptop_doctor

    url, token_file = arguments.url, arguments.token_file
    if arguments.host:
        from mcpboard.cli.host import local_agent

        url, token_file = local_agent(arguments.data)
    token = None if token_file is None else token_from(token_file)
    findings = laptop_doctor.examine(url, token, config.proxy_variables(), sys.platform)
    return report(findings, arguments.json)
