"""Send requests by `requests`: the only module that names it, imported by `transport.send` on first use."""

from __future__ import annotations

import contextlib
import functools
import http.client
from collections.abc import Iterator, Mapping
from typing import Any, cast
from urllib.parse import urlsplit

import requests
from requests.adapters import BaseAdapter
from requests.structures import CaseInsensitiveDict

from mcpboard.transport.deadline import DeadlineMixin

INTERIM_LIMIT = 64  # responses of status 1xx before the real one: one every 5 s of the longest tool


def send(
    sock: DeadlineMixin, method: str, url: str, body: bytes | None, headers: Mapping[str, str]
) -> requests.Response:
    """Return the head of the response to one request sent over `sock`; its body is still to be read from `raw`."""
    request = _prepared(method, url, *headers.items())
    return _SESSION.send(request, stream=True, allow_redirects=False, proxies={}, sock=sock, body=body)


@functools.lru_cache(maxsize=64)  # the board asks for a dozen; a client's headers may vary
def _prepared(method: str, url: str, *headers: tuple[str, str]) -> requests.PreparedRequest:
    """Return a request without its body, to be sent again and again: checking URL and headers is half its cost."""
    request = requests.PreparedRequest()
    request.prepare(method=method, url=url, headers=dict(headers))
    return request


class DeadlineAdapter(BaseAdapter):
    """Sends each request over a socket of its own: no pool, no proxy, no retry, one deadline for everything.

    By http.client, and not by urllib3, which does for pools and retries what is not wanted here, at
    a seventh of the cost of a small call.
    """

    def send(  # type: ignore[override]
        self, request: requests.PreparedRequest, *, sock: DeadlineMixin, body: bytes | None, **_: Any
    ) -> requests.Response:
        """Return the response to `request` with `body`; its `raw` is what http.client gives."""
        connection = DeadlineConnection(urlsplit(cast(str, request.url)).netloc)
        headers = {**request.headers, "Content-Length": str(len(body))} if body else request.headers
        connection.request(cast(str, request.method), request.path_url, body or None, headers)
        # A server may respond early and close, for example with 503; then its response counts.
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            sock.sendall(b"".join(connection.written))
        connection.sock = sock
        raw = connection.getresponse()
        fields: dict[str, list[str]] = {}
        for name, value in raw.headers.items():
            if "\n" in value:  # folded over several lines, which no one may write any more (RFC 9112, 5.2)
                value = " ".join(line.strip() for line in value.splitlines()).strip()
            fields.setdefault(name.lower(), []).append(value)
        _check_framing(raw, fields)
        response = requests.Response()
        response.status_code, response.reason = raw.status, raw.reason
        response.headers = CaseInsensitiveDict((name, ", ".join(values)) for name, values in fields.items())
        response.raw, response.request, response.url = raw, request, cast(str, request.url)
        return response

    def close(self) -> None:
        """Do nothing: each socket is closed by whoever connected it."""


def _check_framing(raw: http.client.HTTPResponse, fields: Mapping[str, list[str]]) -> None:
    """Raise InvalidHeader for a body whose end is in doubt (RFC 9112, 6.3): http.client would guess it."""
    if raw.version == 10 and "transfer-encoding" in fields:  # HTTP/1.0 has none
        raise requests.exceptions.InvalidHeader("the answer is HTTP/1.0 and comes in a transfer coding")
    codings = ",".join(fields.get("transfer-encoding", ())).lower().strip()
    if codings not in (("chunked",) if raw.chunked else ("", "identity")):
        raise requests.exceptions.InvalidHeader("the answer comes in a transfer coding that was not asked for")
    lengths = {length.strip() for length in fields.get("content-length", ())}
    if len(lengths) > 1 or (lengths and raw.length is None and not raw.chunked):
        raise requests.exceptions.InvalidHeader("the answer announces several lengths, or one that is no number")


class TooManyInterimResponses(http.client.HTTPException):
    """The server announces a response for ever and gives none."""


class StrictResponse(http.client.HTTPResponse):
    """Reads past interim responses, and refuses a chunk of a negative size."""

    def _read_status(self) -> tuple[str, int, str]:
        # http.client itself reads past 100 only, takes 103 for the response, and counts neither.
        for _ in range(INTERIM_LIMIT + 1):
            line: tuple[str, int, str] = super()._read_status()  # type: ignore[misc]
            if line[1] >= http.HTTPStatus.OK:
                return line
            http.client.parse_headers(self.fp)
        raise TooManyInterimResponses

    # For -1 bytes http.client would read all there is, past every limit.
    def _read_next_chunk_size(self) -> int:
        size: int = super()._read_next_chunk_size()  # type: ignore[misc]
        if size < 0:
            raise ValueError  # as for what is no number
        return size


class DeadlineConnection(http.client.HTTPConnection):
    """Collects a request instead of sending it, so that head and body leave in one piece."""

    response_class = StrictResponse

    def __init__(self, netloc: str) -> None:
        super().__init__(netloc)
        self.written: list[bytes] = []  # in pieces, or the wait for the response would hold the body twice

    def send(self, data: bytes) -> None:  # type: ignore[override]
        self.written.append(data)


class DirectSession(requests.Session):
    """No proxy or netrc from the environment, no cookies, no redirects."""

    def __init__(self) -> None:
        super().__init__()
        self.trust_env = False
        self.mount("http://", DeadlineAdapter())
        self.mount("https://", DeadlineAdapter())

    def resolve_redirects(self, *_: Any, **__: Any) -> Iterator[Any]:
        """Follow none: even with `allow_redirects` off, a target would make requests read the body, unlimited."""
        return iter(())


_SESSION = DirectSession()
