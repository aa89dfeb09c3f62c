"""Read the responses of a server: HTTP status and bytes -> a result, or the ClientError that tells why not."""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from mcpboard.errors import DONE, NOT_SENT, UNKNOWN, ClientError, NotMcp, ParseError, PeerError, PeerRefused
from mcpboard.protocol import jsonrpc
from mcpboard.protocol.blob_stream import placeholder
from mcpboard.protocol.jsonrpc import Id
from mcpboard.text import one_line

# Codes that a server gives before it runs anything; any other leaves open what was done.
REFUSALS = frozenset({-32700, -32600, -32601, -32602, -32020, -32021, -32022})

# HTTP status without a JSON-RPC message -> what it means here, and the remedy.
STATUSES: Mapping[int, str] = {
    401: "the server requires a token, or another one: give it with --token-file",
    403: "the server does not let this client in; use its IP address in the URL, and the right token",
    404: "there is no MCP at this path: it is usually /mcp; on a board, is mcp_enabled true?",
    405: "this path takes no POST, so it is not MCP; the path is usually /mcp",
    413: "the server finds the request too large; send shorter arguments",
    429: "the server is busy; call again in a while",
    503: "the server is busy or starting; call again in a while",
}


@dataclass(frozen=True)
class HttpResponse:
    """One whole HTTP response; header names in lower case, `blobs` what a BlobStream took out of `body`."""

    status: int
    headers: Mapping[str, str]
    body: bytes
    blobs: Sequence[bytes | bytearray] = ()


# --- from HTTP to a JSON-RPC result ----------------------------------------------------------


def result_of(response: HttpResponse, request_id: Id) -> Mapping[str, Any]:
    """Return the result in `response`; raises PeerError, PeerRefused or NotMcp where there is none."""
    message = next((each for each in _documents(response) if answers(each, request_id)), None)
    if message is None:
        raise _without_message(response)
    if "error" in message:
        error = message["error"]
        text, data = error.get("message"), error.get("data")
        delivery = data.get("delivery") if isinstance(data, dict) else None
        if delivery not in (NOT_SENT, DONE, UNKNOWN):
            delivery = NOT_SENT if error["code"] in REFUSALS else UNKNOWN
        text = one_line(text) if isinstance(text, str) else "no message"
        raise PeerError(error["code"], text, data, response.status, delivery=delivery)
    if response.status != 200:
        raise NotMcp(f"a result came with HTTP {response.status}, which MCP does not do", status=response.status)
    result: Mapping[str, Any] = message["result"]
    return result


def _documents(response: HttpResponse) -> Iterator[Any]:
    """Yield the JSON in the body: one document, or one for each event of a stream."""
    streamed = response.headers.get("content-type", "").lower().startswith("text/event-stream")
    for text in events(response.body) if streamed else (response.body,):
        try:
            yield jsonrpc.load_response(text)
        except ParseError:
            continue


def events(body: bytes) -> Iterator[bytes]:
    """Yield the `data` of each event; a server may respond with a stream, and ends it after the message."""
    lines: list[bytes] = []
    for line in [*body.splitlines(), b""]:
        if line.startswith(b"data:"):
            lines.append(line[len(b"data:") :])
        elif not line and lines:
            yield b"\n".join(lines)
            lines.clear()


def answers(document: Any, request_id: Id) -> bool:
    """Return True for a response to our request; an error whose id could not be read counts as one."""
    if not isinstance(document, dict):
        return False
    error = document.get("error")
    if isinstance(error, dict):
        return type(error.get("code")) is int and document.get("id") in (None, request_id)
    return isinstance(document.get("result"), dict) and document.get("id") == request_id


def _without_message(response: HttpResponse) -> ClientError:
    """Return the error for a response that holds no JSON-RPC message for us."""
    status = response.status
    if 300 <= status < 400:
        target = one_line(response.headers.get("location", "nowhere"))
        return PeerRefused(
            f"the server redirects to {target}; redirects are not followed, use the final address",
            delivery=NOT_SENT,
            status=status,
        )
    if 200 <= status < 300:
        media_type = one_line(response.headers.get("content-type", "no content type"))
        return NotMcp(
            f"what answers there is not MCP (HTTP {status}, {media_type}); check address and path", status=status
        )
    # The reason in a JSON body such as `{"error": "invalid token"}`.
    document = next(_documents(response), None)
    reason = document.get("error") if isinstance(document, dict) else None
    detail = f" ({one_line(reason)})" if isinstance(reason, str) else ""
    broken = status >= 500
    meaning = STATUSES.get(status, "the server failed; its log has the reason" if broken else "it is not MCP")
    return PeerRefused(f"HTTP {status}{detail}: {meaning}", delivery=UNKNOWN if broken else NOT_SENT, status=status)


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
        for block in raw["content"]:
            if block["type"] == "text":
                texts.append(str(block["text"]))
            elif block["type"] == "image":
                images.append(Picture(base64.b64decode(block["data"], validate=True), str(block["mimeType"])))
            elif block["type"] == "resource":
                resource = block["resource"]
                mime, uri = str(resource.get("mimeType", "application/octet-stream")), str(resource["uri"])
                content = streamed.get(resource.get("blob"))
                if "blob" not in resource:
                    content = str(resource["text"]).encode("utf-8", "replace")
                elif content is None:
                    content = base64.b64decode(resource["blob"], validate=True)
                attachments.append(Attachment(content, mime, uri))
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise NotMcp("the tool's result is malformed; the tool has run, so do not simply repeat it") from error
    return CallResult(
        texts=tuple(texts),
        images=tuple(images),
        blobs=tuple(attachments),
        structured=raw.get("structuredContent"),
        is_error=raw.get("isError") is True,
        raw=raw,
    )
