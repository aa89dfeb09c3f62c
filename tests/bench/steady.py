"""`python -m tests.bench.steady MODULE ARGUMENTS`: runs MODULE with one thread at a time, until that thread waits.

Under valgrind a request takes longer than the interpreter's switch interval, and threads that hand the
lock to each other on the way cost other instructions in every run.
"""

from __future__ import annotations

import runpy
import sys

if __name__ == "__main__":
    sys.setswitchinterval(1000.0)  # seconds
    module = sys.argv[1]
    sys.argv = sys.argv[1:]
    runpy.run_module(module, run_name="__main__", alter_sys=True)
