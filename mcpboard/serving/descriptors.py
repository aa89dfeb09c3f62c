"""Fit the connections of a server into the descriptors that the system grants it.

A server that gives all of them to strangers has none left for its own requests.
"""

from __future__ import annotations

import contextlib
import logging
import os
from typing import Any

resource: Any
try:
    import resource
except ImportError:  # on Windows, which has no such limit
    resource = None

log = logging.getLogger("mcpboard")

OWN = 8  # settings, tokens and the log, while they are read and written; name services
FEWEST = 8  # connections, whatever the limit: the most dispensable one is ended for a newcomer


def fit(connections: int, threads: int) -> int:
    """Return how many connections the server can have, `connections` at the most.

    Each thread may need one descriptor for a call. The soft limit is raised as far as needed and
    allowed; what is missing then is told in the log.
    """
    if resource is None:
        return connections
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    spare = _in_use() + OWN + threads
    wanted = spare + connections
    if soft != resource.RLIM_INFINITY and soft < wanted:
        raised = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        with contextlib.suppress(OSError, ValueError):  # a sandbox may forbid it
            resource.setrlimit(resource.RLIMIT_NOFILE, (raised, hard))
            soft = raised
    if soft == resource.RLIM_INFINITY or soft >= wanted:
        return connections
    fitting: int = max(FEWEST, soft - spare)
    told = "only %d connections at once, not %d: the limit of open files is %d; set it to %d (ulimit -n, LimitNOFILE=)"
    log.warning(told, fitting, connections, soft, wanted)
    return fitting


def _in_use() -> int:
    """Return how many descriptors are open."""
    for folder in ("/proc/self/fd", "/dev/fd"):
        try:
            return len(os.listdir(folder))
        except OSError:
            continue
    return OWN
