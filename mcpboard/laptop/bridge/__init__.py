"""stdio <-> Streamable HTTP, for clients that only start programs.

A line that comes in is a message; each request has a thread of its own until its line goes out.
Notifications end here: the one that matters, a cancellation, ends the HTTP request it names.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, BinaryIO

from mcpboard import errors
from mcpboard.client import NegotiatedSession
from mcpboard.laptop.bridge import stdio, translate
from mcpboard.laptop.bridge.stdio import LINE_LIMIT, LineWriter
from mcpboard.laptop.bridge.upstream import READS, Upstream
from mcpboard.laptop.surrogates import SurrogateWarning
from mcpboard.protocol import jsonrpc
from mcpboard.protocol.client_session import FINAL, HttpRequest
from mcpboard.protocol.jsonrpc import Id, Request
from mcpboard.protocol.versions import MODERN
from mcpboard.transport.deadline import Deadline
from mcpboard.transport.http import CancelToken

log = logging.getLogger(__name__)

CALLS = 8  # tool calls under way, two more than a board takes, which then says itself that it is busy
OTHERS = 8  # other requests under way: ping and tools/list never wait behind calls
FINISH_SECONDS = 10.0  # for what is under way when standard input ends
NOTHING_DONE = errors.DELIVERY_TEXTS[errors.NOT_SENT]
ABANDON_SECONDS = 2.0  # for a thread to notice that its connection was ended


@dataclass(eq=False)
class PendingRequest:
    """One request, until its thread ends."""

    request: Request
    cancel_token: CancelToken = field(default_factory=CancelToken)
    is_sent: bool = False  # from here on the server may have acted on it
    is_over: bool = False  # answered, or cancelled by the client, which takes no response any more

    @property
    def is_call(self) -> bool:
        return self.request.method == "tools/call"


class Bridge:
    """One client on standard input and output, one server behind `upstream`.

    `longest` is how many bytes of a response the client takes, None for as many as there are.
    """

    def __init__(self, upstream: Upstream, output: LineWriter, longest: int | None = None) -> None:
        self._upstream = upstream
        self._output = output
        self._longest = longest
        self._surrogates = SurrogateWarning(upstream.client.url)
        self._client: Mapping[str, Any] = translate.BRIDGE  # the name that an older client gives itself
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
                self._receive(line)
            self._join(FINISH_SECONDS)
        finally:
            # End what is still under way; each request is answered with that.
            self._ending = True
            with self._lock:
                pending = list(self._under_way.values())
            for each in pending:
                each.cancel_token.cancel()
            self._join(ABANDON_SECONDS)
            self._upstream.session.close(self._upstream.client)

    def _join(self, seconds: float) -> None:
        limit = Deadline(seconds)
        with self._lock:
            running = list(self._threads)
        for thread in running:
            try:
                thread.join(limit.remaining())
            except TimeoutError:
                return

    # --- one line ---

    def _receive(self, line: bytes | None) -> None:
        document = None
        try:
            if line is None:
                raise errors.InvalidRequest(f"the message is over the limit of {LINE_LIMIT} bytes")
            document = jsonrpc.load(line)
            message = jsonrpc.parse_message(document)
            if isinstance(message, Request):
                self._start(message, line)
            elif isinstance(message, jsonrpc.Notification):
                if message.method == "notifications/cancelled":
                    self._cancel((document.get("params") or {}).get("requestId"))
                elif message.method == "tools/call" or message.method in READS:
                    raise errors.InvalidRequest(f"{message.method} needs an id; nothing was done")
        except errors.ProtocolError as error:
            self._output.line([jsonrpc.error(error, jsonrpc.readable_id(document))])
        except Exception as error:  # no memory, no thread, or a bug: the requests under way go on
            log.exception("a line of %d bytes: internal error", len(line or b""))
            failed = errors.Unanswered(f"the bridge failed ({type(error).__name__}); {NOTHING_DONE}", errors.NOT_SENT)
            self._output.line([jsonrpc.error(failed, jsonrpc.readable_id(document))])

    def _cancel(self, request_id: Any) -> None:
        if not jsonrpc.valid_id(request_id):
            return
        with self._lock:
            pending = self._under_way.pop(request_id, None)
        if pending is not None:
            pending.is_over = True
            pending.cancel_token.cancel()

    def _start(self, request: Request, line: bytes) -> None:
        """Answer the request in a thread of its own; raises Unanswered rather than queue it."""
        pending = PendingRequest(request)
        thread = threading.Thread(target=self._answer, args=(pending, line), name=request.method[:40], daemon=True)
        with self._lock:
            if request.id in self._under_way:
                raise errors.InvalidRequest("a request with this id is under way; nothing was done")
            alike = sum(each.is_call == pending.is_call for each in self._under_way.values())
            # Threads of cancelled requests count until they have ended.
            if alike >= (CALLS if pending.is_call else OTHERS) or len(self._threads) >= 2 * (CALLS + OTHERS):
                raise errors.Unanswered("too many requests are under way; nothing was sent, try again", errors.NOT_SENT)
            self._under_way[request.id] = pending
            self._threads.add(thread)
        try:
            thread.start()
        except BaseException:
            self._forget(pending, thread)
            raise

    # --- one request, in its thread ---

    def _answer(self, pending: PendingRequest, line: bytes) -> None:
        try:
            self._forward(pending, line)
        except errors.ProtocolError as error:
            self._refuse(pending, error)
        except errors.ClientError as error:
            refused = isinstance(error, (errors.PeerRefused, errors.NotMcp)) and error.status not in (None, *FINAL)
            text = error.text_with_delivery if pending.is_call else error.text
            if self._ending:
                text = f"the bridge has ended with its standard input; {errors.DELIVERY_TEXTS[error.delivery]}"
            elif pending.request.method == "server/discover" and refused:
                # A server that gave no JSON-RPC response to the probe may still know `initialize`.
                unknown = errors.MethodNotFound("the server does not know server/discover: initialize instead")
                return self._refuse(pending, unknown)
            self._refuse(pending, errors.Unanswered(text, error.delivery))
        except Exception as error:  # no memory for the answer, or a bug: the caller has to hear what became of it
            delivery = errors.UNKNOWN if pending.is_sent else errors.NOT_SENT
            text = f"the bridge failed ({type(error).__name__}), and its log has the details"
            self._refuse(pending, errors.Unanswered(f"{text}; {errors.DELIVERY_TEXTS[delivery]}", delivery))
            log.exception("%s: internal error", ascii(pending.request.method)[:80])
        finally:
            self._forget(pending, threading.current_thread())

    def _forget(self, pending: PendingRequest, thread: threading.Thread) -> None:
        with self._lock:
            if self._under_way.get(pending.request.id) is pending:
                del self._under_way[pending.request.id]
            self._threads.discard(thread)

    def _refuse(self, pending: PendingRequest, error: errors.ProtocolError) -> None:
        self._respond(pending, [jsonrpc.error(error, pending.request.id)])

    def _respond(self, pending: PendingRequest, message: Iterable[bytes]) -> None:
        if not pending.is_over:
            self._output.line(message)
            pending.is_over = True

    def _forward(self, pending: PendingRequest, line: bytes) -> None:
        request = pending.request
        if translate.is_modern(request):
            self._exchange(pending, translate.unchanged(request, line))
        elif request.method == "initialize":
            version = request.params.get("protocolVersion")
            if not isinstance(version, str):
                raise errors.InvalidParams("initialize needs protocolVersion, a string")
            self._client = translate.client_info(request)
            self._upstream.negotiate(pending.cancel_token)
            self._respond(pending, [translate.initialize_result(request, version, self._upstream.session.flows)])
        else:
            # Sent once more when the server has forgotten us, for then it has done nothing.
            session = self._upstream.negotiate(pending.cancel_token)
            if not self._forward_older(session, pending, line):
                self._upstream.session.forget(session)
                self._forward_older(self._upstream.negotiate(pending.cancel_token), pending, line, last=True)

    def _forward_older(
        self, session: NegotiatedSession, pending: PendingRequest, line: bytes, *, last: bool = False
    ) -> bool:
        """Forward an older client's request under `session`; False when that is over, unless it is the `last` try."""
        request = pending.request
        if session.version != MODERN:
            return self._exchange(pending, HttpRequest(session.headers, line, id=request.id), None if last else session)
        if request.method == "ping":
            # The modern revision has no ping, so the server is asked for its name; the response is as bare as ever.
            self._upstream.run(self._upstream.session.flows.ping(), pending.cancel_token)
            self._respond(pending, [jsonrpc.result(request.id, b"{}")])
            return True
        return self._exchange(pending, translate.with_envelope(request, self._client), None if last else session)

    def _exchange(self, pending: PendingRequest, sent: HttpRequest, session: NegotiatedSession | None = None) -> bool:
        """Send a request and hand on its response; False, and nothing handed on, when `session` is over."""
        repeatable = pending.request.method in READS
        pending.is_sent = True
        with self._upstream.send(sent, pending.cancel_token, repeatable=repeatable) as spool:
            if session is not None and spool.outdates(session):
                return False
            if self._longest is not None and spool.size > self._longest:  # at which the client would hang up
                raise errors.Unanswered(
                    f"the answer has {spool.size} bytes, over the {self._longest} that --longest-line gives this "
                    "client; it was executed: `mcpboard call URL TOOL -o FILE` keeps one of any size",
                    errors.DONE,
                )
            self._respond(pending, self._surrogates.watched(spool.line(pending.request.id)))
        return True
