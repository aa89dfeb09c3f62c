"""An HTTP answer kept until it is whole, and the one line that it becomes on standard output.

Half a message must never reach a client, and a slow bundle must not hold up the answers behind
it. So the body is kept first, in memory while it is small and in a temporary file beyond that.
"""

from __future__ import annotations

import codecs
import tempfile
from collections.abc import Iterator

from mcpboard.errors import UNKNOWN, NotMcp, ParseError, PeerBroken, PeerError
from mcpboard.protocol import jsonrpc, results
from mcpboard.protocol.jsonrpc import Id
from mcpboard.protocol.results import HttpResponse
from mcpboard.protocol.tools import compact
from mcpboard.transport.http import PIECE, StreamedResponse

IN_MEMORY = 1 << 20  # bytes of one answer; what is larger is a bundle or a picture, and goes to a file
ANSWER_LIMIT = 96 << 20  # bytes; a bundle of 64 MiB in base64, twice the largest that a board passes on
TEXT_LIMIT = 16 << 20  # bytes of an answer that has to be parsed, because it came as a stream of events


class Spool:
    """One answer, whole; close it after use. Raises ClientError where it does not come whole."""

    def __init__(self, arriving: StreamedResponse) -> None:
        self.status = arriving.status
        self.headers = arriving.headers
        self.size = 0  # bytes of the body
        self._file = tempfile.SpooledTemporaryFile(IN_MEMORY)
        try:
            self._keep(arriving)
        except BaseException:
            self.close()
            raise

    def _keep(self, arriving: StreamedResponse) -> None:
        for piece in arriving.plain_pieces():
            self.size += len(piece)
            if self.size > ANSWER_LIMIT:
                raise PeerBroken(f"the answer is over the limit of {ANSWER_LIMIT} bytes")
            try:
                self._file.write(piece)
            except OSError as error:
                raise PeerBroken(f"the answer could not be kept ({error.strerror}): is the disk full?") from error

    def close(self) -> None:
        self._file.close()

    def answer(self) -> HttpResponse:
        """The answer as the dialogue takes it; of one that is too long for a handshake the beginning."""
        return HttpResponse(self.status, self.headers, self._beginning(IN_MEMORY))

    def error_code(self) -> int | None:
        """The code of the JSON-RPC error that this answer is, None for any other."""
        try:
            document = jsonrpc.load(self._beginning(IN_MEMORY)) if self.status != 200 else None
        except ParseError:
            return None
        error = document.get("error") if isinstance(document, dict) else None
        code = error.get("code") if isinstance(error, dict) else None
        return code if isinstance(code, int) else None

    def line(self, request_id: Id) -> Iterator[bytes]:
        """The message that answers the request, in pieces; the checks are made before the first is given.

        Raises ClientError where the answer holds none.
        """
        if self.status == 200 and self.size > IN_MEMORY and not self._is_stream():
            self._check_bundle()
            return self._pieces()
        return iter([self._message(request_id)])

    # --- a small answer, or a stream of events: parsed ---

    def _message(self, request_id: Id) -> bytes:
        body = self._beginning(TEXT_LIMIT)
        for text in results.events(body) if self._is_stream() else (body,):
            if _answers_in_good_order(text, request_id, self.status):
                return text.strip()
        return _restated(HttpResponse(self.status, self.headers, body), request_id)

    def _is_stream(self) -> bool:
        return self.headers.get("content-type", "").lower().startswith("text/event-stream")

    def _beginning(self, most: int) -> bytes:
        self._file.seek(0)
        return self._file.read(most)

    # --- a large answer: looked at, not parsed, so that it never stands in memory ---

    def _check_bundle(self) -> None:
        """What would break the reading of a line is looked for; the rest is the client's to parse."""
        decoder = codecs.getincrementaldecoder("utf-8")()
        last = b""
        try:
            for piece in self._pieces():
                decoder.decode(piece)
                last = piece.rstrip() or last
            decoder.decode(b"", final=True)
        except UnicodeDecodeError:
            raise NotMcp("the answer is not UTF-8", status=self.status) from None
        if not self._beginning(PIECE).lstrip().startswith(b"{") or not last.endswith(b"}"):
            raise NotMcp("the answer is not one JSON object", status=self.status)

    def _pieces(self) -> Iterator[bytes]:
        self._file.seek(0)
        while piece := self._file.read(PIECE):
            yield piece


def _answers_in_good_order(text: bytes, request_id: Id, status: int) -> bool:
    """True for a message that can be passed on as it is."""
    try:
        document = jsonrpc.load(text)
    except ParseError:
        return False
    if not results.answers(document, request_id) or document.get("id") != request_id:
        return False
    return "error" in document or status == 200


def _restated(answer: HttpResponse, request_id: Id) -> bytes:
    """An error that came without the request's id, with it; any other answer is raised as what it is."""
    try:
        results.result_of(answer, request_id)
    except PeerError as error:
        stated = {"code": error.code, "message": error.message} | ({} if error.data is None else {"data": error.data})
        return compact({"jsonrpc": "2.0", "id": request_id, "error": stated})
    raise NotMcp("the answer is no JSON-RPC message", delivery=UNKNOWN)
