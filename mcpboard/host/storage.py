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

from mcpboard.config.files import staged_file
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
    """Make sure that `folder` is there and that nobody else may look into it; ConfigError with the cure."""
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with contextlib.suppress(FileExistsError):
            folder.mkdir(FOLDER_MODE)
        seen = folder.stat()
    except OSError as error:
        raise ConfigError(f"{folder}: cannot be used: {error.strerror}; name another folder with --data DIR") from None
    if not stat.S_ISDIR(seen.st_mode) or seen.st_uid != os.geteuid() or seen.st_mode & stat.S_ISVTX:
        raise ConfigError(f"{folder}: must be a folder of this user alone; name another with --data DIR")
    if seen.st_mode & 0o077:
        folder.chmod(FOLDER_MODE)
        log.warning("%s: others could look into it; its mode is 0700 now", folder)


def read(path: Path) -> dict[str, Any] | None:
    """The JSON object in a private file, None where there is no file; its mode is tightened on the way.

    ConfigError, with path and cure, for a symbolic link, another user's file, or no JSON object.
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
        number = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK)
    except FileNotFoundError:
        return None
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise ConfigError(f"{path}: is a symbolic link, which is not followed; delete it") from None
        raise ConfigError(f"{path}: cannot be read: {error.strerror}; make it readable for this user") from None
    try:
        _check_private(path, number)
        with open(number, "rb", closefd=False) as file:
            return file.read(LARGEST_FILE)
    finally:
        os.close(number)


def _check_private(path: Path, number: int) -> None:
    seen = os.fstat(number)
    if not stat.S_ISREG(seen.st_mode):
        raise ConfigError(f"{path}: is no regular file; delete it")
    if seen.st_uid != os.geteuid():
        raise ConfigError(f"{path}: belongs to another user; delete it, or run the host agent as its owner")
    if seen.st_mode & 0o077:
        os.fchmod(number, FILE_MODE)
        log.warning("%s: others could read it; its mode is 0600 now", path)


def create(path: Path, document: dict[str, Any]) -> None:
    """Write a file that is not there yet; when another process is first, its file stays as it is."""
    staged = staged_file(path, _written(document))
    try:
        with contextlib.suppress(FileExistsError):
            os.link(staged, path)  # unlike a rename it never replaces
    finally:
        os.unlink(staged)
    _sync_folder(path.parent)


def replace(path: Path, document: dict[str, Any]) -> None:
    """Write a file over what may be there, whole or not at all."""
    staged = staged_file(path, _written(document))
    try:
        os.replace(staged, path)
    except OSError:
        os.unlink(staged)
        raise
    _sync_folder(path.parent)


def _written(document: dict[str, Any]) -> bytes:
    return json.dumps(document).encode("ascii") + b"\n"


@contextlib.contextmanager
def locked(path: Path) -> Iterator[None]:
    """Alone among the processes that change `path`, until the block ends; where there is flock, that is.

    ConfigError for a folder that could not be made private.
    """
    private_folder(path.parent)
    number = os.open(f"{path}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, FILE_MODE)
    try:
        if fcntl is not None:
            fcntl.flock(number, fcntl.LOCK_EX)  # held for one small write; the kernel frees a dead holder's
        yield
    finally:
        os.close(number)


def look(path: Path) -> tuple[int, ...] | None:
    """What the file looks like from outside, to tell whether it has changed; None while it is not there."""
    try:
        seen = path.lstat()
    except OSError:
        return None
    return seen.st_ino, seen.st_size, seen.st_mtime_ns, seen.st_ctime_ns


class FollowedFile:
    """A file that is to be read again whenever it has changed. Not locked: who follows it owns the lock."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._seen: tuple[int, ...] | None = None

    def changed(self) -> bool:
        """True when it looks otherwise than at the last call; before the first it counts as not there."""
        before, self._seen = self._seen, look(self._path)
        return self._seen != before


def _sync_folder(folder: Path) -> None:
    number = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(number)
    finally:
        os.close(number)
