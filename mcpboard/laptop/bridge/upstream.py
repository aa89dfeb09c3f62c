"""The bridge's way to its server: waits while the board boots, and never sends an action twice."""

from __future__ import annotations

import contextlib
import logging
import threading
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from typing import NamedTuple

from mcpboard import __version__
from mcpboard.errors import NOT_SENT, ClientError, PeerBroken, PeerTimeout, PeerUnreachable
from mcpboard.laptop.bridge.spool import Spool
from mcpboard.protocol import client_session
from mcpboard.protocol.client_session import ClientSession, HttpRequest, RequestFlow
from mcpboard.protocol.results import HttpResponse
from mcpboard.transport.deadline import Deadline
from mcpboard.transport.http import TIMEOUT_SECONDS, CancelToken, HttpClient

log = logging.getLogger(__name__)

WAIT_SECONDS = 45.0  # for a board that boots; below the minute that clients give a start
PAUSE_SECONDS = 0.5  # between two attempts to connect
GOODBYE_SECONDS = 2.0  # ending a session is a courtesy

# What may be asked again when its answer was lost; anything else might move the phone.
READS = frozenset(
    {
        "completion/complete", "initialize", "ping", "prompts/get", "prompts/list", "resources/list",
        "resources/read", "resources/templates/list", "server/discover", "tools/list",
    }
)  # fmt: skip


class NegotiatedSession(NamedTuple):
    """What the server and we have agreed on, at one moment."""

    version: str | None
    session: str | None
    headers: Mapping[str, str]  # of every request under it


class Upstream:
    """The server behind `link` for all requests of one bridge; may be shared between threads.

    `wait` is how many seconds a request waits for a server that is not there.
    """

    def __init__(self, link: HttpClient, wait: float = WAIT_SECONDS) -> None:
        self.dialogue = ClientSession({"name": "mcpboard bridge", "version": __version__})
        self._link = link
        self._wait = wait
        self._settling = threading.Lock()
        self._away = threading.Event()  # told already that the server is not there

    def settle(self, cord: CancelToken) -> NegotiatedSession:
        """Settle the era, unless it is settled; one handshake at a time."""
        if not self._settling.acquire(timeout=TIMEOUT_SECONDS):
            raise PeerTimeout(f"no answer to the handshake within {TIMEOUT_SECONDS:g} s", delivery=NOT_SENT)
        try:
            self.talk(self.dialogue.open(), cord)
            return NegotiatedSession(self.dialogue.version, self.dialogue.session, self.dialogue.headers())
        except ClientError as error:
            error.delivery = NOT_SENT  # whatever became of the handshake, no tool was called
            raise
        finally:
            self._settling.release()

    def unsettle(self, settled: NegotiatedSession) -> None:
        """Forget what was settled on, unless another thread has settled anew meanwhile."""
        with self._settling:
            if settled[:2] == (self.dialogue.version, self.dialogue.session):
                self.dialogue.forget()

    def talk(self, talk: RequestFlow[None], cord: CancelToken) -> None:
        """Carry out a talk of `dialogue`, none of which moves a phone."""
        client_session.run(talk, lambda ask: self._answer(ask, cord))

    def _answer(self, ask: HttpRequest, cord: CancelToken) -> HttpResponse:
        with self.sent(ask, cord, repeatable=True) as spool:
            return spool.answer()

    @contextmanager
    def sent(self, ask: HttpRequest, cord: CancelToken, *, repeatable: bool) -> Iterator[Spool]:
        """Send `ask` and give its whole answer.

        While nothing was sent, or the answer of a `repeatable` one was lost, it waits for the
        server to come back. Raises ClientError.
        """
        with closing(self._reached(ask, cord, repeatable)) as spool:
            yield spool

    def _reached(self, ask: HttpRequest, cord: CancelToken, repeatable: bool) -> Spool:
        limit = Deadline(TIMEOUT_SECONDS)
        patience: Deadline | None = None
        while True:
            try:
                spool = self._exchanged(ask, cord, limit)
            except (PeerUnreachable, PeerBroken) as error:
                if error.delivery != NOT_SENT and not repeatable:
                    raise
                patience = patience or Deadline(self._wait)
                self._pause(error, cord, patience)
            else:
                self._tell_back()
                return spool

    def _exchanged(self, ask: HttpRequest, cord: CancelToken, limit: Deadline) -> Spool:
        with self._link.exchange(ask, limit, cord) as arriving:
            return Spool(arriving)

    def _pause(self, error: ClientError, cord: CancelToken, patience: Deadline) -> None:
        """Wait a moment; raises `error` when the patience is over or the request is cancelled."""
        try:
            left = patience.remaining()
        except TimeoutError:
            raise error from None
        self._tell_away(error, left)
        if cord.wait(min(PAUSE_SECONDS, left)):
            raise error

    def _tell_away(self, error: ClientError, left: float) -> None:
        if not self._away.is_set():
            self._away.set()
            log.warning("%s: %s; waiting up to %.0f s for it", self._link.url, error, left)

    def _tell_back(self) -> None:
        if self._away.is_set():
            self._away.clear()
            log.warning("%s: the server is there", self._link.url)

    def close(self) -> None:
        """End the session that an older server keeps for us; never raises ClientError."""
        with contextlib.suppress(ClientError):
            client_session.run(self.dialogue.close(), self._goodbye)

    def _goodbye(self, ask: HttpRequest) -> HttpResponse:
        with self._link.exchange(ask, Deadline(GOODBYE_SECONDS)) as arriving, closing(Spool(arriving)) as spool:
            return spool.answer()


def is_over(spool: Spool, settled: NegotiatedSession) -> bool:
    """True when the server refused the request because it is another one since what was settled on.

    Nothing was carried out then: the session is unknown to it, or the revision.
    """
    return (settled.session is not None and spool.status == 404) or spool.error_code() == client_session.UNSUPPORTED
