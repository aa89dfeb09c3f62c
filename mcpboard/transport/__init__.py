"""Send HTTP requests by requests, each over a connection of its own, and sort the errors that they may end in.

No pool, no proxy or netrc from the environment, no cookies, no redirects, no second try: what is
sent goes out once, within one total deadline.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mcpboard.transport.adapter import Connect, DirectSession


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
    "urllib3.exceptions.NewConnectionError": FailureKind.UNREACHABLE,
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


def wrapped(error: BaseException) -> Iterator[BaseException]:
    """Yield `error` and what it was made of, down to the first cause: requests wraps what urllib3 wraps."""
    while True:
        yield error
        parts = (error.__cause__, getattr(error, "reason", None), *error.args)
        inner = next((part for part in parts if isinstance(part, BaseException)), None)
        # urllib3 1.26 says a timeout without its cause, in whose errno a dead link shows.
        if inner is None and failure_of(type(error)) is FailureKind.TIMEOUT and not isinstance(error, OSError):
            inner = error.__context__
        if inner is None:
            return
        error = inner


@contextmanager
def translate_errors(to: Callable[[BaseException, FailureKind], Exception]) -> Iterator[None]:
    """Raise what `to` makes of the first cause of a foreign error in the block; errors of ours and bugs pass."""
    try:
        yield
    except Exception as error:
        if failure_of(type(error)) is None:
            raise
        causes = list(wrapped(error))
        kinds = {failure_of(type(cause)) for cause in causes}
        kind = next(kind for kind in FailureKind if kind in kinds)
        raise to(causes[-1], kind) from error


def open_session(connect: Connect) -> DirectSession:
    """Return a session of requests whose connections `connect` opens: `session.request(..., timeout=, stream=True)`."""
    from mcpboard.transport import adapter  # on first use: it brings 9 MB, which an idle server does without

    return adapter.DirectSession(connect)
