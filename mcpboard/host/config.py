"""The host's settings: a table of what can be set, its converters, and the frozen result.

Where a value comes from: flag > environment > [host] of `--config FILE` > default.
"""

from __future__ import annotations

import ipaddress
import os
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from urllib.parse import urlsplit

from mcpboard import config
from mcpboard.config.files import Document, Files
from mcpboard.config.schema import (
    LOG_LEVELS,
    Found,
    Layer,
    Setting,
    boolean,
    defaults,
    file_path,
    from_flags,
    from_table,
    log,
    log_level,
    read,
)
from mcpboard.errors import ConfigError
from mcpboard.net import HIGHEST_PORT, host_port, is_loopback, reachable_here
from mcpboard.text import did_you_mean

HOST = "host"
IDENTITY_FILE = "host_identity.json"
FOLDER = "device-host-agent"  # in the platform's folder for data
OLD_FOLDER = "tasks"  # of the current folder: where version 0.1.0 kept its files
BIND_VARIABLE = "HOST_AGENT_CONSOLE_BIND_HOST"
ALLOW_VARIABLE = "HOST_AGENT_CONSOLE_ALLOW_NON_LOOPBACK"
SESSION, TOKEN = "session", "token"  # what a legacy session holds its devices for
_PROXY_FORM = "a proxy such as http://proxy.example:3128 is expected, without name and password"
_TRUE = frozenset({"true", "1", "yes"})  # in any case; every other word keeps the door closed


def bind_host(value: object) -> str:
    """Take an IP address without brackets; `localhost` is 127.0.0.1, and no other name will do.

    What a name stands for is decided elsewhere and may change, so it cannot be held to loopback.
    """
    if isinstance(value, str) and value.lower() == "localhost":
        return "127.0.0.1"
    try:
        if not isinstance(value, str) or "%" in value:
            raise ValueError
        return str(ipaddress.ip_address(value))
    except ValueError:
        raise ConfigError("an IP address such as 127.0.0.1 is expected, or localhost, without spaces") from None


def port(value: object) -> int:
    """Take a TCP port; 0 is any free one."""
    if isinstance(value, str) and value.isascii() and value.isdigit():
        value = int(value)
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= HIGHEST_PORT:
        return value
    raise ConfigError(f"a port is 0 to {HIGHEST_PORT}")


def hold_scope(value: object) -> str:
    """Take `session` or `token`."""
    if value in (SESSION, TOKEN):
        return str(value)
    raise ConfigError(f"{SESSION} or {TOKEN} is expected")


def adb_server(value: object) -> tuple[str, int]:
    """Return loopback address and port of the adb server: whoever reaches one may do anything on its phones."""
    address, _, number = str(value).rpartition(":")
    host = address.strip("[]")
    try:
        # Connections are made to literals: no name is looked up, `localhost` neither.
        if host.lower() != "localhost" and is_loopback(host) and 0 < int(number) <= HIGHEST_PORT:
            return host, int(number)
    except ValueError:  # no number
        pass
    raise ConfigError("a loopback address with a port such as 127.0.0.1:5037 is expected")


def cloud_proxy(value: object) -> str:
    """Return the URL of an HTTP proxy, without the slash at its end."""
    try:
        parts = urlsplit(str(value))
        whole = parts.scheme == "http" and parts.hostname and parts.port != 0
    except ValueError:
        raise ConfigError(_PROXY_FORM) from None
    bare = parts._replace(scheme="", netloc="").geturl() in ("", "/")  # no path, query or fragment
    if isinstance(value, str) and whole and bare and parts.username is None:
        return value.rstrip("/")
    raise ConfigError(_PROXY_FORM)


_setting = partial(Setting, live=False, table=HOST)

HOST_SETTINGS = (
    _setting("bind_host", "127.0.0.1", bind_host, "IP address",
             "where MCP and the console are served; beyond loopback allow_non_loopback is needed, too", "--bind H"),
    _setting("port", 8765, port, "port", "the port of MCP and the console, 0 for any free one", "--port N"),
    _setting("allow_non_loopback", False, boolean, "true or false",
             "let bind_host be an address that other machines reach"),
    _setting("identity_path", None, file_path, "path", "who this host is; token, devices and the rest stand beside it"),
    _setting("hold_scope", SESSION, hold_scope, "session or token",
             "whom a legacy session takes devices for: itself, or everybody with its token"),
    _setting("adb_server", "127.0.0.1:5037", adb_server, "IP:port",
             "where the adb server answers, which Android phones are behind"),
    _setting("adb_start", False, boolean, "true or false", "start the adb server where none answers"),
    _setting("adb_discover", False, boolean, "true or false",
             "take every phone that adb knows for a device, by its serial"),
    _setting("cloud_proxy", None, cloud_proxy, "URL",
             "HTTP proxy on the way to an https cloud; the environment's is never used"),
    _setting("log", "stderr", log, "stderr, syslog or a path", "where the log goes", "--log stderr|syslog|FILE"),
    _setting("log_level", "info", log_level, "level", f"what is logged: {', '.join(LOG_LEVELS)}", "--log-level LEVEL"),
)  # fmt: skip


@dataclass(frozen=True)
class HostSettings:
    """The effective settings: a field for each row of HOST_SETTINGS, and where each value came from."""

    bind_host: str
    port: int
    allow_non_loopback: bool
    identity_path: str
    hold_scope: str
    adb_server: tuple[str, int]
    adb_start: bool
    adb_discover: bool
    cloud_proxy: str | None
    log: str
    log_level: str
    sources: Mapping[str, str]
    config_file: str | None = None  # of --config

    @property
    def folder(self) -> Path:
        """Where token, devices and the rest are."""
        return Path(self.identity_path).parent

    @property
    def url(self) -> str:
        """The URL that a client on this machine is given, unless port 0 was asked for."""
        return f"http://{host_port(reachable_here(self.bind_host), self.port)}/mcp"


def load(flags: Mapping[str, object] | None = None, environ: Mapping[str, str] | None = None) -> HostSettings:
    """Return the effective settings of the host.

    `flags` maps keys of HOST_SETTINGS, `config` for the file and `data` for the folder of the
    identity to what the command line gave; None is the same as not given. `environ` is the
    process's own where it is left out. Raises ConfigError, one line with the cure.
    """
    given = {name: value for name, value in (flags or {}).items() if value is not None}
    found: dict[str, Found] = {}
    config_file = file_path(given["config"]) if "config" in given else None
    if config_file is not None:
        found |= _from_file(config_file)
    environ = config.environment() if environ is None else environ
    found |= _from_environment(environ)
    found |= from_flags(HOST_SETTINGS, given)
    if "data" in given:
        found["identity_path"] = Found(os.path.join(file_path(given["data"]), IDENTITY_FILE), "--data")
    if "identity_path" not in found:
        found["identity_path"] = Found(_usual_identity(environ), "default")
    found = {**defaults(HOST_SETTINGS), **found}
    settings = HostSettings(
        **{key: each.value for key, each in found.items()},
        sources={key: each.source for key, each in found.items()},
        config_file=config_file,
    )
    if not is_loopback(settings.bind_host) and not settings.allow_non_loopback:
        raise ConfigError(
            f"bind_host = {settings.bind_host} ({settings.sources['bind_host']}): other machines reach that address; "
            f"to allow it set {ALLOW_VARIABLE}=true as well, or stay on 127.0.0.1"
        )
    return settings


def _usual_identity(environ: Mapping[str, str]) -> str:
    """Return the identity's place where none is named: where version 0.1.0 left it, else in the platform's folder."""
    old = os.path.join(OLD_FOLDER, IDENTITY_FILE)
    if os.path.lexists(old):  # False also where the working directory is gone
        return file_path(old)
    return os.path.join(config.data_folder(FOLDER, environ), IDENTITY_FILE)


def _from_file(path: str) -> Layer:
    document = Files().toml(path, "--config") or Document(path, {})
    known = [row.key for row in HOST_SETTINGS]
    for key in document.table(HOST):
        if key not in known:
            raise ConfigError(f"{path}: unknown key {key!r} in [{HOST}]; {did_you_mean(key, known)}")
    return from_table(HOST_SETTINGS, document, HOST)


def _from_environment(environ: Mapping[str, str]) -> Layer:
    layer: dict[str, Found] = {}
    if BIND_VARIABLE in environ:  # an empty one is a mistake, and no wish for the default
        row = next(row for row in HOST_SETTINGS if row.key == "bind_host")
        layer["bind_host"] = Found(read(row, environ[BIND_VARIABLE], BIND_VARIABLE), BIND_VARIABLE)
    if ALLOW_VARIABLE in environ:
        layer["allow_non_loopback"] = Found(environ[ALLOW_VARIABLE].strip().lower() in _TRUE, ALLOW_VARIABLE)
    return layer
