"""The laptop's verbs on a system that lacks what only POSIX, or only Linux, has."""

from __future__ import annotations

import json
import socket
import subprocess
import sys

import pytest

from tests.laptop.piped import ENVIRONMENT, LIMIT_S, ROOT
from tests.served import Board

# Runs the command line after taking away what Windows or macOS do not have.
FOREIGN = """
import socket, sys
sys.modules.update(dict.fromkeys(("fcntl", "pwd", "resource", "termios", "grp", "syslog")))
for name in ("SO_BINDTODEVICE", "TCP_USER_TIMEOUT", "SO_REUSEPORT", "TCP_KEEPIDLE"):
    if hasattr(socket, name):
        delattr(socket, name)
from mcpboard.cli import main
sys.exit(main(sys.argv[1:]))
"""


def foreign(*words: str, typed: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    command = [sys.executable, "-c", FOREIGN, *words]
    return subprocess.run(
        command, check=False, input=typed, capture_output=True, timeout=LIMIT_S, cwd=ROOT, env=ENVIRONMENT
    )


def test_the_bridge_bridges(board: Board) -> None:
    done = foreign("bridge", board.url, typed=b'{"jsonrpc":"2.0","id":1,"method":"tools/list"}\r\n')
    assert (done.returncode, done.stderr) == (0, b"")
    assert json.loads(done.stdout)["result"]["tools"]


@pytest.mark.parametrize(
    "words",
    [
        pytest.param(["relay", "http://192.168.42.1:8080", "--print-service"], id="a service to print"),
        pytest.param(["--help"], id="help"),
    ],
)
def test_every_verb_can_be_started(words: list[str]) -> None:
    done = foreign(*words)
    assert done.returncode == 0, done.stderr


def test_the_relay_gets_as_far_as_its_listener() -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        done = foreign("relay", "http://192.168.42.1:8080", "--listen", f"127.0.0.1:{other.getsockname()[1]}")
    assert done.returncode == 2
    assert b"another program has it" in done.stderr
