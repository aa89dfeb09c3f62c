"""What a program says when it has started, and how long it may take to; the standard library alone."""

from __future__ import annotations

import subprocess
import threading


def first_line(process: subprocess.Popen[str], seconds: float) -> str:
    """The first line that `process` prints; "" when it ends without, as it does by force once the time is over."""
    assert process.stdout is not None
    limit = threading.Timer(seconds, process.kill)  # ends the read below
    limit.start()
    try:
        return process.stdout.readline()
    finally:
        limit.cancel()
        limit.join()
