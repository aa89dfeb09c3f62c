"""Which program listens on which TCP port of this board, as the kernel tells it under /proc."""

from __future__ import annotations

import os
import re
import socket
import struct
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

PROC = "/proc"
_LISTEN = "0A"  # the state's number in /proc/net/tcp
_SOCKET = re.compile(r"socket:\[([0-9]+)\]")


@dataclass(frozen=True)
class Listener:
    """One listening socket; `pid` is None for a process of another user, which only root may look into."""

    address: str
    port: int
    pid: int | None = None
    program: str = ""  # the process's short name; its arguments may hold a secret
    serves_mcp: bool = False  # it is `mcpboard serve`

    @property
    def owner(self) -> str:
        """Who that is, for a person."""
        return "a program of another user" if self.pid is None else f"{self.program} (pid {self.pid})"


def listeners(proc: str = PROC) -> list[Listener]:
    """Every listening TCP socket, IPv4 before IPv6; empty where the kernel tells nothing."""
    pids = _owners(proc)
    found = []
    for table in ("tcp", "tcp6"):
        for address, port, inode in listening(_lines(f"{proc}/net/{table}")):
            pid = pids.get(inode)
            named = Listener(address, port) if pid is None else _of_process(proc, pid, address, port)
            found.append(named)
    return found


def listening(lines: Iterable[str]) -> Iterator[tuple[str, int, str]]:
    """Address, port and inode of each listening socket in the lines of /proc/net/tcp or tcp6."""
    for line in list(lines)[1:]:
        fields = line.split()
        if len(fields) > 9 and fields[3] == _LISTEN:
            address, _, port = fields[1].partition(":")
            yield _address(address), int(port, 16), fields[9]


def _address(text: str) -> str:
    """The kernel prints each four bytes of an address as its own machine's number."""
    words = [int(text[at : at + 8], 16) for at in range(0, len(text), 8)]
    packed = struct.pack(f"={len(words)}I", *words)
    return socket.inet_ntop(socket.AF_INET if len(words) == 1 else socket.AF_INET6, packed)


def _owners(proc: str) -> Mapping[str, int]:
    """Inode of a socket -> the process that has it open, as far as this user may see."""
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


def _of_process(proc: str, pid: int, address: str, port: int) -> Listener:
    name = "".join(_lines(f"{proc}/{pid}/comm")).strip()
    arguments = "".join(_lines(f"{proc}/{pid}/cmdline")).split("\0")
    ours = "serve" in arguments and any(os.path.basename(word) == "mcpboard" for word in arguments)
    return Listener(address, port, pid, name, ours)


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
    """Bytes of memory that a process holds; None when it is gone."""
    return _kilobytes(_lines(f"{proc}/{pid}/status"), "VmRSS")


def available(proc: str = PROC) -> int | None:
    """Bytes of memory that a new program could have; None where the kernel does not say."""
    return _kilobytes(_lines(f"{proc}/meminfo"), "MemAvailable")


def _kilobytes(lines: Iterable[str], key: str) -> int | None:
    for line in lines:
        name, _, rest = line.partition(":")
        if name == key:
            return int(rest.split()[0]) * 1024
    return None
