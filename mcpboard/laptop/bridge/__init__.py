"""stdio <-> Streamable HTTP, for clients that only start programs.

A line that comes in is a message; each request has a thread of its own until its line goes out.
Notifications end here: the one that matters, a cancellation, ends the HTTP request it names.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Mapping
from typing import Any, BinaryIO

from mcpboard.errors import (
    DONE,
    NOT_SENT,
    ClientError,
    InternalError,
    InvalidRequest,
    MethodNotFound,
    NotMcp,
    PeerRefused,
    ProtocolError,
    Unanswered,
)
from mcpboard.laptop.bridge import stdio, translate
from mcpboard.laptop.bridge.stdio import LINE_LIMIT, LineWriter
from mcpboard.laptop.bridge.upstream import READS, NegotiatedSession, Upstream, is_over
from mcpboard.protocol import jsonrpc
from mcpboard.protocol.client_session import FINAL, HttpRequest
from mcpboard.protocol.jsonrpc import Id, Request
from mcpboard.protocol.versions import MODERN
from mcpboard.transport.deadline import Deadline
from mcpboard.transport.http import DELIVERY_TEXTS, CancelToken

log = logging.getLogger(__name__)

CALLS = 8  # tool calls under way, two more than a board takes, which then says itself that it is busy
OTHERS = 8  # other requests under way: ping and tools/list never wait behind calls
FINISH_SECONDS = 10.0  # for what is under way when standard input ends
ABANDON_SECONDS = 2.0  # for a thread to notice that its connection was ended


class PendingRequest:
    """One request under way."""

    def __init__(self, request: Request) -> None:
        self.request = request
        self.cord = CancelToken()
        self.cancelled = False  # the client does not want an answer any more

    @property
    def is_call(self) -> bool:
        return self.request.method == "tools/call"


class Bridge:
    """One client on standard input and output, one server behind `upstream`.

    `longest` is how many bytes of an answer the client takes, None for as many as there are.
    """

    def __init__(self, upstream: Upstream, output: LineWriter, longest: int | None = None) -> None:
        self._upstream = upstream
        self._output = output
        self._longest = longest
        self._client: Mapping[str, Any] = translate.BRIDGE  # who an older client says that it is
        self._lock = threading.Lock()
        self._under_way: dict[Id, PendingRequest] = {}
        self._threads: set[threading.Thread] = set()
        self._ending = False

    def run(self, source: BinaryIO) -> None:
        """Carry messages until `source` ends or nobody reads the output; then finish what is under way."""
        try:
            for line in stdio.read(source):
                if self._output.gone:
                    break
                self._take(line)
            self._join(FINISH_SECONDS)
        finally:
            self._abandon()
            self._upstream.close()

    # --- one line ---

    def _take(self, line: bytes | None) -> None:
        document = None
        try:
            if line is None:
                raise InvalidRequest(f"the message is over the limit of {LINE_LIMIT} bytes")
            document = jsonrpc.load(line)
            message = jsonrpc.parse_message(document)
            if isinstance(message, Request):
                self._start(message, line)
            elif isinstance(message, jsonrpc.Notification):
                self._notice(message.method, document)
        except ProtocolError as error:
            self._refuse(jsonrpc.readable_id(document), error)

    def _notice(self, method: str, document: Mapping[str, Any]) -> None:
        if method == "notifications/cancelled":
            self._cancel(document.get("params") or {})
        elif method == "tools/call" or method in READS:
            raise InvalidRequest(f"{method} needs an id; nothing was done")

    def _cancel(self, params: Mapping[str, Any]) -> None:
        cancelled: Any = params.get("requestId")
        if not jsonrpc.valid_id(cancelled):
            return
        with self._lock:
            pending = self._under_way.pop(cancelled, None)
        if pending is not None:
            pending.cancelled = True
            pending.cord.cancel()

    def _refuse(self, request_id: Id | None, error: ProtocolError) -> None:
        self._output.line([jsonrpc.error(error, request_id)])

    # --- one request ---

    def _start(self, request: Request, line: bytes) -> None:
        pending = PendingRequest(request)
        thread = threading.Thread(target=self._serve, args=(pending, line), name=request.method[:40], daemon=True)
        with self._lock:
            if request.id in self._under_way:
                raise InvalidRequest("a request with this id is under way; nothing was done")
            self._check_room(pending)
            self._under_way[request.id] = pending
            self._threads.add(thread)
        thread.start()

    def _check_room(self, pending: PendingRequest) -> None:
        """Raise Unanswered rather than queue: threads of cancelled requests count until they have ended."""
        alike = sum(each.is_call == pending.is_call for each in self._under_way.values())
        if alike >= (CALLS if pending.is_call else OTHERS) or len(self._threads) >= 2 * (CALLS + OTHERS):
            raise Unanswered("too many requests are under way; nothing was sent, call again in a moment", NOT_SENT)

    def _serve(self, pending: PendingRequest, line: bytes) -> None:
        try:
            self._answer(pending, line)
        except ProtocolError as error:
            self._refuse_unless_cancelled(pending, error)
        except ClientError as error:
            self._refuse_unless_cancelled(pending, self._told(error, pending.request))
        except Exception:
            log.exception("%s: internal error", ascii(pending.request.method)[:80])
            self._refuse_unless_cancelled(pending, InternalError("internal error; the bridge's log has the details"))
        finally:
            self._ended(pending)

    def _ended(self, pending: PendingRequest) -> None:
        with self._lock:
            if self._under_way.get(pending.request.id) is pending:
                del self._under_way[pending.request.id]
            self._threads.discard(threading.current_thread())

    def _refuse_unless_cancelled(self, pending: PendingRequest, error: ProtocolError) -> None:
        if not pending.cancelled:
            self._refuse(pending.request.id, error)

    def _told(self, error: ClientError, request: Request) -> ProtocolError:
        """What the client is told of a server that gave no answer."""
        if self._ending:
            return Unanswered(
                f"the bridge has ended with its standard input; {DELIVERY_TEXTS[error.delivery]}", error.delivery
            )
        if request.method == "server/discover" and _is_older(error):
            return MethodNotFound("the server does not know server/discover: initialize, as older revisions do")
        return Unanswered(error.text, error.delivery)

    def _answer(self, pending: PendingRequest, line: bytes) -> None:
        request = pending.request
        if translate.is_modern(request):
            self._pass(pending, translate.as_it_came(request, line))
        elif request.method == "initialize":
            self._initialize(pending)
        else:
            self._pass_for_older_client(pending, line)

    def _initialize(self, pending: PendingRequest) -> None:
        asked = translate.asked_version(pending.request)
        self._client = translate.client_of(pending.request)
        self._upstream.settle(pending.cord)
        self._say(pending, translate.handshake(pending.request, asked, self._upstream.dialogue))

    def _pass_for_older_client(self, pending: PendingRequest, line: bytes) -> None:
        """Send it, and once more when the server has forgotten us, for then it has done nothing."""
        settled = self._upstream.settle(pending.cord)
        if not self._sent_under(settled, pending, line):
            self._upstream.unsettle(settled)
            self._sent_under(self._upstream.settle(pending.cord), pending, line, last=True)

    def _sent_under(
        self, settled: NegotiatedSession, pending: PendingRequest, line: bytes, *, last: bool = False
    ) -> bool:
        request = pending.request
        if settled.version != MODERN:
            return self._pass(pending, HttpRequest(settled.headers, line), None if last else settled)
        if request.method == "ping":
            return self._ping(pending)
        return self._pass(pending, translate.enveloped(request, self._client), None if last else settled)

    def _ping(self, pending: PendingRequest) -> bool:
        """The modern revision has no ping, so the server is asked who it is; the answer is as bare as ever."""
        self._upstream.talk(self._upstream.dialogue.ping(), pending.cord)
        self._say(pending, jsonrpc.result(pending.request.id, b"{}"))
        return True

    def _pass(self, pending: PendingRequest, ask: HttpRequest, settled: NegotiatedSession | None = None) -> bool:
        """Send and hand on the answer; False, and nothing handed on, when it says that `settled` is over."""
        repeatable = pending.request.method in READS
        with self._upstream.sent(ask, pending.cord, repeatable=repeatable) as spool:
            if settled is not None and is_over(spool, settled):
                return False
            self._check_length(spool.size)
            message = spool.line(pending.request.id)
            if not pending.cancelled:
                self._output.line(message)
        return True

    def _check_length(self, size: int) -> None:
        """Raise Unanswered rather than send a line at which the client would end the connection."""
        if self._longest is not None and size > self._longest:
            raise Unanswered(
                f"the answer has {size} bytes, over the {self._longest} that --longest-line gives this client; "
                "it was carried out: `mcpboard call URL TOOL -o FILE` keeps one of any size", DONE,
            )  # fmt: skip

    def _say(self, pending: PendingRequest, message: bytes) -> None:
        if not pending.cancelled:
            self._output.line([message])

    # --- the end ---

    def _join(self, seconds: float) -> None:
        limit = Deadline(seconds)
        for thread in self._running():
            try:
                thread.join(limit.remaining())
            except TimeoutError:
                return

    def _abandon(self) -> None:
        """End what is still under way; each request is told so."""
        self._ending = True
        with self._lock:
            pending = list(self._under_way.values())
        for each in pending:
            each.cord.cancel()
        self._join(ABANDON_SECONDS)

    def _running(self) -> list[threading.Thread]:
        with self._lock:
            return list(self._threads)


def _is_older(error: ClientError) -> bool:
    """True when a server that gave no JSON-RPC answer to a probe may still know `initialize`."""
    return isinstance(error, (PeerRefused, NotMcp)) and error.status is not None and error.status not in FINAL
