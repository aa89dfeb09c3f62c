"""Tools as the client sees them: the row's public half, the argument check, and content blocks."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from mcpboard.errors import BadArgument


@dataclass(frozen=True)
class Tool:
    """What `tools/list` says of one tool; empty members are left out, never sent as null."""

    name: str
    title: str
    description: str
    input_schema: Mapping[str, Any]
    annotations: Mapping[str, Any] = field(default_factory=dict)

    def listed(self) -> dict[str, Any]:
        """The entry of this tool in a `tools/list` result."""
        return {
            "name": self.name,
            "title": self.title,
            "description": self.description,
            "inputSchema": dict(self.input_schema),
            "annotations": {"title": self.title, **self.annotations},
        }


# --- content -------------------------------------------------------------------------------


class ByteSource(Protocol):
    """Raw bytes that arrive over time: iterated once, closed always, even when never iterated."""

    length: int | None  # bytes in all, None when the source does not say

    def __iter__(self) -> Iterator[bytes]: ...

    def close(self) -> None: ...


# A rendered block is a run of parts: JSON text ready to send, or a source whose bytes go out as
# base64 inside the JSON string that the neighbouring parts open and close.
Part = bytes | ByteSource


_encoder = json.JSONEncoder(separators=(",", ":"), allow_nan=False)


def compact(value: object) -> bytes:
    """JSON without blanks, pure ASCII, so that no lone surrogate can ever break the encoding."""
    return _encoder.encode(value).encode("ascii")


@dataclass(frozen=True)
class Text:
    """A text block."""

    text: str

    def parts(self) -> Sequence[Part]:
        return (b'{"type":"text","text":' + compact(self.text) + b"}",)


@dataclass(frozen=True)
class Image:
    """A picture; `data` must be known to be pure base64, because it is sent without escaping."""

    data: str
    mime: str

    def parts(self) -> Sequence[Part]:
        return (
            b'{"type":"image","data":"',
            self.data.encode("ascii"),
            b'","mimeType":' + compact(self.mime) + b"}",
        )


@dataclass(frozen=True)
class Blob:
    """An embedded resource of raw bytes, encoded on the way out."""

    uri: str
    mime: str
    source: ByteSource

    def parts(self) -> Sequence[Part]:
        head = compact({"uri": self.uri, "mimeType": self.mime})[:-1]
        return (
            b'{"type":"resource","resource":' + head + b',"blob":"',
            self.source,
            b'"}}',
        )


Block = Text | Image | Blob


@dataclass(frozen=True)
class Content:
    """What a tool call came to: blocks, and for plain JSON results the object itself.

    Never put `structured` beside an Image: one major client then loses the picture.
    """

    blocks: tuple[Block, ...]
    structured: Mapping[str, Any] | None = None
    is_error: bool = False


# --- the argument check --------------------------------------------------------------------


def _is_number(value: object) -> bool:
    if isinstance(value, str):
        return _numeric(value) is not None
    return _is_int(value) or (isinstance(value, float) and math.isfinite(value))


def _is_integer(value: object) -> bool:
    number = _numeric(value) if isinstance(value, str) else value
    return _is_int(number) or (isinstance(number, float) and number.is_integer())


def _is_int(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _numeric(text: str) -> float | None:
    """The finite number that `text` spells in plain ASCII digits, else None."""
    try:
        value = float(text) if text.isascii() and "_" not in text else math.nan
    except (ValueError, OverflowError):
        return None
    return value if math.isfinite(value) else None


# Type word of JSON Schema -> (claim, what a person would call it). Numeric strings pass, because
# some clients send every argument as text (decision table, row 75).
TYPES: Mapping[str, tuple[Callable[[object], bool], str]] = {
    "string": (lambda v: isinstance(v, str), "text"),
    "number": (_is_number, "a finite number"),
    "integer": (_is_integer, "a whole number"),
    "boolean": (lambda v: isinstance(v, bool), "true or false"),
    "object": (lambda v: isinstance(v, dict), "an object"),
    "array": (lambda v: isinstance(v, list), "a list"),
}


def check_arguments(schema: Mapping[str, Any], arguments: Mapping[str, Any]) -> None:
    """Raise BadArgument, naming the field, when a required property is missing or of the wrong kind.

    A light check on purpose: only `required` and primitive types, into nested objects as far as
    the schema describes them. Unknown properties, ranges and all meaning are the backend's.
    Nothing is ever rounded, clamped or converted.
    """
    problem = _problem(schema, arguments, "")
    if problem:
        raise BadArgument(problem)


def _problem(schema: Mapping[str, Any], value: Mapping[str, Any], path: str) -> str | None:
    properties = schema.get("properties", {})
    for name in schema.get("required", ()):
        if name not in value:
            return f"argument {path}{name} is missing; it wants {_wanted(properties.get(name, {}))}"
    for name, rule in properties.items():
        if name not in value:
            continue
        claim, _ = TYPES.get(rule.get("type", ""), (None, ""))
        if claim and not claim(value[name]):
            return f"argument {path}{name} must be {_wanted(rule)}"
        if isinstance(value[name], dict):
            problem = _problem(rule, value[name], f"{path}{name}.")
            if problem:
                return problem
    return None


def _wanted(rule: Mapping[str, Any]) -> str:
    _, words = TYPES.get(rule.get("type", ""), (None, "a value"))
    note = str(rule.get("description", "")).strip()
    return f"{words} ({note})" if note else words
