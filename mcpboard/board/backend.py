"""The two loopback APIs as backends: one fresh connection a request, one deadline, no second try.

The door where foreign exceptions stop: those of requests, urllib3, http.client and the socket
become BackendUnreachable, BackendTimeout or BackendBroken, whose texts name the backend, its
setting and the seconds, never a body.
(contracts: agent-api, decisions 7, 8, 11, 12, 14, 17, 18)
"""

from __future__ import annotations

import contextlib
import functools
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from mcpboard import transport
from mcpboard.board.arrival import BackendResponse, BodyStream, RequestContext, SizeLimit
from mcpboard.errors import BackendBroken, BackendTimeout, BackendUnreachable, ToolError
from mcpboard.transport import FailureKind, translate_errors
from mcpboard.transport.deadline import Clock, Deadline, DeadlineSocket, connect

if TYPE_CHECKING:
    import requests

ANSWER_LIMIT = 4 * 1024 * 1024  # bytes, decision 19: some twenty screenshots; a 128 MB board holds no more

# Backend -> what a person calls it, and the setting that says where it is.
BACKENDS = {"agent": ("the Agent", "agent_base_url"), "config_web": ("Config Web", "mcp_config_web_base_url")}

# Resolved here, not by the system: IPv4 first, where both backends listen; no name service to
# wait for, and no way off this machine.
ADDRESSES = {"localhost": ("127.0.0.1", "::1")}

KINDS: Mapping[FailureKind, type[ToolError]] = {
    FailureKind.UNREACHABLE: BackendUnreachable,
    FailureKind.TIMEOUT: BackendTimeout,
    FailureKind.BROKEN: BackendBroken,
}


@dataclass(frozen=True)
class LastRequest:
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

    def call(
        self, method: str, path: str, body: bytes | None, seconds: float, limit: int = ANSWER_LIMIT
    ) -> BackendResponse:
        """The answer to one request: whole, at most `limit` bytes, within `seconds` from connecting to last byte."""
        with contextlib.closing(self._open(method, path, body, seconds, SizeLimit(limit))) as stream:
            return BackendResponse(stream.status, stream.content_type, stream.whole())

    def stream(self, path: str, first_byte_seconds: float, total_seconds: float, limit: int) -> BodyStream:
        """The body of a GET as it arrives; its first block is here already, so early failures raise at once.

        `first_byte_seconds` reach to the end of the first block (Config Web writes at once what it
        has built), `total_seconds` to the end of the last. What the status means is for the caller
        to judge, by `begin()`.
        """
        whole = Deadline(total_seconds, self._clock)
        stream = self._open("GET", path, None, first_byte_seconds, SizeLimit(limit, " (support_bundle_max_bytes)"))
        stream.begin()
        stream.trip.sock.deadline = whole
        return stream

    @property
    def last_seen(self) -> LastRequest | None:
        """How the latest request went, None before the first; asks nobody and never waits."""
        noted = self._noted
        return noted and LastRequest(noted[0], self._clock() - noted[1])

    def note(self, ok: bool) -> None:
        """Remember how a request went."""
        self._noted = (ok, self._clock())

    def _open(self, method: str, path: str, body: bytes | None, seconds: float, ceiling: SizeLimit) -> BodyStream:
        what = f"{method} {path}"
        sock = self._connected(what, Deadline(seconds, self._clock))
        trip = RequestContext(self, what, sock, ceiling)
        try:
            with _translated(trip):
                response = transport.send(sock, method, self._base + path, body)
        except BaseException:
            sock.hang_up()
            raise
        self.note(ok=True)
        stream = BodyStream(trip, response, functools.partial(_read, trip, response))
        stream.check_head()
        return stream

    def _connected(self, what: str, deadline: Deadline) -> DeadlineSocket:
        try:
            return connect(self._addresses, self._port, deadline)
        except OSError as error:
            self.note(ok=False)
            raise BackendUnreachable(
                f"{self.title} cannot be reached at {self._base} ({self.setting}) for {what}: "
                f"{error.strerror or 'no answer'} after {deadline.waited():.1f} s. "
                f"Call again once it runs; if it does run, correct {self.setting}."
            ) from error


def _read(trip: RequestContext, response: requests.Response, size: int) -> bytes:
    with _translated(trip):
        piece: bytes = response.raw.read(size)
    return piece


def _translated(trip: RequestContext) -> translate_errors:
    def told(error: Exception, fault: FailureKind) -> ToolError:
        kind = KINDS[fault]
        return trip.failed(kind, trip.late() if kind is BackendTimeout else trip.cut(error))

    return translate_errors(told)
