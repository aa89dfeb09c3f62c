"""JSON that is small on the wire and large in memory, as much of it at once as a server takes in.

Five callers whose arguments are such a document, four who post pings of the largest body there may be, and
sixteen bodies that are never finished.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping

from mcpboard.protocol.limits import ARGUMENTS_LIMIT, BODY_LIMIT, CONTAINERS_LIMIT
from tests.support.hogs import Hog
from tests.support.http import request

UNFINISHED = 4  # of each kind
POSTERS = 4
FLOODED = 80  # answers to requests that are as large as they may be
ENVELOPE = 1024  # bytes around a value, more than it has
# One for each slot that a lane has, but for that of the shell, which is disabled.
TOOLS = ("touch_gesture", "screenshot", "screenshot", "phone_bridge_status", "support_bundle")


def values(size: int) -> list[str]:
    """JSON of at most `size` bytes: refused for its lists, as large as objects and strings make it, of wide characters."""
    objects = _filled((f'{{"{number:x}":0}}' for number in range(CONTAINERS_LIMIT - 100)), size // 2)
    members = _filled((f'"{number:x}":0' for number in itertools.count()), size // 2 - 10)
    return [
        "[" + _filled(itertools.repeat("[[[[]]]]"), size - 2) + "]",
        "[" + objects + ",{" + members + "}]",
        "[" + _filled((f'"{number:x}"' for number in itertools.count()), size - 2) + "]",
        '"\U0001f600' + "a" * (size - 6) + '"',
    ]


def _filled(items: Iterator[str], size: int) -> str:
    """Return as many of the items as fit, with commas between."""
    total = 0

    def fits(item: str) -> bool:
        nonlocal total
        total += len(item) + 1
        return total <= size

    return ",".join(itertools.takewhile(fits, items))


def flood() -> Mapping[Hog, int]:
    """The traffic; each request comes on a connection of its own, which leaves with the first bytes of the answer."""
    pings = [_post("ping", '{"x":' + value + "}") for value in values(BODY_LIMIT - ENVELOPE)]
    turns = [pings[start:] + pings[:start] for start in range(POSTERS)]
    turns += [[_call(tool, value) for value in values(ARGUMENTS_LIMIT - ENVELOPE)] for tool in TOOLS]
    asking = {Hog(turn[0], others=tuple(turn[1:]), takes=1 << 20, leaves=True): turns.count(turn) for turn in turns}
    return {**asking, **{Hog(ping[:-1], back_s=math.inf): UNFINISHED for ping in pings}}


def _post(method: str, params: str) -> bytes:
    body = '{"jsonrpc":"2.0","id":1,"method":"' + method + '","params":' + params + "}"
    return request(body.encode())


def _call(tool: str, value: str) -> bytes:
    arguments = '{"type":"tap","point":{"x":1,"y":1},"more":' + value + "}"
    return _post("tools/call", '{"name":"' + tool + '","arguments":' + arguments + "}")
