"""The identity of this host agent: a file that is written at the first start and never changes."""

from __future__ import annotations

import datetime
import platform
import secrets
from dataclasses import dataclass
from pathlib import Path

from mcpboard.errors import ConfigError
from mcpboard.host import storage


@dataclass(frozen=True)
class Identity:
    """The id that a cloud knows this host by, and a name for people."""

    id: str
    name: str


def identity(path: Path) -> Identity:
    """Return the identity in the file at `path`, generated where there is none; ConfigError with the remedy."""
    storage.private_folder(path.parent)
    document = storage.read(path)
    if document is None:
        storage.create(path, {"version": 1, "id": secrets.token_hex(16), "name": platform.node(), "created_at": now()})
        document = storage.read(path) or {}  # another process may have been first
    host_id, name = document.get("id"), document.get("name")
    if not isinstance(host_id, str) or not host_id or not isinstance(name, str):
        raise ConfigError(f"{path}: holds no identity; delete it and start the host agent again")
    return Identity(host_id, name)


def now() -> str:
    """Return this moment in UTC, as the files write it."""
    return datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
