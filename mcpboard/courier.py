"""Carries an errand by requests: the only module that names it, imported by `errand` on the first one."""

from __future__ import annotations

import contextlib
import copy
import functools
from collections.abc import Mapping
from http.cookiejar import DefaultCookiePolicy
from typing import Any, cast
from urllib.parse import urlsplit

import requests
from requests.adapters import HTTPAdapter
from requests.structures import CaseInsensitiveDict
from urllib3.connection import HTTPConnection

from mcpboard.deadline import Timed


def send(sock: Timed, method: str, url: str, body: bytes | None, headers: Mapping[str, str]) -> requests.Response:
    """The head of the answer to one request sent over `sock`; its body is still to be read from `raw`."""
    request = copy.copy(_prepared(method, url, *headers.items()))
    request.sock = sock
    if body is not None:
        request.headers = request.headers.copy()
        request.prepare_body(body, None)
    return _session().send(request, stream=True, allow_redirects=False)


class Errand(requests.PreparedRequest):
    """A request that brings the socket it travels on."""

    sock: Timed


class OwnSocket(HTTPAdapter):
    """Sends each errand over its own socket: no pool, no proxy, no retry, one deadline for everything."""

    def send(self, request: Errand, *_: Any, **__: Any) -> requests.Response:  # type: ignore[override]
        connection = HTTPConnection(urlsplit(cast(str, request.url)).netloc)
        connection.sock = cast(Any, request.sock)
        # A server may answer early and close, for example with 503; then its answer counts.
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            connection.request(
                cast(str, request.method), request.path_url, request.body, request.headers,
                preload_content=False, decode_content=False,
            )  # fmt: skip
        return self.build_response(request, connection.getresponse())

    def build_response(self, request: Errand, raw: Any) -> requests.Response:  # type: ignore[override]
        """As the parent does, but for the cookies, which nobody takes here."""
        response = requests.Response()
        response.status_code, response.reason = raw.status, raw.reason
        response.headers = CaseInsensitiveDict(raw.headers)
        response.raw, response.request, response.url = raw, request, cast(str, request.url)
        return response


class Direct(requests.Session):
    """No proxy or netrc from the environment, no cookies, no redirects."""

    def __init__(self) -> None:
        super().__init__()
        self.trust_env = False
        self.cookies.set_policy(DefaultCookiePolicy(allowed_domains=()))
        self.mount("http://", OwnSocket())
        self.mount("https://", OwnSocket())

    def get_redirect_target(self, resp: requests.Response) -> None:
        """Nowhere: even with `allow_redirects` off, a target would make requests read the body, unlimited."""


@functools.cache
def _session() -> Direct:
    return Direct()


@functools.lru_cache(maxsize=64)  # the board asks for a dozen; a client's headers may vary
def _prepared(method: str, url: str, *headers: tuple[str, str]) -> Errand:
    """A request without a body, to be copied: checking URL and headers is half its cost."""
    request = Errand()
    request.prepare(method=method, url=url, headers=dict(headers))
    return request
