"""Where settings come from: the flags, our own file, the Agent's; read once, and followed.

The only reader of the environment; the files are read by `documents`. Where a value comes from
(contracts: agent-api, decisions 14 to 16):

    flag > [mcpboard] in our file > default
    flag > [conversation_settings.agent] in the Agent's file, or, while that file does not
           exist, in ours > default

Our file is `--config FILE`, else `MCPBOARD_CONFIG`, else /etc/mcpboard/mcpboard.toml if it is there.
"""

from __future__ import annotations

import json
import logging
import os
import threading
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

from mcpboard.config import schema
from mcpboard.config.files import Document, Files, look
from mcpboard.config.schema import AGENT, OURS, SETTINGS, Address, Setting, Settings
from mcpboard.errors import ConfigError

__all__ = [
    "AGENT",
    "OURS",
    "SETTINGS",
    "STANDARD_FILE",
    "Address",
    "Setting",
    "Settings",
    "SettingsWatcher",
    "load",
    "table",
    "valid",
]

log = logging.getLogger(__name__)

STANDARD_FILE = "/etc/mcpboard/mcpboard.toml"
VARIABLE = "MCPBOARD_CONFIG"
PROXY_VARIABLES = frozenset({"http_proxy", "https_proxy", "all_proxy", "no_proxy"})


def load(flags: Mapping[str, object] | None = None, environ: Mapping[str, str] = os.environ) -> Settings:
    """The settings in force now.

    `flags` maps keys of SETTINGS, and `config` for our file, to what the command line said;
    None is the same as not said. Raises ConfigError, one line with the cure.
    """
    return _load(flags or {}, environ.get(VARIABLE, ""), Files())


def proxy_variables(environ: Mapping[str, str] = os.environ) -> dict[str, str]:
    """The variables that send programs to a proxy, or except hosts from it, by the names that they have."""
    return {name: value for name, value in environ.items() if name.lower() in PROXY_VARIABLES}


def user_folders(environ: Mapping[str, str] = os.environ) -> dict[str, str]:
    """What `~` and `%APPDATA%` stand for in the place of a client's file."""
    home = os.path.expanduser("~")
    return {"~": home, "%APPDATA%": environ.get("APPDATA") or os.path.join(home, "AppData", "Roaming")}


def table(path: str, name: str, named_by: str) -> Mapping[str, Any]:
    """The table `name` of the settings file at `path`, empty when the file has none; ConfigError otherwise."""
    document = Files().toml(path, named_by)
    return {} if document is None else document.table(name)


class SettingsWatcher:
    """Settings that follow their files: a change counts from the next `current()` on.

    Raises ConfigError at construction; later a file that is broken or gone leaves the last good
    settings in force and one line in the log. Safe to share between threads.
    """

    def __init__(self, flags: Mapping[str, object] | None = None, environ: Mapping[str, str] = os.environ) -> None:
        self._origin = (dict(flags or {}), environ.get(VARIABLE, ""))
        self._lock = threading.Lock()
        files = Files()
        self._settings = self._loaded = _load(*self._origin, files)
        self._looks, self._present = files.looks, files.present

    def current(self) -> Settings:
        """The settings in force; costs a stat of each file while nothing has changed.

        Without the lock then: a stat lets other threads run, and each of them would stop at the lock.
        """
        for path, seen in self._looks.items():
            if look(path) != seen:
                self._follow()
                break
        return self._settings

    def known(self) -> Settings:
        """The settings in force, without a look at any file: never older than what a `current` before it gave."""
        return self._settings

    def _follow(self) -> None:
        with self._lock:
            if {path: look(path) for path in self._looks} != self._looks:  # nobody else has followed yet
                self._read_again()

    def _read_again(self) -> None:
        files = Files(self._present)
        try:
            loaded = _load(*self._origin, files)
        except ConfigError as error:
            log.warning("%s (until then the last good settings stay in force)", error)
            # Files behind the broken one were not reached; they are looked at again, or each
            # call would take their change for a new one.
            self._looks = {path: look(path) for path in self._looks} | files.looks
            return
        self._tell(loaded)
        held = {row.key: getattr(self._settings, row.key) for row in SETTINGS if not row.live}
        sources = {**loaded.sources, **{key: self._settings.sources[key] for key in held}}
        self._settings, self._loaded = replace(loaded, sources=sources, **held), loaded
        # Last, because `current` goes by the looks without a lock.
        self._looks, self._present = files.looks, files.present

    def _tell(self, loaded: Settings) -> None:
        changed = [row for row in SETTINGS if getattr(loaded, row.key) != getattr(self._loaded, row.key)]
        for row in changed:
            # The key alone: a value may say more than a log should.
            log.info("%s has changed%s", row.key, "" if row.live else "; it takes effect at the next start")
        if loaded.token != self._loaded.token:
            log.info("the bearer token has changed")
        for warning in loaded.warnings:
            if warning not in self._loaded.warnings:
                log.warning("%s", warning)


class _Found(NamedTuple):
    value: Any
    source: str


def _load(flags: Mapping[str, object], variable: str, files: Files) -> Settings:
    ours = _our_file(flags.get("config"), variable, files)
    _check_places(ours)
    found = {row.key: _Found(valid(row, row.default, "default"), "default") for row in SETTINGS}
    found |= _table(ours, OURS)
    in_ours = _table(ours, AGENT)
    agent_path, named = found["agent_config"].value, found["agent_config"].source != "default"
    agent = files.toml(agent_path, named_by="agent_config" if named else None)
    found |= in_ours if agent is None else _table(agent, AGENT)
    found |= _from_flags(flags)
    token_file = found["token_file"].value
    return Settings(
        **{key: each.value for key, each in found.items()},
        token=_token(token_file, files) if token_file else None,
        sources={key: each.source for key, each in found.items()},
        warnings=tuple(_warnings(in_ours, agent, token_file)),
    )


def _our_file(flag: object, variable: str, files: Files) -> Document:
    named_by = "--config" if flag is not None else VARIABLE if variable else None
    try:
        path = schema.file_path(flag if flag is not None else variable or STANDARD_FILE)
    except ConfigError as error:
        raise ConfigError(f"{named_by}: {error}") from None
    return files.toml(path, named_by) or Document(path, {})


def _check_places(ours: Document) -> None:
    """Refuse what stands in our file and would have no effect there."""
    for place in schema.PLACES:
        for key in ours.table(place):
            if complaint := schema.misplaced(place, key):
                raise ConfigError(f"{ours.path}: {complaint}")


def _table(document: Document, name: str) -> dict[str, _Found]:
    table = document.table(name)
    return {
        row.key: _Found(valid(row, table[row.key], f"{document.path}: [{name}] {row.key}"), document.path)
        for row in schema.rows(name)
        if row.key in table
    }


def _from_flags(flags: Mapping[str, object]) -> dict[str, _Found]:
    return {
        row.key: _Found(valid(row, flags[row.key], row.option), row.option)
        for row in SETTINGS
        if row.flag and flags.get(row.key) is not None
    }


def valid(row: Setting, value: object, origin: str) -> Any:
    """The typed form of `value`; ConfigError that begins with `origin`, where it was written."""
    if value is None:  # only a default can be
        return None
    try:
        return row.read(value)
    except ConfigError as error:
        raise ConfigError(f"{origin} = {_shown(value)}: {error}") from None


def _shown(value: object) -> str:
    """A refused value on one line, without the user info that a URL may carry."""
    written = json.dumps(value, ensure_ascii=False, default=str)
    before, at, after = written.rpartition("@")
    written = f"...@{after}" if at else before + after
    return written if len(written) <= 80 else f"{written[:77]}..."  # characters; the message keeps to a line


def _token(path: str, files: Files) -> bytes:
    content = files.read(path, named_by="token_file")
    try:
        return schema.token(content)
    except ConfigError as error:
        raise ConfigError(f"{path}: {error}") from None


def _warnings(in_ours: Mapping[str, _Found], agent: Document | None, token_file: str | None) -> Iterable[str]:
    if agent is not None:
        yield from _overlooked(agent)
        if in_ours:
            yield f"{', '.join(in_ours)} in our own file: no effect while {agent.path} is there"
    if token_file and _readable_by_all(token_file):
        yield f"{token_file}: everyone on this machine may read the token; cure: chmod o-r {token_file}"


def _overlooked(agent: Document) -> Iterable[str]:
    tables = {"": agent.content, **agent.content}
    for place, table in tables.items():
        for row in schema.rows(AGENT) if isinstance(table, dict) else ():
            if row.key in table:
                yield f"{agent.path}: {schema.misplaced(place, row.key)}; it has no effect"


def _readable_by_all(path: str) -> bool:
    try:
        return bool(os.stat(path).st_mode & 0o004)
    except OSError:  # gone since it was read; the next look finds that out
        return False
