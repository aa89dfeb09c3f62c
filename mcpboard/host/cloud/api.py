"""The cloud's six requests, each a POST of its own that is sent once; responses are checked here.

A request without a response raises a ClientError, a status that is no success PeerRefused with that status.
"""

from __future__ import annotations

import http.client
import socket
import threading
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any
from urllib.parse import quote, urlsplit

from mcpboard.errors import ClientError, PeerBroken, PeerRefused
from mcpboard.host.cloud.enrollment import Enrollment
from mcpboard.net import host_port
from mcpboard.protocol.client_session import HttpRequest
from mcpboard.protocol.tools import compact
from mcpboard.text import json_object
from mcpboard.transport.deadline import Deadline, DeadlineSocket, connect
from mcpboard.transport.http import CancelToken, HttpClient

LIMIT_SECONDS = 10.0  # for a response that nothing is waited for
PROGRESS_SECONDS = 5.0  # a step waits for it
LARGEST_RESPONSE = 1 << 20  # bytes; an assignment of many steps has some tens of KiB

LOST = frozenset({409, 410})  # statuses that say: that lease is not yours
NO_CONTENT = 204

PROXY_SECONDS = 5.0  # to connect, for each address of the proxy
LARGEST_PROXY_HEAD = 16 << 10  # bytes; the head of a proxy's response has some hundred


class CloudHttp:
    """POST to the cloud at `url`; safe to share between threads. `proxy` is a URL, used for https only."""

    def __init__(self, url: str, token: str | None = None, proxy: str | None = None) -> None:
        parts = urlsplit(url)
        tunnel = partial(connect_through, proxy) if proxy and parts.scheme == "https" else None
        self._http = HttpClient(url, token, connect=tunnel)
        self._prefix = parts.path.rstrip("/")
        self._lock = threading.Lock()
        self._under_way: set[CancelToken] = set()
        self._closed = False

    def post(self, path: str, body: Mapping[str, Any], seconds: float = LIMIT_SECONDS) -> dict[str, Any] | None:
        """Return the JSON object of the response, None where it has no content."""
        headers = {"Content-Type": "application/json", "Accept": "application/json"}
        request = HttpRequest(headers, compact(body))
        cancel_token = CancelToken()
        with self._lock:
            if self._closed:
                cancel_token.cancel()
            self._under_way.add(cancel_token)
        try:
            with self._http.exchange(request, Deadline(seconds), cancel_token, self._prefix + path) as response:
                if not 200 <= response.status < 300:
                    raise PeerRefused(f"the cloud answered with HTTP {response.status}", status=response.status)
                if response.status == NO_CONTENT:
                    return None
                document = json_object(response.body(LARGEST_RESPONSE))
        finally:
            with self._lock:
                self._under_way.discard(cancel_token)
        if document is None:
            raise PeerBroken("the cloud answered with something else than a JSON object")
        return document

    def close(self) -> None:
        """End the requests under way, and let none begin any more."""
        with self._lock:
            self._closed = True
            under_way = list(self._under_way)
        for cancel_token in under_way:
            cancel_token.cancel()


def register(http: CloudHttp, enroll_token: str, host: Mapping[str, Any]) -> dict[str, Any]:
    """Take part under the enrolment token; `host` is name, version, platform and devices."""
    return http.post("/v1/hosts/register", {"enrol_token": enroll_token, **host}) or {}


class CloudApi:
    """The five requests of a host that is enrolled."""

    def __init__(self, enrollment: Enrollment, proxy: str | None = None) -> None:
        self._http = CloudHttp(enrollment.url, enrollment.host_token, proxy)
        # For claims only, which wait at the cloud and are ended before the rest.
        self._claims = CloudHttp(enrollment.url, enrollment.host_token, proxy)
        self._host = f"/v1/hosts/{quote(enrollment.host_id, safe='')}"

    def heartbeat(self, report: Mapping[str, Any]) -> dict[str, Any]:
        """Report the state of this host; return the commands and the leases that are lost."""
        return self._http.post(f"{self._host}/heartbeat", report) or {}

    def claim(self, wait_s: float, free: Sequence[str], limit: float) -> dict[str, Any] | None:
        """Wait at the cloud for an assignment on one of these devices, `wait_s` seconds; None when there was none.

        The request as a whole may take `limit` seconds.
        """
        return self._claims.post(f"{self._host}/claim", {"wait_s": wait_s, "free_device_ids": list(free)}, limit)

    def start(self, assignment: str, lease: str) -> None:
        """Begin an assignment; PeerRefused with a status in LOST when it is not ours."""
        self._http.post(_path(assignment, "start"), {"lease_id": lease})

    def progress(self, assignment: str, lease: str, step: int, note: str) -> None:
        """Report a step that is done; PeerRefused with a status in LOST when the lease is lost."""
        body = {"lease_id": lease, "step": step, "note": note}
        self._http.post(_path(assignment, "progress"), body, PROGRESS_SECONDS)

    def finish(self, assignment: str, outcome: Mapping[str, Any]) -> None:
        """Report the outcome of an assignment."""
        self._http.post(_path(assignment, "finish"), outcome)

    def stop_claiming(self) -> None:
        """End the claim that waits; there will be no further one."""
        self._claims.close()

    def close(self) -> None:
        """End everything that is under way."""
        self._claims.close()
        self._http.close()


def _path(assignment: str, verb: str) -> str:
    return f"/v1/assignments/{quote(assignment, safe='')}/{verb}"


def short(error: ClientError) -> str:
    """Return what went wrong, without the advice that is meant for boards."""
    return str(error).partition(";")[0]


# --- through a proxy -----------------------------------------------------------------------------


def connect_through(proxy: str, host: str, port: int, limit: Deadline) -> DeadlineSocket:
    """Return a TCP connection to host and port, by one CONNECT to the HTTP proxy at the checked URL `proxy`."""
    parts = urlsplit(proxy)
    proxy_port = parts.port or 80  # the port of http
    found = socket.getaddrinfo(str(parts.hostname), proxy_port, type=socket.SOCK_STREAM)
    sock = connect([str(entry[4][0]) for entry in found], proxy_port, limit, PROXY_SECONDS)
    try:
        _request_tunnel(sock, host_port(host, port))
    except BaseException:
        sock.close()
        raise
    return sock


def _request_tunnel(sock: DeadlineSocket, target: str) -> None:
    """Have the proxy connect to `target`; OSError with what it said when it does not."""
    sock.sendall(f"CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n\r\n".encode("ascii"))
    # Up to its empty line, and not a byte of what follows: that is the server's.
    head, byte = bytearray(), bytearray(1)
    while not head.endswith(b"\r\n\r\n"):
        if len(head) >= LARGEST_PROXY_HEAD or not sock.recv_into(byte):
            raise OSError("the proxy of cloud_proxy gave no whole answer")
        head += byte
    version, _, rest = head.split(b"\r\n", 1)[0].decode("latin-1").partition(" ")
    if not version.startswith("HTTP/1.") or not rest[:3].isdigit():
        raise OSError("the proxy of cloud_proxy does not speak HTTP")
    status = int(rest[:3])
    if not 200 <= status < 300:
        reason = http.client.responses.get(status, "an unknown status")
        raise OSError(f"the proxy of cloud_proxy refused with HTTP {status} {reason}")
