"""What the cloud is still owed: the outcome of each assignment, kept on the disk until it is answered.

A letter is written when its assignment starts, with what is to be told should this process end
before the assignment does, and written over when the outcome is there. So whatever happens to us,
the cloud hears of every assignment that was started, and never that one was done which was not.
"""

from __future__ import annotations

import hashlib
import logging
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mcpboard.errors import ConfigError
from mcpboard.host import storage

log = logging.getLogger(__name__)

FOLDER = "outbox"
MOST_OWED = 32  # letters; beyond that nothing new is claimed, for the cloud does not take in what is done


@dataclass(frozen=True)
class OutboxEntry:
    """One outcome; `finish` is the body of the POST, lease_id included."""

    host_id: str
    assignment: str
    lease: str
    finish: Mapping[str, Any]


class Outbox:
    """The letters of one enrolment, oldest first; safe to share between threads.

    Those that an earlier process left behind are owed from the start. Raises ConfigError for a
    folder that cannot be used.
    """

    def __init__(self, folder: Path, host_id: str) -> None:
        self._folder = folder / FOLDER
        self._host_id = host_id
        self._lock = threading.Lock()
        storage.private_folder(self._folder)
        self._owed = {letter.lease: letter for letter in self._left_behind()}

    def foresee(self, letter: OutboxEntry) -> None:
        """Write down what is to be told if we do not come back; it is not owed before that."""
        self._write(letter)

    def post(self, letter: OutboxEntry) -> None:
        """Write the outcome down; it is owed from now on, even where the disk does not take it."""
        try:
            self._write(letter)
        except OSError as error:
            log.error("%s: %s; the outcome of %s is lost if the host agent ends before the cloud answers",
                      self._folder, error.strerror, letter.assignment)  # fmt: skip
        with self._lock:
            self._owed[letter.lease] = letter

    def answered(self, lease: str) -> None:
        """Forget the letter under that lease."""
        with self._lock:
            self._owed.pop(lease, None)
        try:
            self._path(lease).unlink(missing_ok=True)
        except OSError as error:  # it is told again after a restart, which changes nothing
            log.warning("%s: %s", self._path(lease), error.strerror)

    def postpone(self, lease: str) -> None:
        """Let the others go first the next time: one that the cloud chokes on holds up none of them."""
        with self._lock:
            if lease in self._owed:
                self._owed[lease] = self._owed.pop(lease)

    def owed(self) -> list[OutboxEntry]:
        """What is to be sent."""
        with self._lock:
            return list(self._owed.values())

    def owes(self, lease: str) -> bool:
        """Whether the outcome under that lease is still to be sent."""
        with self._lock:
            return lease in self._owed

    def _write(self, letter: OutboxEntry) -> None:
        document = {"version": 1, "host_id": letter.host_id, "assignment": letter.assignment, "finish": letter.finish}
        storage.replace(self._path(letter.lease), document)

    def _path(self, lease: str) -> Path:
        """A lease's file; the cloud chooses its id, so that it cannot be the name of a file."""
        return self._folder / f"{hashlib.sha256(lease.encode()).hexdigest()[:32]}.json"

    def _left_behind(self) -> list[OutboxEntry]:
        for torn in self._folder.glob(".*.json.*"):  # whoever wrote it ended before it was whole
            torn.unlink(missing_ok=True)
        paths = sorted(self._folder.glob("*.json"), key=lambda path: path.lstat().st_mtime_ns)
        letters = [letter for letter in map(self._read, paths) if letter is not None]
        return [letter for letter in letters if letter.host_id == self._host_id]  # another cloud is owed nothing here

    def _read(self, path: Path) -> OutboxEntry | None:
        try:
            found = storage.read(path) or {}
            finish = found["finish"]
            return OutboxEntry(str(found["host_id"]), str(found["assignment"]), str(finish["lease_id"]), finish)
        except (ConfigError, KeyError, TypeError) as error:
            log.warning("%s: is no letter and stays where it is (%s)", path, error)
            return None
