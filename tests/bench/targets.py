"""The numbers to reach, once: gates assert the counts, `make bench` shows them all."""

from __future__ import annotations

from collections.abc import Mapping

# Kind of request -> times the instructions of bare waitress.
# Werkzeug's Request, Response and Map are a third of bare waitress, requests and urllib3 twice as much as it is in all.
INSTRUCTIONS: Mapping[str, float] = {"tools/list": 1.75, "small tools/call": 5.25, "screenshot 200 KB": 26.0}

LIST_BYTES = 12_000  # the whole tools/list answer: every client reads it into its context
INSTRUCTIONS_BYTES = 1_000  # the words of initialize and discover

BUNDLE_SIZES = (1, 16, 64)  # MiB
BUNDLE_GROWTH = 1.0  # MiB, at any size, whoever reads

# Resident MiB on x86-64, with the allocator settings of the init scripts.
RSS_IDLE = 29.0
RSS_AFTER_CALLS = 37.0
RSS_HOSTILE = 42.0  # under unfinished bodies and pictures that nobody reads
RSS_FLOODED = 60.0  # under JSON that is small on the wire and large in memory
RSS_CROWDED = 60.0  # under all sorts of hostile traffic at once, at any moment
HONEST_S = 5.0  # until an honest client is answered meanwhile, at the worst

# Beside others in the same run, shown and not asserted.
LIST_P50 = 1.6  # x bare waitress
SMALL_P50 = 0.7  # x the official SDK's server
SHOT_P50 = 0.55  # x the official SDK's server
BUNDLE_WALL = 1.4  # x raw sockets
COLD_START = 2.4  # x bare waitress

# On an emulated ARM board of 128 MB that is asked for /health every second, in kB; a trivial server of the same parts
# has 16,900 and 21,500.
BOARD_IDLE_KB = 19_000
BOARD_AFTER_CALLS_KB = 24_000
INSTALLED_BYTES = 3_700_000  # on 32-bit ARM: the board's part of the package and its dependencies, in bytecode alone

STALLED_S = 35.0  # until a stalled reader's thread and lane are back
REFUSED_S = 0.5  # from SIGTERM until a new connection is refused
