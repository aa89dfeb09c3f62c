"""Run one row: a place in its lane, one request to its backend, its reader for the answer."""

from __future__ import annotations

import contextlib
import functools
import time
from collections.abc import Iterator, Mapping
from dataclasses import replace

from mcpboard.board.arrival import BodyStream
from mcpboard.board.backend import Backend
from mcpboard.board.lanes import Lanes, Slot
from mcpboard.board.tools import INPUT, BoardTool
from mcpboard.board.undelivered import Notice, UndeliveredOutcome, UndeliveredOutcomes
from mcpboard.errors import DONE, NOT_SENT, ToolError
from mcpboard.protocol.messages import Outcome, ToolCall
from mcpboard.protocol.tools import Blob, ByteSource, Content, Text
from mcpboard.transport.deadline import Clock

# Places a lane has (decision 10); together they are the turns of the server.
LANE_CAPACITY: Mapping[str, int] = {"input": 1, "observation": 2, "status": 1, "shell": 1, "support_bundle": 1}
BUNDLE_TOTAL_S = 600.0  # a bundle's reader has ten minutes in all (decision 12)
GZIP = b"\x1f\x8b"  # how every gzip file begins


class Forwarder:
    """The only caller of the backends: every call is made at most once, and never waits for another."""

    def __init__(self, lanes: Lanes, orphans: UndeliveredOutcomes, clock: Clock = time.monotonic) -> None:
        self._lanes = lanes
        self._orphans = orphans
        self._clock = clock

    def run(self, row: BoardTool, call: ToolCall, backend: Backend, bundle_limit: int) -> Outcome:
        """What became of `call`; an action's outcome begins with those that nobody heard of."""
        try:
            result: Content | ToolError = self._made(row, call, backend, bundle_limit)
        except ToolError as error:
            result = error
        if row.lane != INPUT:
            return Outcome(result)
        return self._told(row, result)

    def _made(self, row: BoardTool, call: ToolCall, backend: Backend, bundle_limit: int) -> Content:
        place = self._lanes.enter(row.lane, row.tool.name)
        if row.streams:
            return _bundle(row, backend, place, bundle_limit)
        with place:
            body = b'{"input":' + call.arguments_json + b"}" if row.method == "POST" else None
            return row.read(backend.call(row.method, row.path, body, row.deadline_s))

    def _told(self, row: BoardTool, result: Content | ToolError) -> Outcome:
        finished_at = self._clock()  # a reader may stall for long before it is given up
        telling = self._orphans.take()
        words = _orphan_words(result)
        own = (UndeliveredOutcome(row.tool.name, words, finished_at),) if words else ()
        unheard = (*telling.orphans, *own)  # should this reply get lost
        return Outcome(_begun_with(telling, result), functools.partial(self._orphans.keep, unheard))


def _begun_with(telling: Notice, result: Content | ToolError) -> Content | ToolError:
    if not telling.text:
        return result
    if isinstance(result, ToolError):
        result.text = f"{telling.text}\n{result.text}"
        return result
    return replace(result, blocks=(Text(telling.text), *result.blocks))


def _orphan_words(result: Content | ToolError) -> str:
    """What to tell of an outcome that nobody heard of; nothing of a call that did nothing."""
    if isinstance(result, Content):
        return "finished OK"
    if result.delivery == NOT_SENT:
        return ""
    return "took place, although something after it failed" if result.delivery == DONE else "ended with an error"


# --- the support bundle ----------------------------------------------------------------------


def _bundle(row: BoardTool, backend: Backend, place: Slot, limit: int) -> Content:
    with contextlib.ExitStack() as undo:
        undo.callback(place.leave)
        source = backend.stream(row.path, row.deadline_s, BUNDLE_TOTAL_S, limit)
        undo.callback(source.close)
        begun = source.begin()
        # What it is shows in its bytes: an error page under HTTP 200 is not passed off as an archive.
        if begun.status != 200 or not begun.body.startswith(GZIP):
            return row.read(begun)
        undo.pop_all()
    return _streamed(source, place)


def _streamed(source: BodyStream, place: Slot) -> Content:
    stamp = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
    name = f"{stamp}.tar.gz"
    size = "size not announced" if source.length is None else f"{source.length} bytes"
    note = f"support bundle {name}, {size}, application/gzip: prompts and logs as they are, nothing removed"
    blob = Blob(f"mcpboard://support-bundle/{name}", "application/gzip", SlotHoldingSource(source, place))
    return Content((Text(note), blob))


class SlotHoldingSource:
    """A source that keeps its place in the lane until it is closed, read or not."""

    def __init__(self, source: ByteSource, place: Slot) -> None:
        self.length = source.length
        self._source = source
        self._place = place

    def __iter__(self) -> Iterator[bytes]:
        return iter(self._source)

    def close(self) -> None:
        try:
            self._source.close()
        finally:
            self._place.leave()
