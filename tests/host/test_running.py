"""The lock on a folder and the files beside it, without a process: what stands in their place, and what is left."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from mcpboard.errors import ConfigError
from mcpboard.host import config as host_config
from mcpboard.host import running, storage
from mcpboard.host.running import RUNNING_FILE, RunningAgent, exclusive, find
from tests.support import ROOT

pytestmark = pytest.mark.skipif(storage.fcntl is None and storage.msvcrt is None, reason="this system has no locks")

URL = "http://127.0.0.1:1234/mcp"
LOCK = f"{RUNNING_FILE}.lock"


def test_the_agent_is_found_while_it_runs_and_no_longer(tmp_path: Path) -> None:
    """What a killed one wrote is not believed, and its address is gone before the new one is known."""
    settings = host_config.load({"data": str(tmp_path)}, environ={})
    usual = "http://127.0.0.1:8765/mcp"
    assert running.url(settings) == usual
    with exclusive(tmp_path) as note_url:
        assert (find(tmp_path), running.url(settings)) == (RunningAgent(os.getpid(), None), usual)
        note_url(URL)
        assert (find(tmp_path), running.url(settings)) == (RunningAgent(os.getpid(), URL), URL)
        left = (tmp_path / RUNNING_FILE).read_bytes()
    assert not (tmp_path / RUNNING_FILE).exists()
    (tmp_path / RUNNING_FILE).write_bytes(left)
    assert find(tmp_path) is None
    with exclusive(tmp_path):
        assert find(tmp_path) == RunningAgent(os.getpid(), None)


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"pid": "1", "url": 5}', b"\xff" * 100, b" " * (2 << 20)])
def test_a_damaged_note_hides_the_address_and_not_the_agent(tmp_path: Path, content: bytes) -> None:
    with exclusive(tmp_path):
        (tmp_path / RUNNING_FILE).write_bytes(content)
        (tmp_path / RUNNING_FILE).chmod(0o600)
        assert find(tmp_path) == RunningAgent()
        with pytest.raises(ConfigError, match=r"another agent runs on this folder \(process unknown"):
            exclusive(tmp_path).__enter__()


def test_a_deleted_lock_file_lets_no_second_agent_in(tmp_path: Path) -> None:
    """Tidying up deletes what ends with .lock; the folder stays the first agent's, and others still write in it."""
    with exclusive(tmp_path) as note_url:
        note_url(URL)
        (tmp_path / LOCK).unlink()
        with pytest.raises(ConfigError, match=f"another agent runs .*{os.getpid()}, {URL}"), exclusive(tmp_path):
            pytest.fail("it started")
        storage.replace(tmp_path / "devices.json", {"devices": []})
        assert (tmp_path / RUNNING_FILE).exists()
    with exclusive(tmp_path):
        pass


def test_an_agent_whose_folder_is_gone_leaves_the_note_of_the_next_one(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    program = (
        "import sys; from pathlib import Path; from mcpboard.host.running import exclusive\n"
        "with exclusive(Path(sys.argv[1])): print('runs', flush=True); sys.stdin.read()"
    )
    with exclusive(folder) as note_url:
        note_url(URL)
        folder.rename(tmp_path / "old")
        command = [sys.executable, "-c", program, str(folder)]
        other = subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        assert other.stdin is not None and other.stdout is not None
        other.stdout.readline()
    with other:
        assert find(folder) == RunningAgent(other.pid, None)
        other.stdin.close()


def test_a_folder_in_the_place_of_the_note_is_told_with_its_cure(tmp_path: Path) -> None:
    (tmp_path / RUNNING_FILE).mkdir()
    with pytest.raises(ConfigError, match=f"{RUNNING_FILE}: cannot be replaced: .*; delete it"), exclusive(tmp_path):
        pytest.fail("it started")


def test_whoever_only_looks_keeps_no_agent_from_starting(tmp_path: Path) -> None:
    program = (
        "import sys; from pathlib import Path; from mcpboard.host.running import find; print('looks', flush=True)\n"
        "while True: find(Path(sys.argv[1]))"
    )
    with exclusive(tmp_path):
        pass
    with subprocess.Popen([sys.executable, "-c", program, str(tmp_path)], cwd=ROOT, stdout=subprocess.PIPE) as looking:
        assert looking.stdout is not None
        looking.stdout.readline()
        for _ in range(20):
            with exclusive(tmp_path):
                pass
        looking.kill()


def test_a_lock_that_another_program_keeps_is_not_waited_for_without_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And a folder that knows no locks is refused."""

    def refuse(*_: object) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    path = tmp_path / "devices.json"
    with storage.locked(path), pytest.raises(ConfigError, match="another process has been changing it for 0 s"):
        storage.locked(path, 0.0).__enter__()
    monkeypatch.setattr(storage.fcntl, "flock", refuse)
    with pytest.raises(ConfigError, match="No locks available; name a folder on a disk of this computer"):
        exclusive(tmp_path).__enter__()


class Windows:
    """The part of msvcrt that is used: a byte of a file is locked by one descriptor at a time."""

    LK_NBLCK = 2

    def __init__(self) -> None:
        self.taken: dict[int, int] = {}  # inode -> descriptor

    def locking(self, descriptor: int, mode: int, count: int) -> None:
        assert (mode, count) == (self.LK_NBLCK, 1)
        inode = os.fstat(descriptor).st_ino
        holder = self.taken.setdefault(inode, descriptor)
        try:
            alive = holder == descriptor or os.fstat(holder).st_ino == inode
        except OSError:  # closed, which ends its lock
            alive = False
        if alive and holder != descriptor:
            raise OSError(errno.EACCES, "Permission denied")
        self.taken[inode] = descriptor


def test_windows_locks_by_its_own_means(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And has neither user numbers nor descriptors of folders."""
    windows: Any = Windows()
    monkeypatch.setattr(storage, "fcntl", None)
    monkeypatch.setattr(storage, "msvcrt", windows)
    for name in ("O_DIRECTORY", "geteuid", "fchmod"):
        monkeypatch.delattr(os, name)
    with exclusive(tmp_path) as note_url:
        note_url(URL)
        assert find(tmp_path) == RunningAgent(os.getpid(), URL)
        with pytest.raises(ConfigError, match="another agent runs on this folder"), exclusive(tmp_path):
            pytest.fail("it started")
    assert find(tmp_path) is None


def test_a_full_disk_keeps_no_agent_from_serving(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(storage, "staged_file", full)
    with exclusive(tmp_path) as note_url:
        note_url(URL)
        assert find(tmp_path) == RunningAgent()
    assert "No space left on device" in caplog.text


# --- what a crash leaves -----------------------------------------------------------------------


def test_a_file_that_is_being_written_is_not_taken_for_one_that_a_crash_left(tmp_path: Path) -> None:
    program = (
        "import sys; from pathlib import Path; from mcpboard.host import storage; print('writes', flush=True)\n"
        "while True: storage.replace(Path(sys.argv[1]) / 'devices.json', {'devices': []})"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program, str(tmp_path)], cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as writing:
        assert writing.stdout is not None and writing.stderr is not None
        writing.stdout.readline()
        for _ in range(50):
            storage.remove_torn(tmp_path)
        assert writing.poll() is None
        writing.kill()
        assert writing.stderr.read() == b""


def test_only_files_are_removed_and_no_folder_or_link_is_followed(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.write_text("kept", "utf-8")
    folder = tmp_path / "data"
    folder.mkdir()
    (folder / ".a.json.00000000").mkdir()
    (folder / ".b.json.00000000").symlink_to(outside)
    os.mkfifo(folder / ".c.json.00000000")
    (folder / ".d.json.00000000").write_text("torn", "utf-8")
    (folder / "e.json").write_text("{}", "utf-8")
    storage.remove_torn(folder)
    assert sorted(path.name[:3] for path in folder.iterdir()) == [".a.", ".b.", ".c.", "e.j"]
    assert outside.read_text("utf-8") == "kept"
