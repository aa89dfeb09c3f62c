"""What comes back from a backend: the trip of one request, and the body that arrives on it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from mcpboard.errors import NOT_SENT, UNKNOWN, BackendBroken, ToolError
from mcpboard.transport.deadline import DeadlineSocket

if TYPE_CHECKING:
    from mcpboard.board.backend import Backend

BLOCK = 48 * 1024  # bytes read at a time: a multiple of 3, so that a whole block is whole base64


class BackendResponse(NamedTuple):
    """What a backend answered: any status, redirects too; `content_type` is "" when not sent."""

    status: int
    content_type: str
    body: bytes


class SizeLimit(NamedTuple):
    """The most bytes a body may have, and a note on the setting that says so."""

    size: int
    note: str = ""


class RequestContext(NamedTuple):
    """One request under way: by whom it is answered, what it is ("GET /health"), over which socket."""

    backend: Backend
    errand: str
    sock: DeadlineSocket
    ceiling: SizeLimit

    def late(self) -> str:
        """Words for an answer that did not come, or not to its end, before the deadline."""
        return f"{self._who()} did not finish {self.errand} within {self.sock.deadline.seconds:g} s"

    def cut(self, error: BaseException) -> str:
        """Words for a connection that broke; the error's name only, since its text may quote anything."""
        waited = self.sock.deadline.waited()
        return f"{self._who()} broke off {self.errand} after {waited:.1f} s ({type(error).__name__})"

    def failed(self, kind: type[ToolError], words: str) -> ToolError:
        """The error to raise: `words`, and how far the request got."""
        self.backend.note(ok=False)
        if self.sock.handed_over:
            return kind(f"{words}.", delivery=UNKNOWN)
        return kind(f"{words}, before the request had gone out whole.", delivery=NOT_SENT)

    def misread(self, what: str) -> ToolError:
        """The error for an answer that came but cannot be used, and why."""
        return self.failed(BackendBroken, f"{self._who()} answered {self.errand} badly: {what}")

    def _who(self) -> str:
        return f"{self.backend.title} ({self.backend.setting})"


class ResponseHead(Protocol):
    """What a body stream needs of a response whose head has come; one of requests is one."""

    status_code: int
    raw: Any  # with `length`, as in http.client

    @property
    def headers(self) -> Mapping[str, str]: ...

    def close(self) -> None: ...


class BodyStream:
    """A body that is arriving, in blocks of at most 48 KiB; iterated once, closed always.

    Ends only when the body was whole. Raises BackendTimeout or BackendBroken when the source dies,
    falls short of its announced length, passes its limit or its time; what came is then worthless.
    """

    def __init__(self, trip: RequestContext, response: ResponseHead, read: Callable[[int], bytes]) -> None:
        self.trip = trip
        self.status = response.status_code
        self.content_type = response.headers.get("Content-Type", "")
        self.length: int | None = response.raw.length  # None when chunked or not announced
        self._response = response
        self._read = read  # at most so many bytes, b"" at the end; raises ToolError only
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
        """All of the body; read in one piece where its length is known, because joining would copy it."""
        return self._block(self.length) if self.length else b"".join(self)

    def close(self) -> None:
        """Let go of the connection; more than once is fine."""
        self._closed = True
        self._response.close()
        self.trip.sock.hang_up()

    def check_head(self) -> None:
        """Raise BackendBroken for a body that is not worth reading, and let go of the connection then."""
        label = self._response.headers.get("Content-Encoding", "identity").strip().lower()
        try:
            if label != "identity":
                raise self.trip.misread("it is compressed, though that was ruled out")
            self._check_size(self.length or 0)
        except BaseException:
            self.close()
            raise

    def begin(self) -> BackendResponse:
        """The answer as far as its first block, which is read now and still comes first in the iteration."""
        self._first = self._first or self._block()
        return BackendResponse(self.status, self.content_type, self._first)

    def _block(self, size: int = BLOCK) -> bytes:
        # Filled up, so that a body of one block is known to be whole before any of it is passed on.
        block = b""
        while not self._over and len(block) < size:
            block += self._piece(size - len(block))
        return block

    def _piece(self, size: int) -> bytes:
        if self._closed:
            raise self.trip.misread("it was given up before its end")
        try:
            piece = self._read(size)
            self._arrived += len(piece)
            self._check_size(self._arrived)
            ended = not piece or self._arrived == self.length
            if ended and self.length not in (None, self._arrived):
                raise self.trip.misread(f"it ended after {self._arrived} of {self.length} bytes")
            self._over = ended
        except BaseException:
            self.close()
            raise
        return piece

    def _check_size(self, size: int) -> None:
        ceiling = self.trip.ceiling
        if size > ceiling.size:
            raise self.trip.misread(f"its body is over the limit of {ceiling.size} bytes{ceiling.note}")
