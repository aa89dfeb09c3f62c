"""A room with real phones' daemons: Debian's `adbd`, each with small programs for `input`, `wm` and the rest.

Daemons listen on every address there is, so they run in a network of their own, which has nothing
but loopback. The server, the real `adb`, is inside as well, on a listening socket that was made
outside and handed in: that is the one way between the two.
"""

from __future__ import annotations

import os
import socket
import stat
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from tests.deploy import shelf, tree
from tests.deploy.rooms import until
from tests.host.drivers import png

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


class Room:
    """The network, the real adb server reachable at `port` of this machine, and the phones in it."""

    def __init__(self, folder: Path, stack: ExitStack) -> None:
        self.folder = folder / "phones"
        self.folder.mkdir()
        self._stack = stack
        self._shelved = shelf.debian("trixie", "extract", "adb", "adbd", "base-files")
        self._enter = stack.enter_context(_inside(folder, self._shelved))
        self._listening = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
        self.port: int = self._listening.getsockname()[1]
        self.start_server()

    def start_server(self) -> None:
        descriptor = self._listening.fileno()
        environ = {"PATH": "/usr/bin:/bin", "HOME": str(self.folder), "ADB_MDNS_OPENSCREEN": "0"}
        self._server = self.start("adb", "-L", f"acceptfd:{descriptor}", "server", "nodaemon", environ=environ, inherited=[descriptor])  # fmt: skip

    def kill_server(self) -> None:
        self._server.kill()
        self._server.wait(LIMIT_S)

    def start(
        self, name: str, *arguments: str, environ: Mapping[str, str], inherited: Sequence[int] = ()
    ) -> subprocess.Popen[bytes]:
        """One of the real programs by its own loader, as nothing is installed; it has ended when the room has."""
        (loader,) = [*self._shelved.glob("usr/lib*/ld-linux-*.so.*")][:1]
        (libraries,) = self._shelved.glob("usr/lib/*-linux-gnu*")
        program = self._shelved / "usr/lib/android-sdk/platform-tools" / name
        begin = [*self._enter, str(loader), "--library-path", f"{libraries}:{libraries / 'android'}", str(program)]
        none = subprocess.DEVNULL
        process = subprocess.Popen(
            [*begin, *arguments], env=environ, stdin=none, stdout=none, stderr=none, pass_fds=inherited
        )
        self._stack.callback(process.wait, LIMIT_S)
        self._stack.callback(process.kill)
        return process

    def listens(self, port: int) -> bool:
        """Return true where something in the room listens on that port; nothing connects to it for that."""
        tables = [Path(f"/proc/{self._enter[2]}/net/{name}").read_text("ascii") for name in ("tcp", "tcp6")]
        return any(f":{port:04X} " in line and " 0A " in line for table in tables for line in table.splitlines())


class Phone:
    """One daemon and its programs; `calls` are those that moved the phone."""

    process: subprocess.Popen[bytes]

    def __init__(self, room: Room, port: int) -> None:
        self.serial = f"127.0.0.1:{port}"
        self.model = f"Simulated {port}"
        self.folder = room.folder / f"phone-{port}"
        self.folder.mkdir()
        self._room, self._port = room, port
        scripts = {name: f"#!/bin/sh\n{script}\n" for name, script in PROGRAMS.items()}
        for name, content in {**scripts, **FILES, "model": f"{self.model}\n"}.items():
            (self.folder / name).write_text(content, "utf-8")
            (self.folder / name).chmod(stat.S_IRWXU)
        (self.folder / "picture.png").write_bytes(png(540, 1200))

    @property
    def calls(self) -> list[list[str]]:
        file = self.folder / "log"
        return [line.split("\x1f") for line in file.read_text("utf-8").splitlines()] if file.exists() else []

    def start(self) -> None:
        environ = {"PATH": f"{self.folder}:/usr/bin:/bin", "ADBD_PORT": str(self._port), "HOME": str(self.folder)}
        self.process = self._room.start("adbd", environ=environ)
        until(lambda: self._room.listens(self._port), f"adbd on port {self._port}", LIMIT_S)

    def kill(self) -> None:
        """As when the battery is pulled: at once, without a farewell."""
        self.process.kill()
        self.process.wait(LIMIT_S)


@contextmanager
def _inside(folder: Path, shelved: Path) -> Iterator[list[str]]:
    """The command that starts a program in a room of its own, which ends with the block."""
    if os.geteuid() != 0:
        pytest.fail("namespaces and overlays need root: run the tests as root", pytrace=False)
    tree.tool("ip", "iproute2")
    mount = folder / "room"
    mount.mkdir()
    begin = [tree.tool("unshare", "util-linux"), "--net", "--mount", "sh", "-c", _FURNISH, "room"]
    pipe = subprocess.PIPE
    with subprocess.Popen([*begin, mount, folder / "phones", shelved], stdin=pipe, stdout=pipe) as first:
        assert first.stdin and first.stdout
        assert first.stdout.readline() == b"up\n"
        root = Path(f"/proc/{first.pid}/root", *mount.parts[1:], "root")
        yield [tree.tool("nsenter", "util-linux"), "--target", str(first.pid), "--net", "--mount", f"--root={root}", f"--wd={root}", "--"]  # fmt: skip
        first.stdin.close()
        first.wait(LIMIT_S)


@contextmanager
def room(folder: Path) -> Iterator[Room]:
    """A room with its adb server and no phone."""
    with ExitStack() as stack:
        yield Room(folder, stack)
