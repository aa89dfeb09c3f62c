"""An answer on its way out: what is owed back when it is over, and who hears what became of it."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import NamedTuple

from waitress.channel import ClientDisconnected

from mcpboard.errors import McpboardError
from mcpboard.protocol.messages import Arrived, Reply
from mcpboard.serving import stream

log = logging.getLogger("mcpboard")


def on_trust() -> Arrived:
    """The receipt of a server that gives none: what it took has arrived."""
    return lambda: True


_NOTHING = ExitStack()  # owed by a reply that borrowed nothing; never pushed to


class PendingReply(NamedTuple):
    """One answer under way: what is owed back when it is over, and what to tell of it."""

    reply: Reply
    owed: ExitStack = _NOTHING  # gives back the turn, closes the sources
    note: Callable[[int, bool], None] | None = None  # writes the log line: bytes handed over, and whether all
    on_delivered: Callable[[Arrived | None], None] | None = None  # the outcome's own
    receipt: Callable[[], Arrived] = on_trust  # for what was handed over


class ReplyBody:
    """The bytes of one tool reply on their way out; what was borrowed is given back once, in close().

    A class with close() and not a generator: a generator that was never advanced would not run
    its `finally`, and the turn would be lost with the caller.
    """

    def __init__(self, exchange: PendingReply) -> None:
        self._exchange = exchange
        self._pieces = stream.pieces(exchange.reply.parts)
        self._sent = 0  # bytes
        self._whole = False
        self._closed = False

    def __iter__(self) -> Iterator[bytes]:
        return self

    def __next__(self) -> bytes:
        try:
            piece = next(self._pieces)
        except StopIteration:
            self._whole = True
            raise
        except Exception as error:
            # The head is out, so the only honest answer left is to break off: the reader then
            # knows that what it has is not the whole.
            ours = isinstance(error, McpboardError)
            log.warning("reply broken off after %d bytes: %s", self._sent, error, exc_info=not ours)
            raise ClientDisconnected from error
        self._sent += len(piece)
        return piece

    def close(self) -> None:
        """Give back turn and sources, tell the role what became of the reply, write the log line."""
        if self._closed:
            return
        self._closed = True
        exchange = self._exchange
        try:
            exchange.owed.close()
        finally:
            try:
                if exchange.on_delivered is not None:
                    exchange.on_delivered(exchange.receipt() if self._whole else None)
            finally:
                if exchange.note is not None:
                    exchange.note(self._sent, self._whole)
