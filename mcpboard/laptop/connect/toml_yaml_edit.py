"""TOML and YAML changed in place, by tomlkit and ruamel.yaml, which write the rest as it was.

Both come with the extra `connect` and are imported when a file needs them.
"""

from __future__ import annotations

import functools
import importlib
import io
import operator
from collections.abc import Sequence
from typing import Any

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


def load_toml(text: str) -> Any:
    """Return the document as plain values; raises ConfigError for a text that is not TOML."""
    return _parsed_toml(text).unwrap()


def put_toml(text: str, path: Sequence[str], value: Any) -> str:
    """Return `text` with `value` at `path`, whose last table but one must be there."""
    document = _parsed_toml(text)
    _put_at(document, path, value)
    return str(document.as_string())


def _parsed_toml(text: str) -> Any:
    tomlkit = _library("tomlkit", "TOML")
    try:
        return tomlkit.parse(text)
    except (tomlkit.exceptions.TOMLKitError, ValueError) as error:
        raise ConfigError(f"it is not valid TOML ({error}); nothing was written") from None


# --- YAML ----------------------------------------------------------------------------------------


def load_yaml(text: str) -> Any:
    """Return the document as plain values, {} for comments alone; raises ConfigError unless it is one document."""
    document = _loaded_yaml(_ruamel().YAML(typ="safe", pure=True), text)
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
