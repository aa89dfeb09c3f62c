"""Network namespaces made and unmade with iproute2; needs root. Threads may step into one."""

from __future__ import annotations

import contextlib
import ctypes
import itertools
import os
import subprocess
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

CLONE_NEWNET = 0x40000000  # from sched.h; os.setns came with Python 3.12
COMMAND_S = 20.0  # seconds an `ip` may take

T = TypeVar("T")
_numbers = itertools.count(1)  # of the namespaces that this process has made
_libc = ctypes.CDLL(None, use_errno=True)


def ip(*lines: str, inside: str | None = None) -> None:
    """Run these lines of `ip`, in order, in one process, in that namespace; the first that fails raises."""
    command = ["ip", *(["-n", inside] if inside else []), "-batch", "-"]
    subprocess.run(command, input="\n".join(lines) + "\n", text=True, check=True, timeout=COMMAND_S)


class Namespace:
    """One network namespace, by name."""

    def __init__(self, name: str) -> None:
        self.name = name

    def ip(self, *lines: str) -> None:
        """Run these lines of `ip` inside."""
        ip(*lines, inside=self.name)

    def run(self, function: Callable[..., T], *arguments: Any) -> T:
        """What `function` returns in a thread inside; sockets and threads it makes stay inside, too."""
        results: list[T] = []
        failures: list[BaseException] = []

        def inside() -> None:
            try:
                self._enter()
                results.append(function(*arguments))
            except BaseException as failure:
                failures.append(failure)

        thread = threading.Thread(target=inside, name=f"in {self.name}")
        thread.start()
        thread.join()
        if failures:
            raise failures[0]
        return results[0]

    def _enter(self) -> None:
        with open(f"/run/netns/{self.name}", "rb") as file:
            if _libc.setns(file.fileno(), CLONE_NEWNET):
                raise OSError(ctypes.get_errno(), "setns")


@contextlib.contextmanager
def namespace(label: str) -> Iterator[Namespace]:
    """A namespace whose name no other run has, its loopback up; removed when the block ends, whatever happened."""
    made = Namespace(f"mcpb-{label}-{os.getpid()}-{next(_numbers)}")
    if Path(f"/run/netns/{made.name}").exists():  # left by a killed process of the same number
        ip(f"netns del {made.name}")
    ip(f"netns add {made.name}")
    try:
        made.ip("link set lo up")
        yield made
    finally:
        ip(f"netns del {made.name}")
