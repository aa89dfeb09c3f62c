"""Where the board's settings come from: the flags, our own file, the Agent's; read once, and followed."""

# The only reader of the environment. Where a value comes from:
#
#     flag > [mcpboard] in our file > default
#     flag > [conversation_settings.agent] in the Agent's file, or, while that file does not
#            exist, in ours > default
#
# Our file is `--config FILE`, else `MCPBOARD_CONFIG`, else /etc/mcpboard/mcpboard.toml if it is there.

from __future__ import annotations

import contextlib
import logging
import ntpath
import os
import posixpath
import secrets
import sys
import threading
from collections.abc import Iterable, Mapping
from dataclasses import replace

from mcpboard.config.board import AGENT, SETTINGS, SWITCHES, Settings, misplaced, rows
from mcpboard.config.files import SHORTEST_TOKEN, Document, Files, look, user_home
from mcpboard.config.followed import KEPT, AgentFile, OwnFile, named_by
from mcpboard.config.schema import OURS, Address, Found, Layer, Setting, defaults, file_path, from_flags
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
    return _Loader(flags or {}, environ.get(VARIABLE, "")).read()


def environment() -> Mapping[str, str]:
    """Return the variables of this process, for the roles that name theirs in a table of settings."""
    return os.environ


def proxy_variables(environ: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Return the variables that send programs to a proxy, or except hosts from it, by the names that they have."""
    return {name: value for name, value in environ.items() if name.lower() in PROXY_VARIABLES}


def user_folders(environ: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Return what `~`, `%APPDATA%`, `%LOCALAPPDATA%` and `$NAME` stand for in the place of a client's file."""
    home = os.path.expanduser("~")
    folders = {f"${name}": value.strip() for name, value in environ.items() if value.strip()}
    for name, inside in (("APPDATA", "Roaming"), ("LOCALAPPDATA", "Local")):
        folders[f"%{name}%"] = environ.get(name) or os.path.join(home, "AppData", inside)
    return {**folders, "~": home}


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
    return str(path.join(base, program))


class SettingsWatcher:
    """Follow the settings files: a change counts from the next `current()` on.

    Raises ConfigError at construction; later what is damaged keeps its last good values, and the log
    says so once. Safe to share between threads.
    """

    def __init__(self, flags: Mapping[str, object] | None = None, environ: Mapping[str, str] = os.environ) -> None:
        self._lock = threading.Lock()
        self._loader = _Loader(flags or {}, environ.get(VARIABLE, ""))
        self._settings = self._loaded = self._loader.read()
        self._looks = self._loader.looks

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
        loaded, last = self._loader.read(), self._loaded
        if loaded != last:
            for row in SETTINGS:
                if getattr(loaded, row.key) != getattr(last, row.key):
                    # Only the key: a value may say more than a log should.
                    log.info("%s has changed%s", row.key, "" if row.live else "; it takes effect at the next start")
            if loaded.token != last.token:
                log.info("the bearer token has changed")
            for warning in loaded.warnings:
                if warning not in last.warnings:  # whatever changes around it, it is said once
                    log.warning("%s", warning)
            if last.warnings and not loaded.warnings:
                log.info("the settings files are in order again")
            held = {row.key: getattr(self._settings, row.key) for row in SETTINGS if not row.live}
            sources = {**loaded.sources, **{key: self._settings.sources[key] for key in held}}
            self._settings, self._loaded = replace(loaded, sources=sources, **held), loaded
        # Last, because `current` goes by the looks without a lock.
        self._looks = self._loader.looks


class _Loader:
    """Read the settings, the first time and again: each file by itself, and all of it in one `Settings`.

    The first `read` raises ConfigError where our own file or the token's is not in order; a later one
    never does. `looks` is how each file looked just before it was read.
    """

    def __init__(self, flags: Mapping[str, object], variable: str) -> None:
        name = "--config" if flags.get("config") is not None else VARIABLE if variable else None
        try:
            path = file_path(flags["config"] if name == "--config" else variable or STANDARD_FILE)
        except ConfigError as error:
            raise ConfigError(f"{name}: {error}") from None
        self._flags = from_flags(SETTINGS, flags)
        self._own = OwnFile(path, name)
        self._agent = AgentFile()
        self._token: bytes | None = None
        self._effective: Layer = {}  # empty before the first reading
        self._problems: list[str] = []
        self.looks: dict[str, tuple[int, ...] | None] = {}

    def read(self) -> Settings:
        """Return the effective settings, as far as the files can be read now."""
        own, agent, files, starting = self._own, self._agent, Files(), not self._effective
        own.read(files)
        if starting and own.problems:
            raise ConfigError(own.problems[0])
        self._problems = [f"{problem} {KEPT}" for problem in own.problems]
        found = {**defaults(SETTINGS), **own.ours, **self._flags}
        self._keep_paths(files, found)
        agent.read(files, found["agent_config"], self._effective)
        found |= {**(own.agents if agent.layer is None else agent.layer), **self._flags}
        self._problems += agent.problems
        fault = agent.fault if starting else self._keep_disabled(found)
        self._read_token(files, found["token_file"].value)
        self._problems += _without_effect(own.agents, agent.document)
        agent.document = None  # its other tables are nothing to keep in memory
        self._effective, self.looks = found, files.looks
        values = {key: each.value for key, each in found.items()}
        sources = {key: each.source for key, each in found.items()}
        fault = None if values["mcp_enabled"] else fault
        return Settings(**values, token=self._token, sources=sources, warnings=tuple(self._problems), mcp_fault=fault)

    def _keep_paths(self, files: Files, found: dict[str, Found]) -> None:
        """Keep the last path of a file where the new one leads to none that can be used: it may be damaged.

        And a token stays required where the line that named its file has gone, as behind a cut.
        """
        for key in ("agent_config", "token_file"):
            last, new = self._effective.get(key), found[key]
            if last and last.value and new.value is None:
                gone = f"{self._own.path}: [{OURS}] {key} is gone; its token stays required until the server restarts"
                self._problems.append(gone)
                found[key] = last
            elif last and last.value and new.value != last.value:
                try:
                    if key == "token_file":
                        files.token(new.value)
                    else:
                        files.toml(new.value, named_by(key, new.source))
                except ConfigError as error:
                    self._problems.append(f"{error} {KEPT}")
                    found[key] = last

    def _keep_disabled(self, found: dict[str, Found]) -> str | None:
        """Keep a switch false that no file turned on, and return the reason if MCP is disabled though no file says so.

        On by default is not enough: the line that said false may be missing because of damage.
        """
        own, agent = self._own, self._agent
        path, enables = (own.path, own.enables) if agent.layer is None else (agent.path, agent.enables)
        # A file that is gone, or was never read, was complained about.
        told = agent.unread.keys() if agent.layer or not agent.problems else SWITCHES
        fault = agent.fault
        for key in SWITCHES:
            if found[key].value and not self._effective[key].value and key not in enables:
                found[key] = self._effective[key]
                if key not in told:
                    problem = f"{path}: [{AGENT}] {key} = false is gone; write {key} = true to enable it"
                    self._problems.append(problem)
                    fault = problem if key == "mcp_enabled" else fault
        return fault

    def _read_token(self, files: Files, path: str | None) -> None:
        """Take the token that counts from now on; at the start there is none to keep."""
        try:
            self._token = files.token(path) if path else None
        except ConfigError as error:
            if not self._effective:
                raise
            if self._token is None:  # one is required, but which cannot be known
                self._token = secrets.token_bytes(SHORTEST_TOKEN)
            self._problems.append(f"{error} {KEPT}")
            return
        with contextlib.suppress(OSError):  # gone since it was read; the next look finds that out
            if path and os.stat(path).st_mode & 0o004:
                self._problems.append(f"{path}: everyone on this machine may read the token; cure: chmod o-r {path}")


def _without_effect(in_ours: Layer, agent: Document | None) -> Iterable[str]:
    if agent is not None:
        for place, table in {"": agent.content, **agent.content}.items():
            for row in rows(AGENT) if isinstance(table, dict) else ():
                # An `mcp_enabled = false` has its effect anywhere, and was complained about.
                if row.key in table and (row.key, table[row.key]) != ("mcp_enabled", False):
                    yield f"{agent.path}: {misplaced(place, row.key)}; it has no effect"
        if in_ours:
            yield f"{', '.join(in_ours)} in our own file: no effect while {agent.path} is there"
