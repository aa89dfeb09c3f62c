"""What rows of the bench need besides pip's extra `test`: there before anything is measured, or named.

`python -m tests.bench.needs [ROWS]` installs the Debian packages when root, and fails with the command otherwise.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

from tests.deploy import armhf, board_image
from tests.host.vision import measured
from tests.host.vision.screens import FONT
from tests.support import ROOT

# Row -> each program or file that it needs, and the Debian package that has it.
TOOLS: Mapping[str, Mapping[str, str]] = {
    "instructions": {"valgrind": "valgrind"},
    "vision": {"unshare": "util-linux", "npm": "npm", FONT: "fonts-wqy-microhei"},
    "board": {
        "mmdebstrap": "mmdebstrap",
        "/usr/share/keyrings/debian-archive-keyring.gpg": "debian-archive-keyring",
        "qemu-arm-static": "qemu-user-static",
        "qemu-system-arm": "qemu-system-arm",
        "busybox": "busybox-static",
        "mke2fs": "e2fsprogs",
    },
}

# Row -> what puts its parts on the shelf, which is kept between runs, or finds out if this machine lets it run.
FIRST: Mapping[str, Sequence[Callable[[], object]]] = {
    "vision": (measured.no_network, measured.python, measured.node_modules),
    "board": (armhf.root, armhf.wheels, board_image.kernel),
}


def missing(rows: Iterable[str]) -> list[str]:
    """Return the Debian packages that those rows need and that are not here."""
    tools = {tool: package for row in rows for tool, package in TOOLS.get(row, {}).items()}
    return [package for tool, package in tools.items() if not (shutil.which(tool) or Path(tool).is_file())]


def check(rows: Iterable[str]) -> None:
    """Exit with the command that installs what those rows need and is not here."""
    packages = missing(rows)
    if packages:
        sys.exit(f"the bench needs packages that are not here: apt-get install {' '.join(packages)}")


def prepare(rows: Iterable[str]) -> None:
    """Install the parts of those rows that pip, npm and mmdebstrap bring; pytest.fail where a row could not run."""
    for row in rows:
        for step in FIRST.get(row, ()):
            step()


if __name__ == "__main__":
    wanted = sys.argv[1:] or list(TOOLS)
    packages = missing(wanted)
    if packages:
        subprocess.run(["bash", ROOT / "tests/system-packages", *packages], check=True)
    check(wanted)
