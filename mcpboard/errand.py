"""One HTTP request over a socket of its own: the only module that names requests.

No pool, no proxy or netrc from the environment, no cookies, no redirects, no second try: what is
sent goes out once, over the socket that the caller connected, within that socket's deadline.
"""

from __future__ import annotations

import contextlib
import copy
import enum
import functools
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import urlsplit

from mcpboard.deadline import Timed

if TYPE_CHECKING:
    import requests

HEADERS: Mapping[str, str] = {
    "User-Agent": "mcpboard",
    "Connection": "close",  # a kept connection may die between two requests, and then who knows
    "Accept-Encoding": "identity",  # the links are short or slow to compress for: one small core
}


class Fault(enum.Enum):
    """What an error of requests, urllib3, http.client or a socket comes down to."""

    UNREACHABLE = "no connection"
    TIMEOUT = "the deadline is over"
    BROKEN = "the connection broke, or what came is not HTTP"


# Of the names in an error's ancestry the most specific counts. Names, because requests is not
# imported before the first request.
FAULTS: Mapping[str, Fault] = {
    "requests.exceptions.ConnectTimeout": Fault.UNREACHABLE,
    "requests.exceptions.Timeout": Fault.TIMEOUT,
    "requests.exceptions.RequestException": Fault.BROKEN,
    "urllib3.exceptions.ConnectTimeoutError": Fault.UNREACHABLE,
    "urllib3.exceptions.TimeoutError": Fault.TIMEOUT,
    "urllib3.exceptions.ProxySchemeUnsupported": Fault.BROKEN,  # a ValueError, outside their own tree
    "urllib3.exceptions.HTTPError": Fault.BROKEN,
    "http.client.HTTPException": Fault.BROKEN,
    "builtins.TimeoutError": Fault.TIMEOUT,
    "builtins.OSError": Fault.BROKEN,
}


def fault_of(error: type[BaseException]) -> Fault | None:
    """What a foreign error comes down to; None when it is none of those."""
    ancestry = (f"{ancestor.__module__}.{ancestor.__qualname__}" for ancestor in error.__mro__)
    return next((FAULTS[name] for name in ancestry if name in FAULTS), None)


@contextlib.contextmanager
def translated(to: Callable[[Exception, Fault], Exception]) -> Iterator[None]:
    """Lets out what `to` makes of an error of requests, urllib3, http.client or a socket; ours and bugs pass."""
    try:
        yield
    except Exception as error:
        fault = fault_of(type(error))
        if fault is None:
            raise
        raise to(error, fault) from error


def send(
    sock: Timed, method: str, url: str, body: bytes | None, headers: Mapping[str, str] = HEADERS
) -> requests.Response:
    """The head of the answer to one request sent over `sock`; its body is still to be read from `raw`.

    Raises what requests, urllib3, http.client and the socket raise: `translated` sorts it. Closing
    the response does not close the socket.
    """
    session, prepared = _parts()
    request = copy.copy(prepared(method, url, *headers.items()))
    request.sock = sock
    if body is not None:
        request.headers = request.headers.copy()
        request.prepare_body(body, None)
    return session.send(request, stream=True, allow_redirects=False)


@functools.cache
def _parts() -> tuple[requests.Session, Callable[..., Any]]:
    """The session, and what prepares a request for it; made for the first request.

    The one place that imports requests: an idle server does without its 9 MB.
    """
    from http.cookiejar import DefaultCookiePolicy

    import requests
    from requests.adapters import HTTPAdapter
    from requests.structures import CaseInsensitiveDict
    from urllib3.connection import HTTPConnection

    class Errand(requests.PreparedRequest):
        """A request that brings the socket it travels on."""

        sock: Timed

    @functools.lru_cache(maxsize=64)  # the board asks for a dozen; a client's headers may vary
    def prepared(method: str, url: str, *headers: tuple[str, str]) -> Errand:
        """A request without a body, to be copied: checking URL and headers is half its cost."""
        request = Errand()
        request.prepare(method=method, url=url, headers=dict(headers))
        return request

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

    return Direct(), prepared
