"""Tell if a reply has arrived, as far as TCP can: the client's system has acknowledged its last byte."""

# A reply that the kernel took is not one that the client has. When a USB link goes down in the middle
# of an action, nobody tells the server, and the reply waits in the kernel for a client that is gone.

from __future__ import annotations

import socket
import sys
from collections.abc import Callable
from typing import Any, NamedTuple

fcntl: Any
termios: Any
try:
    import fcntl
    import termios
except ImportError:  # on Windows
    fcntl = termios = None


class Receipt(NamedTuple):
    """Stands for the bytes up to `position` of all that was answered on one connection."""

    acknowledged: Callable[[], int]
    position: int

    def __call__(self) -> bool:
        """Tell if all of them have arrived, or where nobody can tell; it may be asked again and again."""
        return self.acknowledged() >= self.position


def unacknowledged(sock: socket.socket) -> int:
    """Return the bytes that the kernel still holds for the other side; 0 where it does not say."""
    if fcntl is None:
        return 0
    found = bytearray(4)  # an int of C
    try:
        fcntl.ioctl(sock, termios.TIOCOUTQ, found)
    except OSError:
        return 0
    return int.from_bytes(found, sys.byteorder)
