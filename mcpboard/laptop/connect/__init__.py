"""`mcpboard connect`: the configuration of one known client, written into its file or taken out again."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass

from mcpboard.client import Client
from mcpboard.client_configs import ClientConfig, Target
from mcpboard.errors import ClientError, ConfigError
from mcpboard.laptop.connect import client_files, edits
from mcpboard.text import one_line

BOM = "\ufeff"
HANDSHAKE_S = 15.0  # seconds; somebody waits at a prompt


@dataclass(frozen=True)
class WrittenFile:
    """What became of a file: `backup` is what it was before, "" when nothing had to change.

    `is_new` when there was no file before.
    """

    path: str
    backup: str = ""
    is_new: bool = False


def path_of(form: ClientConfig, system: str, folders: Mapping[str, str]) -> str:
    """The client's file on that system, absolute; `folders` is what `~` and `%APPDATA%` stand for."""
    place = form.place(system)
    if not place:
        raise ConfigError(f"{form.title} has no file to write; do the steps that `mcpboard connect {form.key}` prints")
    head, _, rest = place.partition("/")
    return os.path.abspath(os.path.join(folders[head], rest) if head in folders else place)


def write(form: ClientConfig, target: Target, path: str) -> WrittenFile:
    """Put the server into the client's file at `path`, with a backup beside it; the same again changes nothing.

    Raises ConfigError, with the file as it was, when that cannot be done safely.
    """
    path = client_files.real(path)
    old = client_files.read(path)
    text, mark = _text(path, old or b"")
    try:
        changed = edits.edited(form.format, text, form.document(target))
    except ConfigError as error:
        raise ConfigError(f"{path}: {error}") from None
    if old is not None and changed == text:
        return WrittenFile(path)
    mode = client_files.PRIVATE if form.shows_token(target) else client_files.SHARED
    return WrittenFile(path, client_files.write(path, old, (mark + changed).encode(), mode), is_new=old is None)


def _text(path: str, content: bytes) -> tuple[str, str]:
    """The text, and the byte order mark that some editors put before it."""
    try:
        text = content.decode()
    except UnicodeDecodeError:
        raise ConfigError(f"{path} is not UTF-8; save it as UTF-8 first") from None
    return (text[1:], BOM) if text.startswith(BOM) else (text, "")


def undo(path: str) -> WrittenFile:
    """Make the file at `path` what it was before the latest write; raises ConfigError when it changed since."""
    path = client_files.real(path)
    return WrittenFile(path, client_files.undo(path).path)


def greet(target: Target, doctor: str) -> tuple[bool, str]:
    """Shake hands with the server as a client would; whether that went well, and how.

    `doctor` is the command that names the cause when it did not.
    """
    token = None if target.token is None else target.token.value
    try:
        with Client(target.url, token, timeout=HANDSHAKE_S) as client:
            count = len(client.list_tools())
            name, version = (one_line(str(client.server.get(key, "?"))) for key in ("name", "version"))
            return True, f"{target.url} answers: {name} {version}, {client.version}, {count} tools"
    except ClientError as error:
        return False, f"{target.url}: {error}\n{doctor}   names the cause"
