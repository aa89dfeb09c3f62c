"""TOML and YAML changed in place.

A new entry is put in as lines of text, so that nothing else is touched, however its client has written it. One that
is there is changed by tomlkit and ruamel.yaml, which come with the extra `connect` and are imported when a file needs
them; the latter reads YAML, too.
"""

from __future__ import annotations

import functools
import importlib
import io
import operator
import re
from collections.abc import Mapping, Sequence
from typing import Any

from mcpboard.client_configs import WRITERS
from mcpboard.errors import ConfigError

MISSING = "a {} file needs one more package: pip install 'mcpboard[connect]'; or add the config entry by hand"
WIDTH = 1 << 16  # columns; no line of a configuration is folded

# Indentation of mappings, of sequences, and of the dash within those: the layouts that people use.
LAYOUTS = ((2, 2, 0), (2, 4, 2), (4, 4, 0), (4, 4, 2), (4, 6, 4))


def _library(name: str, language: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError:
        raise ConfigError(MISSING.format(language)) from None


def _put_at(document: Any, path: Sequence[str], value: Any) -> None:
    """Set `value` at `path` of a parsed document, whose last table but one must be there."""
    _set(functools.reduce(operator.getitem, path[:-1], document), path[-1], value)


def _set(table: Any, key: str, value: Any) -> None:
    """Set what differs and nothing else, so that comments in an entry survive."""
    if isinstance(value, dict) and isinstance(table.get(key), dict):
        for gone in [name for name in table[key] if name not in value]:
            del table[key][gone]
        for name, inner in value.items():
            if name not in table[key] or table[key][name] != inner:
                _set(table[key], name, inner)
    else:
        table[key] = value


# --- TOML ----------------------------------------------------------------------------------------


def put_toml(text: str, path: Sequence[str], value: Any) -> str:
    """Return `text` with `value` at `path`, whose last table but one must be there."""
    tomlkit = _library("tomlkit", "TOML")
    try:
        document = tomlkit.parse(text)
        _put_at(document, path, value)
        return str(document.as_string())
    except (tomlkit.exceptions.TOMLKitError, ValueError) as error:
        raise ConfigError(f"tomlkit cannot change it ({error}); nothing was written") from None


# --- YAML ----------------------------------------------------------------------------------------

_KEY = r"""(?P<indent>[ ]*)(?P<quote>["']?){}(?P=quote)[ \t]*:[ \t]*(?P<value>\{{\}}|null|~)?[ \t]*(?P<comment>#.*)?"""
_NOTHING = re.compile(r"[ \t]*(#.*)?")  # a line without content


def insert_yaml(text: str, table: str, name: str, entry: Mapping[str, Any]) -> str | None:
    """Return the text with the entry in its table as lines of text, in place of one of that name.

    None where the table does not stand there as lines of its own.
    """
    lines = text.splitlines(keepends=True)
    line_end = "\r\n" if "\r\n" in text else "\n"
    at = _key_line(lines, table, 0, len(lines), "")
    if at is None or _key_line(lines, table, at + 1, len(lines), "") is not None:
        return None
    end = _end_of_block(lines, at, 0)
    inside = [line for line in lines[at + 1 : end] if not _NOTHING.fullmatch(line.rstrip("\r\n"))]
    indent = re.match(r" *", inside[0])[0] if inside else "  "  # type: ignore[index]
    block = [line + line_end for line in WRITERS["yaml"]({name: entry}).split("\n")]
    block = [indent + line for line in block]
    if (there := _key_line(lines, name, at + 1, end, indent)) is not None:
        after = _end_of_block(lines, there, len(indent))
        return "".join([*lines[:there], *block, *lines[after:]])
    if not inside:  # `table: {}` and its like hold nothing yet
        lines[at] = re.sub(r":[ \t]*(\{\}|null|~)", ":", lines[at], count=1)
    lines[end - 1] = lines[end - 1].rstrip("\r\n") + line_end
    return "".join([*lines[:end], *block, *lines[end:]])


def _key_line(lines: Sequence[str], key: str, start: int, end: int, indent: str) -> int | None:
    """Return the line between `start` and `end` that opens the mapping `key` at that indentation; None for none."""
    form = re.compile(_KEY.format(re.escape(key)))
    found = [(at, form.fullmatch(lines[at].rstrip("\r\n"))) for at in range(start, end)]
    return next((at for at, match in found if match and match["indent"] == indent), None)


def _end_of_block(lines: Sequence[str], at: int, indent: int) -> int:
    """Return the line behind the last one of the mapping that line `at` opens at that indentation."""
    last = at
    for number in range(at + 1, len(lines)):
        line = lines[number].rstrip("\r\n")
        if _NOTHING.fullmatch(line):
            continue
        if len(line) - len(line.lstrip(" ")) <= indent:
            break
        last = number
    return last + 1


def load_yaml(text: str) -> Any:
    """Return the document as plain values, {} for comments alone; raises ConfigError unless it is one document."""
    yaml = _ruamel().YAML(typ="safe", pure=True)
    yaml.allow_duplicate_keys = True  # as the clients' own library has it; which one counts is not for us to say
    document = _loaded_yaml(yaml, text)
    return {} if document is None else document


def put_yaml(text: str, path: Sequence[str], value: Any) -> str:
    """Return `text` with `value` at `path`, whose last mapping but one must be there.

    Raises ConfigError when the text is laid out in a way that would not survive.
    """
    line = "\r\n" if "\r\n" in text else "\n"
    text = text.replace("\r\n", "\n")
    for mapping, sequence, offset in LAYOUTS:
        yaml = _ruamel().YAML(typ="rt", pure=True)
        yaml.preserve_quotes = True
        yaml.width = WIDTH
        yaml.explicit_start = text.startswith("---")
        yaml.indent(mapping=mapping, sequence=sequence, offset=offset)
        if _dumped_yaml(yaml, _loaded_yaml(yaml, text)) == text:  # this one gives the very text back
            document = _loaded_yaml(yaml, text)
            _put_at(document, path, value)
            return _dumped_yaml(yaml, document).replace("\n", line)
    raise ConfigError("its layout would not survive a change; nothing was written, add the config entry by hand")


def _ruamel() -> Any:
    return _library("ruamel.yaml", "YAML")


def _loaded_yaml(yaml: Any, text: str) -> Any:
    try:
        return yaml.load(text)
    except (_ruamel().error.YAMLError, ValueError, RecursionError) as error:
        first = str(error).partition("\n")[0]
        raise ConfigError(f"it is not valid YAML ({first}); nothing was written") from None


def _dumped_yaml(yaml: Any, document: Any) -> str:
    stream = io.StringIO()
    yaml.dump(document, stream)
    return stream.getvalue()
