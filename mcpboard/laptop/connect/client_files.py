"""A client's configuration file: replaced whole or not at all, with a backup beside it.

mcp.json                                   the file
mcp.json.mcpboard-1-9f86d081884c7d65       what it was before the first write; the digits are of what
                                           was written, so that undoing knows whether it changed since
mcp.json.mcpboard-2-60303ae22b998861.new   the same for a file that was not there: the folders that were made for it
"""

from __future__ import annotations

import contextlib
import hashlib
import itertools
import json
import os
import re
import stat
from dataclasses import dataclass
from pathlib import Path

from mcpboard.config.files import FileMissing, read_file, remove_leftovers, staged_file
from mcpboard.errors import ConfigError
from mcpboard.protocol.tools import compact

LARGEST = 4 << 20  # bytes; a client's own settings file comes nowhere near
DIGITS = 16  # hexadecimal, of SHA-256: against accident, not against malice
NEW, OWNER = 0o644, 0o700  # mode of a new file; the part of any mode that is the owner's


@dataclass(frozen=True)
class Backup:
    """The file before one write; `digest` is of what was written, `is_new` when there was no file."""

    path: str
    number: int
    digest: str
    is_new: bool


def read(path: str) -> bytes | None:
    """Return the content, None where there is no file; raises ConfigError for one that cannot be read."""
    try:
        return read_file(path, LARGEST)
    except FileMissing:
        return None


def refuse_read_only(path: str) -> None:
    """Raise ConfigError for a file that its owner may not write to: it is replaced, so no system would refuse that."""
    with contextlib.suppress(OSError):  # there is none
        if not os.stat(path).st_mode & stat.S_IWUSR:
            raise ConfigError(f"{path} is read-only; somebody meant it to stay so, --force changes it all the same")


def write(path: str, old: bytes | None, new: bytes, *, private: bool) -> str:
    """Replace `old` by `new` and return the path of the backup.

    A `private` file and its new backup are for their owner alone, from their first byte on; any other
    keeps the mode of the old one. Raises ConfigError, with the file as it was, when that cannot be done
    or the file is not `old` any more.
    """
    number = max((backup.number for backup in backups(path)), default=0) + 1
    kept = f"{path}.mcpboard-{number}-{_digest(new)}" + (".new" if old is None else "")
    folders = list(itertools.takewhile(lambda each: not os.path.exists(each), map(str, Path(path).parents)))
    try:
        os.makedirs(os.path.dirname(path), exist_ok=True)
        if read(path) != old:
            raise ConfigError(f"{path} changed a moment ago; close the program that writes it, and try again")
        _replace(kept, compact({"folders": folders}) if old is None else old, path, private=private)
        _replace(path, new, path, private=private)
    except OSError as error:
        with contextlib.suppress(OSError):
            os.unlink(kept)
        raise ConfigError(f"{path} cannot be written: {error.strerror}") from None
    return kept


def restrict(path: str) -> bool:
    """Take the file and its backups, as far as they are there, from group and others; False when no one had access.

    Raises ConfigError where a mode cannot be changed.
    """
    if not hasattr(os, "chown"):  # on Windows, where a mode says nothing of who may read
        return False
    restricted = False
    for each in (path, *(backup.path for backup in backups(path))):
        try:
            mode = stat.S_IMODE(os.stat(each).st_mode)
            if mode & ~OWNER:
                os.chmod(each, mode & OWNER)
                restricted = True
        except FileNotFoundError:
            continue
        except OSError as error:
            raise ConfigError(f"{each}: others can read it, and its mode cannot be changed: {error.strerror}") from None
    return restricted


def undo(path: str) -> None:
    """Put back what the file was before the latest write, byte for byte; that uses up its backup.

    Raises ConfigError when there is none, or when the file has changed since.
    """
    backup = max(backups(path), key=lambda backup: backup.number, default=None)
    if backup is None:
        raise ConfigError(f"there is nothing to undo: mcpboard keeps no backup of {path}")
    current = read(path)
    if current is None or _digest(current) != backup.digest:
        raise ConfigError(f"{path} has changed since mcpboard wrote it, so it stays; compare it with {backup.path}")
    try:
        kept = read(backup.path) or b""
        if not backup.is_new:
            _replace(path, kept, path, private=False)
        else:
            os.unlink(path)
        os.unlink(backup.path)
        # Empty where version 0.1.0 has written it.
        for folder in json.loads(kept or b"{}").get("folders", []) if backup.is_new else []:
            with contextlib.suppress(OSError):  # somebody has put something else there
                os.rmdir(folder)
    except OSError as error:
        raise ConfigError(f"{path} cannot be put back: {error.strerror}; {backup.path} holds what it was") from None


def backups(path: str) -> list[Backup]:
    """Return the backups beside the file, in no order."""
    folder, name = os.path.split(path)
    form = re.compile(re.escape(name) + r"\.mcpboard-([0-9]+)-([0-9a-f]{16})(\.new)?")
    try:
        found = [match for entry in os.listdir(folder) if (match := form.fullmatch(entry))]
    except OSError:  # the folder is not there yet
        found = []
    return [Backup(os.path.join(folder, each[0]), int(each[1]), each[2], each[3] is not None) for each in found]


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:DIGITS]


def _replace(path: str, content: bytes, like: str, *, private: bool) -> None:
    """Put a whole file at `path` in one step, with mode and owner of the file `like` where that is there.

    A `private` one has what that mode gives to the owner. Until then it is for this user alone.
    """
    remove_leftovers(path)
    staged = staged_file(path, content)
    try:
        mode = NEW
        with contextlib.suppress(FileNotFoundError):
            status = os.stat(like)
            mode = stat.S_IMODE(status.st_mode)
            if hasattr(os, "chown"):  # not on Windows
                with contextlib.suppress(PermissionError):  # only root may give files away
                    os.chown(staged, status.st_uid, status.st_gid)
        os.chmod(staged, mode & OWNER if private else mode)
        os.replace(staged, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(staged)
        raise
