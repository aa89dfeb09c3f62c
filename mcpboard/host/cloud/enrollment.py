"""The cloud that this host belongs to: a file that `enrol` writes, and without which nothing is ever sent."""

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

ENROLLMENT_FILE = "host_cloud.json"
LONGEST_TOKEN = 4096  # characters; more fits into no header
HEARTBEAT_SECONDS = 30.0  # at most: within it the cloud learns which devices it cannot have
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
    """The cloud's URL, who we are there, and the times it asked for, in seconds."""

    url: str
    host_id: str
    host_token: str = field(repr=False)
    heartbeat_s: float
    claim_wait_s: float
    lease_s: float


def checked_url(url: str) -> str:
    """Return the cloud's URL without a slash at its end: https, or http to this machine itself; else ConfigError."""
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError:
        raise ConfigError("that is no URL; one such as https://cloud.example is expected") from None
    if not url.isascii() or not url.isprintable() or " " in url or parts.username is not None:
        raise ConfigError("the cloud's URL has only visible ASCII characters, and no name or password in it")
    if parts.query or parts.fragment or not parts.hostname:
        raise ConfigError("the cloud's URL is https://HOST, with a port and a path where needed, and nothing behind")
    if parts.scheme != "https" and not (parts.scheme == "http" and is_loopback(parts.hostname)):
        raise ConfigError("only https, or http to this machine itself: the token would be readable on the way")
    return url.rstrip("/")


def checked_token(line: str) -> str:
    """Return the enrolment token on a line of input; ConfigError, which never shows it."""
    token = line.strip()
    if not _VISIBLE.fullmatch(token):
        raise ConfigError("one line with the enrolment token is expected on standard input")
    return token


def parse_enrollment(url: str, document: Mapping[str, Any]) -> Enrollment:
    """Return the enrolment in what the cloud at `url` answered to a registration; ConfigError if there is none."""
    host_id, token = document.get("host_id"), document.get("host_token")
    if not isinstance(host_id, str) or not _HOST_ID.fullmatch(host_id):
        raise ConfigError("the cloud gave this host no usable id; is the URL that of a cloud for device hosts?")
    if not isinstance(token, str) or not _VISIBLE.fullmatch(token):
        raise ConfigError("the cloud gave this host no usable token; is the URL that of a cloud for device hosts?")
    times = {}
    for name, (least, most, default) in TIMES.items():
        value = document.get(name)
        if not isinstance(value, (int, float)) or isinstance(value, bool) or value != value:
            value = default
        times[name] = min(most, max(least, float(value)))
    return Enrollment(url, host_id, token, **times)


def write(folder: Path, enrollment: Enrollment) -> None:
    """Keep the enrolment, readable by this user only; never over another one."""
    storage.private_folder(folder)
    storage.create(folder / ENROLLMENT_FILE, {"version": 1, **asdict(enrollment)})
    if read(folder) != enrollment:
        raise already_enrolled(folder)


def already_enrolled(folder: Path) -> ConfigError:
    """Return the error for a second enrolment."""
    path = folder / ENROLLMENT_FILE
    return ConfigError(f"{path}: this host is enrolled already; delete the file first, and restart the host agent")


def read(folder: Path) -> Enrollment | None:
    """Return the enrolment, None where there is none; ConfigError, with the remedy, for a file that cannot be used."""
    path = folder / ENROLLMENT_FILE
    document = storage.read(path)
    if document is None:
        return None
    try:
        return parse_enrollment(checked_url(str(document.get("url"))), document)
    except ConfigError:
        raise ConfigError(f"{path}: holds no usable enrolment; delete it and enrol again") from None
