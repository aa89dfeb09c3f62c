"""Every error that mcpboard raises on purpose, each carrying its own reply.

The client gets the error that is raised; anything else that escapes is our bug, and the client gets
-32603 without details.
"""

# The tree, as a comment, since boards carry no sources but each docstring:
#
# McpboardError
# ├── ConfigError             a setting is wrong: one line with its remedy, exit code 2
# │   └── AddressTaken        the port to listen on belongs to another program
# ├── Refused                 not even JSON-RPC (Origin, path, method, token, size): an HTTP response
# ├── ProtocolError           a JSON-RPC error; the HTTP status comes from jsonrpc.HTTP_STATUS
# │   ├── ParseError          -32700
# │   ├── InvalidRequest      -32600
# │   │   └── UnsupportedMediaType  -32600 at 415: the body says that it is no JSON
# │   ├── SessionGone         -32600 at 404: the legacy session is unknown or over
# │   ├── MethodNotFound      -32601
# │   ├── InvalidParams       -32602
# │   │   ├── InvalidEnvelope -32602 at 400: the modern `_meta` is incomplete or ill-typed
# │   │   └── UnknownDevice   -32602: the host has no device of that id
# │   ├── InternalError       -32603
# │   ├── Unanswered          -32603: a bridge got no response from its server
# │   ├── ToolFailed          -32000: a tool of the host that came to nothing
# │   │   └── DeviceBusy      -32000: another owner has a lease on the device
# │   ├── HeaderMismatch      -32020
# │   └── UnsupportedVersion  -32022
# ├── ClientError             a request of ours, as a client, that came to no result
# │   ├── PeerUnreachable     no connection could be made; nothing was sent
# │   ├── PeerTimeout         the limit passed; after sending, the outcome is unknown
# │   ├── PeerBroken          the connection broke off, or more came than is taken
# │   ├── NotMcp              whatever is there does not speak MCP, or no revision of ours
# │   ├── PeerRefused         an HTTP status instead of a JSON-RPC message (token, path, redirect)
# │   └── PeerError           a JSON-RPC error
# └── ToolError               a tool result with `isError`, whose text says what to do
#     ├── BadArgument         the arguments fail the light check; nothing was sent
#     ├── Busy                a lane is busy or no concurrency slot is free; nothing was sent
#     ├── BackendUnreachable  no connection could be made; nothing was sent
#     ├── BackendTimeout      the deadline passed; after sending, the outcome is unknown
#     ├── BackendBroken       the connection or the response broke off, or made no sense
#     ├── NotOffered          the board does not have this tool
#     └── ToolRefused         the backend responded, and says that the tool failed

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

# What became of an action: the error of each carries one of these words, so that a client knows if it
# may repeat the action.
NOT_SENT = "not_sent"
DONE = "done"
UNKNOWN = "unknown"

# The same for a person or a model, at the end of a message about a call that came to no result.
DELIVERY_TEXTS: Mapping[str, str] = {
    NOT_SENT: "nothing was executed",
    DONE: "it was executed: look before repeating it",
    UNKNOWN: "it was sent, so it may have been executed: look before repeating it",
}


class McpboardError(Exception):
    """Root of all that mcpboard raises on purpose."""


class ConfigError(McpboardError):
    """A setting, file or address that cannot be used; the message is one line with the remedy."""


class AddressTaken(ConfigError):
    """Another program listens on `port` already."""

    def __init__(self, message: str, port: int) -> None:
        super().__init__(message)
        self.port = port


class Refused(McpboardError):
    """A request turned away before JSON-RPC; carries HTTP status, JSON body and headers."""

    def __init__(self, status: int, body: Mapping[str, Any] | None, headers: Iterable[tuple[str, str]] = ()) -> None:
        super().__init__(f"refused with HTTP {status}")
        self.status = status
        self.body = body
        self.headers = tuple(headers)


class ProtocolError(McpboardError):
    """A JSON-RPC error; `status` overrides jsonrpc.HTTP_STATUS where one code rides on several."""

    code = -32603
    status: int | None = None

    def __init__(self, message: str, *, data: Mapping[str, Any] | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.data = data


class ParseError(ProtocolError):
    """The body is not JSON, not UTF-8, or more than the parser will follow."""

    code = -32700


class InvalidRequest(ProtocolError):
    """JSON, but not one JSON-RPC 2.0 message."""

    code = -32600


class UnsupportedMediaType(InvalidRequest):
    """The body says that it is no JSON; HTTP 415."""

    status = 415


class SessionGone(ProtocolError):
    """The legacy session id is unknown or over; the client has to initialize again."""

    code = -32600
    status = 404


class MethodNotFound(ProtocolError):
    """No such method here."""

    code = -32601


class InvalidParams(ProtocolError):
    """Good envelope, wrong content: unknown tool, bad cursor, arguments not an object."""

    code = -32602


class InvalidEnvelope(InvalidParams):
    """The modern per-request `_meta` is incomplete or ill-typed; the revision demands HTTP 400."""

    status = 400


class UnknownDevice(InvalidParams):
    """The host has no device of that id."""

    def __init__(self, device: str) -> None:
        super().__init__(f"unknown device: {device}")


class InternalError(ProtocolError):
    """Our bug; the client learns no details."""


class Unanswered(ProtocolError):
    """The server behind a bridge gave no response that could be forwarded; `data` has the delivery."""

    def __init__(self, message: str, delivery: str) -> None:
        super().__init__(message, data={"delivery": delivery})


class ToolFailed(ProtocolError):
    """A tool of the host came to nothing; the message is what the device or its driver said.

    `delivery` is what became of an action, `NOT_SENT`, `DONE` or `UNKNOWN`, and is sent as
    `data.delivery` where it is known.
    """

    code = -32000

    def __init__(self, message: str, *, delivery: str | None = None, data: Mapping[str, Any] | None = None) -> None:
        super().__init__(message, data=data if delivery is None else {**(data or {}), "delivery": delivery})
        self.delivery = delivery


class DeviceBusy(ToolFailed):
    """Another owner has a lease on the device; `busy_owner` names it, `retry_after_s` is when an idle lease ends."""

    def __init__(self, message: str, busy_owner: str, retry_after_s: int | None) -> None:
        data: dict[str, Any] = {"busy_owner": busy_owner}
        if retry_after_s is not None:
            data["retry_after_s"] = retry_after_s
        super().__init__(message, delivery=NOT_SENT, data=data)


class HeaderMismatch(ProtocolError):
    """A standard header is missing, malformed, or disagrees with the body."""

    code = -32020


class UnsupportedVersion(ProtocolError):
    """The protocol version asked for is not spoken here."""

    code = -32022


class ToolError(McpboardError):
    """A tool call that failed; its text is written for the model that reads it.

    `delivery` is what became of the action, `NOT_SENT`, `DONE` or `UNKNOWN`; it is sent to
    the caller for actions only. `structured` is merged into the result's structuredContent.
    """

    delivery = UNKNOWN

    def __init__(self, text: str, *, delivery: str | None = None, structured: Mapping[str, Any] | None = None) -> None:
        super().__init__(text)
        self.text = text
        self.structured = dict(structured or {})
        if delivery is not None:
            self.delivery = delivery


class BadArgument(ToolError):
    """The arguments fail the light check; nothing reached the backend."""

    delivery = NOT_SENT


class Busy(ToolError):
    """A lane is busy or no concurrency slot is free; the caller is turned away, never queued."""

    delivery = NOT_SENT


class BackendUnreachable(ToolError):
    """No connection to the backend could be made."""

    delivery = NOT_SENT


class BackendTimeout(ToolError):
    """The deadline of the call passed."""


class BackendBroken(ToolError):
    """The connection broke after sending, or the response makes no sense."""


class NotOffered(ToolError):
    """The tool is on our list, but this board's Agent does not have it."""

    delivery = NOT_SENT


class ToolRefused(ToolError):
    """The backend responded in good order that the tool failed."""


class ClientError(McpboardError):
    """A request that we made as a client and that came to no result; one line with the remedy.

    `delivery` is what became of a tool call, `NOT_SENT`, `DONE` or `UNKNOWN`, as far as the
    client can know; `status` is the HTTP status, None where there was none.
    """

    delivery = UNKNOWN
    status: int | None = None
    ends_call = False  # it ended a tool call, so its message says what became of that

    def __init__(self, text: str, *, delivery: str | None = None, status: int | None = None) -> None:
        super().__init__(text)
        self.text = text
        self.status = status
        if delivery is not None:
            self.delivery = delivery

    def __str__(self) -> str:
        return self.text_with_delivery if self.ends_call else self.text

    @property
    def text_with_delivery(self) -> str:
        """The message for the caller of a tool: the text, and what became of the call."""
        return f"{self.text}; {DELIVERY_TEXTS[self.delivery]}"


class PeerUnreachable(ClientError):
    """No connection to the server could be made."""

    delivery = NOT_SENT


class PeerTimeout(ClientError):
    """The time limit of the call passed before the response was whole."""


class PeerBroken(ClientError):
    """The connection broke after sending, or the response is over the limits."""


class NotMcp(ClientError):
    """The peer does not speak MCP, or no revision that this client speaks."""


class PeerRefused(ClientError):
    """The server responded with an HTTP status and no JSON-RPC message."""


class PeerError(ClientError):
    """The server responded with a JSON-RPC error: `code`, `message` and `data` are its own."""

    def __init__(self, code: int, message: str, data: object, status: int, delivery: str) -> None:
        super().__init__(f"{message} (JSON-RPC error {code})", delivery=delivery, status=status)
        self.code = code
        self.message = message
        self.data = data
