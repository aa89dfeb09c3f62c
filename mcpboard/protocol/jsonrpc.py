"""JSON-RPC 2.0: body bytes <-> messages, the codes, and the HTTP status each code rides on."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, NamedTuple

from mcpboard.errors import InvalidRequest, ParseError, ProtocolError
from mcpboard.protocol.limits import CONTAINERS_LIMIT, ID_LIMIT, LARGE_BODY
from mcpboard.protocol.tools import compact, decoder, verbatim
from mcpboard.text import DEEP_LIMIT, DEPTH_LIMIT, TooNested, read_json

# Legacy clients read 4xx and 5xx as a dead transport, so what a working session can meet rides on
# 200; the others are fixed by the 2026-07-28 revision of MCP. `docs/protocol.md` says which client does what.
HTTP_STATUS: Mapping[int, int] = {
    -32700: 400,  # parse error
    -32600: 400,  # not one JSON-RPC message; a batch
    -32601: 404,  # unknown method
    -32602: 200,  # invalid params; an incomplete envelope overrides it with 400
    -32603: 200,  # our bug, once the id is known
    -32000: 200,  # host: device busy, tool error
    -32020: 400,  # header mismatch
    -32021: 400,  # missing client capability
    -32022: 400,  # unsupported protocol version
}

Id = str | int | float  # float only when integral: 1.0 is echoed as 1.0


class Request(NamedTuple):
    """A call that wants a response."""

    id: Id
    method: str
    params: Mapping[str, Any]


class Notification(NamedTuple):
    """A message without id: acknowledged, never acted on."""

    method: str


class Response:
    """A response that the client posts; nothing here ever sent a request for one."""


Message = Request | Notification | Response

_BOM = b"\xef\xbb\xbf"


def load_response(body: bytes) -> Any:
    """Return the JSON document in the body of a response, as `load` does, but of up to 1,000 levels and any size.

    A result may hold the tree of a screen, and who asked for it may have got it through others.
    """
    return load(body, DEEP_LIMIT, None)


def load(body: bytes, depth: int = DEPTH_LIMIT, containers: int | None = CONTAINERS_LIMIT) -> Any:
    """Return the JSON document in the body of a request, strictly UTF-8; ParseError for everything that is none.

    NaN, integers of more than 4300 digits, more than `depth` levels and more than `containers` lists
    and objects count as broken JSON. A byte order mark is skipped, as both SDK servers do.
    """
    try:
        text = body.removeprefix(_BOM).decode("utf-8")
        # Few brackets are few levels; so is nearly every request, and what `read_json` does besides costs
        # a fiftieth of it.
        if len(body) <= LARGE_BODY and text.count("[") + text.count("{") <= DEPTH_LIMIT:
            return decoder.decode(text)
        return read_json(text, decoder, depth=depth, containers=containers)
    except UnicodeDecodeError as error:
        raise ParseError("the body is not UTF-8") from error
    except TooNested as error:
        raise ParseError(f"the body is not read: {error}") from error
    except json.JSONDecodeError as error:
        raise ParseError(f"the body is not JSON: {error.msg} at character {error.pos}") from error
    except ValueError as error:
        raise ParseError("the body is not JSON: a number cannot be read") from error


def valid_id(value: object) -> bool:
    """Return True for what may identify a request: text or an integral number, never null or a truth value."""
    if isinstance(value, bool):
        return False
    if isinstance(value, str):
        return len(value) <= ID_LIMIT
    return isinstance(value, int) or (isinstance(value, float) and value.is_integer())


def readable_id(document: Any) -> Id | None:
    """Return the id that an error must echo, None when there is none to read.

    The id of a posted response belongs to another count and is not ours to echo.
    """
    if not isinstance(document, dict) or _is_response(document):
        return None
    request_id = document.get("id")
    return request_id if valid_id(request_id) else None


def _is_response(document: Mapping[str, Any]) -> bool:
    return "method" not in document and ("result" in document or "error" in document)


def parse_message(document: Any) -> Message:
    """Return the one message that `document` is; InvalidRequest for batches and everything malformed."""
    if isinstance(document, list):
        raise InvalidRequest("batches are not supported: post one JSON-RPC message at a time")
    if not isinstance(document, dict):
        raise InvalidRequest("the body must be one JSON-RPC object")
    if document.get("jsonrpc") != "2.0":
        raise InvalidRequest('"jsonrpc" must be "2.0"')
    if _is_response(document):
        return Response()
    if "method" not in document:
        raise InvalidRequest("the message has neither method nor result nor error")
    method, params = document["method"], document.get("params")
    if not isinstance(method, str):
        raise InvalidRequest('"method" must be a string')
    is_request = "id" in document
    if is_request and not valid_id(document["id"]):
        raise InvalidRequest(f'"id" must be an integer, or a string of at most {ID_LIMIT} characters')
    if params is not None and not isinstance(params, dict):  # null is what some clients write for none
        raise InvalidRequest('"params" must be an object')
    return Request(document["id"], method, params or {}) if is_request else Notification(method)


def result(request_id: Id, *body: bytes) -> bytes:
    """Return a result message around the JSON text of the result object, whose pieces are copied once."""
    return b"".join((result_head(request_id), *body, b"}"))


def result_head(request_id: Id) -> bytes:
    """Return a result message up to its result object."""
    written = verbatim(request_id) if isinstance(request_id, str) else repr(request_id).encode("ascii")
    return b'{"jsonrpc":"2.0","id":' + written + b',"result":'


def error(error: ProtocolError, request_id: Id | None, *, with_id: bool = True) -> bytes:
    """Return an error message; the id is null when it could not be read, left out when `with_id` is false."""
    members: dict[str, Any] = {"code": error.code, "message": error.message}
    if error.data is not None:
        members["data"] = error.data
    # The id goes back exactly as it came: whoever sent half a surrogate pair looks for it.
    identified = b'"id":' + verbatim(request_id) + b"," if with_id else b""
    return b'{"jsonrpc":"2.0",' + identified + b'"error":' + compact(members) + b"}"


def status(error: ProtocolError) -> int:
    """Return the HTTP status that carries `error`."""
    return error.status if error.status is not None else HTTP_STATUS[error.code]
