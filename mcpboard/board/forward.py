"""Run one row: a slot of its lane, one request to its backend, its reader for the response."""

from __future__ import annotations

import contextlib
import functools
import logging
import time
from collections.abc import Iterator, Mapping
from dataclasses import replace

from mcpboard.board.backend import Backend
from mcpboard.board.lanes import Lanes, Slot
from mcpboard.board.tools import INPUT, BoardTool
from mcpboard.errors import DONE, NOT_SENT, BackendBroken, ToolError
from mcpboard.protocol.messages import Outcome, ToolCall
from mcpboard.protocol.tools import Blob, ByteSource, Content, Text
from mcpboard.serving.undelivered import UndeliveredOutcome, UndeliveredOutcomes
from mcpboard.transport.deadline import Clock

log = logging.getLogger("mcpboard")

# Slots of each lane; together they are the server's limit of calls at once.
LANE_CAPACITY: Mapping[str, int] = {"input": 1, "observation": 2, "status": 1, "shell": 1, "support_bundle": 1}
BUNDLE_TOTAL_S = 600.0  # a bundle's reader has ten minutes in all
# What is told of an undelivered error, by its delivery; nothing of a call that did nothing.
SUMMARIES = {NOT_SENT: "", DONE: "took place, although something after it failed"}
GZIP = b"\x1f\x8b"  # how every gzip file begins


class Forwarder:
    """The only caller of the backends: every call is made at most once, and never waits for another."""

    def __init__(self, lanes: Lanes, undelivered: UndeliveredOutcomes, clock: Clock = time.monotonic) -> None:
        self._lanes = lanes
        self._undelivered = undelivered
        self._clock = clock

    def run(self, row: BoardTool, call: ToolCall, backend: Backend, bundle_limit: int) -> Outcome:
        """Make the call and return its outcome; an action's begins with the undelivered ones."""
        result: Content | ToolError
        try:
            slot = self._lanes.acquire(row.lane, row.tool.name)
            if row.streams:
                result = _bundle(row, backend, slot, bundle_limit)
            else:
                with slot:
                    body = b'{"input":' + call.arguments_json + b"}" if row.method == "POST" else None
                    result = row.read(backend.call(row.method, row.path, body, row.deadline_s))
        except ToolError as error:
            result = error
        except Exception:  # too little memory for the answer, for one; the action may have been executed
            log.exception("%s: the answer cannot be read", row.tool.name)
            result = BackendBroken("The answer cannot be read here; the server's log has the details")
        return self._with_notice(row.tool.name, result) if row.lane == INPUT else Outcome(result)

    def _with_notice(self, tool: str, result: Content | ToolError) -> Outcome:
        """Return the outcome of an action, which tells the undelivered ones and is kept with them if it gets lost."""
        finished_at = self._clock()  # a reader may stall for long before it is given up
        notice = self._undelivered.take()
        summary = (
            "finished OK" if isinstance(result, Content) else SUMMARIES.get(result.delivery, "ended with an error")
        )
        own = (UndeliveredOutcome(tool, summary, finished_at),) if summary else ()
        on_delivered = functools.partial(self._undelivered.keep, (*notice.outcomes, *own))
        if not notice.text:
            return Outcome(result, on_delivered)
        if isinstance(result, ToolError):
            result.text = f"{notice.text}\n{result.text}"
            return Outcome(result, on_delivered)
        return Outcome(replace(result, blocks=(Text(notice.text), *result.blocks)), on_delivered)


# --- the support bundle ----------------------------------------------------------------------


def _bundle(row: BoardTool, backend: Backend, slot: Slot, limit: int) -> Content:
    with contextlib.ExitStack() as undo:
        undo.callback(slot.release)
        source = backend.stream(row.path, row.deadline_s, BUNDLE_TOTAL_S, limit)
        undo.callback(source.close)
        begun = source.begin()
        # What it is shows in its bytes: an error page under HTTP 200 is not passed off as an archive.
        if begun.status != 200 or not begun.body.startswith(GZIP):
            return row.read(begun)
        undo.pop_all()
    name = time.strftime("%Y%m%dT%H%M%SZ.tar.gz", time.gmtime())
    size = "size not announced" if source.length is None else f"{source.length} bytes"
    note = f"support bundle {name}, {size}, application/gzip: prompts and logs as they are, nothing removed"
    blob = Blob(f"mcpboard://support-bundle/{name}", "application/gzip", SlotHoldingSource(source, slot))
    return Content((Text(note), blob))


class SlotHoldingSource:
    """A source that keeps its slot of the lane until it is closed, read or not."""

    def __init__(self, source: ByteSource, slot: Slot) -> None:
        self.length = source.length
        self._source = source
        self._slot = slot

    def __iter__(self) -> Iterator[bytes]:
        return iter(self._source)

    def close(self) -> None:
        try:
            self._source.close()
        finally:
            self._slot.release()
