"""Outcomes that the cloud has not taken in yet, kept on the disk until it answers.

An entry is written when its assignment starts, with what is to be reported should this process end
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
from mcpboard.text import DEEP_LIMIT

log = logging.getLogger(__name__)

FOLDER = "outbox"
MOST_PENDING = 32  # entries; beyond that nothing new is claimed, for the cloud does not take in what is done


@dataclass(frozen=True)
class OutboxEntry:
    """One outcome; `finish` is the body of the POST, lease_id included."""

    host_id: str
    assignment: str
    lease: str
    finish: Mapping[str, Any]


class Outbox:
    """The entries of one enrolment, oldest first; safe to share between threads.

    Those that an earlier process left behind are pending from the start. Raises ConfigError for a
    folder that cannot be used.
    """

    def __init__(self, folder: Path, host_id: str) -> None:
        self._folder = folder / FOLDER
        self._lock = threading.Lock()
        self._pending: dict[str, OutboxEntry] = {}  # by lease
        storage.private_folder(self._folder)
        storage.remove_torn(self._folder)
        for path in sorted(self._folder.glob("*.json"), key=lambda path: path.lstat().st_mtime_ns):
            entry = _read(path)
            if entry is not None and entry.host_id == host_id:  # nothing of another cloud's is sent to this one
                self._pending[entry.lease] = entry

    def reserve(self, entry: OutboxEntry) -> None:
        """Write down what is to be reported if we do not come back; it is not pending before that."""
        document = {"version": 1, "host_id": entry.host_id, "assignment": entry.assignment, "finish": entry.finish}
        storage.replace(self._path(entry.lease), document)

    def post(self, entry: OutboxEntry) -> None:
        """Write the outcome over what was reserved; it is pending from now on, even where the disk does not take it."""
        try:
            self.reserve(entry)
        except OSError as error:
            log.error("%s: %s; the outcome of %s is lost if the host agent ends before the cloud answers",
                      self._folder, error.strerror, entry.assignment)  # fmt: skip
        with self._lock:
            self._pending[entry.lease] = entry

    def remove(self, lease: str) -> None:
        """Forget the entry under that lease: there is nothing to report, or the cloud has answered."""
        with self._lock:
            self._pending.pop(lease, None)
        try:
            self._path(lease).unlink(missing_ok=True)
        except OSError as error:  # it is sent again after a restart, which changes nothing
            log.warning("%s: %s", self._path(lease), error.strerror)

    def postpone(self, lease: str) -> None:
        """Let the others go first the next time: one that the cloud chokes on holds up none of them."""
        with self._lock:
            if lease in self._pending:
                self._pending[lease] = self._pending.pop(lease)

    def pending(self) -> list[OutboxEntry]:
        """Return what is to be sent."""
        with self._lock:
            return list(self._pending.values())

    def is_pending(self, lease: str) -> bool:
        """Return True while the outcome under that lease is still to be sent."""
        with self._lock:
            return lease in self._pending

    def _path(self, lease: str) -> Path:
        """Return a lease's file; the cloud chooses its id, so that it cannot be the name of a file."""
        return self._folder / f"{hashlib.sha256(lease.encode()).hexdigest()[:32]}.json"


def _read(path: Path) -> OutboxEntry | None:
    try:
        document = storage.read(path, DEEP_LIMIT) or {}  # the result of a step may be a UI tree
        finish = document["finish"]
        return OutboxEntry(str(document["host_id"]), str(document["assignment"]), str(finish["lease_id"]), finish)
    except (ConfigError, KeyError, TypeError) as error:
        log.warning("%s: is no outcome and stays where it is (%s)", path, error)
        return None
