"""Foreign text: made safe to print, read as JSON, compared with what was meant."""

from __future__ import annotations

import difflib
import itertools
import json
import re
from collections.abc import Iterable, Iterator
from typing import Any

LINE_LIMIT = 200  # characters of a foreign text that a message repeats: a sentence, not a page


def one_line(text: str, limit: int = LINE_LIMIT) -> str:
    """Return foreign text for a message: one line of printable characters, single spaces, cut with `...`."""
    line = " ".join("".join(c if c.isprintable() else " " for c in text).split())
    return line if len(line) <= limit else f"{line[:limit]}..."


def printable(text: str, keep: str = "") -> str:
    """Return `text` with U+FFFD for every character that could steer a terminal, except those in `keep`."""
    return "".join(c if c.isprintable() or c in keep else "\N{REPLACEMENT CHARACTER}" for c in text)


def well_formed(text: str) -> str:
    """Return `text` with U+FFFD for every half of a surrogate pair: no UTF-8 holds one, and few JSON parsers.

    Two halves that stand side by side become the character that they mean.
    """
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text


# Half a surrogate pair of JSON, escaped; the two halves of a whole one stand side by side.
_HALF = re.compile(
    rb"\\u[dD](?:[89abAB][0-9a-fA-F]{2}(?!\\u[dD][c-fC-F])"
    rb"|[c-fC-F](?<!\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD].)[0-9a-fA-F]{2})"
)
_HALF_BYTES = 6  # as many as the escape of U+FFFD


def surrogate_halves(document: bytes) -> Iterator[int]:
    """Yield the offset of every escaped half of a surrogate pair in JSON text."""
    if rb"\ud" in document or rb"\uD" in document:
        # An escaped backslash before `ud83d` is text.
        for half in _HALF.finditer(document.replace(rb"\\", b"--")):
            yield half.start()


def well_formed_json(document: bytes) -> bytes:
    """Return JSON text with U+FFFD for every escaped half of a surrogate pair, the very same where there is none.

    What a phone shows may hold one, and many parsers refuse a whole message for it, that of the
    official Python client among them.
    """
    halves = list(surrogate_halves(document))
    if not halves:
        return document
    repaired = bytearray(document)
    for half in halves:
        repaired[half : half + _HALF_BYTES] = rb"\ufffd"
    return bytes(repaired)


# Base64 in a text, also in the JSON of a text, where its line ends and slashes are escaped.
_BASE64 = re.compile(r"(?:data:[\w/+.-]{0,60};base64,|(?<![A-Za-z0-9+/=_\-\\\r\n]))([A-Za-z0-9+/=_\-\\\r\n]{32,})")
_ESCAPES = re.compile(r"\\+[nr]?|[\r\n]+")
# How the base64 of a picture begins.
_PICTURES = {"/9j/": "JPEG", "iVBORw0KGgo": "PNG", "R0lGOD": "GIF", "UklGR": "WebP"}
_FILE = 4096  # characters of base64 that is no picture: tokens, keys and certificates are shorter
_LETTERS = 32  # different ones in a file; a line of dashes, hexadecimal or one letter for long has fewer


def may_hold_base64(text: str) -> bool:
    """Return False for a text, or a JSON document, that `without_base64` leaves as it is; a quick look."""
    return len(text) >= _FILE or "9j/" in text or "iVBORw0KGgo" in text or "R0lGOD" in text or "UklGR" in text


def without_base64(text: str, *, is_whole: bool = True) -> str:
    """Return foreign text with a note such as `(JPEG, 132 kB, left out)` for every picture or file in base64.

    A model reads each character of it and sees nothing. Without `is_whole`, where the text is only a
    beginning, the notes have no sizes.
    """

    def note(found: re.Match[str]) -> str:
        data = _ESCAPES.sub("", found[1])
        name = next((name for begins, name in _PICTURES.items() if data.startswith(begins)), "")
        if not name and (len(data) < _FILE or len(set(data[:_FILE])) < _LETTERS):
            return found[0]
        size = len(data) // 4 * 3 - data.count("=", -2)
        told = f"{size} bytes" if size < 1000 else f"{size // 1000} kB"
        # The backslash before a quote belongs to the quote.
        escape = found[0][len(found[0].rstrip("\\")) :]
        return f"({', '.join([name or 'base64', *([told] if is_whole else []), 'left out'])}){escape}"

    return _BASE64.sub(note, text)


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """Return a hint for a mistyped word: the closest known one, or all of them."""
    names = list(known)
    close = difflib.get_close_matches(word, names, 1)
    return f"did you mean {close[0]}?" if close else f"known there: {', '.join(names)}"


# --- JSON ------------------------------------------------------------------------------------

DEPTH_LIMIT = 64  # levels; no request, schema or result of a tool needs ten
# Levels of what passes through to somebody else, as the tree of a phone's screen does.
DEEP_LIMIT = 1000

_STRING = re.compile(rb'"[^"]*"?')
# The brackets of JSON -> what each adds to the level, as a signed byte.
_STEPS = bytes.maketrans(b"[{]}", b"\x01\x01\xff\xff")
_NEITHER = bytes(set(range(256)) - set(b'"[{]}'))
_NO_SEPARATORS = bytes(set(range(256)) - set(b'",'))
_COMMAS_OR_STRING = re.compile(rb'(?P<commas>,+)|"[^"]*"?')
_SHORT = 1024  # characters
_LARGE = 1 << 20  # characters; shorter ones cannot hold values that matter
_SPACE = re.compile(r"[ \t\n\r]*")


class TooNested(ValueError):
    """A JSON document of more levels, or more lists and objects, than are read here."""


def nesting(document: str | bytes | bytearray) -> tuple[int, int]:
    """Return how many levels a JSON document has, and how many lists and objects, without parsing it.

    Bytes are UTF-8. Both are upper bounds where they are at most DEPTH_LIMIT. Takes time in proportion to the length.
    """
    openings: Any = ("[", "{") if isinstance(document, str) else (b"[", b"{")
    if len(document) <= _SHORT:
        brackets = sum(map(document.count, openings))
    else:
        # `find` skips the base64 of a picture sixteen bytes at a time, where `count` walks it.
        brackets, search = 0, document.find
        for opening in openings:
            position = search(opening)
            while position >= 0 and brackets <= DEPTH_LIMIT:
                brackets, position = brackets + 1, search(opening, position + 1)
    if brackets <= DEPTH_LIMIT:
        return brackets, brackets
    return bracket_levels(_STRING.sub(b"", _unescaped(document).translate(None, _NEITHER)))


def _unescaped(document: str | bytes | bytearray) -> bytes | bytearray:
    """Return a JSON document as UTF-8 without the escapes that could end a string, or seem to."""
    text = document.encode("utf-8", "replace") if isinstance(document, str) else document
    return text.replace(rb"\\", b"").replace(rb"\"", b"")


def bracket_levels(brackets: bytes) -> tuple[int, int]:
    """Return how deep brackets are nested, and how many of them open; nothing else may be among them."""
    steps = brackets.translate(_STEPS)
    return max(itertools.accumulate(memoryview(steps).cast("b")), default=0), steps.count(b"\x01")


def read_json(
    document: str | bytes | bytearray,
    decoder: json.JSONDecoder,
    *,
    depth: int = DEPTH_LIMIT,
    containers: int | None = None,
    values: int | None = None,
) -> Any:
    """Return the value of a JSON document; ValueError for what is none, TooNested for one that is too much."""

    # Levels and containers (lists and objects) are counted before anything is parsed: the parser of
    # the standard library recurses in C, and on the stack of 128 KiB that musl gives a thread 1,000
    # levels end the process; and two bytes of an empty list become 56 of memory. `values` bounds names and
    # scalars where a document is long enough to hold many. Deeper than DEPTH_LIMIT
    # the open containers are kept in a list, and `decoder` reads their names and scalars.
    # Bytes are UTF-8, UTF-16 or UTF-32, as the standard library tells them apart.
    # A picture makes a document of megabytes: it is counted as it came, and then held only as text.
    if not isinstance(document, str) and (encoding := json.detect_encoding(document)) != "utf-8":
        document = document.decode(encoding)
    if values is not None and len(document) > _LARGE and _has_more_values(document, values):
        raise TooNested(f"it has more than {values} values")
    levels, count = nesting(document)
    if levels > depth:
        raise TooNested(f"it is nested deeper than {depth} levels")
    if containers is not None and count > containers:
        raise TooNested(f"it has more than {containers} lists and objects")
    if not isinstance(document, str):
        document = document.decode("utf-8")
    return decoder.decode(document) if levels <= DEPTH_LIMIT else _read_deep(document, decoder)


def _read_deep(text: str, decoder: json.JSONDecoder) -> Any:
    """Return the value of a JSON document of any depth, as `decoder` would, without recursion."""
    opened: list[Any] = [[]]  # containers that are not closed yet, the outermost first; the first keeps the value
    names: list[str] = []  # under which the next value of each open object is kept
    wanted, position = "value", 0

    def keep(value: Any) -> None:
        if isinstance(opened[-1], dict):
            opened[-1][names.pop()] = value
        else:
            opened[-1].append(value)

    while space := _SPACE.match(text, position):
        position = space.end()
        if position == len(text):
            break
        mark, end, in_object = text[position], position + 1, isinstance(opened[-1], dict)
        may_close = len(opened) > 1 and wanted not in ("value", "name", "colon")
        if may_close and mark == ("}" if in_object else "]"):
            opened.pop()
            wanted = "comma"
        elif wanted.startswith("value") and mark in "[{":
            container: Any = [] if mark == "[" else {}
            wanted = "value or ]" if mark == "[" else "name or }"
            keep(container)
            opened.append(container)
        elif wanted.startswith("value"):
            value, end = decoder.raw_decode(text, position)
            keep(value)
            wanted = "comma"
        elif wanted.startswith("name") and mark == '"':
            name, end = decoder.raw_decode(text, position)
            names.append(name)
            wanted = "colon"
        elif wanted == "colon" and mark == ":":
            wanted = "value"
        elif wanted == "comma" and mark == "," and len(opened) > 1:
            wanted = "name" if in_object else "value"
        else:
            break
        position = end
    if position < len(text) or len(opened) > 1 or wanted != "comma":
        raise json.JSONDecodeError(f"Expecting {wanted}", text, position)
    return opened[0][0]


def _has_more_values(document: str | bytes | bytearray, limit: int) -> bool:
    """Tell if more than `limit` values stand side by side in a JSON document."""
    comma: Any = "," if isinstance(document, str) else b","
    if document.count(comma) < limit:
        return False
    outside = 0
    # One at a time: a list of that many strings would take more than the values.
    for part in _COMMAS_OR_STRING.finditer(_unescaped(document).translate(None, _NO_SEPARATORS)):
        outside += len(part["commas"] or b"")
        if outside >= limit:
            return True
    return False


_plain_decoder = json.JSONDecoder()


def json_object(document: str | bytes | bytearray, depth: int = DEPTH_LIMIT) -> dict[str, Any] | None:
    """Return the JSON object that `document` is; None for anything else, more than `depth` levels included."""
    try:
        value = read_json(document, _plain_decoder, depth=depth)
    except ValueError:
        return None
    return value if isinstance(value, dict) else None
