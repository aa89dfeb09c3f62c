"""An MCP client: the flows of `protocol.client_session` over HTTP, for one server, within limits of time and size."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

from mcpboard import __version__
from mcpboard.errors import NOT_SENT, ClientError, PeerBroken, PeerTimeout
from mcpboard.protocol import client_session
from mcpboard.protocol.blob_stream import BlobStream
from mcpboard.protocol.client_session import ClientSession, HttpRequest, RequestFlow
from mcpboard.protocol.results import Attachment, CallResult, HttpResponse, Picture, until_answer
from mcpboard.transport.deadline import Deadline
from mcpboard.transport.http import TIMEOUT_SECONDS, HttpClient

__all__ = ["Attachment", "CallResult", "Client", "Picture", "Progress"]

GOODBYE_SECONDS = 2.0  # ending a session is a courtesy, nobody should have to wait for it

Progress = Callable[[int, "int | None"], None]  # bytes so far, bytes in all when the server says so
T = TypeVar("T")


class NegotiatedSession(NamedTuple):
    """The version and session that a server and we have agreed on, at one moment."""

    version: str | None
    session_id: str | None
    headers: Mapping[str, str]  # of every request under it


class SharedSession:
    """The one session of a client with its server, for all of its threads; `flows` are those of the session.

    How a flow is sent is the caller's: `negotiate` is given a `run` for it.
    """

    def __init__(self, name: str) -> None:
        self.flows = ClientSession({"name": name, "version": __version__})
        self._negotiating = threading.Lock()

    def negotiate(self, run: Callable[[RequestFlow[None]], None], seconds: float) -> NegotiatedSession:
        """Settle on a version, unless that is done; one handshake at a time, so that threads open no two sessions."""
        if not self._negotiating.acquire(timeout=seconds):
            raise PeerTimeout(f"no answer to the handshake within {seconds:g} s", delivery=NOT_SENT)
        try:
            run(self.flows.open())
            return NegotiatedSession(self.flows.version, self.flows.session, self.flows.headers())
        except ClientError as error:
            error.delivery = NOT_SENT  # whatever became of the handshake, no tool was called
            raise
        finally:
            self._negotiating.release()

    def forget(self, negotiated: NegotiatedSession) -> None:
        """Drop what was negotiated, unless another thread has negotiated anew meanwhile."""
        with self._negotiating:
            if negotiated[:2] == (self.flows.version, self.flows.session):
                self.flows.forget()

    def close(self, http: HttpClient) -> None:
        """End the session that the server keeps for us, if it does; a server that is gone has ended it already."""
        with contextlib.suppress(ClientError):
            for farewell in self.flows.close():
                with http.exchange(farewell, Deadline(GOODBYE_SECONDS)):
                    pass  # whatever it answers


class Client:
    """Talks MCP with the server at `url`, in the newest revision that both speak; each call is made once.

    `url` is http or https; without a path `/mcp` is meant. `token` is sent as a bearer token,
    `headers` with every request. `timeout` is the limit in seconds for one method of this class,
    from its start to the last byte, unless the method is given its own; only a system that looks
    up a host's name may exceed it. `interface` is as for an HttpClient. May be shared
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
        self._http = HttpClient(url, token, headers, interface)
        self._timeout = timeout
        self._session = SharedSession("mcpboard")

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def version(self) -> str | None:
        """The negotiated protocol version; None before the first request."""
        return self._session.flows.version

    @property
    def server(self) -> Mapping[str, Any]:
        """The server's own name, title and version; empty before the first request."""
        return self._session.flows.server

    @property
    def instructions(self) -> str:
        """The server's instructions for a model, "" when there are none."""
        return self._session.flows.instructions

    def open(self, timeout: float | None = None) -> None:
        """Negotiate the protocol version now; every other method does so by itself."""
        self._run(self._session.flows.open(), timeout)

    def close(self) -> None:
        """End the session that the server keeps for us, if it does; never raises ClientError."""
        self._session.close(self._http)

    def list_tools(self, timeout: float | None = None) -> Sequence[Mapping[str, Any]]:
        """Return the tools as the server describes them: name, title, description, inputSchema and so on."""
        return self._run(self._session.flows.list_tools(), timeout)

    def call(
        self,
        name: str,
        arguments: Mapping[str, Any] | None = None,
        timeout: float | None = None,
        progress: Progress | None = None,
    ) -> CallResult:
        """Run one tool, once; a tool that fails is a CallResult too, with `is_error`.

        A ClientError's `delivery`, and the end of its message, say what is known of a call that came
        to no result. A bundle is held in memory once, decoded: about its own size while it arrives.
        """
        try:
            return self._run(self._session.flows.call(name, arguments or {}), timeout, progress)
        except ClientError as error:
            error.ends_call = True
            raise

    def ping(self, timeout: float | None = None) -> None:
        """Make the server respond."""
        self._run(self._session.flows.ping(), timeout)

    # --- flows over HTTP ---

    def _run(self, flow: RequestFlow[T], timeout: float | None, progress: Progress | None = None) -> T:
        deadline = Deadline(self._timeout if timeout is None else timeout)
        self._session.negotiate(lambda opening: self._drive(opening, deadline), deadline.seconds)
        return self._drive(flow, deadline, progress)

    def _drive(self, flow: RequestFlow[T], deadline: Deadline, progress: Progress | None = None) -> T:
        sent = False

        def send(request: HttpRequest) -> HttpResponse:
            nonlocal sent
            sent = True
            with self._http.exchange(request, deadline) as response:
                content, received = BlobStream(), 0
                for piece in until_answer(response.plain_pieces(), response.headers, request.id):
                    content.feed(piece)
                    received += len(piece)
                    if progress is not None:
                        progress(received, response.length)
                return HttpResponse(response.status, response.headers, content.text, content.blobs)

        try:
            return client_session.run(flow, send)
        except ClientError:
            raise
        except Exception as error:  # no memory for the answer, or a bug of ours
            if not sent:
                raise
            raise PeerBroken(f"the answer could not be read ({type(error).__name__})") from error
