"""What a server answers to us: HTTP status and bytes -> a result, or the ClientError that tells why not."""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from mcpboard.errors import DONE, NOT_SENT, UNKNOWN, ClientError, NotMcp, ParseError, PeerError, PeerRefused
from mcpboard.protocol import jsonrpc
from mcpboard.protocol.blob_stream import mark
from mcpboard.protocol.jsonrpc import Id
from mcpboard.text import one_line

# Codes that a server gives before it runs anything; any other leaves open what was done.
REFUSALS = frozenset({-32700, -32600, -32601, -32602, -32020, -32021, -32022})

# HTTP status without a JSON-RPC message -> what it means here, and the cure.
STATUSES: Mapping[int, str] = {
    401: "the server wants a token, or another one: give it with --token-file",
    403: "the server does not let this client in; use its IP address in the URL, and the right token",
    404: "there is no MCP at this path: it is usually /mcp; on a board, is mcp_enabled true?",
    405: "this path takes no POST, so it is not MCP; the path is usually /mcp",
    413: "the server finds the request too large; send shorter arguments",
    429: "the server is busy; call again in a while",
    503: "the server is busy or starting; call again in a while",
}


@dataclass(frozen=True)
class HttpResponse:
    """One HTTP answer, whole; header names in lower case, `blobs` what a Sieve took out of `body`."""

    status: int
    headers: Mapping[str, str]
    body: bytes
    blobs: Sequence[bytes | bytearray] = ()


# --- from HTTP to a JSON-RPC result ----------------------------------------------------------


def result_of(answer: HttpResponse, request_id: Id) -> Mapping[str, Any]:
    """The result in `answer`; raises PeerError, PeerRefused or NotMcp where there is none."""
    message = _message(answer, request_id)
    if message is None:
        raise _no_message(answer)
    if "error" in message:
        raise _peer_error(message["error"], answer.status)
    if answer.status != 200:
        raise NotMcp(f"a result came with HTTP {answer.status}, which MCP does not do", status=answer.status)
    result: Mapping[str, Any] = message["result"]
    return result


def _message(answer: HttpResponse, request_id: Id) -> Mapping[str, Any] | None:
    return next((m for m in _documents(answer) if answers(m, request_id)), None)


def _documents(answer: HttpResponse) -> Iterator[Any]:
    """The JSON in the body: one document, or one for each event of a stream."""
    streamed = answer.headers.get("content-type", "").lower().startswith("text/event-stream")
    for text in events(answer.body) if streamed else (answer.body,):
        try:
            yield jsonrpc.load(text)
        except ParseError:
            continue


def events(body: bytes) -> Iterator[bytes]:
    """The `data` of each event; a server may choose this form, and then ends it after its answer."""
    lines: list[bytes] = []
    for line in [*body.splitlines(), b""]:
        if line.startswith(b"data:"):
            lines.append(line[len(b"data:") :])
        elif not line and lines:
            yield b"\n".join(lines)
            lines.clear()


def answers(document: Any, request_id: Id) -> bool:
    """True for a response to our request; an error whose id could not be read counts as one."""
    if not isinstance(document, dict):
        return False
    error = document.get("error")
    if isinstance(error, dict):
        return type(error.get("code")) is int and document.get("id") in (None, request_id)
    return isinstance(document.get("result"), dict) and document.get("id") == request_id


# --- the errors ------------------------------------------------------------------------------


def _peer_error(error: Mapping[str, Any], status: int) -> PeerError:
    message, found = error.get("message"), error.get("data")
    said = found.get("delivery") if isinstance(found, dict) else None
    known = NOT_SENT if error["code"] in REFUSALS else UNKNOWN
    text = one_line(message) if isinstance(message, str) else "no message"
    delivery = said if said in (NOT_SENT, DONE, UNKNOWN) else known
    return PeerError(error["code"], text, found, status, delivery=delivery)


def _no_message(answer: HttpResponse) -> ClientError:
    status = answer.status
    if 300 <= status < 400:
        target = one_line(answer.headers.get("location", "nowhere"))
        return PeerRefused(
            f"the server redirects to {target}; redirects are not followed, use the final address",
            delivery=NOT_SENT,
            status=status,
        )
    if 200 <= status < 300:
        kind = one_line(answer.headers.get("content-type", "no content type"))
        return NotMcp(f"what answers there is not MCP (HTTP {status}, {kind}); check address and path", status=status)
    meaning = STATUSES.get(status, "the server failed; its log has the reason" if status >= 500 else "it is not MCP")
    return PeerRefused(
        f"HTTP {status}{_explained(answer)}: {meaning}", delivery=UNKNOWN if status >= 500 else NOT_SENT, status=status
    )


def _explained(answer: HttpResponse) -> str:
    """The reason in a JSON body such as `{"error": "invalid token"}`, in brackets, else nothing."""
    document = next(_documents(answer), None)
    reason = document.get("error") if isinstance(document, dict) else None
    return f" ({one_line(reason)})" if isinstance(reason, str) else ""


# --- what a tool call came to ----------------------------------------------------------------


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
    """What a tool call came to, by kind and in order; `raw` is the result object as it was sent.

    Blocks of other kinds, such as audio, are in `raw` alone; a large blob is there as a mark.
    """

    texts: tuple[str, ...]
    images: tuple[Picture, ...]
    blobs: tuple[Attachment, ...]
    structured: Any
    is_error: bool
    raw: Mapping[str, Any] = field(repr=False)

    @property
    def text(self) -> str:
        """All text blocks, a line break between them."""
        return "\n".join(self.texts)


def call_result(raw: Mapping[str, Any], blobs: Sequence[bytes | bytearray] = ()) -> CallResult:
    """The content of a `tools/call` result; raises NotMcp where it is malformed."""
    try:
        blocks: Sequence[Mapping[str, Any]] = raw["content"]
        embedded = [block["resource"] for block in blocks if block["type"] == "resource"]
        return CallResult(
            texts=tuple(str(block["text"]) for block in blocks if block["type"] == "text"),
            images=tuple(
                Picture(_decoded(block["data"]), str(block["mimeType"])) for block in blocks if block["type"] == "image"
            ),
            blobs=tuple(_attachment(resource, blobs) for resource in embedded),
            structured=raw.get("structuredContent"),
            is_error=raw.get("isError") is True,
            raw=raw,
        )
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise NotMcp("the tool's result is malformed; the tool has run, so do not simply repeat it") from error


def _attachment(resource: Mapping[str, Any], blobs: Sequence[bytes | bytearray]) -> Attachment:
    mime, uri = str(resource.get("mimeType", "application/octet-stream")), str(resource["uri"])
    if "blob" not in resource:
        return Attachment(str(resource["text"]).encode("utf-8", "replace"), mime, uri)
    taken = {mark(number): blob for number, blob in enumerate(blobs)}.get(resource["blob"])
    return Attachment(_decoded(resource["blob"]) if taken is None else taken, mime, uri)


def _decoded(text: str) -> bytes:
    return base64.b64decode(text, validate=True)
