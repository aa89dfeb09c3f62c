"""A server's entry in the text of a client's configuration: set there, with everything else left as it is.

An edit is made in the text and then read back: unless that gives exactly the old document with the
entry in it, and every comment is still there, the edit is refused and nothing is written.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mcpboard.client_configs import CONNECTION_KEYS, URL_KEYS, WRITERS, Target
from mcpboard.config.files import parse_toml
from mcpboard.errors import ConfigError
from mcpboard.laptop.connect import json_edit, toml_yaml_edit

Document = Mapping[str, Any]


@dataclass(frozen=True)
class Language:
    """A configuration language; `load` and `put` raise ConfigError for a text that they cannot follow.

    `put(text, path, value)` sets one value, creating what is missing on the way; `comment` is the
    form of one in a line, and with `appends` a document written at the end of a text becomes part of it.
    """

    load: Callable[[str], Any]
    put: Callable[[str, Sequence[str], Any], str]
    comment: str = ""
    appends: bool = False


LANGUAGES: Mapping[str, Language] = {
    "json": Language(json_edit.load, json_edit.put),
    "toml": Language(parse_toml, toml_yaml_edit.put_toml, r"#.*", appends=True),
    "yaml": Language(toml_yaml_edit.load_yaml, toml_yaml_edit.put_yaml, r"(?:^|(?<=\s))#.*", appends=True),
}

_DOCUMENT_END = re.compile(r"^\.\.\.[ \t]*(#.*)?\s*\Z", re.MULTILINE)

BY_HAND = "nothing was written; add the config entry by hand"


def with_entry(format: str, text: str, ours: Document) -> str:
    """Return `text` with the tables and lists of `ours` in it, the very same text when they are there already.

    Raises ConfigError for a text that cannot be parsed, or not be changed without harm to the rest.
    """
    language = LANGUAGES[format]
    if format == "yaml" and _inserted(format, text, {}, ours) == text:
        return text  # which needs no library to be known
    old = language.load(text) if text.strip() else {}
    if not isinstance(old, dict):
        raise ConfigError(f"it holds no table at the top; {BY_HAND}")
    new = merged(old, ours)
    if new == old:
        return text
    if not text.strip():
        return WRITERS[format](ours) + "\n"
    refused = ConfigError(f"it cannot be changed without touching the rest of it; {BY_HAND}")
    for attempt in (_inserted, _appended, _put):
        try:
            changed = attempt(format, text, old, new)
        except ConfigError as error:
            refused = error
            continue
        if changed is not None and _is_sound(language, text, changed, new):
            return changed
    raise refused


def merged(old: Document, ours: Document) -> dict[str, Any]:
    """Return the document `old` with `ours` in it: an entry's other members stay, how to connect is replaced."""
    new = dict(old)
    for key, value in ours.items():
        present = old.get(key)
        if isinstance(value, dict):
            if present is not None and not isinstance(present, dict):
                raise ConfigError(f"{key} is there, but is no table; {BY_HAND}")
            table = new[key] = dict(present or {})
            for name, entry in value.items():
                there = table.get(name)
                added = there if isinstance(there, dict) else {}
                table[name] = {**entry, **{each: added[each] for each in added if each not in CONNECTION_KEYS}}
        else:
            if present is not None and not isinstance(present, list):
                raise ConfigError(f"{key} is there, but is no list; {BY_HAND}")
            ids = [item["id"] for item in value]
            others = [each for each in present or [] if not isinstance(each, dict) or each.get("id") not in ids]
            same = [each for each in present or [] if each not in others]
            new[key] = list(present or []) if same == list(value) else [*others, *value]
    return new


def notes(format: str, text: str, table: str, target: Target) -> tuple[str, ...]:
    """Return a sentence for each other entry with the target's URL, and one for an entry of ours that is disabled."""
    try:
        entries = LANGUAGES[format].load(text).get(table) or {}
    except ConfigError:  # the library that reads it is not there, and nothing had to be changed
        return ()
    found = []
    for name, entry in entries.items():
        if not isinstance(entry, dict):
            continue
        arguments = entry.get("args")
        urls = [entry.get(key) for key in URL_KEYS] + (arguments if isinstance(arguments, list) else [])
        if name != target.name and target.url.rstrip("/") in [str(url).rstrip("/") for url in urls]:
            found.append(f"{name} is there with the same URL: the client may list every tool twice, so remove one")
        if name == target.name and (entry.get("disabled") is True or entry.get("enabled") is False):
            found.append(f"{name} is disabled there, and stays so: enable it in the client")
    return tuple(found)


# --- three ways to change a text -----------------------------------------------------------------


def _inserted(format: str, text: str, old: Document, new: Document) -> str | None:
    """Return YAML with the entries that differ as lines in their tables, which stand there already; None for others."""
    if format != "yaml":
        return None
    for key, value in new.items():
        present = old.get(key) or {}
        if not isinstance(value, dict) or not isinstance(present, dict):
            continue
        for name, entry in value.items():
            if name in present and present[name] == entry:
                continue
            changed = toml_yaml_edit.insert_yaml(text, key, name, entry)
            if changed is None:
                return None
            text = changed
    return text


def _appended(format: str, text: str, old: Document, new: Document) -> str | None:
    """Return the text with what is new at its end; None unless the language allows it and all of it is new."""
    fresh: dict[str, Document] = {}
    for key, value in new.items():
        present = old.get(key, {})
        if old.get(key) == value:
            continue
        if not isinstance(present, dict) or not isinstance(value, dict):
            return None
        fresh[key] = {name: inner for name, inner in value.items() if present.get(name) != inner}
        if present.keys() & fresh[key].keys():
            return None
    if not LANGUAGES[format].appends:
        return None
    if format == "yaml" and old.keys() & fresh.keys():  # a key twice is an error there
        return None
    line = "\r\n" if "\r\n" in text else "\n"
    # What ends a YAML document stays at its end.
    behind = _DOCUMENT_END.search(text) if format == "yaml" else None
    before, rest = (text[: behind.start()], text[behind.start() :]) if behind else (text, "")
    end = "" if before.endswith("\n") else line
    return before + end + line + WRITERS[format](fresh).replace("\n", line) + line + rest


def _put(format: str, text: str, old: Document, new: Document) -> str | None:
    """Return the text with each value that differs set at its place."""
    put = LANGUAGES[format].put
    for key, value in new.items():
        present = old.get(key)
        if isinstance(value, dict) and isinstance(present, dict):
            for name in value:
                if present.get(name) != value[name]:
                    text = put(text, (key, name), value[name])
        elif present != value:
            text = put(text, (key,), value)
    return text


def _is_sound(language: Language, before: str, after: str, new: Document) -> bool:
    """Tell if the text `after` reads as `new` and has lost no comment."""
    try:
        if language.load(after) != new:
            return False
    except ConfigError:
        return False
    if not language.comment:
        return True
    # A rough rule, which takes some other text for a comment: it only has to miss none.
    lost, kept = (
        {found[0].rstrip() for line in text.splitlines() if (found := re.search(language.comment, line))}
        for text in (before, after)
    )
    return lost <= kept
