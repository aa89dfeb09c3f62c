"""Configurations of the known clients, as data: where each keeps its servers, and the entry that it needs there.

Each row says what a person needs to know to point one client at one server. Versions of clients move
fast, so every fact here is looked at again before a release.
"""

from __future__ import annotations

import functools
import json
import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

USB_URL = "http://192.168.42.1:8080/mcp"  # the board at the other end of a USB cable
NAME = "phone-board"
HOST_NAME = "apex_device"  # the name that clients of the host agent expect

# What every client takes as a server's name, and TOML and YAML as a bare key.
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,63}")
_YAML_WORDS = frozenset({"true", "false", "yes", "no", "on", "off", "null", "y", "n"})

# Members of an entry that say how to connect. All others of an entry that is there are its owner's.
CONNECTION_KEYS = frozenset(
    {
        *("command", "args", "env", "cwd", "cmd", "envs", "type", "transport", "url", "httpUrl", "serverUrl", "uri"),
        *("headers", "http_headers", "env_http_headers", "bearer_token_env_var"),
    }
)


@dataclass(frozen=True)
class Token:
    """The bearer token: its file, and itself for the entries of clients that take nothing else."""

    file: str
    value: str = field(repr=False)
    shown_by: str = ""  # the shell command that prints it, where the file holds more than the token

    @property
    def command(self) -> str:
        """The shell command that prints the token."""
        return self.shown_by or shlex.join(("cat", self.file))


@dataclass(frozen=True)
class Target:
    """The server as a client's configuration names it; `program` starts mcpboard on the client's machine."""

    url: str
    name: str = NAME
    token: Token | None = None
    program: tuple[str, ...] = ("mcpboard",)

    @property
    def variable(self) -> str:
        """The environment variable that entries take the token from."""
        return self.name.upper().replace("-", "_") + "_TOKEN"


def is_name(text: str) -> bool:
    """Return True for a name that every client takes."""
    return _NAME.fullmatch(text) is not None and text.lower() not in _YAML_WORDS


Entry = Callable[[Target], Mapping[str, Any]]


@dataclass(frozen=True)
class ClientConfig:
    """Configuration of one client for a server.

    `places` maps a system (`darwin`, `win32`, "" for any other) to the file, which may begin with
    `~` or `%APPDATA%`; one without is in the project's folder. `entry` stands under
    `table` and the server's name; `lists` are items, each with an `id`, that stand beside the table.
    `format` is json, toml, yaml, or steps for a client that is set up by hand.
    """

    key: str
    title: str
    format: str
    places: Mapping[str, str] = field(default_factory=dict)
    table: str = ""
    entry: Entry = lambda target: {}
    lists: Callable[[Target], Mapping[str, Sequence[Mapping[str, Any]]]] = lambda target: {}
    steps: Callable[[Target], Sequence[str]] = lambda target: ()
    command: Callable[[Target], str] | None = None  # the same in one line of a shell
    token: str = "value"  # how the token gets there: variable, file, prompt, or value
    bridge: bool = False  # it only starts programs, so `mcpboard bridge` stands in between
    reload: str = ""
    notes: tuple[str, ...] = ()

    def place(self, system: str) -> str:
        """Return the file on that system, as written; empty for a client that has none."""
        return self.places.get(system, self.places.get("", ""))

    def document(self, target: Target) -> dict[str, Any]:
        """Return the content of a file that has this server only."""
        return {self.table: {target.name: dict(self.entry(target))}, **self.lists(target)}

    def text(self, target: Target) -> str:
        """Return the entry as a person pastes it, steps one a line; ends without a line break."""
        if self.format == "steps":
            return "\n".join(f"{number}. {step}" for number, step in enumerate(self.steps(target), 1))
        return WRITERS[self.format](self.document(target))

    def shows_token(self, target: Target) -> bool:
        """Return True when the entry holds the token itself."""
        return target.token is not None and self.token == "value"


# --- parts of entries ------------------------------------------------------------------------


def _bearer(target: Target, reference: str = "") -> Mapping[str, Any]:
    """Return the header with `reference` for the token, else with the token itself; nothing where there is none."""
    if target.token is None:
        return {}
    return {"headers": {"Authorization": f"Bearer {reference or target.token.value}"}}


# The client ends a program that writes a longer line, so a large bundle is better an error.
LINE_FLAG = ("--longest-line", str(10 << 20))  # bytes


def _desktop(target: Target) -> Mapping[str, Any]:
    command, *before = target.program
    token = () if target.token is None else ("--token-file", target.token.file)
    return {"command": command, "args": [*before, "bridge", target.url, *LINE_FLAG, *token]}


def _vscode_id(target: Target) -> str:
    return target.name.replace("-", "_") + "_token"


def _vscode_inputs(target: Target) -> Mapping[str, Sequence[Mapping[str, Any]]]:
    if target.token is None:
        return {}
    prompt = {"type": "promptString", "id": _vscode_id(target), "description": "Board token", "password": True}
    return {"inputs": [prompt]}


def _vscode(target: Target) -> Mapping[str, Any]:
    return {"type": "http", "url": target.url, **_bearer(target, f"${{input:{_vscode_id(target)}}}")}


def _codex(target: Target) -> Mapping[str, Any]:
    token = {} if target.token is None else {"bearer_token_env_var": target.variable}
    # Seconds: its own limit for the start is 10, and the longest look at a phone takes about 30.
    return {"url": target.url, **token, "startup_timeout_sec": 20, "tool_timeout_sec": 60}


def _goose(target: Target) -> Mapping[str, Any]:
    return {
        "enabled": True,
        "type": "streamable_http",
        "name": target.name,
        "uri": target.url,
        "headers": dict(_bearer(target).get("headers", {})),
        "timeout": 60,  # seconds
    }


def _add_command(client: str, target: Target) -> str:
    """Return the command of a client that takes the header as it is to be sent."""
    header = f' --header "Authorization: Bearer ${target.variable}"' if target.token else ""
    return f"{client} mcp add --transport http {target.name} {shlex.quote(target.url)}{header}"


def _codex_command(target: Target) -> str:
    token = f" --bearer-token-env-var {target.variable}" if target.token else ""
    return f"codex mcp add {target.name} --url {shlex.quote(target.url)}{token}"


def _open_webui(target: Target) -> Sequence[str]:
    auth = "none" if target.token is None else "Bearer, and paste the token"
    return (
        "Open Admin Settings > External Tools and add a connection.",
        "Type: MCP (Streamable HTTP); it needs version 0.6.31 or newer.",
        f"URL: {target.url}",
        f"Authentication: {auth}.",
        "The server of Open WebUI connects, not your browser: from Docker use host networking, or forward the port"
        " on the host (mcpboard relay).",
    )


def _chatgpt(target: Target) -> Sequence[str]:
    return (
        "ChatGPT connects from its vendor's cloud, which cannot reach a board: a tunnel has to run on this laptop.",
        "Set token_file on the board first. Never expose it to the Internet without a token.",
        f"Run the vendor's tunnel client, or an https reverse proxy of your own, with the upstream {target.url}",
        "Settings > Connectors > Developer mode: add a connector with the tunnel's https address.",
        "Register it again after the board's tools have changed: the list is kept from the registration.",
    )


# --- the table -------------------------------------------------------------------------------

CLIENT_CONFIGS = (
    ClientConfig(
        "claude-desktop", "Claude Desktop", "json",
        {
            "darwin": "~/Library/Application Support/Claude/claude_desktop_config.json",
            "win32": "%APPDATA%/Claude/claude_desktop_config.json",
            "": "~/.config/Claude/claude_desktop_config.json",
        },
        "mcpServers", _desktop, token="file", bridge=True, reload="quit Claude Desktop and open it again",
        notes=("It only starts programs, so mcpboard has to be installed on the laptop.",
               "Its limit for a result is about 1 MB."),
    ),
    ClientConfig(
        "claude-code", "Claude Code", "json", {"": ".mcp.json"}, "mcpServers",
        lambda target: {"type": "http", "url": target.url, **_bearer(target, f"${{{target.variable}}}")},
        command=lambda target: _add_command("claude", target), token="variable", reload="start claude again, or /mcp",
        notes=("Versions before 2.1.121 may ignore NO_PROXY.",
               "On macOS a connection to a local address may fail at once although curl works: see mcpboard relay."),
    ),
    ClientConfig(
        "cursor", "Cursor", "json", {"": "~/.cursor/mcp.json"}, "mcpServers",
        lambda target: {"url": target.url, **_bearer(target, f"${{env:{target.variable}}}")},
        token="variable", reload="switch the server off and on in Settings > MCP",
    ),
    ClientConfig(
        "vscode", "VS Code", "json", {"": ".vscode/mcp.json"}, "servers", _vscode, _vscode_inputs,
        token="prompt", reload="press Start above the entry in mcp.json",
        notes=("It may follow the settings http.proxy and http.noProxy.",),
    ),
    ClientConfig(
        "codex", "Codex CLI", "toml", {"": "~/.codex/config.toml"}, "mcp_servers", _codex,
        command=_codex_command, token="variable", reload="start codex again",
    ),
    ClientConfig(
        "gemini", "Gemini CLI", "json", {"": "~/.gemini/settings.json"}, "mcpServers",
        lambda target: {"httpUrl": target.url, "timeout": 60000, **_bearer(target)},  # milliseconds
        command=lambda target: _add_command("gemini", target), reload="start gemini again, or /mcp refresh",
        notes=("The key is httpUrl: url would mean the older SSE transport.",),
    ),
    ClientConfig(
        "hermes", "Hermes Agent", "yaml", {"": "~/.hermes/config.yaml"}, "mcp_servers",
        lambda target: {"url": target.url, **_bearer(target), "timeout": 120, "connect_timeout": 60},  # seconds
        reload="/reload-mcp; hermes mcp test tells how it went",
    ),
    ClientConfig(
        "goose", "Goose", "yaml",
        {"win32": "%APPDATA%/Block/goose/config/config.yaml", "": "~/.config/goose/config.yaml"},
        "extensions", _goose,
        command=lambda target: f"goose session --with-streamable-http-extension {shlex.quote(target.url)}",
        reload="begin a new session",
    ),
    ClientConfig(
        "lm-studio", "LM Studio", "json", {"": "~/.lmstudio/mcp.json"}, "mcpServers",
        lambda target: {"url": target.url, **_bearer(target)},
        reload="save mcp.json in its editor, or switch the server off and on",
        notes=("Its own API refuses local addresses since 0.4.15; the chat does not.",),
    ),
    ClientConfig("open-webui", "Open WebUI", "steps", steps=_open_webui),
    ClientConfig(
        "chatgpt", "ChatGPT", "steps", steps=_chatgpt,
        notes=("It takes public https addresses only.",),
    ),
)  # fmt: skip


def find(key: str) -> ClientConfig | None:
    """Return the configuration of that client, None for one that is not known."""
    return next((client for client in CLIENT_CONFIGS if client.key == key), None)


# --- how a document is written ----------------------------------------------------------------


def _toml(document: Mapping[str, Any]) -> str:
    """Write tables of tables of plain values, which is all that an entry needs."""
    lines = []
    for table, entries in document.items():
        for name, entry in entries.items():
            lines += [f"[{table}.{name}]", *(f"{key} = {json.dumps(value)}" for key, value in entry.items())]
    return "\n".join(lines)


def _yaml(document: Mapping[str, Any], indent: str = "") -> str:
    """Write mappings of mappings and plain values; a JSON string is a YAML one."""
    lines = []
    for key, value in document.items():
        if isinstance(value, dict) and value:
            lines += [f"{indent}{key}:", _yaml(value, indent + "  ")]
        else:
            lines.append(f"{indent}{key}: {json.dumps(value)}")
    return "\n".join(lines)


WRITERS: Mapping[str, Callable[[Mapping[str, Any]], str]] = {
    "json": functools.partial(json.dumps, indent=2, ensure_ascii=False),
    "toml": _toml,
    "yaml": _yaml,
}
