"""Configurations of the known clients, as data: where each keeps its servers, and the entry that it needs there."""

# Each item of `client_configs.json` says what a person needs to know to point one client at one server. Versions of
# clients move fast, so every fact there is looked at again before a release.

from __future__ import annotations

import functools
import json
import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

USB_URL = "http://192.168.42.1:8080/mcp"  # the board at the other end of a USB cable
NAME = "phone-board"
HOST_NAME = "apex_device"  # the name that clients of the host agent expect

# What every client takes as a server's name, and TOML and YAML as a bare key.
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,63}")
_YAML_WORDS = frozenset({"true", "false", "yes", "no", "on", "off", "null", "y", "n"})

# Members of an entry that say how to connect. All others of an entry that is there are its owner's.
URL_KEYS = ("url", "httpUrl", "serverUrl", "uri")
CONNECTION_KEYS = frozenset(
    {
        *("command", "args", "env", "cwd", "cmd", "envs", "type", "transport", *URL_KEYS),
        *("headers", "http_headers", "env_http_headers", "bearer_token_env_var"),
    }
)

# The client ends a program that writes a longer line, so a large bundle is better an error.
LINE_FLAG = ("--longest-line", str(10 << 20))  # bytes


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


@dataclass(frozen=True)
class ClientConfig:
    """Configuration of one client for a server: an item of `client_configs.json`."""

    # `places` maps a system (`darwin`, `win32`, "" for any other) to the places where the client looks for its file,
    # in its order. One may begin with `~`, `%APPDATA%`, `%LOCALAPPDATA%` or a variable; others are in the project's
    # folder. A `*` stands for part of a folder's name. `entry` stands under
    # `table` and the server's name; `lists` are items, each with an `id`, that stand beside the table.
    # `format` is json, toml, yaml, or steps for a client that is set up by hand. `command` is the same in
    # one line of a shell. Entry, lists, steps and command are filled in for a target as `filled` says; their
    # timeouts are in the unit of the client, the longest look at a phone takes about 30 seconds.

    key: str
    title: str
    format: str
    places: Mapping[str, Sequence[str]] = field(default_factory=dict)
    table: str = ""
    entry: Mapping[str, Any] = field(default_factory=dict)
    lists: Mapping[str, Any] = field(default_factory=dict)
    steps: Sequence[str] = ()
    command: Sequence[str] = ()
    token: str = "value"  # how the token gets there: variable, file, prompt, or value
    bridge: bool = False  # it only starts programs, so `mcpboard bridge` stands in between
    reload: str = ""
    notes: Sequence[str] = ()

    def document(self, target: Target) -> dict[str, Any]:
        """Return the content of a file that has this server only."""
        entry = filled(self.entry, target)
        if self.bridge:
            command, *before = target.program
            token = () if target.token is None else ("--token-file", target.token.file)
            entry = {"command": command, "args": [*before, "bridge", target.url, *LINE_FLAG, *token]}
        return {self.table: {target.name: entry}, **filled(self.lists, target)}

    def shell_command(self, target: Target) -> str:
        """Return the command that configures the client; "" for one that has none."""
        return "".join(filled(self.command, target))

    def text(self, target: Target) -> str:
        """Return the entry as a person pastes it, steps one a line; ends without a line break."""
        if self.format == "steps":
            return "\n".join(f"{number}. {step}" for number, step in enumerate(filled(self.steps, target), 1))
        return WRITERS[self.format](self.document(target))

    def shows_token(self, target: Target) -> bool:
        """Return True when the entry holds the token itself."""
        return target.token is not None and self.token == "value"


def filled(template: Any, target: Target) -> Any:
    """Return a template with its words in angle brackets replaced.

    A key or item that begins with `?` is for servers that require a token, one with `!` for the others.
    """
    if isinstance(template, str):
        words = {
            "<url>": target.url,
            "<quoted url>": shlex.quote(target.url),
            "<name>": target.name,
            "<variable>": target.variable,
            "<id>": target.name.replace("-", "_") + "_token",
            "<token>": target.token.value if target.token else "",
        }
        return re.sub("|".join(words), lambda found: words[found[0]], template)
    left_out = "!" if target.token else "?"
    if isinstance(template, Mapping):
        kept = {key: value for key, value in template.items() if not key.startswith(left_out)}
        return {key.lstrip("?!"): filled(value, target) for key, value in kept.items()}
    if isinstance(template, (list, tuple)):
        items = [each for each in template if not isinstance(each, str) or not each.startswith(left_out)]
        return [filled(each.lstrip("?!") if isinstance(each, str) else each, target) for each in items]
    return template


CLIENT_CONFIGS = tuple(
    ClientConfig(**row) for row in json.loads(Path(__file__).with_suffix(".json").read_text("utf-8"))
)


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
