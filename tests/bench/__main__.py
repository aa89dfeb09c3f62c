"""`python -m tests.bench [ROWS]`: the table of docs/performance.md, everything in one run on this machine.

ROWS are some of: instructions list calls bundles memory size board start departed stalled sigterm crowded console
vision. Nothing that was measured fails: `over` says where a target was missed. What a row needs and is not here ends
the run before it begins.
"""

from __future__ import annotations

import platform
import sys
from importlib.metadata import version

import pytest

from tests.bench import needs, programs, rows

if __name__ == "__main__":
    names = sys.argv[1:] or list(rows.ROWS)
    needs.check(names)
    packages = ", ".join(f"{name} {version(name)}" for name in ("werkzeug", "waitress", "requests"))
    try:
        needs.prepare(names)
        with programs.Servers() as found:
            print(f"{platform.machine()}, Python {platform.python_version()}, {packages}; {programs.SDK}\n")
            print("| metric | mcpboard | beside | target | |\n|---|---|---|---|---|", flush=True)
            for name in names:
                for row in rows.ROWS[name](found):
                    print(row.markdown(), flush=True)
    except pytest.fail.Exception as failure:
        sys.exit(str(failure))
