"""The board's settings: a table of what can be set, where each key belongs, and the frozen result."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from mcpboard.config.schema import (
    LOG_LEVELS,
    MIB,
    OURS,
    Address,
    Setting,
    base_url,
    boolean,
    file_path,
    listen,
    log,
    log_level,
    size,
)
from mcpboard.text import did_you_mean

AGENT = "conversation_settings.agent"  # the table of the Agent's file, and of ours while that is not there

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
    """Return the rows of SETTINGS that belong to that table."""
    return [row for row in SETTINGS if row.table == table]


# What our own file may hold at each place. `host` is the host role's table; the two may share a file.
PLACES = {
    "": [OURS, "conversation_settings", "host"],
    OURS: [row.key for row in rows(OURS)],
    "conversation_settings": ["agent"],
    AGENT: [row.key for row in rows(AGENT)],
}


def misplaced(place: str, key: str) -> str | None:
    """Return the complaint about `key` at that place of a file ("" is its top), None where it belongs."""
    where = f"in [{place}]" if place else "at the top of the file"
    known = PLACES.get(place, [])
    homes = [row.table for row in SETTINGS if row.key == key]
    if key in known:
        return None
    if homes:
        return f"{key} stands {where}, but belongs in [{homes[0]}]"
    # The Agent's tables may be copied into our file whole: their other keys are no mistakes.
    if place not in ("", OURS) and not key.startswith("mcp_"):
        return None
    return f"unknown {'key' if place else 'table or key'} {key!r} {where}; {did_you_mean(key, known)}"


@dataclass(frozen=True)
class Settings:
    """The effective settings: a field for each row of SETTINGS, the token, and where each value came from.

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
