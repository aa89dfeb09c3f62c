"""Run one row: a slot of its lane, one request to its backend, its reader for the response."""

from __future__ import annotations

import contextlib
import logging
import threading
import time
from collections.abc import Mapping

from mcpboard.board.backend import Backend
from mcpboard.board.lanes import Lanes, Slot
from mcpboard.board.tools import BUNDLE, INPUT, BoardTool
from mcpboard.errors import BackendBroken, ToolError
from mcpboard.protocol.messages import Outcome, ToolCall
from mcpboard.protocol.tools import Blob, Content, Text
from mcpboard.serving.undelivered import UndeliveredOutcomes

log = logging.getLogger("mcpboard")

# Slots of each lane; together they are the server's limit of calls at once.
LANE_CAPACITY: Mapping[str, int] = {"input": 1, "observation": 2, "status": 1, "shell": 1, "support_bundle": 1}
BUNDLE_TOTAL_S = 600.0  # a bundle's reader has ten minutes in all
# Bytes of a response from which it is unfolded alone: the largest takes three times its size meanwhile.
LARGE_RESPONSE = 1 << 20
GZIP = b"\x1f\x8b"  # how every gzip file begins


class Forwarder:
    """The only caller of the backends: every call is made at most once, and never waits for another."""

    def __init__(self, lanes: Lanes, undelivered: UndeliveredOutcomes) -> None:
        self._lanes = lanes
        self._undelivered = undelivered
        self._unfolding = threading.Lock()

    def run(self, row: BoardTool, call: ToolCall, backend: Backend, bundle_limit: int) -> Outcome:
        """Make the call and return its outcome; an action's begins with the undelivered ones."""
        result: Content | ToolError
        try:
            slot = self._lanes.acquire(row.lane, row.tool.name)
            if row.lane == BUNDLE:
                result = _bundle(row, backend, slot, bundle_limit)
            else:
                try:
                    body = b'{"input":' + call.arguments_json + b"}" if row.method == "POST" else None
                    response = backend.call(row.method, row.path, body, row.deadline_s)
                    # The wait is as long as another is unfolded for, which waits for nothing.
                    with self._unfolding if len(response.body) > LARGE_RESPONSE else contextlib.nullcontext():
                        result = row.read(response)
                finally:
                    slot.release()
        except ToolError as error:
            result = error
        except Exception:  # too little memory for the answer, for one; the action may have been executed
            log.exception("%s: the answer cannot be read", row.tool.name)
            result = BackendBroken("The answer cannot be read here; the server's log has the details")
        return self._undelivered.outcome_of(row.tool.name, result) if row.lane == INPUT else Outcome(result)


# --- the support bundle ----------------------------------------------------------------------


def _bundle(row: BoardTool, backend: Backend, slot: Slot, limit: int) -> Content:
    try:
        source = backend.stream(row.path, row.deadline_s, BUNDLE_TOTAL_S, limit)
    except BaseException:
        slot.release()
        raise
    source.on_close = slot.release  # read or not, the source keeps the slot until it is closed
    begun = source.begin()
    # What it is shows in its bytes: an error page under HTTP 200 is not passed off as an archive.
    if begun.status != 200 or not begun.body.startswith(GZIP):
        source.close()
        return row.read(begun)
    name = time.strftime("%Y%m%dT%H%M%SZ.tar.gz", time.gmtime())
    size = "size not announced" if source.length is None else f"{source.length} bytes"
    note = f"support bundle {name}, {size}, application/gzip: prompts and logs as they are, nothing removed"
    return Content((Text(note), Blob(f"mcpboard://support-bundle/{name}", "application/gzip", source)))
