"""An MCP client: `protocol.dialogue` over a `link`, for one server, within limits of time and size."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeVar

from mcpboard import __version__
from mcpboard.errors import NOT_SENT, ClientError, PeerTimeout
from mcpboard.protocol import client_session
from mcpboard.protocol.blob_stream import BlobStream
from mcpboard.protocol.client_session import ClientSession, HttpRequest, RequestFlow
from mcpboard.protocol.results import Attachment, CallResult, HttpResponse, Picture
from mcpboard.transport.deadline import Deadline
from mcpboard.transport.http import TIMEOUT_SECONDS, HttpClient, StreamedResponse

__all__ = ["Attachment", "CallResult", "Client", "Picture", "Progress"]

GOODBYE_SECONDS = 2.0  # ending a session is a courtesy, nobody should have to wait for it

Progress = Callable[[int, "int | None"], None]  # bytes so far, bytes in all when the server says so
T = TypeVar("T")


class Client:
    """Talks MCP with the server at `url`, in the newest revision that both speak; each call is made once.

    `url` is http or https; without a path `/mcp` is meant. `token` is sent as a bearer token,
    `headers` with every request. `timeout` is the limit in seconds for one method of this class,
    from its start to the last byte, unless the method is given its own; only a system that looks
    up a host's name may exceed it. `interface` is as for a Link. May be shared
    between threads. Raises ConfigError for a URL, token or header that cannot be used; methods
    raise ClientError.
    """

    def __init__(
        self,
        url: str,
        token: str | None = None,
        headers: Iterable[tuple[str, str]] = (),
        timeout: float = TIMEOUT_SECONDS,
        interface: str | None = None,
    ) -> None:
        self._link = HttpClient(url, token, headers, interface)
        self._timeout = timeout
        self._dialogue = ClientSession({"name": "mcpboard", "version": __version__})
        self._settling = threading.Lock()

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def version(self) -> str | None:
        """The protocol version that was settled on; None before the first method that talks."""
        return self._dialogue.version

    @property
    def server(self) -> Mapping[str, Any]:
        """What the server says of itself: name, title, version; empty before the first talk."""
        return self._dialogue.server

    @property
    def instructions(self) -> str:
        """The server's words for a model, "" when there are none."""
        return self._dialogue.instructions

    def open(self, timeout: float | None = None) -> None:
        """Settle the protocol version now; every other method does so by itself."""
        self._settle(self._limit(timeout))

    def close(self) -> None:
        """End the session that the server keeps for us, if it does; never raises ClientError."""
        try:
            self._talk(self._dialogue.close(), Deadline(GOODBYE_SECONDS))
        except ClientError:
            return  # a server that is gone has ended it already

    def list_tools(self, timeout: float | None = None) -> Sequence[Mapping[str, Any]]:
        """The tools as the server describes them: name, title, description, inputSchema and so on."""
        limit = self._limit(timeout)
        self._settle(limit)
        return self._talk(self._dialogue.list_tools(), limit)

    def call(
        self,
        name: str,
        arguments: Mapping[str, Any] | None = None,
        timeout: float | None = None,
        progress: Progress | None = None,
    ) -> CallResult:
        """Run one tool, once; a tool that fails is a CallResult too, with `is_error`.

        A ClientError's `delivery` says what is known of a call that came to no result. A bundle
        is held in memory once, decoded: about its own size while it arrives.
        """
        limit = self._limit(timeout)
        self._settle(limit)
        return self._talk(self._dialogue.call(name, arguments or {}), limit, progress)

    def ping(self, timeout: float | None = None) -> None:
        """Make the server answer."""
        limit = self._limit(timeout)
        self._settle(limit)
        self._talk(self._dialogue.ping(), limit)

    # --- talking ---

    def _limit(self, timeout: float | None) -> Deadline:
        return Deadline(self._timeout if timeout is None else timeout)

    def _settle(self, limit: Deadline) -> None:
        """One handshake at a time, so that threads do not open two sessions."""
        if not self._settling.acquire(timeout=limit.seconds):
            raise PeerTimeout(f"no answer to the handshake within {limit.seconds:g} s", delivery=NOT_SENT)
        try:
            self._talk(self._dialogue.open(), limit)
        except ClientError as error:
            error.delivery = NOT_SENT  # whatever became of the handshake, no tool was called
            raise
        finally:
            self._settling.release()

    def _talk(self, talk: RequestFlow[T], limit: Deadline, progress: Progress | None = None) -> T:
        return client_session.run(talk, lambda ask: self._exchange(ask, limit, progress))

    def _exchange(self, ask: HttpRequest, limit: Deadline, progress: Progress | None) -> HttpResponse:
        with self._link.exchange(ask, limit) as arriving:
            return _answer(arriving, progress)


def _answer(arriving: StreamedResponse, progress: Progress | None) -> HttpResponse:
    sieve, received = BlobStream(), 0
    for piece in arriving.plain_pieces():
        sieve.feed(piece)
        received += len(piece)
        if progress is not None:
            progress(received, arriving.length)
    return HttpResponse(arriving.status, arriving.headers, sieve.text, sieve.blobs)
