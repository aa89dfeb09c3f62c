"""What can be set of the host role: one table like that of `settings`, and the frozen result."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from mcpboard.config.schema import LOG_LEVELS, Setting, boolean, file_path, log, log_level
from mcpboard.errors import ConfigError
from mcpboard.net import HIGHEST_PORT, host_port, is_loopback, reachable_here

HOST = "host"
IDENTITY_FILE = "host_identity.json"
SESSION, TOKEN = "session", "token"  # what a legacy session holds its devices for
_PROXY_FORM = "a proxy such as http://proxy.example:3128 is expected, without name and password"
_TRUE = frozenset({"true", "1", "yes"})


def bind_host(value: object) -> str:
    """An IP address, without brackets; `localhost` is 127.0.0.1, and no other name will do.

    What a name stands for is decided elsewhere and may change, so it cannot be held to loopback.
    """
    if isinstance(value, str) and value.lower() == "localhost":
        return "127.0.0.1"
    try:
        if not isinstance(value, str) or "%" in value:
            raise ValueError
        return str(ipaddress.ip_address(value))
    except ValueError:
        raise ConfigError("an IP address such as 127.0.0.1 is expected, or localhost, without blanks") from None


def port(value: object) -> int:
    """A TCP port; 0 takes any free one."""
    if isinstance(value, str) and value.isascii() and value.isdigit():
        value = int(value)
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= HIGHEST_PORT:
        return value
    raise ConfigError(f"a port is 0 to {HIGHEST_PORT}")


def hold_scope(value: object) -> str:
    """`session` or `token`."""
    if value in (SESSION, TOKEN):
        return str(value)
    raise ConfigError(f"{SESSION} or {TOKEN} is expected")


def adb_server(value: object) -> tuple[str, int]:
    """Loopback address and port of the adb server: whoever reaches one may do anything on its phones."""
    address, _, number = str(value).rpartition(":")
    host = address.strip("[]")
    literal = host.lower() != "localhost" and is_loopback(
        host
    )  # connections are made to literals, no name is looked up
    if literal and number.isdecimal() and 0 < int(number) <= HIGHEST_PORT:
        return host, int(number)
    raise ConfigError("a loopback address with a port such as 127.0.0.1:5037 is expected")


def cloud_proxy(value: object) -> str:
    """The URL of an HTTP proxy, without the slash at its end."""
    try:
        parts = urlsplit(str(value))
        whole = parts.scheme == "http" and parts.hostname and parts.port != 0
    except ValueError:
        raise ConfigError(_PROXY_FORM) from None
    bare = parts._replace(scheme="", netloc="").geturl() in ("", "/")  # no path, query or fragment
    if isinstance(value, str) and whole and bare and parts.username is None:
        return value.rstrip("/")
    raise ConfigError(_PROXY_FORM)


def truth(word: str) -> bool:
    """Whether an environment variable says yes: true, 1 or yes in any case, and nothing else."""
    return word.strip().lower() in _TRUE


HOST_SETTINGS = (
    Setting("bind_host", "127.0.0.1", bind_host, "IP address",
            "where MCP and the console are served; beyond loopback allow_non_loopback is needed, too",
            "--bind H", live=False, table=HOST),
    Setting("port", 8765, port, "port",
            "the port of MCP and the console, 0 for any free one", "--port N", live=False, table=HOST),
    Setting("allow_non_loopback", False, boolean, "true or false",
            "let bind_host be an address that other machines reach", live=False, table=HOST),
    Setting("identity_path", f"tasks/{IDENTITY_FILE}", file_path, "path",
            "who this host is; token, devices and the rest stand beside it", live=False, table=HOST),
    Setting("hold_scope", SESSION, hold_scope, "session or token",
            "whom a legacy session takes devices for: itself, or everybody with its token", live=False, table=HOST),
    Setting("adb_server", "127.0.0.1:5037", adb_server, "IP:port",
            "where the adb server answers, which Android phones are behind", live=False, table=HOST),
    Setting("adb_start", False, boolean, "true or false",
            "start the adb server where none answers", live=False, table=HOST),
    Setting("adb_discover", False, boolean, "true or false",
            "take every phone that adb knows for a device, by its serial", live=False, table=HOST),
    Setting("cloud_proxy", None, cloud_proxy, "URL",
            "HTTP proxy on the way to an https cloud; the environment's is never used", live=False, table=HOST),
    Setting("log", "stderr", log, "stderr, syslog or a path",
            "where the log goes", "--log stderr|syslog|FILE", live=False, table=HOST),
    Setting("log_level", "info", log_level, "level",
            f"what is logged: {', '.join(LOG_LEVELS)}", "--log-level LEVEL", live=False, table=HOST),
)  # fmt: skip


@dataclass(frozen=True)
class HostSettings:
    """What is in force: a field for each row of HOST_SETTINGS, and where each value came from."""

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

    @property
    def folder(self) -> Path:
        """Where token, devices and the rest are."""
        return Path(self.identity_path).parent

    @property
    def url(self) -> str:
        """The URL that a client on this machine is given, unless port 0 was asked for."""
        return f"http://{host_port(reachable_here(self.bind_host), self.port)}/mcp"

    @classmethod
    def checked(cls, values: Mapping[str, Any], sources: Mapping[str, str]) -> HostSettings:
        """The settings, refused where they would listen beyond loopback without being told twice."""
        found = cls(**values, sources=sources)
        if not is_loopback(found.bind_host) and not found.allow_non_loopback:
            raise ConfigError(
                f"{sources['bind_host']} = {found.bind_host}: other machines reach that address; to allow it set "
                "HOST_AGENT_CONSOLE_ALLOW_NON_LOOPBACK=true as well, or stay on 127.0.0.1"
            )
        return found
