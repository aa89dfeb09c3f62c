"""What can be set: one table, the checks its rows name, and the frozen result.

A check turns a TOML value (or a flag's text) into its typed form. All raise ConfigError whose
message says only what is expected; `config`, which knows where a value was written, puts file,
key and value in front. Nothing is guessed: a quoted "false" is no boolean, `8080` no address.
"""

from __future__ import annotations

import ipaddress
import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from mcpboard.errors import ConfigError
from mcpboard.net import HIGHEST_PORT, host_port, in_url, is_loopback
from mcpboard.text import did_you_mean

OURS = "mcpboard"
AGENT = "conversation_settings.agent"
MIB = 1 << 20  # bytes
SHORTEST_TOKEN = 16  # characters; fewer can be tried out over a network

LOG_LEVELS = ("debug", "info", "warning", "error", "critical")
LOG_PLACES = ("stderr", "syslog")

_ADDRESS = re.compile(r"(?:\[(?P<v6>[^\[\]]+)\]|(?P<host>[^:\[\]]+)):(?P<port>[0-9]{1,5})")
_HOST_NAME = re.compile(r"[A-Za-z0-9_](?:[A-Za-z0-9_.-]*[A-Za-z0-9_])?")
_BASE_URL = re.compile(
    r"http://(?:\[(?P<v6>[0-9a-f:.]+)\]|(?P<host>[a-z0-9.]+))(?::(?P<port>[0-9]{1,5}))?/?", re.IGNORECASE
)

_ADDRESS_FORMS = "an address is HOST:PORT, [IPv6]:PORT or *:PORT, such as 127.0.0.1:8090"
_BASE_URL_FORM = (
    "only http:// to this machine itself (127.0.0.0/8, [::1] or localhost), with a port or without, "
    "and nothing after it"
)


class Address(NamedTuple):
    """Where to listen. `host` is an IP literal without brackets, a name, or `*` for every address."""

    host: str
    port: int

    def __str__(self) -> str:
        return host_port(self.host, self.port)


def boolean(value: object) -> bool:
    """A TOML true or false, nothing that merely looks like one: a guess could open the shell."""
    if isinstance(value, bool):
        return value
    raise ConfigError("only true or false, without quotes")


def size(value: object) -> int:
    """A whole number of bytes, at least one."""
    if isinstance(value, int) and not isinstance(value, bool) and value > 0:
        return value
    raise ConfigError("a whole number of bytes above 0 is expected, without quotes")


def file_path(value: object) -> str:
    """A file's absolute path; a relative one counts from the working directory."""
    # Not `text`: a Linux path may hold anything but NUL.
    if not isinstance(value, str) or not value or "\0" in value:
        raise ConfigError("the path of a file is expected")
    try:
        return os.path.abspath(value)
    except OSError:
        raise ConfigError("an absolute path is needed, because the working directory is gone") from None


def token(content: bytes) -> bytes:
    """The bearer token that a token file holds, without the blanks around it."""
    found = content.strip()
    if not found:
        raise ConfigError("the token file is empty; write a token into it, or leave token_file out")
    if len(found) < SHORTEST_TOKEN:
        raise ConfigError(f"the token is shorter than {SHORTEST_TOKEN} characters; write a longer one")
    if not all(0x21 <= byte <= 0x7E for byte in found):  # what a header can carry without a blank
        raise ConfigError("a token is one line of visible ASCII characters without blanks")
    return found


def log(value: object) -> str:
    """`stderr`, `syslog`, or the absolute path of a file."""
    if isinstance(value, str) and value.lower() in LOG_PLACES:
        return value.lower()
    return file_path(value)


def log_level(value: object) -> str:
    """One of the five level names, in lower case."""
    if isinstance(value, str) and value.lower() in LOG_LEVELS:
        return value.lower()
    raise ConfigError(f"one of {', '.join(LOG_LEVELS)} is expected")


def listen(value: object) -> tuple[Address, ...]:
    """One address or a list of them, in the order written, none of them twice."""
    written = value if isinstance(value, (list, tuple)) else [value]
    addresses = tuple(address(one) for one in written)
    if not addresses:
        raise ConfigError(f"at least one address is needed; {_ADDRESS_FORMS}")
    if len(set(addresses)) < len(addresses):
        raise ConfigError("an address is listed twice")
    return addresses


def address(value: object) -> Address:
    """HOST:PORT, [IPv6]:PORT or *:PORT; port 0 takes any free one."""
    found = _ADDRESS.fullmatch(value) if isinstance(value, str) else None
    if found is None or int(found["port"]) > HIGHEST_PORT:
        raise ConfigError(_ADDRESS_FORMS)
    if found["v6"]:
        host = str(_ip(ipaddress.IPv6Address, found["v6"]))
    elif re.fullmatch(r"[0-9.]+", found["host"]):  # a name of digits alone is a mistyped IPv4 literal
        host = str(_ip(ipaddress.IPv4Address, found["host"]))
    elif found["host"] == "*" or _HOST_NAME.fullmatch(found["host"]):
        host = found["host"]
    else:
        raise ConfigError(_ADDRESS_FORMS)
    return Address(host, int(found["port"]))


def _ip(kind: Callable[[str], Any], literal: str) -> Any:
    try:
        return kind(literal)
    except ValueError:
        raise ConfigError(f"{literal} is no IP address; {_ADDRESS_FORMS}") from None


def base_url(value: object) -> str:
    """A backend's base URL on loopback, without the slash at the end.

    The backends trust whoever reaches them, so nothing but this machine may be named
    (contracts: agent-api, decision 14).
    """
    found = _BASE_URL.fullmatch(value) if isinstance(value, str) else None
    host = (found["v6"] or found["host"]) if found else ""
    if found is None or not is_loopback(host):
        raise ConfigError(_BASE_URL_FORM)
    port = int(found["port"]) if found["port"] else None
    if port is not None and not 0 < port <= HIGHEST_PORT:
        raise ConfigError(f"a port is 1 to {HIGHEST_PORT}")
    return f"http://{in_url(host.lower())}" + (f":{port}" if port else "")


@dataclass(frozen=True)
class Setting:
    """One row: the key as written in its table, its default, and what a person has to know.

    `read` turns a TOML value or a flag's text into the field of `Settings`, or raises
    ConfigError with what it expects. `flag` is written as the help shows it. A setting that
    is not `live` keeps its value until the next start.
    """

    key: str
    default: Any
    read: Callable[[object], Any]
    unit: str
    meaning: str
    flag: str | None = None
    live: bool = True
    table: str = OURS

    @property
    def option(self) -> str:
        """The flag without what follows it; empty where there is no flag."""
        return (self.flag or "").partition(" ")[0]


SETTINGS = (
    Setting("listen", "0.0.0.0:8080", listen, "address or list of addresses",
            "where MCP is served; *:PORT is every address, port 0 any free one", "--listen HOST:PORT", live=False),
    Setting("agent_base_url", "http://127.0.0.1:8081", base_url, "URL",
            "the Agent's HTTP API, on loopback", "--agent-base-url URL"),
    Setting("agent_config", "/userdata/agent/agent.toml", file_path, "path",
            "the Agent's settings file, read for the mcp_ keys alone", "--agent-config FILE"),
    Setting("strict_meta", False, boolean, "true or false",
            "refuse modern requests whose _meta is missing, as the specification asks"),
    Setting("token_file", None, file_path, "path",
            "file with the bearer token that every client must send; without it there is no authentication",
            "--token-file FILE"),
    Setting("log", "stderr", log, "stderr, syslog or a path",
            "where the log goes", "--log stderr|syslog|FILE", live=False),
    Setting("log_level", "info", log_level, "level",
            f"what is logged: {', '.join(LOG_LEVELS)}", "--log-level LEVEL", live=False),
    Setting("support_bundle_max_bytes", 32 * MIB, size, "bytes",
            "the largest support bundle that is passed on"),
    Setting("freebind", False, boolean, "true or false",
            "listen on an address that the machine does not have yet", live=False),
    Setting("mcp_enabled", True, boolean, "true or false",
            "serve MCP at all; when false, /mcp answers 404", table=AGENT),
    Setting("mcp_shell_enabled", False, boolean, "true or false",
            "offer the shell tool over MCP", table=AGENT),
    Setting("mcp_config_web_base_url", "http://127.0.0.1", base_url, "URL",
            "Config Web's HTTP API, on loopback; for device_status and support_bundle",
            "--config-web-base-url URL", table=AGENT),
)  # fmt: skip


def rows(table: str) -> list[Setting]:
    """The rows of SETTINGS that belong to that table."""
    return [row for row in SETTINGS if row.table == table]


# What our own file may hold at each place. `host` is the host role's table; the two may share a file.
PLACES = {
    "": [OURS, "conversation_settings", "host"],
    OURS: [row.key for row in rows(OURS)],
    "conversation_settings": ["agent"],
    AGENT: [row.key for row in rows(AGENT)],
}
# The Agent's tables may be copied into our file whole: their other keys are no mistakes.
_OURS_ALONE = ("", OURS)


def misplaced(place: str, key: str) -> str | None:
    """Why `key` has no business at that place of a file ("" is its top), None when it has."""
    where = f"in [{place}]" if place else "at the top of the file"
    known = PLACES.get(place, [])
    homes = [row.table for row in SETTINGS if row.key == key]
    if key in known:
        return None
    if homes:
        return f"{key} stands {where}, but belongs in [{homes[0]}]"
    if place not in _OURS_ALONE and not key.startswith("mcp_"):
        return None
    return f"unknown {'key' if place else 'table or key'} {key!r} {where}; {did_you_mean(key, known)}"


@dataclass(frozen=True)
class Settings:
    """What is in force: a field for each row of SETTINGS, the token, and where each value came from.

    `sources` maps a key to "default", to a flag such as "--listen", or to a file's absolute path.
    `warnings` are lines for a person about settings that can be worked with all the same.
    """

    listen: tuple[Address, ...]
    agent_base_url: str
    agent_config: str
    strict_meta: bool
    token_file: str | None
    log: str
    log_level: str
    support_bundle_max_bytes: int
    freebind: bool
    mcp_enabled: bool
    mcp_shell_enabled: bool
    mcp_config_web_base_url: str
    token: bytes | None = field(repr=False)
    sources: Mapping[str, str]
    warnings: tuple[str, ...]
