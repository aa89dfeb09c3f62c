"""The S-script's whole life, with the real server, under busybox and under Debian's start-stop-daemon."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.bench.programs import MALLOC
from tests.deploy import boards, tree
from tests.deploy.rooms import Room, room, until

pytestmark = [pytest.mark.tools, pytest.mark.slow]

SCRIPT = "/etc/init.d/S90mcpboard"
PIDFILE = "/var/run/mcpboard.pid"
DAEMON = "/usr/bin/mcpboard serve"


class Board:
    """A room with the S-script, its user, a syslog, and the server's files."""

    def __init__(self, inside: Room, shell: list[str], path: str) -> None:
        self.inside = inside
        self._shell, self._environ = shell, {"PATH": path}

    def call(self, verb: str) -> tuple[int, str]:
        """Exit code and words of one verb."""
        done = self.inside.try_(*self._shell, SCRIPT, verb, environ=self._environ)
        return done.returncode, done.stdout

    def pids(self) -> list[int]:
        return self.inside.processes(DAEMON)

    def answers(self, port: int = 8080) -> bool:
        url = f"http://127.0.0.1:{port}/health"
        return '"mcpboard"' in self.inside.try_("busybox", "wget", "-q", "-O", "-", url).stdout

    def started(self, port: int = 8080) -> int:
        """The pid, once it answers."""
        until(lambda: self.answers(port), f"an answer on {port}: {self.log()}")
        (pid,) = self.pids()
        return pid

    def log(self) -> str:
        return self.inside.read("/var/log/messages") if self.inside.exists("/var/log/messages") else ""


@pytest.fixture(params=["busybox", "dpkg"])
def board(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Board]:
    busybox = tree.tool("busybox", "busybox-static")
    with room(tmp_path) as inside:
        _furnish(inside)
        if request.param == "busybox":
            inside.run(busybox, "mkdir", "-p", "/applets")
            inside.run(busybox, "--install", "-s", "/applets")
            made = Board(inside, [busybox, "ash"], "/applets")
        else:
            made = Board(inside, ["sh"], "/usr/sbin:/usr/bin:/sbin:/bin")
        inside.run(busybox, "syslogd", "-O", "/var/log/messages")
        until(lambda: inside.exists("/dev/log"), "a syslog")
        yield made


def _furnish(inside: Room) -> None:
    """What Buildroot's image would have; Python is the one that runs this test."""
    python = Path(sys.executable).resolve()
    inside.run("ln", "-sf", str(python), "/usr/bin/python3")
    for folder in python.parents:  # another user has to reach it
        inside.run("chmod", "o+x", str(folder))
    for line, file in (("mcpboard:x:4711:4711::/:/bin/false", "passwd"), ("mcpboard:x:4711:", "group")):
        inside.write(f"/etc/{file}", inside.read(f"/etc/{file}") + line + "\n")
    boards.install_dependencies(inside.root / "opt/site")
    boards.install_ours(inside.root / "opt/site")
    inside.write(SCRIPT, (tree.BUILDROOT / "package/mcpboard/S90mcpboard").read_text("ascii"), 0o755)
    inside.write("/usr/bin/mcpboard", (tree.DEBIAN / "mcpboard").read_text("ascii"), 0o755)
    inside.write("/etc/default/mcpboard", "export PYTHONPATH=/opt/site PYTHONDONTWRITEBYTECODE=1\n")
    inside.run("rm", "-rf", "/var/run", "/var/log/messages")
    inside.run("ln", "-s", "../run", "/var/run")


def test_a_whole_life(board: Board) -> None:
    """As its own user, with the malloc variables, and a log in syslog."""
    assert board.call("start") == (0, "Starting mcpboard: OK\n")
    first = board.started()
    assert board.inside.read(PIDFILE).strip() == str(first)

    process = board.inside.root / "proc" / str(first)
    assert process.stat().st_uid == 4711
    environ = process.joinpath("environ").read_bytes().split(b"\0")
    assert {f"{name}={value}".encode() for name, value in MALLOC.items()} <= set(environ)
    # A call, which finds no Agent, is a line in the log.
    body = '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"phone_bridge_status"}}'
    wget = ["wget", "-q", "-O", "-", "--header", "Content-Type: application/json", "--post-data", body]
    assert '"id":1' in board.inside.run("busybox", *wget, "http://127.0.0.1:8080/mcp")
    until(lambda: "mcpboard[" in board.log(), f"a line in the log: {board.log()}")

    code, _ = board.call("start")
    assert code != 0
    assert board.pids() == [first]

    pids = [first]
    for verb in ("restart", "reload"):
        assert board.call(verb)[0] == 0
        pids.append(board.started())
    assert len(set(pids)) == 3

    assert board.call("stop")[0] == 0
    assert board.pids() == []
    assert not board.inside.exists(PIDFILE)

    assert board.call("stop")[0] != 0
    assert board.call("bogus") == (1, f"Usage: {SCRIPT} {{start|stop|restart|reload}}\n")


def test_the_default_file_may_say_how_it_is_started(board: Board) -> None:
    defaults = board.inside.read("/etc/default/mcpboard")
    ours = 'MCPBOARD_ARGS="serve --listen 127.0.0.1:8090 --log syslog"\n'
    board.inside.write("/etc/default/mcpboard", defaults + ours)
    board.call("start")
    board.started(8090)
    assert board.call("stop")[0] == 0


def test_a_server_that_ends_at_once_is_no_success(board: Board) -> None:
    """For a mistake in its settings, as when its log cannot be."""
    defaults = board.inside.read("/etc/default/mcpboard")
    board.inside.write("/etc/default/mcpboard", defaults + 'MCPBOARD_ARGS="serve --log /nowhere/log"\n')
    assert board.call("start") == (1, "Starting mcpboard: FAIL\n")
    assert (board.pids(), board.inside.exists(PIDFILE)) == ([], False)


def test_a_stale_pid_file_of_another_program_harms_nobody(board: Board) -> None:
    board.inside.run("sh", "-c", f"tail -f /dev/null > /dev/null 2>&1 & echo $! > {PIDFILE}")
    (stranger,) = board.inside.processes("tail -f /dev/null")
    assert board.call("stop")[0] != 0
    assert board.inside.processes("tail -f /dev/null") == [stranger]
    assert board.call("start")[0] == 0
    board.started()
