"""A room with real phones' daemons: Debian's `adbd`, each with small programs for `input`, `wm` and the rest.

Daemons listen on every address there is, so they run in a network of their own, which has nothing
but loopback. The server, the real `adb`, is inside as well, on a listening socket that was made
outside and handed in: that is the one way between the two.
"""

from __future__ import annotations

import os
import shutil
import socket
import stat
import subprocess
import zlib
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from struct import pack

import pytest

from tests.deploy import shelf
from tests.deploy.rooms import until

LIMIT_S = 20.0
FIRST_PORT = 16001  # adb looks for emulators on 5554 to 5585 by itself

# $1 is an empty folder, $2 and $3 are shared with this machine. A daemon wants /data/local/tmp, so the room has a tree
# of its own, over that of this machine.
_FURNISH = """
set -e
mount --make-rprivate /
mount -t tmpfs room "$1"
mkdir "$1/upper" "$1/work" "$1/root"
mount -t overlay -o "lowerdir=/,upperdir=$1/upper,workdir=$1/work" room "$1/root"
mkdir -p "$1/root/data/local/tmp"
for shared in "$2" "$3" /dev /proc; do mkdir -p "$1/root$shared"; mount --rbind "$shared" "$1/root$shared"; done
ip link set lo up
echo up
exec cat
"""

# What each program of a phone does; ${0%/*} is the phone's folder. `log` gets one line a call, arguments behind US.
NOTE = r"""{ printf '%s' "${0##*/}"; printf '\037%s' "$@"; echo; } >> "${0%/*}/log";"""
PROGRAMS: Mapping[str, str] = {
    "screencap": 'cat "${0%/*}/picture.png"',
    "input": NOTE + ' [ "$1" != swipe ] || exec sleep "$(( $6 / 1000 )).$(printf %03d $(( $6 % 1000 )))"',
    "wm": 'cat "${0%/*}/size"',
    "getprop": 'case "$1" in ro.product.model) cat "${0%/*}/model";; *) echo 14;; esac',
    "dumpsys": 'cat "${0%/*}/dumpsys.$1"',
    "pm": "echo package:com.android.settings; echo package:com.android.chrome; echo package:org.example.notes",
    "monkey": NOTE + " echo Events injected: 1",
    "am": NOTE + ' case "$3" in */.Missing) echo "Error: Activity class {$3} does not exist.";; esac',
    "uiautomator": 'cp "${0%/*}/tree.xml" "$2"; echo "UI hierchary dumped to: $2"',
    "true": "exit 0",
}
FILES: Mapping[str, str] = {
    "size": "Physical size: 1080x2400\nOverride size: 540x1200\n",
    "dumpsys.battery": "Current Battery Service state:\n  AC powered: false\n  level: 71\n  scale: 100\n",
    "dumpsys.power": "  mWakefulness=Awake\n  mWakefulnessChanging=false\n",
    "dumpsys.window": (
        "    init=1080x2400 420dpi cur=540x1200 app=540x1137 rng=540x1000-1137x1137\n"
        "    mRotation=0 mDeferredRotationPauseCount=0\n"
        "  mCurrentFocus=Window{f1e2 u0 com.android.settings/com.android.settings.Settings}\n"
    ),
    "tree.xml": (
        "<?xml version='1.0' encoding='UTF-8' standalone='yes' ?><hierarchy rotation=\"0\">"
        '<node class="android.widget.FrameLayout" bounds="[0,0][540,1200]">'
        '<node class="android.widget.TextView" text="Wi-Fi &amp; more" resource-id="android:id/title" clickable="true" '
        'bounds="[20,100][520,180]" /></node></hierarchy>'
    ),
}


def png(width: int, height: int, light: int = 90) -> bytes:
    """A whole PNG of one colour."""
    rows = (b"\0" + bytes([light, light, light, 255]) * width) * height
    chunks = [(b"IHDR", pack(">IIBBBBB", width, height, 8, 6, 0, 0, 0)), (b"IDAT", zlib.compress(rows)), (b"IEND", b"")]
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        pack(">I", len(body)) + name + body + pack(">I", zlib.crc32(name + body)) for name, body in chunks
    )


class Debian:
    """The real programs, unpacked and run by their own loader: nothing of it is installed."""

    def __init__(self) -> None:
        root = self.shelved = shelf.debian("trixie", "extract", "adb", "adbd", "base-files")
        (loader,) = [*root.glob("usr/lib*/ld-linux-*.so.*")][:1]
        (libraries,) = root.glob("usr/lib/*-linux-gnu*")
        self._loading = [str(loader), "--library-path", f"{libraries}:{libraries / 'android'}"]
        self._tools = root / "usr/lib/android-sdk/platform-tools"

    def command(self, name: str, *arguments: str) -> list[str]:
        return [*self._loading, str(self._tools / name), *arguments]


class Phone:
    """One daemon and its programs; `calls` are those that moved the phone."""

    def __init__(self, room: Room, port: int) -> None:
        self.serial = f"127.0.0.1:{port}"
        self.model = f"Simulated {port}"
        self.folder = room.folder / f"phone-{port}"
        self.folder.mkdir()
        self._room, self._port = room, port
        self._process: subprocess.Popen[bytes] | None = None
        for name, script in PROGRAMS.items():
            self.write(name, f"#!/bin/sh\n{script}\n")
            (self.folder / name).chmod(stat.S_IRWXU)
        for name, content in {**FILES, "model": f"{self.model}\n"}.items():
            self.write(name, content)
        (self.folder / "picture.png").write_bytes(png(540, 1200))

    def write(self, name: str, content: str) -> None:
        (self.folder / name).write_text(content, "utf-8")

    @property
    def calls(self) -> list[list[str]]:
        file = self.folder / "log"
        return [line.split("\x1f") for line in file.read_text("utf-8").splitlines()] if file.exists() else []

    def start(self) -> None:
        environ = {"PATH": f"{self.folder}:/usr/bin:/bin", "ADBD_PORT": str(self._port), "HOME": str(self.folder)}
        self._process = self._room.start("adbd", environ=environ)
        until(lambda: self._room.listens(self._port), f"adbd on port {self._port}", LIMIT_S)

    def kill(self) -> None:
        """As when the battery is pulled: at once, without a farewell."""
        assert self._process is not None
        self._process.kill()
        self._process.wait(LIMIT_S)

    def stop(self, signal_number: int) -> None:
        """Stop it, or let it go on, with its connections open."""
        assert self._process is not None
        self._process.send_signal(signal_number)


class Room:
    """The network, the real adb server reachable at `port` of this machine, and the phones in it."""

    def __init__(self, folder: Path, stack: ExitStack) -> None:
        self.folder = folder / "phones"
        self.folder.mkdir()
        self._stack = stack
        self._debian = Debian()
        self._enter = stack.enter_context(_inside(folder, self._debian.shelved))
        self._listening = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
        self.port: int = self._listening.getsockname()[1]
        self._server: subprocess.Popen[bytes] | None = None

    def start_server(self) -> None:
        descriptor = self._listening.fileno()
        environ = {"PATH": "/usr/bin:/bin", "HOME": str(self.folder), "ADB_MDNS_OPENSCREEN": "0"}
        arguments = ("-L", f"acceptfd:{descriptor}", "server", "nodaemon")
        self._server = self.start("adb", *arguments, environ=environ, descriptors=(descriptor,))

    def kill_server(self) -> None:
        assert self._server is not None
        self._server.kill()
        self._server.wait(LIMIT_S)

    def start(
        self, name: str, *arguments: str, environ: Mapping[str, str], descriptors: tuple[int, ...] = ()
    ) -> subprocess.Popen[bytes]:
        """One of the real programs, in the room; it has ended when the room has."""
        process = subprocess.Popen(
            [*self._enter, *self._debian.command(name, *arguments)],
            env=environ, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            pass_fds=descriptors,
        )  # fmt: skip
        self._stack.callback(process.wait, LIMIT_S)
        self._stack.callback(process.kill)
        return process

    def listens(self, port: int) -> bool:
        """Return true where something in the room listens on that port; nothing connects to it for that."""
        pid = self._enter[2]
        tables = [Path(f"/proc/{pid}/net/{name}").read_text("ascii") for name in ("tcp", "tcp6")]
        return any(f":{port:04X} " in line and " 0A " in line for table in tables for line in table.splitlines())


@contextmanager
def _inside(folder: Path, shelved: Path) -> Iterator[list[str]]:
    """The command that starts a program in a room of its own, which ends with the block."""
    for program, package in (("unshare", "util-linux"), ("nsenter", "util-linux"), ("ip", "iproute2")):
        if shutil.which(program) is None:
            pytest.fail(f"{program} is missing: apt-get install {package}", pytrace=False)
    if os.geteuid() != 0:
        pytest.fail("namespaces and overlays need root: run the tests as root", pytrace=False)
    mount = folder / "room"
    mount.mkdir()
    with subprocess.Popen(
        ["unshare", "--net", "--mount", "sh", "-c", _FURNISH, "room", mount, folder / "phones", shelved],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE,
    ) as first:  # fmt: skip
        assert first.stdin and first.stdout
        assert first.stdout.readline() == b"up\n"
        root = Path(f"/proc/{first.pid}/root", *mount.parts[1:], "root")
        yield ["nsenter", "--target", str(first.pid), "--net", "--mount", f"--root={root}", f"--wd={root}", "--"]
        first.stdin.close()
        first.wait(LIMIT_S)


@contextmanager
def room(folder: Path) -> Iterator[Room]:
    """An empty room with its adb server."""
    with ExitStack() as stack:
        found = Room(folder, stack)
        found.start_server()
        yield found
