"""`python -m tests.bench [ROWS]`: the table of the README, everything in one run on this machine.

ROWS are some of: instructions list calls bundles memory size start stalled sigterm crowded console vision.
Nothing here fails: `over` says where a target was missed.
"""

from __future__ import annotations

import platform
import sys
from importlib.metadata import version

from tests.bench import rows

HEAD = "| metric | mcpboard | beside | target | |\n|---|---|---|---|---|"


def main(wanted: list[str]) -> None:
    machine = f"{platform.machine()}, Python {platform.python_version()}"
    packages = ", ".join(f"{name} {version(name)}" for name in ("waitress", "requests"))
    print(f"{machine}, {packages}; {rows.SDK}\n\n{HEAD}", flush=True)
    with rows.servers() as found:
        for name in wanted or rows.ROWS:
            for row in rows.ROWS[name](found):
                print(row.markdown(), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
