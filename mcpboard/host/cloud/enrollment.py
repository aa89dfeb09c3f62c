"""Which cloud this host belongs to: a file that `enrol` writes, and without which nothing is ever sent."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from mcpboard.errors import ConfigError
from mcpboard.host import storage
from mcpboard.net import is_loopback

ENROLMENT_FILE = "host_cloud.json"
LONGEST_TOKEN = 4096  # characters; more fits into no header
HEARTBEAT_SECONDS = 30.0  # at most: the mission's window between a hold and the next heartbeat
_HOST_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")
_VISIBLE = re.compile(rf"[!-~]{{1,{LONGEST_TOKEN}}}")  # what a header can carry

# Name -> (least, most, default), in seconds. What a cloud asks for is moved into these bounds.
TIMES: Mapping[str, tuple[float, float, float]] = {
    "heartbeat_s": (1.0, HEARTBEAT_SECONDS, HEARTBEAT_SECONDS),
    "claim_wait_s": (1.0, 50.0, 25.0),  # below the minute after which proxies give an idle connection up
    "lease_s": (10.0, 3600.0, 90.0),  # three heartbeats, of which two may get lost
}


@dataclass(frozen=True)
class Enrollment:
    """Where the cloud is, who we are there, and the times it asked for, in seconds."""

    url: str
    host_id: str
    host_token: str = field(repr=False)
    heartbeat_s: float
    claim_wait_s: float
    lease_s: float


def checked_url(url: str) -> str:
    """The cloud's URL without the slash at its end: https, or http to this machine itself; ConfigError otherwise."""
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError:
        raise ConfigError("that is no URL; one such as https://cloud.example is expected") from None
    if not url.isascii() or not url.isprintable() or " " in url or parts.username is not None:
        raise ConfigError("the cloud's URL has visible ASCII characters alone, and no name or password in it")
    if parts.query or parts.fragment or not parts.hostname:
        raise ConfigError("the cloud's URL is https://HOST, with a port and a path where needed, and nothing behind")
    if parts.scheme != "https" and not (parts.scheme == "http" and is_loopback(parts.hostname)):
        raise ConfigError("only https, or http to this machine itself: the token would be readable on the way")
    return url.rstrip("/")


def checked_token(line: str) -> str:
    """The enrolment token on a line of input; ConfigError, which never shows it."""
    token = line.strip()
    if not _VISIBLE.fullmatch(token):
        raise ConfigError("one line with the enrolment token is expected on standard input")
    return token


def registered(url: str, answer: Mapping[str, Any]) -> Enrollment:
    """What the cloud at `url` answered to a registration; ConfigError for what makes no sense."""
    host_id, token = answer.get("host_id"), answer.get("host_token")
    if not isinstance(host_id, str) or not _HOST_ID.fullmatch(host_id):
        raise ConfigError("the cloud gave this host no usable id; is the URL that of a cloud for device hosts?")
    if not isinstance(token, str) or not _VISIBLE.fullmatch(token):
        raise ConfigError("the cloud gave this host no usable token; is the URL that of a cloud for device hosts?")
    return Enrollment(url, host_id, token, **{name: _seconds(name, answer.get(name)) for name in TIMES})


def _seconds(name: str, value: object) -> float:
    least, most, default = TIMES[name]
    if not isinstance(value, (int, float)) or isinstance(value, bool) or value != value:
        return default
    return min(most, max(least, float(value)))


def write(folder: Path, enrolment: Enrollment) -> None:
    """Keep the enrolment, readable by this user alone; never over another one."""
    storage.private_folder(folder)
    storage.create(folder / ENROLMENT_FILE, {"version": 1, **asdict(enrolment)})
    if read(folder) != enrolment:
        raise taken(folder)


def taken(folder: Path) -> ConfigError:
    """What is said to who would enrol a second time."""
    path = folder / ENROLMENT_FILE
    return ConfigError(f"{path}: this host is enrolled already; delete the file first, and restart the host agent")


def read(folder: Path) -> Enrollment | None:
    """The enrolment, None where there is none; ConfigError, with the cure, for a file that cannot be used."""
    path = folder / ENROLMENT_FILE
    found = storage.read(path)
    if found is None:
        return None
    try:
        return registered(checked_url(str(found.get("url"))), found)
    except ConfigError:
        raise ConfigError(f"{path}: holds no usable enrolment; delete it and enrol again") from None
