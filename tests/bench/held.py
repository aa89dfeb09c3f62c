"""`python -m tests.bench.held CONFIG`: the board as `serve` runs it; for each line on stdin it says what it holds.

Prints its port first. The answer is a JSON line: concurrency slots in use, tools in each lane, threads, descriptors.
"""

from __future__ import annotations

import json
import os
import sys
import threading

from mcpboard import config
from mcpboard.board import Board
from mcpboard.board.forward import LANE_CAPACITY, Forwarder
from mcpboard.board.lanes import Lanes
from mcpboard.serving import server
from mcpboard.serving.app import Application
from mcpboard.serving.concurrency import ConcurrencyLimit
from mcpboard.serving.undelivered import UndeliveredOutcomes


def main(path: str) -> int:
    current = config.SettingsWatcher({"config": path}, environ={}).current
    # As board.build joins them, with both in hand.
    lanes, limit = Lanes(LANE_CAPACITY), ConcurrencyLimit(sum(LANE_CAPACITY.values()))
    sockets = server.listeners([("127.0.0.1", 0)])
    threading.Thread(target=_tell, args=(lanes, limit), name="held", daemon=True).start()
    edge = Application(Board(current, Forwarder(lanes, UndeliveredOutcomes())).role, limit)
    return server.serve(edge, sockets, lambda: print(sockets[0].getsockname()[1], flush=True))


def _tell(lanes: Lanes, limit: ConcurrencyLimit) -> None:
    for _ in sys.stdin:
        held = {
            "slots": len(limit.held),
            "lanes": {lane: [slot.tool for slot in slots] for lane, slots in lanes.running.items() if slots},
            "threads": len(os.listdir("/proc/self/task")) - 1,  # without this one
            "descriptors": len(os.listdir("/proc/self/fd")) - 1,  # without the one that lists them
        }
        print(json.dumps(held), flush=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
