"""The cloud's six requests, each a POST of its own that is sent once; what answers is checked here.

No answer raises a ClientError, a status that is no success PeerRefused with that status.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any
from urllib.parse import quote, urlsplit

from mcpboard.errors import ClientError, PeerBroken, PeerRefused
from mcpboard.host.cloud import tunnel
from mcpboard.host.cloud.enrollment import Enrollment
from mcpboard.protocol.client_session import HttpRequest
from mcpboard.text import json_object
from mcpboard.transport.deadline import Deadline
from mcpboard.transport.http import CancelToken, HttpClient, StreamedResponse

LIMIT_SECONDS = 10.0  # for an answer that nothing is waited for
PROGRESS_SECONDS = 5.0  # a step waits for it
LARGEST_ANSWER = 1 << 20  # bytes; an assignment of many steps has some tens of KiB

LOST = frozenset({409, 410})  # statuses that say: that lease is not yours
NO_CONTENT = 204


class CloudHttp:
    """POSTs to the cloud at `url`; safe to share between threads. `proxy` is a URL, used for https alone."""

    def __init__(self, url: str, token: str | None = None, proxy: str | None = None) -> None:
        parts = urlsplit(url)
        way = tunnel.through(proxy) if proxy and parts.scheme == "https" else None
        self._link = HttpClient(url, token, connect=way)
        self._prefix = parts.path.rstrip("/")
        self._lock = threading.Lock()
        self._cords: set[CancelToken] = set()
        self._over = False

    def post(self, path: str, body: Mapping[str, Any], seconds: float = LIMIT_SECONDS) -> dict[str, Any] | None:
        """The JSON object that answers, None where the answer has no content."""
        headers = {"Content-Type": "application/json", "Accept": "application/json"}
        ask = HttpRequest(headers, json.dumps(body).encode("ascii"))
        with self._cord() as cord, self._link.exchange(ask, Deadline(seconds), cord, self._prefix + path) as arriving:
            if not 200 <= arriving.status < 300:
                raise PeerRefused(f"the cloud answered with HTTP {arriving.status}", status=arriving.status)
            return None if arriving.status == NO_CONTENT else _object(arriving)

    def hang_up(self) -> None:
        """End what is under way, and let nothing begin any more."""
        with self._lock:
            self._over = True
            cords = list(self._cords)
        for cord in cords:
            cord.cancel()

    @contextmanager
    def _cord(self) -> Iterator[CancelToken]:
        cord = CancelToken()
        with self._lock:
            if self._over:
                cord.cancel()
            self._cords.add(cord)
        try:
            yield cord
        finally:
            with self._lock:
                self._cords.discard(cord)


def _object(arriving: StreamedResponse) -> dict[str, Any]:
    document = json_object(arriving.body(LARGEST_ANSWER))
    if document is None:
        raise PeerBroken("the cloud answered with something else than a JSON object")
    return document


def register(wire: CloudHttp, enrol_token: str, host: Mapping[str, Any]) -> dict[str, Any]:
    """Take part under the enrolment token; `host` is name, version, platform and devices."""
    return wire.post("/v1/hosts/register", {"enrol_token": enrol_token, **host}) or {}


class CloudApi:
    """The five requests of a host that is enrolled."""

    def __init__(self, enrolment: Enrollment, proxy: str | None = None) -> None:
        self._wire = CloudHttp(enrolment.url, enrolment.host_token, proxy)
        self._waiting = CloudHttp(
            enrolment.url, enrolment.host_token, proxy
        )  # claims alone, to be ended before the rest
        self._host = f"/v1/hosts/{quote(enrolment.host_id, safe='')}"

    def heartbeat(self, report: Mapping[str, Any]) -> dict[str, Any]:
        """Tell how we are; the commands and the leases that are lost come back."""
        return self._wire.post(f"{self._host}/heartbeat", report) or {}

    def claim(self, wait_s: float, free: Sequence[str], limit: float) -> dict[str, Any] | None:
        """Wait that long for an assignment on one of these devices; None when there was none."""
        asked = {"wait_s": wait_s, "free_device_ids": list(free)}
        return self._waiting.post(f"{self._host}/claim", asked, limit)

    def start(self, assignment: str, lease: str) -> None:
        """Begin an assignment; PeerRefused with a status in LOST when it is not ours."""
        self._wire.post(_of(assignment, "start"), {"lease_id": lease})

    def progress(self, assignment: str, lease: str, step: int, note: str) -> None:
        """Tell that a step is done; PeerRefused with a status in LOST when the lease is lost."""
        told = {"lease_id": lease, "step": step, "note": note}
        self._wire.post(_of(assignment, "progress"), told, PROGRESS_SECONDS)

    def finish(self, assignment: str, outcome: Mapping[str, Any]) -> None:
        """Tell what an assignment came to."""
        self._wire.post(_of(assignment, "finish"), outcome)

    def stop_claiming(self) -> None:
        """End the claim that waits; there will be no further one."""
        self._waiting.hang_up()

    def hang_up(self) -> None:
        """End everything that is under way."""
        self._waiting.hang_up()
        self._wire.hang_up()


def _of(assignment: str, what: str) -> str:
    return f"/v1/assignments/{quote(assignment, safe='')}/{what}"


def short(error: ClientError) -> str:
    """What went wrong, without the advice that is meant for boards."""
    return str(error).partition(";")[0]
