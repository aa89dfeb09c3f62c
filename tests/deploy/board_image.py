"""An emulated board of 128 MB that starts mcpboard by its own S-script: `make board-image` prints what it costs.

Its exit code is 1 for a figure over its limit, or a run that did not come to its end.

Debian's armhf kernel and userland, PyPI's wheels, our package as bytecode alone; qemu is the Cortex-A7.
"""

from __future__ import annotations

import gzip
import json
import shutil
import subprocess
import sys
import tempfile
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from mcpboard.simulator import Simulator
from tests.bench.targets import BOARD_AFTER_CALLS_KB, BOARD_IDLE_KB
from tests.deploy import armhf, shelf, tree

GUEST = Path(__file__).parent / "guest"
MEMORY_MB = 128
IMAGE_MB = 300  # the tree has about 80
RUN_S = 900.0  # a run takes two minutes on a quiet machine
BUNDLE_BLOCKS = 256  # of 64 KiB: 16 MiB

# The armmp kernel has these as modules, to be loaded in this order.
MODULES = ("virtio_mmio", "virtio_blk", "crc16", "crc32c_generic", "libcrc32c", "mbcache", "jbd2", "ext4")

LIMITS_KB = {"idle": BOARD_IDLE_KB, "after calls": BOARD_AFTER_CALLS_KB}  # of resident memory

INITRD = """#!/busybox sh
for module in {modules}; do /busybox insmod /$module.ko; done
/busybox mkdir -p /dev /root
/busybox mount -t devtmpfs dev /dev
/busybox mount -t ext4 /dev/vda /root
/busybox umount /dev
exec /busybox switch_root /root /opt/board/init
"""


def booted(scratch: Path) -> Iterator[tuple[str, dict[str, int]]]:
    """Names and figures, as the session inside prints them; its other words are passed on."""
    (image,) = (kernel() / "boot").glob("vmlinuz-*")
    initrd, disk = _initrd(scratch), _disk(scratch)
    command = [
        tree.tool("qemu-system-arm", "qemu-system-arm"),
        "-M", "virt", "-cpu", "cortex-a7", "-m", MEMORY_MB, "-smp", 1, "-nographic", "-no-reboot", "-net", "none",
        "-kernel", image, "-initrd", initrd, "-append", "console=ttyAMA0 panic=-1 quiet",
        "-drive", f"file={disk},format=raw,if=none,id=disk", "-device", "virtio-blk-device,drive=disk",
    ]  # fmt: skip
    done = subprocess.run(
        [*map(str, command)], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=RUN_S, check=False
    )
    for line in done.stdout.splitlines():
        word, _, facts = line.partition(" ")
        if word == "figure":
            figures = json.loads(facts)
            yield figures.pop("name"), figures
        elif line.strip():
            print("board:", line, file=sys.stderr)


# --- the image -------------------------------------------------------------------------------


def kernel() -> Path:
    """The unpacked package of the kernel, with its modules."""
    return shelf.debian(armhf.SUITE, "extract", "linux-image-armmp", architecture="armhf")


def _disk(scratch: Path) -> Path:
    root, disk = scratch / "root", scratch / "root.img"
    # Without its device nodes: a copy of /dev/full has no end.
    shutil.copytree(armhf.root(), root, symlinks=True, ignore=_device_nodes)
    for folder in ("applets", "proc", "sys", "dev", "run", "opt/board", "etc/init.d", "etc/default"):
        (root / folder).mkdir(parents=True, exist_ok=True)
    shutil.rmtree(root / "var/run", ignore_errors=True)
    (root / "var/run").unlink(missing_ok=True)
    (root / "var/run").symlink_to("../run")
    (root / "bin/sh").symlink_to("busybox")
    _install(root)
    tree.run(tree.tool("mke2fs", "e2fsprogs"), "-q", "-t", "ext4", "-d", root, disk, f"{IMAGE_MB}M")
    return disk


def _device_nodes(folder: str, names: list[str]) -> set[str]:
    paths = {name: Path(folder, name) for name in names}
    return {name for name, path in paths.items() if path.is_block_device() or path.is_char_device()}


def _install(root: Path) -> None:
    """What Buildroot would have put there: package, dependencies, command, S-script, user; and the session."""
    site = root / "opt/site"
    armhf.install(site)
    (root / "etc/passwd").write_text("root:x:0:0::/:/bin/sh\nmcpboard:x:4711:4711::/:/bin/false\n", "ascii")
    (root / "etc/group").write_text("root:x:0:\nmcpboard:x:4711:\n", "ascii")
    (root / "etc/default/mcpboard").write_text("export PYTHONPATH=/opt/site PYTHONDONTWRITEBYTECODE=1\n", "ascii")
    _executable(tree.DEBIAN / "mcpboard", root / "usr/bin/mcpboard")
    _executable(tree.BUILDROOT / "package/mcpboard/S90mcpboard", root / "etc/init.d/S90mcpboard")
    for script in GUEST.iterdir():
        _executable(script, root / "opt/board" / script.name)
    (root / "opt/board/answers.json").write_text(json.dumps(list(_recorded())), "utf-8")


def _executable(source: Path, place: Path) -> None:
    shutil.copyfile(source, place)
    place.chmod(0o755)


def _recorded() -> Iterator[dict[str, object]]:
    """What the simulated board answers to the requests of the session."""
    with Simulator() as simulator:
        for method, base, path in (
            ("GET", simulator.agent_url, "/api/tools"),
            ("POST", simulator.agent_url, "/api/tools/screenshot"),
            ("GET", simulator.agent_url, "/api/phone-bridge/status"),
            ("GET", simulator.config_web_url, "/api/device/status"),
        ):
            body = b"{}" if method == "POST" else None
            asked = urllib.request.Request(base + path, body, {"Content-Type": "application/json"}, method=method)
            with urllib.request.urlopen(asked, timeout=tree.LIMIT_S) as answer:
                kind = answer.headers["Content-Type"]
                yield {"asked": [method, path], "type": kind, "body": answer.read().decode("utf-8")}
    yield {"asked": ["GET", "/api/logs/support"], "type": "application/gzip", "blocks": BUNDLE_BLOCKS}


def _initrd(scratch: Path) -> Path:
    folder, packed = scratch / "initrd", scratch / "initrd.gz"
    folder.mkdir()
    _executable(armhf.root() / "bin/busybox", folder / "busybox")
    modules = kernel() / "lib/modules"
    for name in MODULES:
        found = next(modules.rglob(f"{name}.ko"))
        shutil.copyfile(found, folder / found.name)
    (folder / "init").write_text(INITRD.format(modules=" ".join(MODULES)), "ascii")
    (folder / "init").chmod(0o755)
    names = "\n".join(path.name for path in folder.iterdir()).encode("ascii")
    busybox = tree.tool("busybox", "busybox-static")
    command = [busybox, "cpio", "-o", "-H", "newc"]
    archive = subprocess.run(command, cwd=folder, input=names, capture_output=True, check=True)
    packed.write_bytes(gzip.compress(archive.stdout))
    return packed


if __name__ == "__main__":
    with tempfile.TemporaryDirectory(prefix="mcpboard-board-") as folder:
        try:
            figures = dict(booted(Path(folder)))
        except pytest.fail.Exception as failure:
            sys.exit(str(failure))
    for name, facts in figures.items():
        limit = f" (rss <= {LIMITS_KB[name]})" if name in LIMITS_KB else ""
        print(f"{name:16}", ", ".join(f"{key} {value}" for key, value in facts.items()) + limit)
    over = [name for name, limit in LIMITS_KB.items() if name in figures and figures[name]["rss"] > limit]
    if "stop" not in figures:
        sys.exit("the run did not come to its end")
    if over:
        sys.exit(f"over its limit of memory: {', '.join(over)}")
