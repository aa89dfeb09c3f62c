"""`mcpboard connect`: the configuration of one known client, written into its file or taken out again."""

from __future__ import annotations

import glob
import os
from collections.abc import Mapping
from dataclasses import dataclass

from mcpboard.client import Client
from mcpboard.client_configs import ClientConfig, Target
from mcpboard.errors import ClientError, ConfigError
from mcpboard.laptop.connect import client_files, edits
from mcpboard.text import one_line

BOM = "\ufeff"
# Variables whose clients resolve a relative path against the current folder; others ignore it.
RELATIVE = frozenset({"$CODEX_HOME", "$HERMES_HOME"})
HANDSHAKE_SECONDS = 15.0  # somebody waits at a prompt


@dataclass(frozen=True)
class WrittenFile:
    """A file after a write: `backup` holds what it was before, "" when nothing had to change.

    `is_new` when there was no file before, `is_restricted` when group and others have lost access to
    it or to a backup. `notes` are sentences on what else is in the file and keeps the entry from working as meant.
    """

    path: str
    backup: str = ""
    is_new: bool = False
    is_restricted: bool = False
    notes: tuple[str, ...] = ()


def place_of(client: ClientConfig, system: str, folders: Mapping[str, str]) -> tuple[str, str]:
    """Return the client's file on that system, as written and as a path; empty for a client that has none.

    `folders` has what the words at the beginning of places stand for. A place counts when its variable is set to
    an absolute path, or to any for a client that takes it, and one with a `*` when there is such a folder.
    """
    for place in client.places.get(system, client.places.get("", ())):
        head, _, rest = place.partition("/")
        if head.startswith("$") and not (head in folders and (os.path.isabs(folders[head]) or head in RELATIVE)):
            continue
        path = os.path.abspath(os.path.join(folders[head], rest) if head in folders else place)
        folder, star, inside = path.partition("*")
        if not star:
            return place, path
        if found := sorted(glob.glob(f"{glob.escape(folder)}*{os.path.dirname(inside)}")):
            return place, os.path.join(found[-1], os.path.basename(inside))
    return "", ""


def path_of(client: ClientConfig, system: str, folders: Mapping[str, str]) -> str:
    """Return the path of the client's file on that system; ConfigError for a client that has none."""
    _, path = place_of(client, system, folders)
    if not path:
        raise ConfigError(f"{client.title} has no file; do the steps that `mcpboard connect {client.key}` prints")
    return path


def write(client: ClientConfig, target: Target, path: str, *, force: bool = False) -> WrittenFile:
    """Put the server into the client's file at `path`, with a backup beside it; the same again changes nothing.

    A file that its owner may not write to is changed only with `force`. Where the entry holds the token itself,
    group and others lose access to both, before it is in there. Raises ConfigError, with the file as it was, when
    that cannot be done safely.
    """
    path = os.path.realpath(path)  # a link stays, and the file that it leads to is changed
    old = client_files.read(path)
    try:
        text = (old or b"").decode()
        mark = BOM if text.startswith(BOM) else ""  # some editors put one before the text
        text = text.removeprefix(BOM)
        changed = edits.with_entry(client.format, text, client.document(target))
    except UnicodeDecodeError:
        raise ConfigError(f"{path} is not UTF-8; save it as UTF-8 first") from None
    except ConfigError as error:
        raise ConfigError(f"{path}: {error}") from None
    notes = edits.notes(client.format, changed, client.table, target)
    private = client.shows_token(target)
    if changed != text and not force:
        client_files.refuse_read_only(path)
    restricted = private and client_files.restrict(path)
    if old is not None and changed == text:
        return WrittenFile(path, is_restricted=restricted, notes=notes)
    backup = client_files.write(path, old, (mark + changed).encode(), private=private)
    return WrittenFile(path, backup, old is None, restricted, notes)


def undo(path: str) -> str:
    """Make the file at `path` what it was before the latest write, and return where it is, all links followed.

    Raises ConfigError when it changed since.
    """
    path = os.path.realpath(path)
    client_files.undo(path)
    return path


def handshake(target: Target, doctor: str) -> tuple[bool, str]:
    """Connect to the server as a client would; return if that went well, and a message that says how.

    `doctor` is the command that names the cause when it did not.
    """
    token = None if target.token is None else target.token.value
    try:
        with Client(target.url, token, timeout=HANDSHAKE_SECONDS) as client:
            count = len(client.list_tools())
            name, version = (one_line(str(client.server.get(key, "?"))) for key in ("name", "version"))
            return True, f"{target.url} answers: {name} {version}, {client.version}, {count} tools"
    except ClientError as error:
        return False, f"{target.url}: {error}\n{doctor}   names the cause"
