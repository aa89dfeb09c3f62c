"""`mcpboard bridge`: for clients that only start programs, and do not reach the board by themselves."""

from __future__ import annotations

import argparse
import contextlib
import sys
import threading

from mcpboard.cli import logs
from mcpboard.cli.call import token_from
from mcpboard.cli.config import Verbs, add_verb
from mcpboard.errors import ConfigError
from mcpboard.protocol.limits import STACK_BYTES

SHORTEST_LINE = 1 << 20  # bytes; screenshots come in that size
LONGEST_WAIT = 3600.0  # seconds; an hour without a board is no boot any more


def add_to(verbs: Verbs) -> None:
    """Add the verb `bridge`."""
    sentence = "Serve MCP on standard input and output, in front of a server over HTTP."
    parser = add_verb(verbs, "bridge", sentence, "mcpboard bridge http://192.168.42.1:8080/mcp", bridge)
    parser.add_argument("url", metavar="URL", help="such as http://192.168.42.1:8080/mcp")
    parser.add_argument("--token-file", metavar="FILE", help="file with the bearer token that the server requires")
    parser.add_argument("--header", metavar="K:V", action="append", default=[], help="sent along (repeatable)")
    patience = "how long a request waits for a board that boots (default: 45)"
    parser.add_argument("--wait", metavar="SECONDS", type=float, help=patience)
    parser.add_argument("--longest-line", metavar="BYTES", type=int, help="a longer answer is an error (default: none)")


def bridge(arguments: argparse.Namespace) -> int:
    """Carry messages until standard input ends; standard output is for nothing else."""
    from mcpboard.laptop.bridge import Bridge
    from mcpboard.laptop.bridge.stdio import LineWriter
    from mcpboard.laptop.bridge.upstream import WAIT_SECONDS, Upstream
    from mcpboard.transport.http import HttpClient

    logs.configure("stderr", "info")
    threading.stack_size(STACK_BYTES)
    wait = WAIT_SECONDS if arguments.wait is None else arguments.wait
    if not 0 <= wait <= LONGEST_WAIT:  # no NaN either
        raise ConfigError(f"--wait: seconds from 0 to {LONGEST_WAIT:.0f} are expected")
    longest: int | None = arguments.longest_line
    if longest is not None and longest < SHORTEST_LINE:
        raise ConfigError(f"--longest-line: at least {SHORTEST_LINE} bytes are expected, which a screenshot may have")
    token = None if arguments.token_file is None else token_from(arguments.token_file)
    headers = []
    for text in arguments.header:
        name, colon, value = text.partition(":")
        if not colon:
            raise ConfigError("--header: NAME:VALUE is expected")  # without the text, which may hold a secret
        headers.append((name.strip(), value.strip()))
    client = HttpClient(arguments.url, token, headers)
    with open(sys.stdout.fileno(), "wb", buffering=0, closefd=False) as raw, contextlib.redirect_stdout(sys.stderr):
        output = LineWriter(raw)
        Bridge(Upstream(client, wait), output, longest).run(sys.stdin.buffer)
    if output.gone:
        raise BrokenPipeError
    return 0
