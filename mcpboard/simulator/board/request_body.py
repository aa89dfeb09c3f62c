"""The body of POST /api/tools/{name}, decoded and normalized as the Agent's Go code does it."""

from __future__ import annotations

import json
from typing import Any

from mcpboard.simulator.board.go_http import go_json

_GO_KINDS = {dict: "object", list: "array", str: "string", int: "number", float: "number", bool: "bool"}


class BadBody(Exception):
    """The body cannot be decoded; the message is what follows `Invalid request: `."""


def raw_input(body: bytes) -> str:
    """Return the tool's input as text; empty for no input. Only the first JSON value of the body counts."""
    text = body.decode("utf-8", "replace").lstrip(" \t\r\n")
    if not text:
        return ""
    try:
        post = json.JSONDecoder(parse_constant=_no_constant).raw_decode(text)[0]
    except json.JSONDecodeError as error:
        # Go's message: the character where a value should begin, or that the text ended too early
        at = text[error.pos : error.pos + 1]
        if not at or error.msg.startswith("Unterminated"):
            raise BadBody("unexpected EOF") from None
        raise BadBody(f"invalid character '{at}' looking for beginning of value") from None
    except (ValueError, RecursionError):
        raise BadBody("invalid character in literal") from None
    if post is None:
        return ""
    if not isinstance(post, dict):
        kind = _GO_KINDS.get(type(post), "value")
        raise BadBody(f"json: cannot unmarshal {kind} into Go value of type agent.toolRequest")
    raw, value = post.get("raw_input"), post.get("input")
    if raw is not None and not isinstance(raw, str):
        kind, field = _GO_KINDS.get(type(raw), "value"), "Go struct field toolRequest.raw_input of type string"
        raise BadBody(f"json: cannot unmarshal {kind} into {field}")
    if raw or value is None:
        return raw or ""
    return value if isinstance(value, str) else go_json(value)


def normalized(raw: str) -> tuple[str, Any]:
    """Return the input as the tool sees it, as text and as a value; ValueError when it is no JSON.

    Control characters inside strings are let through, a pair of stray quotes around the whole is taken off,
    and the wrapper `{"__arg1": "..."}` that some models write is unwrapped.
    """
    text = raw.strip().strip("`'").strip() or "{}"
    try:
        value = {} if text == "null" else json.loads(text, strict=False, parse_constant=_no_constant)
    except RecursionError:
        raise ValueError("exceeded max depth") from None
    if isinstance(value, dict) and list(value) == ["__arg1"] and isinstance(value["__arg1"], str):
        return normalized(value["__arg1"])
    return go_json(value), value


def _no_constant(name: str) -> Any:
    """Refuse NaN and the infinities, which Go's decoder does not know."""
    raise ValueError(name)
