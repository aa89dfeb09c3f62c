"""The agent that runs on a folder: the lock that it alone has, and where it answers.

Two agents on one folder would each hand out the same devices. So `run` keeps a lock on the folder
for as long as it lives; the kernel frees it with the process, however that ends, so what a dead
agent left behind keeps nobody out.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from mcpboard.errors import ConfigError
from mcpboard.host import storage
from mcpboard.host.config import HostSettings

log = logging.getLogger(__name__)

RUNNING_FILE = "host_agent.json"
LOOK_SECONDS = 0.5  # for others who only look at the lock, which takes microseconds, to be done


@dataclass(frozen=True)
class RunningAgent:
    """The process, and the URL of its MCP as this machine reaches it; None where it has not written that down yet."""

    pid: int | None = None
    url: str | None = None

    def __str__(self) -> str:
        return f"process {self.pid or 'unknown'}, {self.url or 'about to serve'}"


@contextmanager
def exclusive(folder: Path) -> Iterator[Callable[[str], None]]:
    """Keep the folder to this agent until the block ends; ConfigError that names the agent which has it.

    To be entered before anything in the folder is read. Yields a function that takes the URL, once it is known.
    """
    path = folder / RUNNING_FILE

    def write(url: str | None) -> None:
        try:
            storage.replace(path, {"version": 1, **asdict(RunningAgent(os.getpid(), url))})
        except OSError as error:  # a full disk keeps no agent from serving
            log.warning("%s: %s; other programs do not find this agent by it", path, error.strerror)

    with ExitStack() as lock:
        try:
            lock.enter_context(storage.locked(path, LOOK_SECONDS))
            storage.remove_torn(folder)
            lock.enter_context(storage.occupied(folder))
        except storage.AlreadyLocked:
            raise ConfigError(
                f"{folder}: another agent runs on this folder ({find(folder) or RunningAgent()}); stop it first, "
                "or give this one a folder of its own with --data DIR, and another --port"
            ) from None
        try:
            path.unlink(missing_ok=True)  # of an agent that was killed
        except OSError as error:
            raise ConfigError(f"{path}: cannot be replaced: {error.strerror}; delete it") from None
        write(None)
        try:
            yield write
        finally:
            if (find(folder) or RunningAgent()).pid in (None, os.getpid()):  # else the folder is another agent's now
                path.unlink(missing_ok=True)


def find(folder: Path) -> RunningAgent | None:
    """Return the agent that runs on the folder now, None when none does, whatever one has left behind."""
    path = folder / RUNNING_FILE
    if not storage.is_locked(path):
        return None
    try:
        document = storage.read(path) or {}
    except ConfigError as error:
        log.warning("%s", error)
        return RunningAgent()
    pid, url = document.get("pid"), document.get("url")
    return RunningAgent(pid if isinstance(pid, int) else None, url if isinstance(url, str) else None)


def url(settings: HostSettings) -> str:
    """Return the URL of the agent that runs on the folder of the settings, else the one that they would give it."""
    agent = find(settings.folder)
    return settings.url if agent is None or agent.url is None else agent.url
