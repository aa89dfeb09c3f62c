"""JSON changed in place: only the value that is set is written, every other byte stays.

Comments and trailing commas are taken as well, since a client that has them in its file reads them (VS Code's
mcp.json): what is looked at is the text with blanks in their place, what is changed is the text itself.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from json.decoder import JSONDecoder
from typing import Any, NoReturn

from mcpboard.errors import ConfigError

_SPACES = re.compile(r"[ \t\r\n]*")
_INDENT = re.compile(r"\n([ \t]+)\"")
_STRING = r'"(?:[^"\\\r\n]|\\.)*"'
_COMMENTS = re.compile(rf"{_STRING}|//[^\r\n]*|/\*.*?\*/", re.DOTALL)
_COMMAS = re.compile(rf"{_STRING}|,(?=[ \t\r\n]*[}}\]])")
# What may stand behind the last member in its line: a comma that nothing follows, and a comment.
_REST = re.compile(r"[ \t]*(?P<comma>,?)[ \t]*(?P<comment>//[^\r\n]*|/\*[^\r\n]*?\*/)?")
_DECODER = JSONDecoder()


Span = tuple[int, int]  # where a value begins in the text, and where it ends


def load(text: str) -> Any:
    """Return the document; raises ConfigError for whatever is no JSON with comments."""

    def refuse(word: str) -> NoReturn:
        raise ConfigError(f"{word} is not JSON; nothing was written")

    try:
        return json.loads(_plain(text), parse_constant=refuse)
    except RecursionError:
        raise ConfigError("it is nested too deeply") from None
    except json.JSONDecodeError as error:
        by_hand = "nothing was written; add the config entry by hand"
        raise ConfigError(f"line {error.lineno} is not JSON ({error.msg}); {by_hand}") from None


def put(text: str, path: Sequence[str], value: Any) -> str:
    """Return `text`, a document that `load` takes, with `value` at `path`; all but its last object must be there.

    Raises ConfigError for a key of the path that stands there twice, and for a value with comments in it.
    """
    plain = _plain(text)
    at = _skip(plain, 0)
    members: dict[str, Span] = {}
    for depth, key in enumerate(path, 1):
        members, end = _members(plain, at, key)
        if key not in members:
            deeper = path[depth:]
            break
        at = members[key][0]
    else:
        start, end = members[path[-1]]
        if any(not found[0].startswith('"') for found in _COMMENTS.finditer(text[start:end])):
            raise ConfigError("the entry that is there has comments in it; change it by hand, nothing was written")
        return text[:start] + _written(text, value, len(path)) + text[end:]
    for inner in reversed(deeper):
        value = {inner: value}
    line, unit = _layout(text)
    member = f"{line}{unit * depth}{json.dumps(key, ensure_ascii=False)}: {_written(text, value, depth)}"
    if members:
        last = max(end for _, end in members.values())
        rest = _REST.match(text, last)
        assert rest, "it may be empty"
        if rest["comma"]:
            return f"{text[: rest.end()]}{member},{text[rest.end() :]}"
        behind = rest.end() if rest["comment"] else last
        return f"{text[:last]},{text[last:behind]}{member}{text[behind:]}"
    # An empty object may have comments in it.
    inside = text[at + 1 : end - 1].rstrip()
    return f"{text[:at]}{{{inside}{member}{line}{unit * (depth - 1)}}}{text[end:]}"


def _plain(text: str) -> str:
    """Return the JSON alone, every character at its place: blanks for comments and for commas that nothing follows."""

    def blank(found: re.Match[str]) -> str:
        return found[0] if found[0].startswith('"') else re.sub(r"[^\r\n]", " ", found[0])

    return _COMMAS.sub(blank, _COMMENTS.sub(blank, text))


def _members(text: str, at: int, wanted: str) -> tuple[dict[str, Span], int]:
    """Return the members of the object that begins at `at`, by key, and where it ends; none where it is no object."""
    if text[at] != "{":
        return {}, _DECODER.raw_decode(text, at)[1]
    members: dict[str, Span] = {}
    at = _skip(text, at + 1)
    while text[at] != "}":
        if text[at] == ",":
            at = _skip(text, at + 1)
        key, at = _DECODER.raw_decode(text, at)
        start = _skip(text, _skip(text, at) + 1)  # over the colon
        _, end = _DECODER.raw_decode(text, start)
        if key == wanted and key in members:
            raise ConfigError(f"{key} stands there twice; remove one of them")
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
