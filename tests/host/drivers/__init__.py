"""Tests of the drivers, and the measure of memory that some of them share."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable


def memory_of(work: Callable[[], object]) -> int:
    """Return the most bytes that Python held for `work` at a time."""
    tracemalloc.start()
    try:
        work()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
