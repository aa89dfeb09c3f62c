"""A relay that starts with the machine: the launchd daemon or systemd unit, filled in for the person to install.

macOS asks before a program may use the local network, and often does not ask at all but refuses.
A daemon of launchd is exempt, whichever user it runs as, and so is what it listens on: loopback.
"""

from __future__ import annotations

import os
import plistlib
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from mcpboard.config import files
from mcpboard.errors import ConfigError

FILES = Path(__file__).parent
LABEL = "mcpboard.relay"
UNIT = "mcpboard-relay.service"

ServiceFile = tuple[str, tuple[str, ...]]  # its text, and the steps that install it


def service_file(kind: str, url: str, listen: str) -> tuple[str, str]:
    """Return the file that starts a relay to `url` at `listen` with the machine, and how to install and use it.

    `kind` is one of SERVICES. Raises ConfigError where this machine can have none.
    """
    text, steps = SERVICES[kind]([sys.executable, "-m", "mcpboard", "relay", url, "--listen", listen], listen)
    port = listen.rpartition(":")[2]
    more = (
        f"Clients then use http://{listen}/mcp in place of {url}.",
        "Without any daemon, where the board has an SSH server, a tunnel does the same while it runs:",
        f"ssh -N -L {port}:127.0.0.1:8080 root@BOARD   (clients: http://127.0.0.1:{port}/mcp)",
    )
    return text, "\n".join((*steps, *more))


def launchd(command: Sequence[str], listen: str) -> ServiceFile:
    """Return a system daemon for macOS that runs as this user: an agent of the user would be refused as well.

    Never as root, because whoever can write into this Python could then be root. Raises ConfigError
    for root and where the system has no users.
    """
    user = files.account()
    if user is None:
        raise ConfigError("--print-service launchd: print it on the Mac where it is to run")
    if os.geteuid() == 0:
        cure = "should not be root; print it without sudo, which only the steps need"
        raise ConfigError(f"--print-service launchd: the daemon runs as the user who prints it, and {cure}")
    content = plistlib.loads((FILES / f"{LABEL}.plist").read_bytes())
    content |= {
        "UserName": user.pw_name,
        "ProgramArguments": command,
        "StandardErrorPath": f"{user.pw_dir}/Library/Logs/{LABEL}.log",  # /var/log is root's
    }
    file = f"/Library/LaunchDaemons/{LABEL}.plist"
    steps = (
        f"Save it as {file} (owner root, not writable by others), then:",
        f"sudo launchctl bootstrap system {file}",
        f"To remove it: sudo launchctl bootout system/{LABEL}",
    )
    return plistlib.dumps(content, sort_keys=False).decode(), steps


def systemd(command: Sequence[str], listen: str) -> ServiceFile:
    """Return a unit of the user; loopback needs no root."""
    # Quoted as systemd reads words, and none of its specifiers or variables.
    escapes = str.maketrans({"%": "%%", "\\": "\\\\", '"': '\\"', "$": "$$"})
    words = [f'"{word.translate(escapes)}"' for word in command]
    text = (FILES / UNIT).read_text("utf-8").partition("\n")[2]
    text = text.replace("@LISTEN@", listen.replace("%", "%%")).replace("@COMMAND@", " ".join(words))
    return text, (f"Save it as ~/.config/systemd/user/{UNIT}, then:", f"systemctl --user enable --now {UNIT}")


SERVICES: Mapping[str, Callable[[Sequence[str], str], ServiceFile]] = {"launchd": launchd, "systemd": systemd}
