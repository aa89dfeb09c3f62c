"""`python -m tests.functional.small_stack serve ...`: mcpboard whose every thread has the stack that musl gives."""

from __future__ import annotations

import sys
import threading

from mcpboard.cli import main
from mcpboard.serving import server

MUSL_BYTES = 128 * 1024

if __name__ == "__main__":
    threading.stack_size(MUSL_BYTES)
    vars(server)["STACK_BYTES"] = MUSL_BYTES
    sys.exit(main())
