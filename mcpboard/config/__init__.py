"""Where the board's settings come from: the flags, our own file, the Agent's; read once, and followed.

The only reader of the environment. Where a value comes from:

    flag > [mcpboard] in our file > default
    flag > [conversation_settings.agent] in the Agent's file, or, while that file does not
           exist, in ours > default

Our file is `--config FILE`, else `MCPBOARD_CONFIG`, else /etc/mcpboard/mcpboard.toml if it is there.
"""

from __future__ import annotations

import logging
import ntpath
import os
import posixpath
import sys
import threading
from collections.abc import Iterable, Mapping
from dataclasses import replace

from mcpboard.config.board import AGENT, PLACES, SETTINGS, Settings, misplaced, rows
from mcpboard.config.files import Document, Files, look, user_home
from mcpboard.config.schema import OURS, Address, Layer, Setting, defaults, file_path, from_flags, from_table
from mcpboard.errors import ConfigError

__all__ = ["AGENT", "OURS", "SETTINGS", "STANDARD_FILE", "Address", "Setting", "Settings", "SettingsWatcher", "load"]

log = logging.getLogger(__name__)

STANDARD_FILE = "/etc/mcpboard/mcpboard.toml"
VARIABLE = "MCPBOARD_CONFIG"
PROXY_VARIABLES = frozenset({"http_proxy", "https_proxy", "all_proxy", "no_proxy"})


def load(flags: Mapping[str, object] | None = None, environ: Mapping[str, str] = os.environ) -> Settings:
    """Return the effective settings.

    `flags` maps keys of SETTINGS, and `config` for our file, to what the command line said;
    None is the same as not said. Raises ConfigError, one line with the cure.
    """
    return _load(flags or {}, environ.get(VARIABLE, ""), Files())


def environment() -> Mapping[str, str]:
    """Return the variables of this process, for the roles that name theirs in a table of settings."""
    return os.environ


def proxy_variables(environ: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Return the variables that send programs to a proxy, or except hosts from it, by the names that they have."""
    return {name: value for name, value in environ.items() if name.lower() in PROXY_VARIABLES}


def user_folders(environ: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Return what `~` and `%APPDATA%` stand for in the place of a client's file."""
    home = os.path.expanduser("~")
    return {"~": home, "%APPDATA%": environ.get("APPDATA") or os.path.join(home, "AppData", "Roaming")}


def data_folder(program: str, environ: Mapping[str, str] = os.environ, platform: str = sys.platform) -> str:
    """Return the folder in which this user's programs keep data on this platform, for the program of that name.

    Linux and the other Unixes: `$XDG_DATA_HOME`, else `~/.local/share`; macOS: `~/Library/Application Support`;
    Windows: `%LOCALAPPDATA%`. A variable that is no absolute path is ignored, as the XDG specification has it.
    Raises ConfigError where there is no home folder either.
    """
    windows = platform == "win32"
    path = ntpath if windows else posixpath
    base = environ.get("LOCALAPPDATA" if windows else "XDG_DATA_HOME", "")
    if platform == "darwin" or not path.isabs(base):
        home = environ.get("USERPROFILE" if windows else "HOME", "")
        if not path.isabs(home):  # a service may have none, but its user has
            home = user_home()
        if not path.isabs(home):
            raise ConfigError("this user has no home folder; name a folder for the files with --data DIR")
        inside = {"win32": ("AppData", "Local"), "darwin": ("Library", "Application Support")}
        base = path.join(home, *inside.get(platform, (".local", "share")))
    data: str = path.join(base, program)
    return data


class SettingsWatcher:
    """Follow the settings files: a change counts from the next `current()` on.

    Raises ConfigError at construction; later a file that is broken or gone leaves the last good
    settings effective and one line in the log. Safe to share between threads.
    """

    def __init__(self, flags: Mapping[str, object] | None = None, environ: Mapping[str, str] = os.environ) -> None:
        self._origin = (dict(flags or {}), environ.get(VARIABLE, ""))
        self._lock = threading.Lock()
        files = Files()
        self._settings = self._loaded = _load(*self._origin, files)
        self._looks, self._present = files.looks, files.present

    def current(self) -> Settings:
        """Return the effective settings; costs a stat of each file while nothing has changed.

        Without the lock then: a stat lets other threads run, and each of them would stop at the lock.
        """
        for path, seen in self._looks.items():
            if look(path) != seen:
                with self._lock:
                    if {path: look(path) for path in self._looks} != self._looks:  # nobody else has followed yet
                        self._read_again()
                break
        return self._settings

    def _read_again(self) -> None:
        files = Files(self._present)
        try:
            loaded = _load(*self._origin, files)
        except ConfigError as error:
            log.warning("%s (until then the last good settings stay effective)", error)
            # Files behind the broken one were not reached; they are looked at again, or each
            # call would take their change for a new one.
            self._looks = {path: look(path) for path in self._looks} | files.looks
            return
        for row in SETTINGS:
            if getattr(loaded, row.key) != getattr(self._loaded, row.key):
                # The key alone: a value may say more than a log should.
                log.info("%s has changed%s", row.key, "" if row.live else "; it takes effect at the next start")
        if loaded.token != self._loaded.token:
            log.info("the bearer token has changed")
        for warning in loaded.warnings:
            if warning not in self._loaded.warnings:
                log.warning("%s", warning)
        held = {row.key: getattr(self._settings, row.key) for row in SETTINGS if not row.live}
        sources = {**loaded.sources, **{key: self._settings.sources[key] for key in held}}
        self._settings, self._loaded = replace(loaded, sources=sources, **held), loaded
        # Last, because `current` goes by the looks without a lock.
        self._looks, self._present = files.looks, files.present


def _load(flags: Mapping[str, object], variable: str, files: Files) -> Settings:
    ours = _our_file(flags.get("config"), variable, files)
    found = {**defaults(SETTINGS), **from_table(rows(OURS), ours, OURS)}
    in_ours = from_table(rows(AGENT), ours, AGENT)
    agent_path, source = found["agent_config"]
    agent = files.toml(agent_path, named_by=None if source == "default" else "agent_config")
    found |= in_ours if agent is None else from_table(rows(AGENT), agent, AGENT)
    found |= from_flags(SETTINGS, flags)
    token_file = found["token_file"].value
    return Settings(
        **{key: each.value for key, each in found.items()},
        token=files.token(token_file) if token_file else None,
        sources={key: each.source for key, each in found.items()},
        warnings=tuple(_warnings(in_ours, agent, token_file)),
    )


def _our_file(flag: object, variable: str, files: Files) -> Document:
    """Return our own file, empty where it is not there and nobody named it; refuse what has no effect in it."""
    named_by = "--config" if flag is not None else VARIABLE if variable else None
    try:
        path = file_path(flag if flag is not None else variable or STANDARD_FILE)
    except ConfigError as error:
        raise ConfigError(f"{named_by}: {error}") from None
    ours = files.toml(path, named_by) or Document(path, {})
    for place in PLACES:
        for key in ours.table(place):
            if complaint := misplaced(place, key):
                raise ConfigError(f"{path}: {complaint}")
    return ours


def _warnings(in_ours: Layer, agent: Document | None, token_file: str | None) -> Iterable[str]:
    if agent is not None:
        for place, table in {"": agent.content, **agent.content}.items():
            for row in rows(AGENT) if isinstance(table, dict) else ():
                if row.key in table:
                    yield f"{agent.path}: {misplaced(place, row.key)}; it has no effect"
        if in_ours:
            yield f"{', '.join(in_ours)} in our own file: no effect while {agent.path} is there"
    if token_file and _readable_by_all(token_file):
        yield f"{token_file}: everyone on this machine may read the token; cure: chmod o-r {token_file}"


def _readable_by_all(path: str) -> bool:
    try:
        return bool(os.stat(path).st_mode & 0o004)
    except OSError:  # gone since it was read; the next look finds that out
        return False
