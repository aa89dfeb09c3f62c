"""JSON changed in place: only the value that is set is written, every other byte stays."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from json.decoder import JSONDecoder
from typing import Any, NoReturn

from mcpboard.errors import ConfigError

_SPACES = re.compile(r"[ \t\r\n]*")
_INDENT = re.compile(r"\n([ \t]+)\"")
_DECODER = JSONDecoder()


Span = tuple[int, int]  # where a value begins in the text, and where it ends


def load(text: str) -> Any:
    """Return the document; raises ConfigError for comments, trailing commas, doubled keys and whatever is no JSON."""

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        if len(found := dict(pairs)) < len(pairs):
            raise ConfigError("a key stands there twice; remove one of them")
        return found

    def refuse(word: str) -> NoReturn:
        raise ConfigError(f"{word} is not JSON; nothing was written")

    try:
        return json.loads(text, object_pairs_hook=unique, parse_constant=refuse)
    except RecursionError:
        raise ConfigError("it is nested too deeply") from None
    except json.JSONDecodeError as error:
        lost = "comments and trailing commas cannot be kept, so nothing was written; add the config entry by hand"
        raise ConfigError(f"line {error.lineno} is not plain JSON ({error.msg}); {lost}") from None


def put(text: str, path: Sequence[str], value: Any) -> str:
    """Return `text`, a document that `load` takes, with `value` at `path`; all but its last object must be there."""
    at = _skip(text, 0)
    members: dict[str, Span] = {}
    for depth, key in enumerate(path, 1):
        members, end = _members(text, at)
        if key not in members:
            deeper = path[depth:]
            break
        at = members[key][0]
    else:
        start, end = members[path[-1]]
        return text[:start] + _written(text, value, len(path)) + text[end:]
    for inner in reversed(deeper):
        value = {inner: value}
    line, unit = _layout(text)
    member = f"{line}{unit * depth}{json.dumps(key, ensure_ascii=False)}: {_written(text, value, depth)}"
    if members:
        last = max(end for _, end in members.values())
        return f"{text[:last]},{member}{text[last:]}"
    return f"{text[:at]}{{{member}{line}{unit * (depth - 1)}}}{text[end:]}"


def _members(text: str, at: int) -> tuple[dict[str, Span], int]:
    """Return the members of the object that begins at `at`, by key, and where it ends."""
    members: dict[str, Span] = {}
    at = _skip(text, at + 1)
    while text[at] != "}":
        if text[at] == ",":
            at = _skip(text, at + 1)
        key, at = _DECODER.raw_decode(text, at)
        start = _skip(text, _skip(text, at) + 1)  # over the colon
        _, end = _DECODER.raw_decode(text, start)
        members[key] = start, end
        at = _skip(text, end)
    return members, at + 1


def _skip(text: str, at: int) -> int:
    spaces = _SPACES.match(text, at)
    return spaces.end() if spaces else at


def _layout(text: str) -> tuple[str, str]:
    """Return line break and one step of indentation, as the text has them."""
    first = _INDENT.search(text)
    return "\r\n" if "\r\n" in text else "\n", first[1] if first else "  "


def _written(text: str, value: Any, depth: int) -> str:
    line, unit = _layout(text)
    written = json.dumps(value, indent=unit, ensure_ascii=False)
    return written.replace("\n", line + unit * depth)
