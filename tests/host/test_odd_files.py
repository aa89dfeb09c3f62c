"""Whatever stands in the place of one of the host's files is refused with its path, at once, and nothing is read without end."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from mcpboard.errors import ConfigError
from mcpboard.host.access import tokens
from mcpboard.host.access.identity import identity
from mcpboard.host.cloud import enrollment
from mcpboard.host.cloud.outbox import Outbox, OutboxEntry
from mcpboard.host.devices import registry
from mcpboard.host.storage import LARGEST_FILE

READERS: list[tuple[str, Callable[[Path], object]]] = [
    ("host_identity.json", lambda folder: identity(folder / "host_identity.json")),
    (tokens.TOKEN_FILE, tokens.read_main_token),
    (tokens.NAMED_FILE, tokens.named),
    (registry.DEVICES_FILE, registry.specs),
    (enrollment.ENROLLMENT_FILE, enrollment.read),
]


def pipe(path: Path) -> None:
    os.mkfifo(path)


def endless(path: Path) -> None:
    path.symlink_to("/dev/zero")


def unix_socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(path.name)


def huge(path: Path) -> None:
    with path.open("wb") as file:
        file.write(b"{}")
        file.truncate(1 << 40)  # a hole: no disk holds that many bytes


def deep(path: Path) -> None:
    path.write_bytes(b"[" * LARGEST_FILE)


def in_place_of(path: Path, make: Callable[[Path], None], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(path.parent)  # the path of a socket is short
    make(path)
    path.chmod(0o600) if path.is_file() and not path.is_symlink() else None


@pytest.mark.parametrize("make", [pipe, endless, unix_socket, Path.mkdir, huge, deep])
@pytest.mark.parametrize(("name", "read"), READERS, ids=[name for name, _ in READERS])
def test_each_reader_refuses_what_is_no_file_of_ours(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    read: Callable[[Path], object],
    make: Callable[[Path], None],
) -> None:
    in_place_of(tmp_path / name, make, monkeypatch)
    with pytest.raises(ConfigError, match=name) as refused:
        read(tmp_path)
    assert "delete it" in str(refused.value)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("make", [pipe, endless, unix_socket, Path.mkdir, huge, deep])
@pytest.mark.parametrize("name", ["odd.json", ".torn.json.00000000"])
def test_the_outbox_goes_on_beside_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, make: Callable[[Path], None]
) -> None:
    """An outcome that is owed is told, whatever lies beside it."""
    Outbox(tmp_path, "h").post(OutboxEntry("h", "a", "lease", {"lease_id": "lease"}))
    in_place_of(tmp_path / "outbox" / name, make, monkeypatch)
    assert [entry.assignment for entry in Outbox(tmp_path, "h").pending()] == ["a"]
