"""A room: an overlay over a root tree, with processes and a loopback of its own. What happens there stays there."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.deploy import tree

# $1 is an empty folder, $2 the tree below the overlay. The first process of the room waits for the end of its input.
_FURNISH = """
set -e
read -r outside _ < /proc/self/stat
mount --make-rprivate /
mount -t tmpfs room "$1"
mkdir "$1/upper" "$1/work" "$1/root"
mount -t overlay -o "lowerdir=$2,upperdir=$1/upper,workdir=$1/work" room "$1/root"
cd "$1/root"
mkdir -p proc dev run
mount -t proc proc proc
mount -t tmpfs -o mode=0755 dev dev
for device in null zero random urandom; do touch "dev/$device"; mount --bind "/dev/$device" "dev/$device"; done
mount -t tmpfs -o mode=0755 run run
ip link set lo up
echo "$outside"
exec cat > /dev/null
"""

ENVIRON = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/", "LC_ALL": "C.UTF-8"}


class Room:
    """Runs programs inside. `root` is the tree as they see it, reachable from outside."""

    def __init__(self, pid: int, folder: Path) -> None:
        self.root = Path(f"/proc/{pid}/root", *(folder / "root").parts[1:])
        nsenter = tree.tool("nsenter", "util-linux")
        spaces = ["--target", str(pid), "--mount", "--pid", "--net"]
        self._enter = [nsenter, *spaces, f"--root={self.root}", f"--wd={self.root}"]

    def try_(self, *command: str, environ: Mapping[str, str] = {}) -> subprocess.CompletedProcess[str]:  # noqa: B006
        """The program's end, good or bad, within a minute."""
        return subprocess.run(
            [*self._enter, *command], env={**ENVIRON, **environ}, cwd="/", text=True,
            stdin=subprocess.DEVNULL, capture_output=True, timeout=tree.LIMIT_S, check=False,
        )  # fmt: skip

    def run(self, *command: str, environ: Mapping[str, str] = {}) -> str:  # noqa: B006
        """Standard output of a program that must end well."""
        done = self.try_(*command, environ=environ)
        assert done.returncode == 0, f"{' '.join(command)}: exit {done.returncode}\n{done.stdout}{done.stderr}"
        return done.stdout

    def write(self, path: str, content: str, mode: int = 0o644) -> None:
        """A file inside, with the folders above it."""
        file = self.root / path.lstrip("/")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(content, "utf-8")
        file.chmod(mode)

    def read(self, path: str) -> str:
        return (self.root / path.lstrip("/")).read_text("utf-8")

    def exists(self, path: str) -> bool:
        return (self.root / path.lstrip("/")).exists()

    def processes(self, words: str) -> list[int]:
        """The pids inside whose command line has `words`."""
        found = []
        for entry in (self.root / "proc").iterdir():
            if entry.name.isdigit():
                line = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode("utf-8", "replace")
                found += [int(entry.name)] if words in line else []
        return sorted(found)

    def end(self, words: str) -> None:
        """SIGTERM to the processes whose command line has `words`, and the wait for their end."""
        for pid in self.processes(words):
            self.run("sh", "-c", f"kill {pid}")
        until(lambda: self.processes(words) == [], f"the end of {words}")


@contextmanager
def room(folder: Path, below: str = "/") -> Iterator[Room]:
    """A room over the tree `below`; everything in it has ended when the block ends."""
    if os.geteuid() != 0:
        pytest.fail("namespaces and overlays need root: run the tests as root", pytrace=False)
    tree.tool("ip", "iproute2")
    spaces = [tree.tool("unshare", "util-linux"), "--mount", "--pid", "--net", "--fork", "--kill-child"]
    command = [*spaces, "sh", "-c", _FURNISH, "room", str(folder), below]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, text=True) as first:
        assert first.stdin and first.stdout and first.stderr
        try:
            pid = first.stdout.readline()
            assert pid.strip(), f"no room could be made: {first.stderr.read()}"
            yield Room(int(pid), folder)
        finally:
            first.send_signal(signal.SIGKILL)  # its child is the room's first process, and takes all others along
            first.wait(tree.LIMIT_S)


def until(claim: Callable[[], bool], what: str, seconds: float = 30.0) -> None:
    """Returns as soon as `claim()` holds; fails with `what` after so many seconds."""
    over = time.monotonic() + seconds
    pause = threading.Event()
    while not claim():
        assert time.monotonic() < over, f"not within {seconds:g} s: {what}"
        pause.wait(0.05)
