"""Takes away what Windows, or every system but Linux, does not have.

Python runs this by itself at its start when this folder is on PYTHONPATH.
"""

from __future__ import annotations

import socket
import sys

MODULES = ("fcntl", "grp", "pwd", "resource", "syslog", "termios")
OPTIONS = ("SO_BINDTODEVICE", "SO_REUSEPORT", "TCP_KEEPIDLE", "TCP_USER_TIMEOUT")

sys.modules.update(dict.fromkeys(MODULES))  # type: ignore[arg-type]
for name in OPTIONS:
    if hasattr(socket, name):
        delattr(socket, name)
