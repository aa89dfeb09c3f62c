"""Private files: written so that a crash leaves the old or the new one whole, and never readable by others."""

from __future__ import annotations

import contextlib
import errno
import json
import logging
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from mcpboard.config.files import look, staged_file
from mcpboard.errors import ConfigError
from mcpboard.text import json_object

fcntl: Any
try:
    import fcntl
except ImportError:  # on Windows
    fcntl = None

log = logging.getLogger(__name__)

FOLDER_MODE, FILE_MODE = 0o700, 0o600
LARGEST_FILE = 1 << 20  # bytes; ours stay below a few KiB


def private_folder(folder: Path) -> None:
    """Make sure that `folder` is there and that nobody else may look into it; ConfigError with the remedy."""
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with contextlib.suppress(FileExistsError):
            folder.mkdir(FOLDER_MODE)
        status = folder.stat()
    except OSError as error:
        raise ConfigError(f"{folder}: cannot be used: {error.strerror}; name another folder with --data DIR") from None
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.geteuid() or status.st_mode & stat.S_ISVTX:
        raise ConfigError(f"{folder}: must be a folder of this user alone; name another with --data DIR")
    if status.st_mode & 0o077:
        folder.chmod(FOLDER_MODE)
        log.warning("%s: others could look into it; its mode is 0700 now", folder)


def read(path: Path) -> dict[str, Any] | None:
    """Return the JSON object in a private file, None where there is no file; its mode is tightened on the way.

    ConfigError, with path and remedy, for a symbolic link, another user's file, or no JSON object.
    """
    content = _content(path)
    if content is None:
        return None
    document = json_object(content)
    if document is None:
        raise ConfigError(f"{path}: not a JSON object any more; delete it and start the host agent again")
    return document


def _content(path: Path) -> bytes | None:
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK)
    except FileNotFoundError:
        return None
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise ConfigError(f"{path}: is a symbolic link, which is not followed; delete it") from None
        raise ConfigError(f"{path}: cannot be read: {error.strerror}; make it readable for this user") from None
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise ConfigError(f"{path}: is no regular file; delete it")
        if status.st_uid != os.geteuid():
            raise ConfigError(f"{path}: belongs to another user; delete it, or run the host agent as its owner")
        if status.st_mode & 0o077:
            os.fchmod(descriptor, FILE_MODE)
            log.warning("%s: others could read it; its mode is 0600 now", path)
        with open(descriptor, "rb", closefd=False) as file:
            return file.read(LARGEST_FILE)
    finally:
        os.close(descriptor)


def create(path: Path, document: dict[str, Any]) -> None:
    """Write a file that is not there yet; when another process is first, its file stays as it is."""
    staged = staged_file(path, _encoded(document))
    try:
        with contextlib.suppress(FileExistsError):
            os.link(staged, path)  # unlike a rename it never replaces
    finally:
        os.unlink(staged)
    _sync_folder(path.parent)


def replace(path: Path, document: dict[str, Any]) -> None:
    """Write a file over what may be there, whole or not at all."""
    staged = staged_file(path, _encoded(document))
    try:
        os.replace(staged, path)
    except OSError:
        os.unlink(staged)
        raise
    _sync_folder(path.parent)


def _encoded(document: dict[str, Any]) -> bytes:
    return json.dumps(document).encode("ascii") + b"\n"


@contextlib.contextmanager
def locked(path: Path) -> Iterator[None]:
    """Keep other processes that change `path` out until the block ends; where there is flock, that is.

    ConfigError for a folder that could not be made private.
    """
    private_folder(path.parent)
    descriptor = os.open(f"{path}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, FILE_MODE)
    try:
        if fcntl is not None:
            fcntl.flock(descriptor, fcntl.LOCK_EX)  # for one small write; the kernel frees a dead process's
        yield
    finally:
        os.close(descriptor)


class FollowedFile:
    """A file that is to be read again whenever it has changed. Not locked: who follows it owns the lock."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._last: tuple[int, ...] | None = None

    def take_change(self) -> bool:
        """Return True when it looks otherwise than at the last call; before the first it counts as not there."""
        before, self._last = self._last, look(self._path, follow_links=False)
        return self._last != before


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
