"""The body of POST /api/tools/{name}, decoded and normalised as the Agent's Go code does it."""

from __future__ import annotations

import json
from typing import Any

from mcpboard.simulator.board.go_http import go_json

_GO_KINDS = {dict: "object", list: "array", str: "string", int: "number", float: "number", bool: "bool"}


class BadBody(Exception):
    """The body cannot be decoded; the message is what follows `Invalid request: `."""


def raw_input(body: bytes) -> str:
    """The tool's input as text; empty for no input. Only the first JSON value of the body counts."""
    text = body.decode("utf-8", "replace").lstrip(" \t\r\n")
    if not text:
        return ""
    post = _first_value(text)
    if post is None:
        return ""
    if not isinstance(post, dict):
        raise BadBody(f"json: cannot unmarshal {_kind(post)} into Go value of type agent.toolRequest")
    given = post.get("raw_input")
    if given is not None and not isinstance(given, str):
        where = "Go struct field toolRequest.raw_input of type string"
        raise BadBody(f"json: cannot unmarshal {_kind(given)} into {where}")
    return given or _input_text(post.get("input"))


def normalised(raw: str) -> tuple[str, Any]:
    """The input as the tool sees it, as text and as a value; ValueError when it is no JSON.

    Control characters inside strings are let through, a pair of stray quotes around the whole is taken off,
    and the wrapper `{"__arg1": "..."}` that some models write is unwrapped.
    """
    text = raw.strip().strip("`'").strip() or "{}"
    value = {} if text == "null" else _loads(text)
    if isinstance(value, dict) and list(value) == ["__arg1"] and isinstance(value["__arg1"], str):
        return normalised(value["__arg1"])
    return go_json(value), value


def _first_value(text: str) -> Any:
    try:
        return json.JSONDecoder(parse_constant=_no_constant).raw_decode(text)[0]
    except json.JSONDecodeError as trouble:
        raise BadBody(_go_message(text, trouble)) from None
    except (ValueError, RecursionError):
        raise BadBody("invalid character in literal") from None


def _loads(text: str) -> Any:
    try:
        return json.loads(text, strict=False, parse_constant=_no_constant)
    except RecursionError:
        raise ValueError("exceeded max depth") from None


def _no_constant(name: str) -> Any:
    raise ValueError(name)


def _go_message(text: str, trouble: json.JSONDecodeError) -> str:
    """The decoder's words: what stands where a value should begin, or that the text ended too early."""
    at = text[trouble.pos : trouble.pos + 1]
    unfinished = not at or trouble.msg.startswith("Unterminated")
    if unfinished:
        return "unexpected EOF"
    return f"invalid character '{at}' looking for beginning of value"


def _input_text(value: Any) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else go_json(value)


def _kind(value: object) -> str:
    return _GO_KINDS.get(type(value), "value")
