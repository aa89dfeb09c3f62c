"""`python -m tests.bench.soak [PARTS]`: what takes minutes, part after part, in processes of their own.

SECONDS in the environment is how long each part takes, 600 unless said otherwise. A part is a program with exit code 1
for anything that must not be; so is the exit code of the whole.
"""

from __future__ import annotations

import os
import subprocess
import sys

from tests.support import ROOT

SECONDS = "600"
PARTS = ("leaks", "killed", "crowded")  # modules beside this one, in the order in which they run


def main(wanted: list[str]) -> int:
    """Run the parts that are wanted, all unless there are any, and say at the end which failed."""
    unknown = [part for part in wanted if part not in PARTS]
    if unknown:
        print(f"no part is called {', '.join(unknown)}; there are: {', '.join(PARTS)}", file=sys.stderr)
        return 2
    failed = []
    for part in wanted or PARTS:
        print(f"--- {part}", flush=True)
        environ = {"SECONDS": SECONDS, **os.environ}
        if subprocess.run([sys.executable, "-m", f"tests.bench.{part}"], cwd=ROOT, env=environ).returncode:
            failed.append(part)
    print(f"failed: {', '.join(failed)}" if failed else "all parts passed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
