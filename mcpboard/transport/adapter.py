"""Requests by `requests`, over connections with a total deadline: the only module that names it."""

# `send` is that of requests' own HTTPAdapter. What differs lies below it: a connection for each request,
# opened by the caller's function, which ends every read and write at one deadline. Imported on first use.

from __future__ import annotations

import contextlib
import http.client
from collections.abc import Callable, Iterator
from functools import lru_cache, partial
from http.cookiejar import DefaultCookiePolicy
from typing import Any
from urllib.parse import urlsplit

import requests
from requests.adapters import HTTPAdapter
from requests.structures import CaseInsensitiveDict
from urllib3.connection import HTTPConnection
from urllib3.connectionpool import HTTPConnectionPool
from urllib3.exceptions import NewConnectionError
from urllib3.util import parse_url

from mcpboard.transport.deadline import Deadline, DeadlineMixin, TotalTimeout

INTERIM_LIMIT = 64  # responses of status 1xx before the real one: one every 5 s of the longest tool

Connect = Callable[[str, int, Deadline], DeadlineMixin]  # host, port -> a connected socket; raises OSError


class TooManyInterimResponses(http.client.HTTPException):
    """The server announces a response for ever and gives none."""


class UnclearFraming(http.client.HTTPException):
    """Nobody can tell where the body ends (RFC 9112, 6.3)."""


class StrictResponse(http.client.HTTPResponse):
    """Reads past interim responses, and refuses a body whose end http.client would guess."""

    def begin(self) -> None:
        """Read the head; raises UnclearFraming and whatever the parent raises."""
        super().begin()
        fields: dict[str, list[str]] = {}
        for name, value in self.headers.items():
            fields.setdefault(name.lower(), []).append(value)
        codings = ",".join(fields.get("transfer-encoding", ())).lower().strip()
        if codings and self.version == 10:
            raise UnclearFraming("the answer is HTTP/1.0 and comes in a transfer coding")
        if codings not in (("chunked",) if self.chunked else ("", "identity")):
            raise UnclearFraming("the answer comes in a transfer coding that was not asked for")
        lengths = {length.strip() for length in fields.get("content-length", ())}
        if len(lengths) > 1 or (lengths and self.length is None and not self.chunked):
            raise UnclearFraming("the answer announces several lengths, or one that is no number")
        # A value may be folded over several lines, which no one may write any more (RFC 9112, 5.2). What is no header
        # the parent leaves out, and urllib3 would log.
        if self.headers.defects or any("\n" in value for values in fields.values() for value in values):
            self.headers = self.msg = http.client.HTTPMessage()
            for name, values in fields.items():
                for value in values:
                    self.headers[name] = " ".join(line.strip() for line in value.splitlines()).strip()

    def _read_status(self) -> tuple[str, int, str]:
        # http.client itself reads past 100 only, takes 103 for the response, and counts neither.
        for _ in range(INTERIM_LIMIT + 1):
            line: tuple[str, int, str] = super()._read_status()  # type: ignore[misc]
            if line[1] >= http.HTTPStatus.OK:
                return line
            http.client.parse_headers(self.fp)
        raise TooManyInterimResponses

    # For -1 bytes http.client would read all there is, past every limit.
    def _read_next_chunk_size(self) -> int:
        size: int = super()._read_next_chunk_size()  # type: ignore[misc]
        if size < 0:
            raise ValueError  # as for what is no number
        return size


class DirectSession(requests.Session):
    """A session without proxies, netrc, cookies, redirects or second tries, whose connections `connect` opens.

    Give every request a `timeout`: seconds from connecting to the last byte of the body, or a TotalTimeout.
    """

    def __init__(self, connect: Connect) -> None:
        super().__init__()
        self.trust_env = False
        self.cookies.set_policy(DefaultCookiePolicy(allowed_domains=()))  # keeps none
        # A kept connection may die between two requests, and then who knows. http.client adds
        # `Accept-Encoding: identity`, which is right for links that are short, or slow to compress for.
        self.headers = CaseInsensitiveDict({"Connection": "close", "User-Agent": "mcpboard"})
        self._without_body = lru_cache(maxsize=64)(self._prepare_without_body)  # a board asks for a dozen
        adapter = DeadlineAdapter(connect)
        self.mount("http://", adapter)
        self.mount("https://", adapter)

    def prepare_request(self, request: requests.Request) -> requests.PreparedRequest:
        """Return what the parent would of a request without parameters, files and cookies.

        To merge and check URL and headers is a third of what a small call costs, so it is done once for each.
        """
        known = self._without_body(request.method, request.url, *request.headers.items())
        prepared = requests.PreparedRequest()
        vars(prepared).update(vars(known), headers=known.headers.copy())
        prepared.prepare_body(request.data, None, request.json)
        return prepared

    def _prepare_without_body(self, method: str, url: str, *headers: tuple[str, str]) -> requests.PreparedRequest:
        return super().prepare_request(requests.Request(method, url, dict(headers)))

    def merge_environment_settings(self, url: Any, proxies: Any, stream: Any, verify: Any, cert: Any) -> Any:
        """Return the settings of a request: those of the environment count for none."""
        return {"proxies": {}, "stream": stream, "verify": True, "cert": None}

    def resolve_redirects(self, *_: Any, **__: Any) -> Iterator[Any]:
        """Follow none: even with `allow_redirects` off, a target would make requests read the body, unlimited."""
        return iter(())


class DeadlineAdapter(HTTPAdapter):
    """An HTTPAdapter that never tries twice, on connections of ours."""

    def __init__(self, connect: Connect) -> None:
        super().__init__(max_retries=0)
        self._connect = connect
        self._pools: dict[tuple[str, str], HTTPConnectionPool] = {}  # as many as servers: one or two

    def get_connection_with_tls_context(self, request: Any, verify: Any, proxies: Any = None, cert: Any = None) -> Any:
        """Return what makes the connections to the server of `request`; `connect` speaks TLS where that is wanted."""
        return self.get_connection(request.url)

    def get_connection(self, url: Any, proxies: Any = None) -> Any:
        """Return the same for `url`: requests asks so before 2.32."""
        parts = urlsplit(url)
        server = parts.scheme, parts.netloc
        if server not in self._pools:
            connection = DeadlineConnection if parts.scheme == "http" else TlsConnection
            host = str(parse_url(url).host)  # with brackets, and the zone (fe80::1%usb0) no longer quoted
            # Given, or http.client would look for a port behind the last colon of such an address.
            port = parts.port or connection.default_port
            opened = partial(connection, partial(self._connect, host.strip("[]"), port))
            self._pools[server] = UnpooledConnections(opened, host, port)
        return self._pools[server]

    def cert_verify(self, *_: Any) -> None:
        """Do nothing: `connect` checks certificates, by the system's store; the parent would look for its own."""

    def request_url(self, request: Any, proxies: Any) -> str:
        """Return the target as it stands in the request line: no proxy asks for the whole URL."""
        return str(request.path_url)


class UnpooledConnections(HTTPConnectionPool):
    """A pool that keeps nothing: a server that does not close takes no second request on the same connection."""

    def __init__(self, connection: Callable[..., DeadlineConnection], host: str, port: int) -> None:
        super().__init__(host, port)
        self._connection = connection

    def _get_conn(self, timeout: float | None = None) -> Any:
        return self._connection(self.host, self.port)

    def _put_conn(self, conn: Any) -> None:
        if conn is not None:
            conn.close()


class DeadlineConnection(HTTPConnection):
    """One request and its response within the deadline of its timeout; head and body leave in one write."""

    response_class = StrictResponse

    def __init__(self, open_socket: Callable[[Deadline], DeadlineMixin], host: str, port: int) -> None:
        super().__init__(host, port)
        self._open_socket = open_socket
        self._written: list[bytes] = []

    def connect(self) -> None:
        """Open a socket and leave it in the timeout, for whoever asks how far the request has gone."""
        timeout = self.timeout
        if not isinstance(timeout, TotalTimeout):
            assert timeout is not None, "every request needs a timeout"
            timeout = TotalTimeout(Deadline(timeout))
        timeout.is_begun = True
        try:
            timeout.sock = self._open_socket(timeout.deadline)
        except (OSError, UnicodeError) as error:  # a name can be too odd to be looked up
            raise NewConnectionError(self, str(error)) from error
        self.sock = timeout.sock
        timeout.on_connect(timeout.sock)

    def request(self, *args: Any, **kwargs: Any) -> None:
        """Send one request."""
        super().request(*args, **kwargs)
        # Joined and let go of, or the wait for the response would hold the body twice.
        request, self._written = b"".join(self._written), []
        self.connect()
        # A server may respond early and close, for example with 503; then its response counts.
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            self.sock.sendall(request)

    def send(self, data: Any) -> None:
        """Collect what the parent would send."""
        self._written.append(data)

    def getresponse(self) -> Any:
        """As the parent does, without cookies; that a body falls short is told by those who read it, in their words."""
        response: Any = super().getresponse()
        response.enforce_content_length = False
        response._original_response = None  # in which requests looks for cookies, twice
        return response


class TlsConnection(DeadlineConnection):
    """The same over sockets that are encrypted already."""

    default_port = 443  # type: ignore[misc]
