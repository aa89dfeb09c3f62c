"""An HTTP response kept until it is whole, and the one line that it becomes on standard output.

Half a message must never reach a client, and a slow bundle must not hold up the responses behind
it. So the body is kept first, in memory while it is small and in a temporary file beyond that.
"""

from __future__ import annotations

import codecs
import contextlib
import itertools
import re
import tempfile
from collections.abc import Iterator, Mapping
from typing import Any

from mcpboard.client import NegotiatedSession
from mcpboard.errors import DONE, UNKNOWN, NotMcp, ParseError, PeerBroken, PeerError
from mcpboard.protocol import jsonrpc, results
from mcpboard.protocol.client_session import UNSUPPORTED
from mcpboard.protocol.jsonrpc import Id
from mcpboard.protocol.results import HttpResponse
from mcpboard.protocol.tools import compact, verbatim
from mcpboard.text import DEPTH_LIMIT, nesting
from mcpboard.transport.http import PIECE, StreamedResponse

IN_MEMORY = 1 << 20  # bytes of one response; what is larger is a bundle or a screenshot, and goes to a file
BODY_LIMIT = 96 << 20  # bytes; a bundle of 64 MiB in base64, twice the largest that a board passes on
TEXT_LIMIT = 16 << 20  # bytes of a response that has to be parsed, because it came as a stream of events

# The id of an answer, where nothing but the version stands before it.
_EARLY_ID = re.compile(rb'\{\s*(?:"jsonrpc"\s*:\s*"2\.0"\s*,\s*)?"id"\s*:\s*(?P<id>"(?:[^"\\]|\\.)*"|[^\s",{}\[\]]+)')


class Spool:
    """One response, whole; close it after use. Raises ClientError where it does not come whole."""

    def __init__(self, response: StreamedResponse, request_id: Id | None) -> None:
        self.status = response.status
        self.headers = response.headers
        self.size = 0  # bytes of the body
        self._file = tempfile.SpooledTemporaryFile(IN_MEMORY)
        try:
            for piece in results.until_answer(response.plain_pieces(), response.headers, request_id):
                self.size += len(piece)
                if self.size > BODY_LIMIT:
                    raise PeerBroken(f"the answer is over the limit of {BODY_LIMIT} bytes")
                try:
                    self._file.write(piece)
                except OSError as error:
                    raise PeerBroken(f"the answer could not be kept ({error.strerror}): is the disk full?") from error
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        self._file.close()

    def outdates(self, negotiated: NegotiatedSession) -> bool:
        """Tell if the server refused the request because it has changed since what was negotiated.

        Nothing was executed then: the session is unknown to it, or the revision. A response that itself
        tells of an execution, which was or may have been, is none of those, whatever its status.
        """
        document: Any = None
        if self.status != 200:
            with contextlib.suppress(ParseError):
                document = jsonrpc.load_response(self.beginning())
        message = document if isinstance(document, dict) else {}
        error = message.get("error")
        members = error if isinstance(error, dict) else {}
        data = members.get("data")
        if "result" in message or (isinstance(data, dict) and data.get("delivery") in (DONE, UNKNOWN)):
            return False
        forgotten = negotiated.session_id is not None and self.status == 404
        return forgotten or members.get("code") == UNSUPPORTED

    def line(self, request_id: Id) -> Iterator[bytes]:
        """Return the message that answers the request, in pieces; the checks are made before the first is given.

        Raises ClientError where the response holds none.
        """
        if self.status == 200 and self.size > IN_MEMORY and not results.is_stream(self.headers):
            return self._checked_large(request_id)
        response = HttpResponse(self.status, self.headers, self.beginning(TEXT_LIMIT))
        text, message = results.answer_in(response, request_id)
        if _is_strict(message, request_id) and (self.status == 200 or "error" in message):
            return iter([text.removeprefix(codecs.BOM_UTF8).strip()])
        # A strict client would not find the answer to its request in this one, so it is written anew.
        answered: dict[str, Any] = {"jsonrpc": "2.0", "id": request_id}
        try:
            answered["result"] = results.result_of(response, request_id)
        except PeerError as error:
            data = {} if error.data is None else {"data": error.data}
            answered["error"] = {"code": error.code, "message": error.message, **data}
        if nesting(text.decode())[0] > DEPTH_LIMIT:
            raise NotMcp("the answer is not quite JSON-RPC, and nested too deeply to be written anew")
        return iter([compact(answered)])

    def _checked_large(self, request_id: Id) -> Iterator[bytes]:
        """Return the pieces of a large answer, unparsed: it never stands in memory, and most of it is one picture.

        What would break the reading of a line is looked for first. The id is compared where it stands
        before the result, as it nearly always does; a client would wait without end for that of another.
        """
        decoder = codecs.getincrementaldecoder("utf-8")()
        last = b""
        try:
            for piece in self._pieces():
                decoder.decode(piece)
                last = piece.rstrip() or last
            decoder.decode(b"", final=True)
        except UnicodeDecodeError:
            raise NotMcp("the answer is not UTF-8", status=self.status) from None
        beginning = self.beginning(PIECE).removeprefix(codecs.BOM_UTF8).lstrip()
        if not beginning.startswith(b"{") or not last.endswith(b"}"):
            raise NotMcp("the answer is not one JSON object", status=self.status)
        if found := _EARLY_ID.match(beginning):
            stub = HttpResponse(self.status, {}, b'{"id":' + found["id"] + b',"result":{}}')
            results.answer_in(stub, request_id)
            beginning = beginning[: found.start("id")] + verbatim(request_id) + beginning[found.end("id") :]
        pieces = self._pieces()
        next(pieces)  # which the beginning stands for
        return itertools.chain([beginning], pieces)

    def beginning(self, most: int = IN_MEMORY) -> bytes:
        """Return at most so many bytes of the body."""
        self._file.seek(0)
        return self._file.read(most)

    def _pieces(self) -> Iterator[bytes]:
        self._file.seek(0)
        while piece := self._file.read(PIECE):
            yield piece


def _is_strict(message: Mapping[str, Any], request_id: Id) -> bool:
    """Return True for a response as JSON-RPC wants it to the letter, which also strict clients take."""
    number = message.get("id")
    if message.get("jsonrpc") != "2.0" or number != request_id or type(number) is not type(request_id):
        return False
    if "error" not in message:
        return True
    error = message["error"]
    if "result" in message or not isinstance(error, dict):
        return False
    return type(error.get("code")) is int and isinstance(error.get("message"), str)
