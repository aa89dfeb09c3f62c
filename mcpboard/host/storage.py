"""Private files: written so that a crash leaves the old or the new one whole, and never readable by others."""

from __future__ import annotations

import contextlib
import errno
import json
import logging
import os
import re
import stat
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from mcpboard.config.files import look, settled, staged_file
from mcpboard.errors import ConfigError
from mcpboard.text import DEPTH_LIMIT, json_object, well_formed_json

fcntl: Any = None
msvcrt: Any = None
try:
    import fcntl
except ImportError:  # on Windows
    with contextlib.suppress(ImportError):
        import msvcrt

log = logging.getLogger(__name__)

FOLDER_MODE, FILE_MODE = 0o700, 0o600
LARGEST_FILE = 1 << 20  # bytes; ours stay below a few KiB
LOCK_SECONDS = 10.0  # for another process to write one small file
POLL_SECONDS = 0.02  # between two looks at a lock that is taken
CLEAN_SECONDS = 1.0  # for files that are being written while an agent starts

# What a crash leaves of a file that was being written, see `staged_file`; the first is that of version 0.1.0.
_STAGED = re.compile(r"\.(mcpboard-.|.+\.json\.).+")
# Symbolic links are not followed, pipes are not waited for, and no child gets the file. Windows has none of these.
_CAREFULLY = sum(getattr(os, name, 0) for name in ("O_NOFOLLOW", "O_NONBLOCK", "O_CLOEXEC"))


class AlreadyLocked(ConfigError):
    """Another process keeps the lock."""


def private_folder(folder: Path) -> None:
    """Make sure that `folder` is there and that nobody else may look into it; ConfigError with the remedy."""
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with contextlib.suppress(FileExistsError):
            folder.mkdir(FOLDER_MODE)
        status = folder.stat()
    except OSError as error:
        raise ConfigError(f"{folder}: cannot be used: {error.strerror}; name another folder with --data DIR") from None
    if not stat.S_ISDIR(status.st_mode) or not _is_ours(status) or status.st_mode & stat.S_ISVTX:
        raise ConfigError(f"{folder}: must be a folder of this user alone; name another with --data DIR")
    if status.st_mode & 0o077:
        folder.chmod(FOLDER_MODE)
        log.warning("%s: others could look into it; its mode is 0700 now", folder)


def _is_ours(status: os.stat_result) -> bool:
    return not hasattr(os, "geteuid") or status.st_uid == os.geteuid()  # Windows has no such number


def read(path: Path, depth: int = DEPTH_LIMIT) -> dict[str, Any] | None:
    """Return the JSON object in a private file, None where there is no file; its mode is tightened on the way.

    ConfigError, with path and remedy, for a symbolic link, another user's file, or no JSON object.
    """
    try:
        descriptor = _open(path, os.O_RDONLY)
    except FileNotFoundError:
        return None
    with open(descriptor, "rb") as file:
        content = file.read(LARGEST_FILE + 1)
    if len(content) > LARGEST_FILE:
        raise ConfigError(f"{path}: larger than the {LARGEST_FILE} bytes that it may have; delete it")
    document = json_object(content, depth)
    if document is None:
        raise ConfigError(f"{path}: not a JSON object any more; delete it and start the host agent again")
    return document


def _open(path: Path, flags: int) -> int:
    """Open a private file of ours; FileNotFoundError, or ConfigError for what is none."""
    try:
        descriptor = os.open(path, flags | _CAREFULLY, FILE_MODE)
    except FileNotFoundError:
        raise
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise ConfigError(f"{path}: is a symbolic link, which is not followed; delete it") from None
        if error.errno in (errno.EISDIR, errno.ENXIO):
            raise ConfigError(f"{path}: is no regular file; delete it") from None
        raise ConfigError(f"{path}: cannot be read: {error.strerror}; make it readable for this user") from None
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise ConfigError(f"{path}: is no regular file; delete it")
        if not _is_ours(status):
            raise ConfigError(f"{path}: belongs to another user; delete it, or run the host agent as its owner")
        if status.st_mode & 0o077 and hasattr(os, "fchmod"):
            os.fchmod(descriptor, FILE_MODE)
            log.warning("%s: others could read it; its mode is 0600 now", path)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def create(path: Path, document: dict[str, Any]) -> None:
    """Write a file that is not there yet; when another process is first, its file stays as it is."""
    with _writing(path.parent):
        staged = staged_file(path, _encoded(document))
        try:
            with contextlib.suppress(FileExistsError):
                os.link(staged, path)  # unlike a rename it never replaces
        finally:
            os.unlink(staged)


def replace(path: Path, document: dict[str, Any]) -> None:
    """Write a file over what may be there, whole or not at all."""
    with _writing(path.parent):
        staged = staged_file(path, _encoded(document))
        try:
            os.replace(staged, path)
        except OSError:
            os.unlink(staged)
            raise


def _encoded(document: dict[str, Any]) -> bytes:
    return well_formed_json(json.dumps(document).encode("ascii")) + b"\n"


@contextlib.contextmanager
def _opened(folder: Path) -> Iterator[int]:
    """Open a folder, to lock it or to have on the disk what is written in it; -1 on Windows, which opens none."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC) if hasattr(os, "O_DIRECTORY") else -1
    try:
        yield descriptor
    finally:
        if descriptor >= 0:
            os.close(descriptor)


@contextlib.contextmanager
def _writing(folder: Path) -> Iterator[None]:
    """Have what is written in `folder` on the disk at the end; until then it is nothing that a crash has left."""
    with _opened(folder) as descriptor:
        with contextlib.suppress(OSError):  # a network's folder may know no locks
            _lock(descriptor, CLEAN_SECONDS, shared=True)
        yield
        if descriptor >= 0:
            os.fsync(descriptor)


def remove_torn(folder: Path) -> None:
    """Remove what a crash has left of files that were being written: a token may stand in it."""
    try:
        with _opened(folder) as descriptor:
            if descriptor < 0 or not _lock(descriptor, CLEAN_SECONDS):
                return
            for entry in os.scandir(folder):
                if _STAGED.fullmatch(entry.name) and entry.is_file(follow_symlinks=False):
                    os.unlink(entry)
                    log.info("%s: was left by a crash, and is removed", entry.path)
    except OSError as error:
        log.warning("%s: what crashes may have left there stays: %s", folder, error.strerror)


# --- locks -------------------------------------------------------------------------------------


@contextlib.contextmanager
def locked(path: Path, seconds: float = LOCK_SECONDS) -> Iterator[None]:
    """Keep other processes that change `path` out until the block ends, however this process ends.

    The lock is on a file beside it, which stays: to delete it would let two in. Raises AlreadyLocked where another
    process keeps it for longer than `seconds`, and ConfigError for a folder that could not be made private.
    """
    private_folder(path.parent)
    lock_file = _lock_file(path)
    descriptor = _open(lock_file, os.O_RDWR | os.O_CREAT)
    try:
        try:
            if not _lock(descriptor, seconds):
                raise AlreadyLocked(f"{path}: another process has been changing it for {seconds:g} s; end that one")
        except OSError as error:
            cure = "name a folder on a disk of this computer with --data DIR"
            raise ConfigError(f"{lock_file}: cannot be locked: {error.strerror}; {cure}") from None
        yield
    finally:
        os.close(descriptor)


@contextlib.contextmanager
def occupied(folder: Path) -> Iterator[None]:
    """Have a folder for this process until the block ends, by a lock on the folder itself; others still write in it.

    It holds where somebody has deleted the file of a lock. Raises AlreadyLocked where another process has the folder;
    where folders cannot be locked, everybody is let in.
    """
    with _opened(folder) as descriptor:
        with contextlib.suppress(OSError):
            # Nobody else has it, and nobody writes just now; from here on it is enough to keep out who asks the same.
            if descriptor >= 0 and not _lock(descriptor, CLEAN_SECONDS):
                raise AlreadyLocked(f"{folder}: another process has this folder; end that one")
            _lock(descriptor, 0.0, shared=True)
        yield


def is_locked(path: Path) -> bool:
    """Return True while a process is in `locked(path)`."""
    try:
        descriptor = _open(_lock_file(path), os.O_RDONLY if fcntl else os.O_RDWR)
    except (FileNotFoundError, ConfigError):
        return False
    try:
        return not _lock(descriptor, 0.0, shared=True)
    except OSError:
        return False
    finally:
        os.close(descriptor)


def _lock_file(path: Path) -> Path:
    return path.with_name(f"{path.name}.lock")


def _lock(descriptor: int, seconds: float, *, shared: bool = False) -> bool:
    """Take the lock of an open file, which ends when that is closed; False where it is still taken after `seconds`."""
    over = time.monotonic() + seconds
    while True:
        try:
            if fcntl is not None:
                fcntl.flock(descriptor, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
            elif msvcrt is not None:  # a system with neither has no locks
                msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
            return True
        except OSError as error:
            if error.errno not in (errno.EWOULDBLOCK, errno.EACCES, errno.EDEADLK):
                raise
        if time.monotonic() >= over:
            return False
        time.sleep(POLL_SECONDS)


class FollowedFile:
    """A file that is to be read again whenever it has changed. Not locked: who follows it owns the lock."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._last: tuple[int, ...] | None = None
        self._told: str | None = None

    def take_change(self) -> bool:
        """Return True when it looks otherwise than at the last call; before the first it counts as not there."""
        now = look(self._path, follow_links=False)
        has_changed = now != self._last
        if has_changed:
            self._last = settled(now)
        return has_changed

    @contextlib.contextmanager
    def complaining(self, consequence: str) -> Iterator[None]:
        """Log the ConfigError of a reading and go on, in one line for each complaint however often it is read."""
        complaint = None
        try:
            yield
        except ConfigError as error:
            complaint = str(error)
            if complaint != self._told:
                log.warning("%s (until then %s)", complaint, consequence)
        self._told = complaint
