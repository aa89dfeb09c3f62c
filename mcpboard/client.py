"""An MCP client: HTTP around `protocol.dialogue`, for one server, within limits of time and size.

Each request has a connection of its own, because a kept one may have died unnoticed, and then
nobody could tell whether the phone was touched; the limit of a call reaches every single read.
"""

from __future__ import annotations

import http.client
import socket
import ssl
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING, Any, TypeVar, cast
from urllib.parse import SplitResult, urlsplit

from mcpboard import __version__, errand
from mcpboard.deadline import Deadline, DeadlineSocket, Timed, connect
from mcpboard.errand import Fault
from mcpboard.errors import (
    NOT_SENT,
    UNKNOWN,
    ClientError,
    ConfigError,
    NotMcp,
    PeerBroken,
    PeerTimeout,
    PeerUnreachable,
)
from mcpboard.protocol import dialogue
from mcpboard.protocol.answers import Answer, Attachment, CallResult, Picture
from mcpboard.protocol.dialogue import Ask, Dialogue, Talk
from mcpboard.protocol.sieve import Sieve

if TYPE_CHECKING:
    import requests

__all__ = ["Attachment", "CallResult", "Client", "Picture", "Progress"]

CONNECT_SECONDS = 5.0  # for each address of the server; a board at the end of a cable answers in milliseconds
TIMEOUT_SECONDS = 320.0  # the longest tool of a board may take 310 s and then says so itself
GOODBYE_SECONDS = 2.0  # ending a session is a courtesy, nobody should have to wait for it
PIECE = 64 << 10  # bytes read at a time, what a Sieve takes

Progress = Callable[[int, "int | None"], None]  # bytes so far, bytes in all when the server says so
T = TypeVar("T")

_FATES = {
    NOT_SENT: "it had not been sent whole, so nothing was done and it is safe to try again",
    UNKNOWN: "it had been sent, so it may have been carried out: look before repeating it",
}


class Client:
    """Talks MCP with the server at `url`, in the newest revision that both speak; each call is made once.

    `url` is http or https; without a path `/mcp` is meant. `token` is sent as a bearer token,
    `headers` with every request. `timeout` is the limit in seconds for one method of this class,
    from its start to the last byte, unless the method is given its own; only a system that looks
    up a host's name may exceed it. May be shared between threads. Raises ConfigError for a URL,
    token or header that cannot be used; methods raise ClientError.
    """

    def __init__(
        self,
        url: str,
        token: str | None = None,
        headers: Iterable[tuple[str, str]] = (),
        timeout: float = TIMEOUT_SECONDS,
    ) -> None:
        self._parts = _checked_url(url)
        self._headers = {**errand.HEADERS, "User-Agent": f"mcpboard/{__version__}"}
        self._headers |= dict(_checked_header(name, value) for name, value in headers)
        if token is not None:
            self._headers |= dict([_checked_header("Authorization", f"Bearer {token}")])
        self._timeout = timeout
        self._dialogue = Dialogue({"name": "mcpboard", "version": __version__})
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

    def _talk(self, talk: Talk[T], limit: Deadline, progress: Progress | None = None) -> T:
        return dialogue.run(talk, lambda ask: self._exchange(ask, limit, progress))

    def _exchange(self, ask: Ask, limit: Deadline, progress: Progress | None) -> Answer:
        sock = self._connected(limit)
        try:
            headers = self._headers | dict(ask.headers)
            with _translated(sock, "the connection broke"):
                response = errand.send(sock, ask.method, self._parts.geturl(), ask.body, headers)
            with closing(response), _translated(sock, "the answer broke off"):
                return _answer(response, progress)
        finally:
            sock.hang_up()

    def _connected(self, limit: Deadline) -> Timed:
        host, port = str(self._parts.hostname), self._parts.port or _PORTS[self._parts.scheme]
        try:
            found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
            sock = connect([str(entry[4][0]) for entry in found], port, limit, CONNECT_SECONDS)
            return _over_tls(sock, host) if self._parts.scheme == "https" else sock
        except (OSError, UnicodeError) as error:  # a name can be too odd to be looked up
            raise PeerUnreachable(f"no connection could be made ({error}); {_cure(error)}; nothing was sent") from error


_PORTS = {"http": 80, "https": 443}


class _TlsSocket(Timed, ssl.SSLSocket):
    """A TLS connection within a deadline."""


def _over_tls(sock: DeadlineSocket, host: str) -> _TlsSocket:
    context = ssl.create_default_context()
    context.sslsocket_class = _TlsSocket
    with closing(sock):  # what is wrapped is a new socket on the same connection
        secure = context.wrap_socket(sock, server_hostname=host, do_handshake_on_connect=False)
    secure = cast(_TlsSocket, secure)
    try:
        secure.deadline = sock.deadline
        secure.settimeout(min(CONNECT_SECONDS, sock.deadline.remaining()))
        secure.do_handshake()
    except BaseException:
        secure.close()
        raise
    return secure


# --- what the caller gives ---------------------------------------------------------------------


def _checked_url(url: str) -> SplitResult:
    """The parts of `url`, with a path; ConfigError says what is wrong with it."""
    if not url.isascii() or not url.isprintable() or " " in url:
        raise ConfigError("a URL has visible ASCII characters alone")
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError as error:
        raise ConfigError(f"that is no URL: {error}") from None
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ConfigError(f"{url}: a URL such as http://192.168.42.1:8080/mcp is expected")
    if parts.username is not None:
        raise ConfigError("a URL with a name or password in it ends up in logs; give a token instead")
    return parts._replace(path="/mcp" if parts.path in ("", "/") else parts.path, fragment="")


def _checked_header(name: str, value: str) -> tuple[str, str]:
    """A header that http.client will send as it is; the value itself is never in a message."""
    if not name.isascii() or not name.replace("-", "").replace("_", "").isalnum():
        raise ConfigError("a header's name is letters, digits and hyphens")
    if not value.isascii() or not value.isprintable():
        raise ConfigError(f"the value of the header {name} must be one line of ASCII characters")
    return name, value


# --- what comes back -----------------------------------------------------------------------------


def _answer(response: requests.Response, progress: Progress | None) -> Answer:
    if response.headers.get("Content-Encoding", "identity").lower() != "identity":
        raise PeerBroken("the answer is compressed, though that was not asked for; a proxy in between may do this")
    sieve, total, received = Sieve(), response.raw.length_remaining, 0
    for piece in iter(lambda: response.raw.read(PIECE, decode_content=False), b""):
        sieve.feed(piece)
        received += len(piece)
        if progress is not None:
            progress(received, total)
    if total not in (None, received):
        raise PeerBroken(f"the answer broke off after {received} of {total} bytes; {_FATES[UNKNOWN]}")
    fields = {name.lower(): value for name, value in response.headers.items()}
    return Answer(response.status_code, fields, sieve.text, sieve.blobs)


@contextmanager
def _translated(sock: Timed, broken: str) -> Iterator[None]:
    """No error of requests, urllib3, http.client or the socket gets out; ours and bugs pass."""
    try:
        yield
    except Exception as error:
        fault = errand.fault_of(type(error))
        if fault is None:
            raise
        delivery = UNKNOWN if sock.handed_over else NOT_SENT
        kind, words = _told(error, fault, sock.deadline.seconds) or (PeerBroken, f"{broken} ({type(error).__name__})")
        raise kind(f"{words}; {_FATES[delivery]}", delivery=delivery) from error


def _told(error: Exception, fault: Fault, seconds: float) -> tuple[type[ClientError], str] | None:
    if fault is Fault.TIMEOUT:
        return PeerTimeout, f"no whole answer within {seconds:g} s"
    if isinstance(error, http.client.RemoteDisconnected):  # a BadStatusLine as well, but of another meaning
        return PeerBroken, "the server hung up without an answer"
    if isinstance(error, http.client.BadStatusLine):
        return NotMcp, "what answers there does not speak HTTP; check the port"
    return None


def _cure(error: Exception) -> str:
    if isinstance(error, ssl.SSLError):
        return "boards speak http, not https, unless something in front of them does"
    if isinstance(error, ConnectionRefusedError):
        return "nothing listens there: is the server running, and is the port right?"
    if isinstance(error, (socket.gaierror, UnicodeError)):
        return "the name is not known here: use the IP address"
    return "is the device on, its cable in, and its network up?"
