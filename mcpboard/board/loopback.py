"""The two loopback APIs as backends: one fresh connection a request, one deadline, no second try.

The only board module that names requests, and the door where foreign exceptions stop: those of
requests, urllib3, http.client and the socket become BackendUnreachable, BackendTimeout or
BackendBroken, whose texts name the backend, its setting and the seconds, never a body.
(contracts: agent-api, decisions 7, 8, 11, 12, 14, 17, 18)
"""

from __future__ import annotations

import contextlib
import functools
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from http.cookiejar import DefaultCookiePolicy
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import urlsplit

from mcpboard.board.arrival import Answer, BodyStream, Ceiling, Trip
from mcpboard.board.deadline import Clock, Deadline, DeadlineSocket, connect
from mcpboard.errors import BackendBroken, BackendTimeout, BackendUnreachable, ToolError

if TYPE_CHECKING:
    import requests

ANSWER_LIMIT = 4 * 1024 * 1024  # bytes, decision 19: some twenty screenshots; a 128 MB board holds no more

# Backend -> what a person calls it, and the setting that says where it is.
BACKENDS = {"agent": ("the Agent", "agent_base_url"), "config_web": ("Config Web", "mcp_config_web_base_url")}

# Resolved here, not by the system: IPv4 first, where both backends listen; no name service to
# wait for, and no way off this machine.
ADDRESSES = {"localhost": ("127.0.0.1", "::1")}

HEADERS = {
    "User-Agent": "mcpboard",
    "Connection": "close",  # a kept connection may die between two requests, and then who knows
    "Accept-Encoding": "identity",  # loopback gains nothing by gzip, the board's only core loses
}

# Foreign error -> ours; of the names in an error's ancestry the most specific counts. Names,
# because requests is not imported before the first request.
KINDS: dict[str, type[ToolError]] = {
    "requests.exceptions.ConnectTimeout": BackendUnreachable,
    "requests.exceptions.Timeout": BackendTimeout,
    "requests.exceptions.RequestException": BackendBroken,
    "urllib3.exceptions.ConnectTimeoutError": BackendUnreachable,
    "urllib3.exceptions.TimeoutError": BackendTimeout,
    "urllib3.exceptions.ProxySchemeUnsupported": BackendBroken,  # a ValueError, outside their own tree
    "urllib3.exceptions.HTTPError": BackendBroken,
    "http.client.HTTPException": BackendBroken,
    "builtins.TimeoutError": BackendTimeout,
    "builtins.OSError": BackendBroken,
}


@dataclass(frozen=True)
class Seen:
    """How the latest request went and how long ago: `ok` when an answer came, whatever its status."""

    ok: bool
    seconds_ago: float


class Backend:
    """One loopback API: an answer or a ToolError by the deadline; a request goes out once at most.

    `name` is a key of BACKENDS; `base_url` has passed config: http, a loopback host, no path.
    """

    def __init__(self, name: str, base_url: str, clock: Clock = time.monotonic) -> None:
        self.title, self.setting = BACKENDS[name]
        self._base = base_url.rstrip("/")
        parts = urlsplit(base_url)
        self._addresses = ADDRESSES.get(parts.hostname or "", (parts.hostname or "",))
        self._port = parts.port or 80
        self._clock = clock
        self._noted: tuple[bool, float] | None = None

    def call(self, method: str, path: str, body: bytes | None, seconds: float, limit: int = ANSWER_LIMIT) -> Answer:
        """The answer to one request: whole, at most `limit` bytes, within `seconds` from connecting to last byte."""
        with contextlib.closing(self._open(method, path, body, seconds, Ceiling(limit))) as stream:
            return Answer(stream.status, stream.content_type, b"".join(stream))

    def stream(self, path: str, first_byte_seconds: float, total_seconds: float, limit: int) -> BodyStream:
        """The body of a GET as it arrives; its first block is here already, so early failures raise at once.

        `first_byte_seconds` reach to the end of the first block (Config Web writes at once what it
        has built), `total_seconds` to the end of the last. What the status means is for the caller
        to judge, by `begin()`.
        """
        whole = Deadline(total_seconds, self._clock)
        stream = self._open("GET", path, None, first_byte_seconds, Ceiling(limit, " (support_bundle_max_bytes)"))
        with contextlib.ExitStack() as undo:
            undo.callback(stream.close)
            stream.begin()
            stream.trip.sock.deadline = whole
            undo.pop_all()
        return stream

    @property
    def last_seen(self) -> Seen | None:
        """How the latest request went, None before the first; asks nobody and never waits."""
        noted = self._noted
        return noted and Seen(noted[0], self._clock() - noted[1])

    def note(self, ok: bool) -> None:
        """Remember how a request went."""
        self._noted = (ok, self._clock())

    def _open(self, method: str, path: str, body: bytes | None, seconds: float, ceiling: Ceiling) -> BodyStream:
        errand = f"{method} {path}"
        with contextlib.ExitStack() as undo:
            sock = self._connected(errand, Deadline(seconds, self._clock))
            undo.callback(sock.hang_up)
            trip = Trip(self, errand, sock, ceiling)
            with translated(trip):
                response = _sender()(sock, method, self._base + path, body)
            undo.callback(response.close)
            self.note(ok=True)
            stream = BodyStream(trip, response, functools.partial(_read, trip, response))
            stream.check_head()
            undo.pop_all()
        return stream

    def _connected(self, errand: str, deadline: Deadline) -> DeadlineSocket:
        try:
            return connect(self._addresses, self._port, deadline)
        except OSError as error:
            self.note(ok=False)
            raise BackendUnreachable(
                f"{self.title} cannot be reached at {self._base} ({self.setting}) for {errand}: "
                f"{error.strerror or 'no answer'} after {deadline.waited():.1f} s. "
                f"Call again once it runs; if it does run, correct {self.setting}."
            ) from error


def _read(trip: Trip, response: requests.Response, size: int) -> bytes:
    with translated(trip):
        piece: bytes = response.raw.read(size, decode_content=False)
    return piece


@contextlib.contextmanager
def translated(trip: Trip) -> Iterator[None]:
    """Lets no error of requests, urllib3, http.client or a socket out untranslated; ours and bugs pass."""
    try:
        yield
    except Exception as error:
        kind = kind_of(type(error))
        if kind is None:
            raise
        words = trip.late() if kind is BackendTimeout else trip.cut(error)
        raise trip.failed(kind, words) from error


def kind_of(error: type[BaseException]) -> type[ToolError] | None:
    """What a foreign error becomes here; None when it is none of those."""
    ancestry = (f"{ancestor.__module__}.{ancestor.__qualname__}" for ancestor in error.__mro__)
    return next((KINDS[name] for name in ancestry if name in KINDS), None)


@functools.cache
def _sender() -> Callable[[DeadlineSocket, str, str, bytes | None], requests.Response]:
    """What sends a request over a connected socket; made on the first request.

    The one place that imports requests: an idle server does without its 6 MB.
    """
    import requests
    from requests.adapters import HTTPAdapter
    from urllib3.connection import HTTPConnection

    class Errand(requests.PreparedRequest):
        """A request that brings the socket it travels on."""

        def __init__(self, sock: DeadlineSocket) -> None:
            super().__init__()
            self.sock = sock

    class OwnSocket(HTTPAdapter):
        """Sends each errand over its own socket: no pool, no proxy, no retry, one deadline for everything."""

        def send(self, request: Errand, *_: Any, **__: Any) -> requests.Response:  # type: ignore[override]
            connection = HTTPConnection(urlsplit(cast(str, request.url)).netloc)
            connection.sock = request.sock
            # A backend may answer early and close, for example with 503; then its answer counts.
            with contextlib.suppress(BrokenPipeError, ConnectionResetError):
                connection.request(
                    cast(str, request.method), request.path_url, request.body, request.headers,
                    preload_content=False, decode_content=False,
                )  # fmt: skip
            return self.build_response(request, connection.getresponse())

    class Direct(requests.Session):
        """No proxy or netrc from the environment, no cookies, no redirects."""

        def __init__(self) -> None:
            super().__init__()
            self.trust_env = False
            self.cookies.set_policy(DefaultCookiePolicy(allowed_domains=()))
            self.mount("http://", OwnSocket())

        def get_redirect_target(self, resp: requests.Response) -> None:
            """Nowhere: even with `allow_redirects` off, a target would make requests read the body, unlimited."""

    session = Direct()

    def send(sock: DeadlineSocket, method: str, url: str, body: bytes | None) -> requests.Response:
        errand = Errand(sock)
        errand.prepare(method=method, url=url, headers=HEADERS, data=body)
        return session.send(errand, stream=True, allow_redirects=False)

    return send
