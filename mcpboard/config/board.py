"""The board's settings: a table of what can be set, where each key belongs, and the frozen result."""

from __future__ import annotations

import contextlib
import difflib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from mcpboard.config import schema
from mcpboard.config.files import Document
from mcpboard.config.schema import OURS, Address, Setting
from mcpboard.errors import ConfigError
from mcpboard.text import did_you_mean, one_line

SHOWN_KEYS = 8  # complaints about one file; the rest is counted
NEARLY = 0.9  # likeness of two names: one letter of eleven may differ
KEY_WIDTH = 80  # characters of a foreign key that a complaint shows

AGENT = "conversation_settings.agent"  # the table of the Agent's file, and of ours while that is not there

SETTINGS = (
    Setting("listen", "0.0.0.0:8080", schema.listen, "address or list of addresses",
            "where MCP is served; *:PORT is every address, port 0 any free one", "--listen HOST:PORT", live=False),
    Setting("agent_base_url", "http://127.0.0.1:8081", schema.base_url, "URL",
            "the Agent's HTTP API, on loopback", "--agent-base-url URL"),
    Setting("agent_config", "/userdata/agent/agent.toml", schema.file_path, "path",
            "the Agent's settings file, read only for the mcp_ keys", "--agent-config FILE"),
    Setting("strict_meta", False, schema.boolean, "true or false",
            "refuse modern requests whose _meta is missing, as the specification asks"),
    Setting("token_file", None, schema.file_path, "path",
            "file with the bearer token that every client must send; without it there is no authentication",
            "--token-file FILE"),
    Setting("log", "stderr", schema.log, "stderr, syslog or a path",
            "where the log goes", "--log stderr|syslog|FILE", live=False),
    Setting("log_level", "info", schema.log_level, "level",
            f"what is logged: {', '.join(schema.LOG_LEVELS)}", "--log-level LEVEL", live=False),
    Setting("support_bundle_max_bytes", 32 * schema.MIB, schema.size, "bytes",
            "the largest support bundle that is passed on"),
    Setting("freebind", False, schema.boolean, "true or false",
            "listen on an address that the machine does not have yet", live=False),
    Setting("mcp_enabled", True, schema.boolean, "true or false",
            "serve MCP at all; when false, /mcp answers 404", table=AGENT),
    Setting("mcp_shell_enabled", False, schema.boolean, "true or false",
            "offer the shell tool over MCP", table=AGENT),
    Setting("mcp_config_web_base_url", "http://127.0.0.1", schema.base_url, "URL",
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


# Those that disable something when they are false, and that nothing but a file's own word enables.
SWITCHES = ("mcp_enabled", "mcp_shell_enabled")


def misplaced(place: str, key: str) -> str | None:
    """Return the complaint about `key` at that place of a file ("" is its top), None where it belongs."""
    where = f"in [{place}]" if place else "at the top of the file"
    known = PLACES.get(place, [])
    homes = [row.table for row in SETTINGS if row.key == key]
    # The Agent's tables may be copied into our file whole: their other keys are no mistakes.
    if key in known or (not homes and place not in ("", OURS) and not key.startswith("mcp_")):
        return None
    if homes:
        return f"{key} stands {where}, but belongs in [{homes[0]}]"
    shown = one_line(key, KEY_WIDTH)
    return f"unknown {'key' if place else 'table or key'} {shown!r} {where}; {did_you_mean(shown, known)}"


def strays(document: Document) -> list[str]:
    """Return a complaint for each key of our own file that has no effect where it stands."""
    complaints = []
    for place in PLACES:
        with contextlib.suppress(ConfigError):  # no table: whoever reads it says so
            complaints += [each for key in document.table(place) if (each := misplaced(place, key))]
    more = len(complaints) - SHOWN_KEYS
    shown = [f"{document.path}: {each}" for each in complaints[:SHOWN_KEYS]]
    return [*shown, f"{document.path}: {more} more keys like these"] if more > 0 else shown


def misspelt_off(document: Document) -> str | None:
    """Return a complaint about `mcp_enabled = false` under another name or in another table, None without one.

    Whoever wrote that, or whatever damaged the line, MCP was meant to be disabled.
    """
    tables: list[tuple[str, Any]] = [("", document.content)]
    for place, table in tables:  # those inside are appended meanwhile
        if isinstance(table, list):  # `[[conversation_settings.agent]]` makes a list of tables
            tables += [(place, each) for each in table if isinstance(each, (dict, list))]
        for key, value in table.items() if isinstance(table, dict) else ():
            inner = f"{place}.{key}" if place else key
            # A dot in the name makes a table of its first half.
            names = [name.lower() for name in (key, ".".join(inner.split(".")[-2:]))]
            if isinstance(value, (dict, list)):
                tables.append((inner, value))
            elif value is False and key == "mcp_enabled":
                return misplaced(place, key) or f"{key} stands in a list of tables, but belongs in [{AGENT}]"
            elif value is False and difflib.get_close_matches("mcp_enabled", names, 1, NEARLY):
                return f"unknown key {one_line(inner, KEY_WIDTH)!r}; did you mean mcp_enabled in [{AGENT}]?"
    return None


@dataclass(frozen=True)
class Settings:
    """The effective settings: a field for each row of SETTINGS, the token, and where each value came from.

    `sources` maps a key to "default", to a flag such as "--listen", or to a file's absolute path.
    `warnings` are lines for a person about settings that can be worked with all the same.
    `mcp_fault` is why MCP is disabled where no setting that can be read says so: file, fault and cure.
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
    mcp_fault: str | None = None
