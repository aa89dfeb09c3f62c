"""The server of a bridge: waits while the board boots, and never sends an action twice."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager

from mcpboard.client import NegotiatedSession, SharedSession
from mcpboard.errors import NOT_SENT, ClientError, PeerBroken, PeerUnreachable
from mcpboard.laptop.bridge.spool import Spool
from mcpboard.protocol import client_session
from mcpboard.protocol.client_session import HttpRequest, RequestFlow
from mcpboard.protocol.results import HttpResponse
from mcpboard.transport.deadline import Deadline
from mcpboard.transport.http import TIMEOUT_SECONDS, CancelToken, HttpClient

log = logging.getLogger(__name__)

WAIT_SECONDS = 45.0  # for a board that boots; below the minute that clients give a start
PAUSE_SECONDS = 0.5  # between two attempts to connect

# What may be asked again when its response was lost; anything else might move the phone.
READS = frozenset((
    "completion/complete", "initialize", "ping", "prompts/get", "prompts/list", "resources/list", "resources/read",
    "resources/templates/list", "server/discover", "tools/list",
))  # fmt: skip


class Upstream:
    """The server behind `client` for all requests of one bridge; may be shared between threads.

    `wait` is how many seconds a request waits for a server that is not there.
    """

    def __init__(self, client: HttpClient, wait: float = WAIT_SECONDS) -> None:
        self.session = SharedSession("mcpboard bridge")
        self.client = client
        self._wait = wait
        self._away = threading.Event()  # it is in the log already that the server is not there

    def negotiate(self, cancel: CancelToken) -> NegotiatedSession:
        """Negotiate the protocol version, unless that is done; one handshake at a time."""
        return self.session.negotiate(lambda flow: self.run(flow, cancel), TIMEOUT_SECONDS)

    def run(self, flow: RequestFlow[None], cancel: CancelToken) -> None:
        """Run a flow of `session`, none of which moves a phone."""

        def exchange(request: HttpRequest) -> HttpResponse:
            with self.send(request, cancel, repeatable=True) as spool:
                # Of a response that is too long for a handshake the beginning.
                return HttpResponse(spool.status, spool.headers, spool.beginning())

        client_session.run(flow, exchange)

    @contextmanager
    def send(self, request: HttpRequest, cancel: CancelToken, *, repeatable: bool) -> Iterator[Spool]:
        """Send `request` and give its whole response.

        While nothing was sent, or the response to a `repeatable` one was lost, it waits for the
        server to come back. Raises ClientError.
        """
        limit = Deadline(TIMEOUT_SECONDS)
        patience: Deadline | None = None
        while True:
            try:
                with self.client.exchange(request, limit, cancel) as response:
                    spool = Spool(response, request.id)
                break
            except (PeerUnreachable, PeerBroken) as error:
                if error.delivery != NOT_SENT and not repeatable:
                    raise
                patience = patience or Deadline(self._wait)
                self._pause(error, cancel, patience)
        with closing(spool):
            if self._away.is_set():
                self._away.clear()
                log.warning("%s: the server is there", self.client.url)
            yield spool

    def _pause(self, error: ClientError, cancel: CancelToken, patience: Deadline) -> None:
        """Wait a moment; raises `error` when the patience is over or the request is cancelled."""
        try:
            left = patience.remaining()
        except TimeoutError:
            raise error from None
        if not self._away.is_set():
            self._away.set()
            log.warning("%s: %s; waiting up to %.0f s for it", self.client.url, error, left)
        if cancel.wait(min(PAUSE_SECONDS, left)):
            raise error
