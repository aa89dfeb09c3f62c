"""Speak HTTP with one server: a connection for each request, a deadline for every read, a token to cancel it.

Each request has a connection of its own, because a kept one may have died unnoticed, and then
nobody could tell whether the phone was touched.
"""

from __future__ import annotations

import contextlib
import errno
import http.client
import re
import socket
import ssl
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from functools import cached_property
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import SplitResult, urljoin, urlsplit

from mcpboard import __version__, errors
from mcpboard.protocol.client_session import HttpRequest
from mcpboard.text import one_line
from mcpboard.transport import FailureKind, open_session, translate_errors
from mcpboard.transport.deadline import (
    DEAD_SECONDS,
    Deadline,
    DeadlineMixin,
    DeadlineSocket,
    TotalTimeout,
    connect,
    resolve,
)

if TYPE_CHECKING:
    import requests

    from mcpboard.transport.adapter import DirectSession

CONNECT_SECONDS = 5.0  # for each address of the server; a board at the end of a cable answers in milliseconds
TIMEOUT_SECONDS = 320.0  # the longest tool of a board may take 310 s and then says so itself
PIECE = 64 << 10  # bytes read at a time, what a BlobStream takes

# What the kernel says of a connection that it has given up, as when the cable was pulled.
_DEAD_LINK = frozenset({errno.ETIMEDOUT, errno.EHOSTUNREACH, errno.ENETUNREACH, errno.ENETDOWN})

_ZONE = re.compile(r"%[^]]*")  # written %25 in a URL, or as curl takes it, too, % alone

# Headers that frame a message or name its target; ours alone to set.
_RESERVED = frozenset(
    {"accept-encoding", "connection", "content-length", "host", "te", "trailer", "transfer-encoding", "upgrade"}
)


class HttpClient:
    """HTTP to the server at `url`, http or https; without a path `/mcp` is meant."""

    # `token` is sent as a bearer token, `headers` with every request. With `interface` every
    # connection leaves by that network interface: several boards have the same address, each on a
    # cable of its own. `connect` opens the TCP connections where they are not to be direct. May be
    # shared between threads. Raises ConfigError for a URL, token or header that cannot be used.

    def __init__(
        self,
        url: str,
        token: str | None = None,
        headers: Iterable[tuple[str, str]] = (),
        interface: str | None = None,
        connect: Callable[[str, int, Deadline], DeadlineSocket] | None = None,
    ) -> None:
        parts = _checked_url(url)
        self.url = parts.geturl()  # with its path
        # The zone of an address says which cable here leads to it (fe80::1%usb0), which is nothing to the server.
        authority = _ZONE.sub("", parts.netloc)
        self.origin = f"{parts.scheme}://{authority}"  # as a browser would name it for a page of that server
        self._over_tls = parts.scheme == "https"
        self.address = (str(parts.hostname).replace("%25", "%", 1), parts.port or (443 if self._over_tls else 80))
        # Linux takes 15 bytes of nearly anything; one of digits and points alone was meant as an address.
        if interface is not None and not re.fullmatch(r"(?=.*[A-Za-z])[!-.0-9;-~]{1,15}", interface):
            raise errors.ConfigError("a network interface is expected, such as usb0, and no address or path")
        self._interface = interface
        self._connect = connect
        self._headers = {"User-Agent": f"mcpboard/{__version__}", **dict(headers)}
        if token is not None:
            self._headers["Authorization"] = f"Bearer {token}"
        for name, value in self._headers.items():
            _check_header(name, value)
        if authority != parts.netloc:
            self._headers["Host"] = authority

    @contextmanager
    def exchange(
        self, request: HttpRequest, deadline: Deadline, cancel: CancelToken | None = None, path: str | None = None
    ) -> Iterator[StreamedResponse]:
        """Send `request` and give its response once the head is here; the connection ends with the block.

        `cancel` lets another thread end it; `path` goes elsewhere than the URL says. Raises
        PeerUnreachable, PeerTimeout, PeerBroken and NotMcp, each with its `delivery`.
        """
        cancel = cancel or CancelToken()
        url = self.url if path is None else urljoin(self.url, path)
        timeout = TotalTimeout(deadline, cancel.attach)
        try:
            with _translated(timeout, "the connection broke"):
                headers = self._headers | dict(request.headers)
                response = self._session.request(
                    request.method, url, data=request.body, headers=headers, timeout=timeout, stream=True
                )
            with closing(response):
                yield StreamedResponse(response, timeout)
        finally:
            cancel.release()
            timeout.hang_up()

    @cached_property
    def _session(self) -> DirectSession:
        return open_session(self._connected)

    def _connected(self, host: str, port: int, deadline: Deadline) -> DeadlineMixin:
        if self._connect is not None:
            sock = self._connect(host, port, deadline)
        else:
            sock = connect(resolve(host, port), port, deadline, CONNECT_SECONDS, self._interface)
        sock.watch_link()
        return _wrap_tls(sock, host) if self._over_tls else sock


class _TlsSocket(DeadlineMixin, ssl.SSLSocket):
    """A TLS connection within a deadline."""


def _wrap_tls(sock: DeadlineSocket, host: str) -> _TlsSocket:
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


class StreamedResponse:
    """A response whose head is here and whose body comes in pieces."""

    def __init__(self, response: requests.Response, timeout: TotalTimeout) -> None:
        self.status: int = response.status_code
        self._raw: Any = response.raw
        self.headers = {name.lower(): value for name, value in response.headers.items()}
        if self._raw.chunked:  # then a length beside it counts for nothing, and whoever is told it would cut the body
            self.headers.pop("content-length", None)
        self.length: int | None = self._raw.length_remaining  # bytes of the body, None where the head does not say
        self._timeout = timeout

    def plain_pieces(self) -> Iterator[bytes]:
        """Yield as `pieces` does; raises PeerBroken for a body that is compressed."""
        if self.headers.get("content-encoding", "identity").lower() != "identity":
            raise errors.PeerBroken(
                "the answer is compressed, though that was not asked for; a proxy in between may do this"
            )
        return self.pieces()

    def body(self, limit: int) -> bytes:
        """Return the whole body; raises PeerBroken for one of more than `limit` bytes, or compressed."""
        content = bytearray()
        for piece in self.plain_pieces():
            content += piece
            if len(content) > limit:
                raise errors.PeerBroken(f"the answer is larger than the limit of {limit} bytes")
        return bytes(content)

    def pieces(self) -> Iterator[bytes]:
        """Yield the body as it comes, at most PIECE bytes each; PeerBroken or PeerTimeout if it is cut off."""
        received = 0
        # urllib3 before 2.2 has no `read1`, while the response of http.client that it wraps has always had one.
        read1 = getattr(self._raw, "read1", None) or self._raw._fp.read1
        with _translated(self._timeout, "the answer broke off"):
            while received != self.length and (piece := read1(PIECE)):
                received += len(piece)
                yield piece
        if self.length not in (None, received):
            raise errors.PeerBroken(f"the answer broke off after {received} of {self.length} bytes")


class CancelToken:
    """Let another thread end an exchange; one that has not begun then never sends."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._sock: socket.socket | None = None
        self._cancelled = threading.Event()

    @property
    def cancelled(self) -> bool:
        return self._cancelled.is_set()

    def wait(self, seconds: float) -> bool:
        """Wait `seconds`, or until it is cancelled; return True when it is."""
        return self._cancelled.wait(seconds)

    def attach(self, sock: DeadlineMixin) -> None:
        """Watch the connection of the moment; raises ConnectionAbortedError once cancelled."""
        with self._lock:
            if self.cancelled:
                raise ConnectionAbortedError
            self._sock = cast(socket.socket, sock)

    def release(self) -> None:
        """Let go of the connection, before it is closed and its number goes to another."""
        with self._lock:
            self._sock = None

    def cancel(self) -> None:
        """End the exchange: whoever reads or writes there wakes with an error."""
        with self._lock:
            self._cancelled.set()
            if self._sock is not None:
                with contextlib.suppress(OSError):  # it has ended by itself
                    self._sock.shutdown(socket.SHUT_RDWR)


# --- what the caller gives ---------------------------------------------------------------------


def _checked_url(url: str) -> SplitResult:
    """Return the parts of `url`, with a path; ConfigError says what is wrong with it."""
    if not url.isascii() or not url.isprintable() or " " in url:
        raise errors.ConfigError("a URL has visible ASCII characters only")
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError as error:
        raise errors.ConfigError(f"that is no URL: {error}") from None
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise errors.ConfigError(f"{url}: a URL such as http://192.168.42.1:8080/mcp is expected")
    if parts.username is not None:
        raise errors.ConfigError("a URL with a name or password in it ends up in logs; give a token instead")
    return parts._replace(path="/mcp" if parts.path in ("", "/") else parts.path, fragment="")


def _check_header(name: str, value: str) -> None:
    """Raise ConfigError unless http.client sends the header as it is; the value itself is never in a message."""
    if not name.isascii() or not name.replace("-", "").replace("_", "").isalnum():
        raise errors.ConfigError("a header's name is letters, digits and hyphens")
    if name.lower() in _RESERVED:
        raise errors.ConfigError(f"the header {name} belongs to the connection; leave it out")
    if not value.isascii() or not value.isprintable():
        raise errors.ConfigError(f"the value of the header {name} must be one line of ASCII characters")


# --- errors of others ------------------------------------------------------------------------


def _translated(timeout: TotalTimeout, broken: str) -> AbstractContextManager[None]:
    """Raise a ClientError for each error in the block; `broken` is its message where no other is known."""

    def client_error(error: BaseException, failure: FailureKind) -> errors.ClientError:
        if failure is FailureKind.UNREACHABLE:
            return _unreachable(error)
        error_type: type[errors.ClientError]
        if isinstance(error, OSError) and error.errno in _DEAD_LINK:
            silent = f"the other side has been silent for {DEAD_SECONDS} s"
            error_type, message = errors.PeerBroken, f"{silent}: is its cable in?"
        elif failure is FailureKind.TIMEOUT:
            error_type, message = errors.PeerTimeout, f"no whole answer within {timeout.deadline.seconds:g} s"
        elif isinstance(error, http.client.RemoteDisconnected):  # a BadStatusLine as well, but of another meaning
            error_type, message = errors.PeerBroken, "the server hung up without an answer"
        elif isinstance(error, http.client.BadStatusLine):
            error_type, message = errors.NotMcp, "what answers there does not speak HTTP; check the port"
        else:
            error_type, message = errors.PeerBroken, f"{broken} ({type(error).__name__})"
        return error_type(message, delivery=errors.UNKNOWN if timeout.handed_over else errors.NOT_SENT)

    return translate_errors(client_error)


def _unreachable(error: BaseException) -> errors.PeerUnreachable:
    """Return the error to raise when no connection could be made, with what to do about it."""
    if isinstance(error, ssl.SSLError):
        remedy = "boards speak http, not https, unless something in front of them does"
    elif isinstance(error, ConnectionRefusedError):
        remedy = "nothing listens there: is the server running, and is the port right?"
    elif isinstance(error, (socket.gaierror, UnicodeError)):
        remedy = "the name is not known here: use the IP address"
    else:
        remedy = "is the device on, its cable in, and its network up?"
    return errors.PeerUnreachable(f"no connection could be made ({one_line(str(error))}); {remedy}")
