"""Read the responses of a server: HTTP status and bytes -> a result, or the ClientError that tells why not."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, cast

from mcpboard.errors import DONE, NOT_SENT, UNKNOWN, ClientError, NotMcp, ParseError, PeerError, PeerRefused
from mcpboard.protocol import jsonrpc
from mcpboard.protocol.blob_stream import placeholder
from mcpboard.protocol.jsonrpc import Id
from mcpboard.text import one_line, well_formed_json

# Codes that a server gives before it runs anything; any other leaves open what was done.
REFUSALS = frozenset({-32700, -32600, -32601, -32602, -32020, -32021, -32022})

# HTTP status with which servers refuse before they run anything. After any other, a redirect or a
# failure of a proxy included, a tool may have run.
REFUSING_STATUSES = frozenset({400, 401, 403, 404, 405, 413, 415, 429})

# HTTP status without a JSON-RPC message -> what it means here, and the remedy.
STATUSES: Mapping[int, str] = {
    401: "the server requires a token, or another one: give it with --token-file",
    403: "the server does not let this client in; use its IP address in the URL, and the right token",
    404: "there is no MCP at this path: it is usually /mcp; on a board, is mcp_enabled true?",
    405: "this path takes no POST, so it is not MCP; the path is usually /mcp",
    413: "the server finds the request too large; send shorter arguments",
    429: "the server is busy; call again in a while",
    503: "the server is busy or starting; wait a while",
}


# Between two events: three ways to end a line, one of which is the beginning of another.
_EMPTY_LINE = re.compile(rb"(?:\r\n|\n|\r(?!\n)){2}")
_LARGE = 1 << 20  # bytes of an event that is taken for an answer unread, as no notification has an image or a file


class HttpResponse(NamedTuple):
    """One whole HTTP response; header names in lower case, `blobs` what a BlobStream took out of `body`."""

    status: int
    headers: Mapping[str, str]
    body: bytes
    blobs: Sequence[bytes | bytearray] = ()


# --- from HTTP to a JSON-RPC result ----------------------------------------------------------


class Answer(NamedTuple):
    """The JSON-RPC message that answers a request, as bytes and parsed; half surrogate pairs are parsed as U+FFFD."""

    text: bytes
    message: Mapping[str, Any]


def answer_in(response: HttpResponse, request_id: Id) -> Answer:
    """Return the error or result that answers our request; raises PeerRefused or NotMcp where there is none."""
    documents, problem = [], ""
    for text in events(response.body) if is_stream(response.headers) else (response.body,):
        try:
            document = jsonrpc.load_response(well_formed_json(text))
        except ParseError as error:
            problem = error.message
            continue
        if _answers(document, request_id):
            return Answer(text, document)
        documents.append(document)
    raise _without_message(response, documents, problem)


def result_of(response: HttpResponse, request_id: Id) -> Mapping[str, Any]:
    """Return the result in `response`; raises PeerError, PeerRefused or NotMcp where there is none.

    An `error` beside a result counts only when it is an object: some servers write null there.
    """
    _, message = answer_in(response, request_id)
    error = message.get("error")
    if isinstance(error, dict):
        code, text, data = error["code"], error.get("message"), error.get("data")
        delivery = data.get("delivery") if isinstance(data, dict) else None
        if delivery not in (NOT_SENT, DONE, UNKNOWN):
            delivery = NOT_SENT if code in REFUSALS else UNKNOWN
        text = one_line(text) if isinstance(text, str) else "no message"
        raise PeerError(code, text, data, response.status, delivery)
    if response.status != 200:
        raise NotMcp(f"a result came with HTTP {response.status}, which MCP does not do", status=response.status)
    return cast("Mapping[str, Any]", message["result"])


def is_stream(headers: Mapping[str, str]) -> bool:
    """Tell if a response with these headers is a stream of events."""
    return headers.get("content-type", "").lower().startswith("text/event-stream")


def until_answer(pieces: Iterable[bytes], headers: Mapping[str, str], request_id: Id | None) -> Iterator[bytes]:
    """Yield the pieces of a body; of a stream of events only up to the one that answers the request.

    Some servers keep the stream open behind it, so its end may never come. Without a `request_id` there
    is nothing to wait for.
    """
    if not is_stream(headers):
        yield from pieces
    if not is_stream(headers) or request_id is None:
        return
    event, is_large = b"", False  # what has come since the last empty line
    for piece in pieces:
        yield piece
        *whole, event = _EMPTY_LINE.split(event + piece)
        if whole and is_large:
            return
        for data in (data for each in whole for data in events(each)):
            try:
                if _answers(jsonrpc.load_response(well_formed_json(data)), request_id):
                    return
            except ParseError:
                pass  # it is told of where the whole is read
        if len(event) > _LARGE:
            event, is_large = event[-2:], True  # an end of line that another may follow


def events(body: bytes) -> Iterator[bytes]:
    """Yield the `data` of each event; a server may respond with a stream, and ends it after the message."""
    lines: list[bytes] = []
    for line in [*body.splitlines(), b""]:
        if line.startswith(b"data:"):
            lines.append(line[len(b"data:") :])
        elif not line and lines:
            yield b"\n".join(lines)
            lines.clear()


def _answers(document: Any, request_id: Id) -> bool:
    """Return True for a response to our request; an error whose id could not be read counts as one."""
    if not isinstance(document, dict):
        return False
    number, error = document.get("id"), document.get("error")
    # True and 1 are equal only in Python; and some servers echo a whole number as text.
    spelt = {type(number), type(request_id)} == {int, str} and str(number) == str(request_id)
    ours = not isinstance(number, bool) and (number == request_id or spelt)
    if isinstance(error, dict):
        return type(error.get("code")) is int and (ours or number is None)
    return ours and isinstance(document.get("result"), dict)


def _without_message(response: HttpResponse, documents: Sequence[Any], problem: str) -> ClientError:
    """Return the error for a response that holds no JSON-RPC message for us, but `documents`.

    `problem` tells why a body or event is no JSON that is read here, "" where all of them are.
    """
    status = response.status
    delivery = NOT_SENT if status in REFUSING_STATUSES else UNKNOWN
    if 300 <= status < 400:
        target = one_line(response.headers.get("location", "nowhere"))
        text = f"the server redirects to {target}; redirects are not followed, use the final address"
        return PeerRefused(text, delivery=delivery, status=status)
    if 200 <= status < 300:
        media_type = one_line(response.headers.get("content-type", "no content type"))
        found = ", ".join(word for word in (f"HTTP {status}", media_type, one_line(problem)) if word)
        return NotMcp(f"what answers there is not MCP ({found}); check address and path", status=status)
    # The reason in a JSON body such as `{"error": "invalid token"}`.
    reason = documents[0].get("error") if documents and isinstance(documents[0], dict) else None
    detail = f" ({one_line(reason)})" if isinstance(reason, str) else ""
    unnamed = "the server failed; its log has the reason" if status >= 500 else "it is not MCP"
    return PeerRefused(f"HTTP {status}{detail}: {STATUSES.get(status, unnamed)}", delivery=delivery, status=status)


# --- the result of a tool call -----------------------------------------------------------------


@dataclass(frozen=True)
class Picture:
    """An image block, decoded."""

    content: bytes = field(repr=False)
    mime: str


@dataclass(frozen=True)
class Attachment:
    """An embedded resource, decoded; a text resource as UTF-8."""

    content: bytes | bytearray = field(repr=False)
    mime: str
    uri: str


@dataclass(frozen=True)
class CallResult:
    """Result of a tool call, by type and in order; `raw` is the result object as it was sent.

    Blocks of other types, such as audio, are in `raw` only; a large blob is there as a placeholder.
    """

    texts: tuple[str, ...]
    images: tuple[Picture, ...]
    blobs: tuple[Attachment, ...]
    structured: Any
    is_error: bool
    raw: Mapping[str, Any] = field(repr=False)

    @property
    def text(self) -> str:
        """Return all text blocks, a line break between them."""
        return "\n".join(self.texts)


def call_result(raw: Mapping[str, Any], blobs: Sequence[bytes | bytearray] = ()) -> CallResult:
    """Return the content of a `tools/call` result; raises NotMcp where it is malformed."""
    streamed = {placeholder(number): blob for number, blob in enumerate(blobs)}
    texts: list[str] = []
    images: list[Picture] = []
    attachments: list[Attachment] = []
    try:
        if not isinstance(raw["content"], list):
            raise TypeError
        for block in raw["content"]:
            if block["type"] == "text":
                texts.append(str(block["text"]))
            elif block["type"] == "image":
                images.append(Picture(base64.b64decode(block["data"], validate=True), str(block["mimeType"])))
            elif block["type"] == "resource":
                resource = block["resource"]
                file = streamed.get(resource.get("blob"))
                if "blob" not in resource:
                    file = str(resource["text"]).encode("utf-8", "replace")
                elif file is None:
                    file = base64.b64decode(resource["blob"], validate=True)
                mime = str(resource.get("mimeType", "application/octet-stream"))
                attachments.append(Attachment(file, mime, str(resource["uri"])))
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise NotMcp("the tool's result is malformed") from error
    # Whatever is not plainly false counts: a failure must not pass for a success.
    is_error = raw.get("isError") not in (None, False, "false")
    structured = raw.get("structuredContent")
    return CallResult(tuple(texts), tuple(images), tuple(attachments), structured, is_error, raw)
