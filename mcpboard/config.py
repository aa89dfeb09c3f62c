"""Where settings come from: the flags, our own file, the Agent's; read once, and followed.

The only reader of the environment and of settings files; it never writes one. Where a value
comes from (contracts: agent-api, decisions 14 to 16):

    flag > [mcpboard] in our file > default
    flag > [conversation_settings.agent] in the Agent's file, or, while that file does not
           exist, in ours > default

Our file is `--config FILE`, else `MCPBOARD_CONFIG`, else /etc/mcpboard/mcpboard.toml if it is there.
"""

from __future__ import annotations

import json
import logging
import os
import sys
import threading
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from mcpboard import settings
from mcpboard.errors import ConfigError
from mcpboard.settings import AGENT, OURS, SETTINGS, Address, Setting, Settings

pwd: Any
try:
    import pwd
except ImportError:  # on Windows, where a laptop's verbs run
    pwd = None

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

__all__ = [
    "AGENT",
    "OURS",
    "SETTINGS",
    "STANDARD_FILE",
    "Address",
    "Setting",
    "Settings",
    "Watched",
    "load",
    "table",
    "valid",
]

log = logging.getLogger(__name__)

STANDARD_FILE = "/etc/mcpboard/mcpboard.toml"
VARIABLE = "MCPBOARD_CONFIG"
PROXY_VARIABLES = frozenset({"http_proxy", "https_proxy", "all_proxy", "no_proxy"})

LARGEST_FILE = 1 << 20  # bytes; the Agent reads no more of its own either


def load(flags: Mapping[str, object] | None = None, environ: Mapping[str, str] = os.environ) -> Settings:
    """The settings in force now.

    `flags` maps keys of SETTINGS, and `config` for our file, to what the command line said;
    None is the same as not said. Raises ConfigError, one line with the cure.
    """
    return _load(flags or {}, environ.get(VARIABLE, ""), _Files())


def proxy_variables(environ: Mapping[str, str] = os.environ) -> dict[str, str]:
    """The variables that send programs to a proxy, or except hosts from it, by the names that they have."""
    return {name: value for name, value in environ.items() if name.lower() in PROXY_VARIABLES}


def user_folders(environ: Mapping[str, str] = os.environ) -> dict[str, str]:
    """What `~` and `%APPDATA%` stand for in the place of a client's file."""
    home = os.path.expanduser("~")
    return {"~": home, "%APPDATA%": environ.get("APPDATA") or os.path.join(home, "AppData", "Roaming")}


def table(path: str, name: str, named_by: str) -> Mapping[str, Any]:
    """The table `name` of the settings file at `path`, empty when the file has none; ConfigError otherwise."""
    document = _Files().toml(path, named_by)
    return {} if document is None else document.table(name)


class Watched:
    """Settings that follow their files: a change counts from the next `current()` on.

    Raises ConfigError at construction; later a file that is broken or gone leaves the last good
    settings in force and one line in the log. Safe to share between threads.
    """

    def __init__(self, flags: Mapping[str, object] | None = None, environ: Mapping[str, str] = os.environ) -> None:
        self._origin = (dict(flags or {}), environ.get(VARIABLE, ""))
        self._lock = threading.Lock()
        files = _Files()
        self._settings = self._loaded = _load(*self._origin, files)
        self._looks, self._present = files.looks, files.present

    def current(self) -> Settings:
        """The settings in force; costs a stat of each file while nothing has changed."""
        with self._lock:
            if {path: _look(path) for path in self._looks} != self._looks:
                self._follow()
            return self._settings

    def _follow(self) -> None:
        files = _Files(self._present)
        try:
            loaded = _load(*self._origin, files)
        except ConfigError as error:
            log.warning("%s (until then the last good settings stay in force)", error)
            # Files behind the broken one were not reached; they are looked at again, or each
            # call would take their change for a new one.
            self._looks = {path: _look(path) for path in self._looks} | files.looks
            return
        self._looks, self._present = files.looks, files.present
        self._tell(loaded)
        held = {row.key: getattr(self._settings, row.key) for row in SETTINGS if not row.live}
        sources = {**loaded.sources, **{key: self._settings.sources[key] for key in held}}
        self._settings, self._loaded = replace(loaded, sources=sources, **held), loaded

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


def _load(flags: Mapping[str, object], variable: str, files: _Files) -> Settings:
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


def _our_file(flag: object, variable: str, files: _Files) -> _Document:
    named_by = "--config" if flag is not None else VARIABLE if variable else None
    try:
        path = settings.file_path(flag if flag is not None else variable or STANDARD_FILE)
    except ConfigError as error:
        raise ConfigError(f"{named_by}: {error}") from None
    return files.toml(path, named_by) or _Document(path, {})


def _check_places(ours: _Document) -> None:
    """Refuse what stands in our file and would have no effect there."""
    for place in settings.PLACES:
        for key in ours.table(place):
            if complaint := settings.misplaced(place, key):
                raise ConfigError(f"{ours.path}: {complaint}")


def _table(document: _Document, name: str) -> dict[str, _Found]:
    table = document.table(name)
    return {
        row.key: _Found(valid(row, table[row.key], f"{document.path}: [{name}] {row.key}"), document.path)
        for row in settings.rows(name)
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


def _token(path: str, files: _Files) -> bytes:
    content = files.read(path, named_by="token_file")
    try:
        return settings.token(content)
    except ConfigError as error:
        raise ConfigError(f"{path}: {error}") from None


def _warnings(in_ours: Mapping[str, _Found], agent: _Document | None, token_file: str | None) -> Iterable[str]:
    if agent is not None:
        yield from _overlooked(agent)
        if in_ours:
            yield f"{', '.join(in_ours)} in our own file: no effect while {agent.path} is there"
    if token_file and _readable_by_all(token_file):
        yield f"{token_file}: everyone on this machine may read the token; cure: chmod o-r {token_file}"


def _overlooked(agent: _Document) -> Iterable[str]:
    tables = {"": agent.content, **agent.content}
    for place, table in tables.items():
        for row in settings.rows(AGENT) if isinstance(table, dict) else ():
            if row.key in table:
                yield f"{agent.path}: {settings.misplaced(place, row.key)}; it has no effect"


def _readable_by_all(path: str) -> bool:
    try:
        return bool(os.stat(path).st_mode & 0o004)
    except OSError:  # gone since it was read; the next look finds that out
        return False


@dataclass(frozen=True)
class _Document:
    path: str
    content: Mapping[str, Any]

    def table(self, name: str) -> Mapping[str, Any]:
        """The table of that dotted name, empty when it is not there; "" is the whole file."""
        table: Mapping[str, Any] = self.content
        for part in name.split(".") if name else ():
            table = table.get(part, {})
            if not isinstance(table, dict):
                raise ConfigError(f"{self.path}: {name}: a table is expected, not a value")
        return table


def _look(path: str) -> tuple[int, ...] | None:
    """What a file looks like from outside; None while it cannot be seen."""
    try:
        seen = os.stat(path)
    except OSError:
        return None
    # ctime as well: a cured permission changes nothing else.
    return seen.st_ino, seen.st_size, seen.st_mtime_ns, seen.st_ctime_ns


class _Missing(ConfigError):
    """The file is not there."""


class _Files:
    """Reads files, and remembers how each looked just before, also where there was none.

    A file in `present` had content at the last good reading, and must not be without it now.
    """

    def __init__(self, present: Iterable[str] = ()) -> None:
        self._required = frozenset(present)
        self.looks: dict[str, tuple[int, ...] | None] = {}
        self.present: set[str] = set()

    def toml(self, path: str, named_by: str | None) -> _Document | None:
        """The file's tables, or None when it is missing and nobody named it."""
        try:
            content = self.read(path, named_by)
        except _Missing:
            if named_by or path in self._required:
                raise
            return None
        return _Document(path, _parsed(path, content))

    def read(self, path: str, named_by: str | None) -> bytes:
        """The content, at most LARGEST_FILE bytes."""
        self.looks[path] = _look(path)
        try:
            with open(path, "rb") as file:
                content = file.read(LARGEST_FILE + 1)
        except (FileNotFoundError, NotADirectoryError):
            raise _Missing(f"{path}: no such file" + (f"; {named_by} names it" if named_by else "")) from None
        except PermissionError:
            raise ConfigError(_not_allowed(path)) from None
        except OSError as error:
            raise ConfigError(f"{path}: cannot be read: {error.strerror}") from None
        if len(content) > LARGEST_FILE:
            raise ConfigError(f"{path}: larger than the {LARGEST_FILE} bytes that a settings file may have")
        if content:
            self.present.add(path)
        elif path in self._required:  # an editor that writes in place empties the file first
            raise ConfigError(f"{path}: is empty now")
        return content


def _not_allowed(path: str) -> str:
    user = _user()
    return (
        f"{path}: user {user} may not read it; let its group read it (chmod g+r, and g+x on the directories "
        f"above) and put {user} into that group"
    )


def _user() -> str:
    if pwd is None:
        return "this"
    try:
        name: str = pwd.getpwuid(os.geteuid()).pw_name
        return name
    except KeyError:  # a service may run under a bare number
        return str(os.geteuid())


def _parsed(path: str, raw: bytes) -> dict[str, Any]:
    if raw.startswith((b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff")):
        raise ConfigError(f"{path}: begins with a byte order mark (BOM); save it as UTF-8 without one")
    try:
        content: dict[str, Any] = tomllib.loads(raw.decode())
        return content
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise ConfigError(f"{path}: line {line}: not UTF-8; save the file as UTF-8") from None
    except (ValueError, RecursionError) as error:
        last = raw.count(b"\n") + 1  # the parser does not number the end
        reason = str(error).replace("at end of document", f"at line {last}, the end of the file")
        raise ConfigError(f"{path}: not valid TOML: {reason}") from None
