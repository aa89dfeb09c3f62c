"""YAML changed in place, by ruamel.yaml, where it can write the rest exactly as it was."""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import Any

from mcpboard.errors import ConfigError

MISSING = "a YAML file needs one more package: pip install 'mcpboard[connect]'; or add the form by hand"
WIDTH = 1 << 16  # columns; no line of a configuration is folded

# Indentation of mappings, of sequences, and of the dash within those: the layouts that people use.
LAYOUTS = ((2, 2, 0), (2, 4, 2), (4, 4, 0), (4, 4, 2), (4, 6, 4))


def load(text: str) -> Any:
    """The document as plain values, {} for comments alone; raises ConfigError for a text that is not one document."""
    found = _loaded(_yaml("safe"), text)
    return {} if found is None else found


def put(text: str, path: Sequence[str], value: Any) -> str:
    """`text` with `value` at `path`, whose last mapping but one must be there.

    Raises ConfigError when the text is laid out in a way that would not survive.
    """
    line = "\r\n" if "\r\n" in text else "\n"
    text = text.replace("\r\n", "\n")
    yaml = _that_keeps(text)
    document = _loaded(yaml, text)
    table = document
    for key in path[:-1]:
        table = table[key]
    _set(table, path[-1], value)
    return _dumped(yaml, document).replace("\n", line)


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


def _that_keeps(text: str) -> Any:
    """A round-trip reader and writer that gives this very text back."""
    for mapping, sequence, offset in LAYOUTS:
        yaml = _yaml("rt")
        yaml.preserve_quotes = True
        yaml.width = WIDTH
        yaml.explicit_start = text.startswith("---")
        yaml.indent(mapping=mapping, sequence=sequence, offset=offset)
        if _dumped(yaml, _loaded(yaml, text)) == text:
            return yaml
    raise ConfigError("its layout would not survive a change; nothing was written, add the form by hand")


def _library() -> Any:
    try:
        import ruamel.yaml  # the extra `connect`
    except ImportError:
        raise ConfigError(MISSING) from None
    return ruamel.yaml


def _yaml(kind: str) -> Any:
    return _library().YAML(typ=kind, pure=True)


def _loaded(yaml: Any, text: str) -> Any:
    try:
        return yaml.load(text)
    except (_library().error.YAMLError, ValueError, RecursionError) as error:
        first = str(error).partition("\n")[0]
        raise ConfigError(f"it is not valid YAML ({first}); nothing was written") from None


def _dumped(yaml: Any, document: Any) -> str:
    stream = io.StringIO()
    yaml.dump(document, stream)
    return stream.getvalue()
