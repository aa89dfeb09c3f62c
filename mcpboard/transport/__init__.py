"""Send one HTTP request over a socket of its own, and sort the errors that it may end in.

No pool, no proxy or netrc from the environment, no cookies, no redirects, no second try: what is
sent goes out once, over the socket that the caller connected, within that socket's deadline.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import TYPE_CHECKING

from mcpboard.transport.deadline import DeadlineMixin

if TYPE_CHECKING:
    import requests

HEADERS: Mapping[str, str] = {
    "User-Agent": "mcpboard",
    "Connection": "close",  # a kept connection may die between two requests, and then who knows
    "Accept-Encoding": "identity",  # the links are short or slow to compress for: one small core
}


class FailureKind(enum.Enum):
    """Class of an error of requests, urllib3, http.client or a socket."""

    UNREACHABLE = "no connection"
    TIMEOUT = "the deadline is over"
    BROKEN = "the connection broke, or what came is not HTTP"


# Of the names in an error's ancestry the most specific counts. Names, because requests is not
# imported before the first request.
FAILURES: Mapping[str, FailureKind] = {
    "requests.exceptions.ConnectTimeout": FailureKind.UNREACHABLE,
    "requests.exceptions.Timeout": FailureKind.TIMEOUT,
    "requests.exceptions.RequestException": FailureKind.BROKEN,
    "urllib3.exceptions.ConnectTimeoutError": FailureKind.UNREACHABLE,
    "urllib3.exceptions.TimeoutError": FailureKind.TIMEOUT,
    "urllib3.exceptions.ProxySchemeUnsupported": FailureKind.BROKEN,  # a ValueError, outside their own tree
    "urllib3.exceptions.HTTPError": FailureKind.BROKEN,
    "http.client.HTTPException": FailureKind.BROKEN,
    "builtins.TimeoutError": FailureKind.TIMEOUT,
    "builtins.OSError": FailureKind.BROKEN,
}


def failure_of(error: type[BaseException]) -> FailureKind | None:
    """Return the class of a foreign error; None when it is none of those."""
    ancestry = (f"{ancestor.__module__}.{ancestor.__qualname__}" for ancestor in error.__mro__)
    return next((FAILURES[name] for name in ancestry if name in FAILURES), None)


class translate_errors:
    """Turn an error of requests, http.client or a socket in the block into what `to` makes of it; ours and bugs pass.

    A class and not a generator, because it stands around every request of the board.
    """

    def __init__(self, to: Callable[[Exception, FailureKind], Exception]) -> None:
        self._to = to

    def __enter__(self) -> None:
        pass

    def __exit__(
        self, error_type: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if isinstance(error, Exception):
            failure = failure_of(type(error))
            if failure is not None:
                raise self._to(error, failure) from error


def send(
    sock: DeadlineMixin, method: str, url: str, body: bytes | None, headers: Mapping[str, str] = HEADERS
) -> requests.Response:
    """Return the head of the response to one request sent over `sock`; its body is still to be read from `raw`.

    Raises what requests, urllib3, http.client and the socket raise: `translate_errors` sorts it. Closing
    the response does not close the socket.
    """
    from mcpboard.transport import adapter  # on first use: it brings 9 MB, which an idle server does without

    return adapter.send(sock, method, url, body, headers)
