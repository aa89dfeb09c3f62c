"""Read /proc: which program listens on which TCP port of this board, and how much memory there is."""

from __future__ import annotations

import os
import re
import socket
import struct
from collections.abc import Iterable, Iterator
from typing import NamedTuple

PROC = "/proc"
_LISTEN = "0A"  # the state's number in /proc/net/tcp
_SOCKET = re.compile(r"socket:\[([0-9]+)\]")


class Listener(NamedTuple):
    """One listening socket; `pid` is None for a process of another user, which only root may look into."""

    address: str
    port: int
    pid: int | None = None
    program: str = ""  # the process's short name; its arguments may hold a secret
    serves_mcp: bool = False  # it is `mcpboard serve`

    @property
    def owner(self) -> str:
        """The program, for a person to read."""
        return "a program of another user" if self.pid is None else f"{self.program} (pid {self.pid})"


def listeners(proc: str = PROC) -> list[Listener]:
    """Return every listening TCP socket, IPv4 before IPv6; none where the kernel tells nothing."""
    pids = _pids_by_inode(proc)
    found = []
    for table in ("tcp", "tcp6"):
        for address, port, inode in listening(_lines(f"{proc}/net/{table}")):
            pid = pids.get(inode)
            if pid is None:
                found.append(Listener(address, port))
                continue
            name = "".join(_lines(f"{proc}/{pid}/comm")).strip()
            arguments = "".join(_lines(f"{proc}/{pid}/cmdline")).split("\0")
            is_server = "serve" in arguments and any(os.path.basename(word) == "mcpboard" for word in arguments)
            found.append(Listener(address, port, pid, name, is_server))
    return found


def listening(lines: Iterable[str]) -> Iterator[tuple[str, int, str]]:
    """Yield address, port and inode of each listening socket in the lines of /proc/net/tcp or tcp6."""
    for line in list(lines)[1:]:
        fields = line.split()
        if len(fields) > 9 and fields[3] == _LISTEN:
            digits, _, port = fields[1].partition(":")
            # The kernel prints each four bytes of an address as its own machine's number.
            numbers = [int(digits[at : at + 8], 16) for at in range(0, len(digits), 8)]
            packed = struct.pack(f"={len(numbers)}I", *numbers)
            family = socket.AF_INET if len(numbers) == 1 else socket.AF_INET6
            yield socket.inet_ntop(family, packed), int(port, 16), fields[9]


def _pids_by_inode(proc: str) -> dict[str, int]:
    """Return which process has each socket open, as far as this user may see."""
    found: dict[str, int] = {}
    for pid in filter(str.isdigit, _names(proc)):
        for number in _names(f"{proc}/{pid}/fd"):
            try:
                inode = _SOCKET.fullmatch(os.readlink(f"{proc}/{pid}/fd/{number}"))
            except OSError:  # closed since
                continue
            if inode:
                found[inode[1]] = int(pid)
    return found


def _names(folder: str) -> list[str]:
    try:
        return os.listdir(folder)
    except OSError:  # ended since, or another user's
        return []


def _lines(path: str) -> list[str]:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.readlines()
    except OSError:
        return []


def resident(pid: int, proc: str = PROC) -> int | None:
    """Return the bytes of memory that a process holds; None when it is gone."""
    return _bytes_of("VmRSS", _lines(f"{proc}/{pid}/status"))


def available(proc: str = PROC) -> int | None:
    """Return the bytes of memory that a new program could have; None where the kernel does not say."""
    return _bytes_of("MemAvailable", _lines(f"{proc}/meminfo"))


def _bytes_of(key: str, lines: Iterable[str]) -> int | None:
    found = next((line.split() for line in lines if line.startswith(f"{key}:")), None)
    return int(found[1]) * 1024 if found else None  # the kernel counts in kB
