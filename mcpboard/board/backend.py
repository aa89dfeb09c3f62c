"""The two loopback APIs as backends: one fresh connection a request, one deadline, no second try."""

# The door where foreign exceptions stop: those of requests, urllib3, http.client and the socket
# become BackendUnreachable, BackendTimeout or BackendBroken, whose texts name the backend, its
# setting and the seconds, never a body.

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

from mcpboard.errors import NOT_SENT, UNKNOWN, BackendBroken, BackendTimeout, BackendUnreachable, ToolError
from mcpboard.protocol.limits import QUOTED_BYTES, RESPONSE_LIMIT
from mcpboard.transport import FailureKind, open_session, translate_errors
from mcpboard.transport.deadline import Clock, Deadline, TotalTimeout, connect

if TYPE_CHECKING:
    import requests

    from mcpboard.transport.adapter import DirectSession

JSON = {"Content-Type": "application/json"}
# Bytes read at a time: a multiple of 3, so that a whole block is whole base64, and as many as a piece of a reply has,
# which is then not copied. Twice as many save time, and bring a bundle near the megabyte of memory that it may cost.
BLOCK = 48 * 1024

# Backend -> what a person calls it, and the setting that says where it is.
BACKENDS = {"agent": ("the Agent", "agent_base_url"), "config_web": ("Config Web", "mcp_config_web_base_url")}

# Resolved here, not by the system: IPv4 first, where both backends listen; no name service to
# wait for, and no way off this machine.
ADDRESSES = {"localhost": ("127.0.0.1", "::1")}


@dataclass
class BackendResponse:
    """The response of a backend, whatever its status, redirects too; `content_type` is "" when not sent."""

    status: int
    content_type: str
    body: bytes

    def take_body(self) -> bytes:
        """Return the body and keep what an error quotes of it: a picture is held once less while it is read."""
        body, self.body = self.body, self.body[:QUOTED_BYTES]
        return body


class RequestContext(NamedTuple):
    """One request under way: to which backend, what it is ("GET /health"), and within which timeout.

    A body has `limit` bytes at the most; `limit_note` names the setting that says so.
    """

    backend: Backend
    request: str
    timeout: TotalTimeout
    limit: int
    limit_note: str = ""

    def translated(self) -> AbstractContextManager[None]:
        """Return a block that lets foreign errors out as ToolErrors."""

        def translate(error: BaseException, failure: FailureKind) -> ToolError:
            deadline = self.timeout.deadline
            if failure is FailureKind.UNREACHABLE:
                return self.backend.unreachable(error, self.request, deadline.waited())
            if failure is FailureKind.TIMEOUT:
                return self.failed(BackendTimeout, f"did not finish {self.request} within {deadline.seconds:g} s")
            # The error's name only, since its text may quote anything.
            after = f"after {deadline.waited():.1f} s ({type(error).__name__})"
            return self.failed(BackendBroken, f"broke off {self.request} {after}")

        return translate_errors(translate)

    def unusable(self, reason: str) -> ToolError:
        """Return the error to raise for a response that came but cannot be used."""
        return self.failed(BackendBroken, f"answered {self.request} badly: {reason}")

    def failed(self, error_type: type[ToolError], what: str) -> ToolError:
        """Return the error to raise: what the backend did wrong, and how far the request got."""
        self.backend.record(ok=False)
        message = f"{self.backend.title} ({self.backend.setting}) {what}"
        if self.timeout.handed_over:
            return error_type(f"{message}.", delivery=UNKNOWN)
        return error_type(f"{message}, before the request had gone out whole.", delivery=NOT_SENT)


class BodyStream:
    """A body that is arriving, in blocks of at most BLOCK bytes; iterated once, closed always.

    Ends only when the body was whole. Raises BackendTimeout or BackendBroken when the source dies,
    falls short of its announced length, passes its limit or its time; what came is then worthless.
    """

    def __init__(self, context: RequestContext, response: requests.Response) -> None:
        self.context = context
        self.status = response.status_code
        self.content_type = response.headers.get("Content-Type", "")
        self.length: int | None = response.raw.length_remaining  # None when chunked or not announced
        self.on_close: Callable[[], None] = lambda: None  # called after each `close`
        self._response = response
        self._first = b""
        self._arrived = 0
        self._over = False
        self._closed = False

    def __iter__(self) -> Iterator[bytes]:
        return self

    def __next__(self) -> bytes:
        block, self._first = self._first or self._block(), b""
        if not block:
            raise StopIteration
        return block

    def whole(self) -> bytes:
        """Return all of the body; read in one piece where its length is known, because joining would copy it."""
        return self._block(self.length) if self.length else b"".join(self)

    def close(self) -> None:
        """Let go of the connection; more than once is fine."""
        self._closed = True
        try:
            self._response.close()
            self.context.timeout.hang_up()
        finally:
            self.on_close()

    def check_head(self) -> None:
        """Raise BackendBroken for a body that is not worth reading, and let go of the connection then."""
        label = self._response.headers.get("Content-Encoding", "identity").strip().lower()
        try:
            if label != "identity":
                raise self.context.unusable("it is compressed, though that was ruled out")
            self._check_size(self.length or 0)
        except BaseException:
            self.close()
            raise

    def begin(self) -> BackendResponse:
        """Return the response up to its first block, which is read now and still comes first in the iteration."""
        self._first = self._first or self._block()
        return BackendResponse(self.status, self.content_type, self._first)

    def _block(self, size: int = BLOCK) -> bytes:
        # Filled up, so that a body of one block is known to be whole before any of it is passed on.
        block = b""
        try:
            while not self._over and len(block) < size:
                if self._closed:
                    raise self.context.unusable("it was given up before its end")
                with self.context.translated():
                    piece: bytes = self._response.raw.read(size - len(block))
                self._arrived += len(piece)
                self._check_size(self._arrived)
                ended = not piece or self._arrived == self.length
                if ended and self.length not in (None, self._arrived):
                    raise self.context.unusable(f"it ended after {self._arrived} of {self.length} bytes")
                self._over = ended
                block += piece
        except BaseException:
            self.close()
            raise
        return block

    def _check_size(self, size: int) -> None:
        limit = self.context.limit
        if size > limit:
            raise self.context.unusable(f"its body is over the limit of {limit} bytes{self.context.limit_note}")


class Backend:
    """One loopback API: a response or a ToolError by the deadline; a request goes out once at most.

    `name` is a key of BACKENDS; `base_url` has passed config: http, a loopback host, no path.
    """

    def __init__(self, name: str, base_url: str, clock: Clock = time.monotonic) -> None:
        self.title, self.setting = BACKENDS[name]
        self._base = base_url.rstrip("/")
        self._clock = clock
        self._last: tuple[bool, float] | None = None

    def call(
        self, method: str, path: str, body: bytes | None, seconds: float, limit: int = RESPONSE_LIMIT
    ) -> BackendResponse:
        """Send one request and return its response, at most `limit` bytes of body.

        `seconds` reach from connecting to the last byte.
        """
        with contextlib.closing(self._open(method, path, body, seconds, limit)) as stream:
            return BackendResponse(stream.status, stream.content_type, stream.whole())

    def stream(self, path: str, first_byte_seconds: float, total_seconds: float, limit: int) -> BodyStream:
        """Return the body of a GET as it arrives; its first block is here already, so early failures raise at once.

        `first_byte_seconds` reach to the end of the first block (Config Web writes at once what it
        has built), `total_seconds` to the end of the last. What the status means is for the caller
        to judge, by `begin()`.
        """
        whole = Deadline(total_seconds, self._clock)
        stream = self._open("GET", path, None, first_byte_seconds, limit, " (support_bundle_max_bytes)")
        stream.begin()
        stream.context.timeout.move(whole)
        return stream

    def state(self) -> Mapping[str, object]:
        """Return how the latest request went, as `/health` says it; asks nobody and never waits."""
        if self._last is None:
            return {"state": "not asked yet"}
        ok, at = self._last
        return {"state": "ok" if ok else "failing", "seconds_ago": round(self._clock() - at, 1)}

    def record(self, ok: bool) -> None:
        """Remember how a request went: `ok` when a response came, whatever its status."""
        self._last = (ok, self._clock())

    def unreachable(self, error: BaseException, request: str, seconds: float) -> BackendUnreachable:
        """Return the error to raise when no connection could be made."""
        self.record(ok=False)
        reason = getattr(error, "strerror", None) or "no answer"
        return BackendUnreachable(
            f"{self.title} cannot be reached at {self._base} ({self.setting}) for {request}: "
            f"{reason} after {seconds:.1f} s. Call again once it runs; if it does run, correct {self.setting}."
        )

    def _open(
        self, method: str, path: str, body: bytes | None, seconds: float, limit: int, limit_note: str = ""
    ) -> BodyStream:
        timeout = TotalTimeout(Deadline(seconds, self._clock))
        context = RequestContext(self, f"{method} {path}", timeout, limit, limit_note)
        try:
            with context.translated():
                response = self._session.request(
                    method, self._base + path, data=body, headers=JSON if body else None, timeout=timeout, stream=True
                )
        except BaseException:
            timeout.hang_up()
            raise
        self.record(ok=True)
        stream = BodyStream(context, response)
        stream.check_head()
        return stream

    @cached_property
    def _session(self) -> DirectSession:
        return open_session(lambda host, port, deadline: connect(ADDRESSES.get(host, (host,)), port, deadline))
