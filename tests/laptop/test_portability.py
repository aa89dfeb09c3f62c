"""The laptop's and the host's side on a system that lacks what only POSIX, or only Linux, has.

`tests/foreign` takes it away from every Python that is started, the clients' bridges among them.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from mcpboard.host.access.tokens import read_main_token
from tests.support import ROOT
from tests.support.http import Caller
from tests.support.piped import ENVIRONMENT, bridge
from tests.support.processes import MCPBOARD, started
from tests.support.served import Board

FOREIGN = os.pathsep.join(map(str, (ROOT / "tests/foreign", ROOT)))
RUN_S = 30.0  # seconds for one program; two on an idle machine
PROOF = "import socket; assert not hasattr(socket, 'TCP_USER_TIMEOUT')\nimport fcntl"

ROOMS = [room for room in ("laptop", "host") if (ROOT / "mcpboard" / room).is_dir()]


def python(*words: str, variables: Mapping[str, str] = os.environ) -> subprocess.CompletedProcess[bytes]:
    """What such a Python does, in an environment of `variables`."""
    return subprocess.run(
        [sys.executable, *words], check=False, stdin=subprocess.DEVNULL, capture_output=True, timeout=RUN_S, cwd=ROOT,
        env={**variables, "PYTHONPATH": FOREIGN},
    )  # fmt: skip


def foreign(*words: str) -> subprocess.CompletedProcess[bytes]:
    """The command line there, in the hostile environment of the bridge's tests."""
    return python("-m", "mcpboard", *words, variables=ENVIRONMENT)


def test_what_is_to_be_missing_is_missing() -> None:
    assert b"import of fcntl halted" in python("-c", PROOF).stderr


# What the vision extra brings its libraries for, loaded on the first use of vision only.
WITH_VISION = tuple(
    f"mcpboard.host.vision.{name}" for name in ("icons.index", "icons.blobs", "icons.descriptor", "ocr", "engine")
)


def modules() -> list[str]:
    """Every module of these roles and of the command line, by its dotted name."""
    found = [path for room in (*ROOMS, "cli") for path in sorted((ROOT / "mcpboard" / room).rglob("*.py"))]
    names = [".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__") for path in found]
    return [name for name in names if name not in WITH_VISION]


def test_every_module_can_be_imported() -> None:
    done = python("-W", "error", "-c", "\n".join(f"import {name}" for name in modules()))
    assert (done.returncode, done.stderr) == (0, b"")


@pytest.fixture
def there(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every program that the test starts runs on such a system."""
    monkeypatch.setitem(ENVIRONMENT, "PYTHONPATH", FOREIGN)


@pytest.mark.slow
@pytest.mark.usefixtures("there")
def test_a_call_reaches_the_phone_by_every_way(board: Board, tmp_path: Path) -> None:
    """The verb itself, through a relay, and through a bridge; a client is set up and set back."""
    image = tmp_path / "screen.jpg"
    with bridge(board.url) as client, relay(board.url) as relayed:
        assert client.call(1, "phone_bridge_status")["result"]["content"]
        for url in (board.url, relayed):
            done = foreign("call", url, "screenshot", "-o", str(image))
            assert done.returncode == 0, done.stderr
            assert image.read_bytes().startswith(b"\xff\xd8")
    home = {"HOME": str(tmp_path), "USERPROFILE": str(tmp_path)}
    for key in ("cursor", "codex"):  # one of JSON, one of TOML
        for word in ("--write", "--undo"):
            done = python("-m", "mcpboard", "connect", key, board.url, word, variables={**ENVIRONMENT, **home})
            assert done.returncode == 0, done.stderr


@contextlib.contextmanager
def relay(url: str) -> Iterator[str]:
    """The URL of a relay in front of `url`, in a process of its own."""
    with started(*MCPBOARD, "relay", url, "--listen", "127.0.0.1:0", env=ENVIRONMENT) as program:
        yield program.line.split()[2]


@pytest.mark.slow
def test_a_host_agent_serves_its_devices_there(tmp_path: Path) -> None:
    """Its token and its files need nothing that such a system lacks."""
    folder, variables = str(tmp_path / "data"), {**ENVIRONMENT, "PYTHONPATH": FOREIGN}
    host = ["-m", "mcpboard", "host"]
    added = python(*host, "devices", "add", "phone", "--kind", "simulated", "--data", folder, variables=variables)
    assert added.returncode == 0, added.stderr
    with started(sys.executable, *host, "run", "--port", "0", "--data", folder, env=variables) as program:
        caller = Caller(program.url, read_main_token(Path(folder)))
        assert caller.open().call("tap", x=1, y=1).text == "tapped 1,1 on phone"


def test_a_service_can_be_printed_there() -> None:
    done = foreign("relay", "http://192.168.42.1:8080", "--print-service")
    assert done.returncode == 0, done.stderr
