"""WebDriverAgent over HTTP: a session, the routes that are used, and its errors with what to do about them.

WebDriverAgent keeps one session: a new one ends the old, and may end the app that was launched in it.
So the session that is there is shared. Where it has gone, a read is asked again in another; what
moves the phone is not, though it was refused.

Source: the routes in WebDriverAgentLib/Commands of WebDriverAgent 5 to 9.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

from mcpboard.errors import NOT_SENT, UNKNOWN, ClientError, PeerBroken, ToolFailed
from mcpboard.host.drivers.base import nothing_done, table, with_remedy
from mcpboard.protocol.client_session import HttpRequest
from mcpboard.protocol.limits import CONTAINERS_LIMIT
from mcpboard.protocol.tools import compact
from mcpboard.text import TooNested, one_line, read_json, without_base64
from mcpboard.transport.deadline import Deadline
from mcpboard.transport.http import HttpClient

STANDARD_URL = "http://127.0.0.1:8100"
MOST_BYTES = 1 << 20  # of one response; those of all routes but the next have some KiB
SCREENSHOT_BYTES = 48 << 20  # base64 of 36 MiB; a screen of 8 million pixels has 32 before it is packed
LONGEST_ERROR = 500  # characters; XCTest adds pages

READ_SECONDS = 10.0
ACT_SECONDS = 10.0  # for a touch, besides the time that it lasts: WebDriverAgent waits for the screen to rest
SLOW_SECONDS = 30.0  # screenshots, trees and cold starts

INVALID_SESSION = "invalid session id"
UNKNOWN_COMMAND = "unknown command"
ALERT_OPEN = "unexpected alert open"

# Errors with which WebDriverAgent refuses a command before it does anything.
REFUSALS = frozenset({INVALID_SESSION, UNKNOWN_COMMAND, ALERT_OPEN, "invalid argument", "unknown method"})

# What WebDriverAgent or XCTest says -> what to do about it.
REMEDIES = table("remedies", "wda")


class WdaError(ToolFailed):
    """WebDriverAgent answered with an error; `name` is its W3C code."""

    def __init__(self, name: str, message: str) -> None:
        error = f"{name}: {message}"
        text = with_remedy(f"WebDriverAgent says {one_line(without_base64(error), LONGEST_ERROR)}", error, REMEDIES)
        super().__init__(text, delivery=NOT_SENT if name in REFUSALS else UNKNOWN)
        self.name = name


class WdaUnreachable(ToolFailed):
    """WebDriverAgent gave no answer; `delivery` says whether the request got there."""


class WdaUnreadable(WdaUnreachable):
    """The answer is broken, or more than is read here; the request was read by somebody."""

    def __init__(self, message: str) -> None:
        super().__init__(message, delivery=UNKNOWN)


_decoder = json.JSONDecoder()


class WdaClient:
    """The WebDriverAgent at a URL. One command at a time may use the session; `get` any moment.

    Raises ConfigError for a URL that cannot be used.
    """

    def __init__(self, url: str = STANDARD_URL) -> None:
        self._http = HttpClient(url)
        self._session: str | None = None
        self.url = self._http.origin

    def get(self, path: str, seconds: float = READ_SECONDS, most_bytes: int = MOST_BYTES, **nesting: int) -> Any:
        """Return the value of a route that needs no session; `nesting` are limits of `read_json`, where it has more."""
        return self._send("GET", path, None, seconds, most_bytes, **nesting)["value"]

    def read(self, path: str, seconds: float = READ_SECONDS) -> Any:
        """Return the value of a route of the session, asked again where the session is no more."""
        try:
            return self.get(self._path(path), seconds)
        except WdaError as error:
            if error.name != INVALID_SESSION:
                raise
        self._session = None
        return self.get(self._path(path), seconds)

    def act(self, path: str, body: Mapping[str, Any], seconds: float = ACT_SECONDS) -> None:
        """Post to a route of the session, once; nothing was done where there is no session to be had."""
        with nothing_done("WebDriverAgent opened no session"):
            route = self._path(path)
        try:
            self._send("POST", route, body, seconds)
        except WdaError as error:
            if error.name == INVALID_SESSION:
                self._session = None
            raise

    def screenshot(self) -> bytes:
        """Return the encoded image of the screen."""
        value = self.get("/screenshot", SLOW_SECONDS, SCREENSHOT_BYTES)
        try:
            return base64.b64decode("".join(str(value).split()), validate=True)
        except binascii.Error as error:
            raise ToolFailed("WebDriverAgent sent a screenshot that is no base64; take it again") from error

    def _path(self, path: str) -> str:
        """Return a route of the session that is there, else of a new one on whatever is in front.

        No app is launched for it.
        """
        if self._session is None:
            response = self._send("GET", "/status", None, READ_SECONDS)
            if not response.get("sessionId"):
                response = self._send("POST", "/session", {"capabilities": {"alwaysMatch": {}}}, SLOW_SECONDS)
            session = response.get("sessionId") or member(response["value"], "sessionId")
            if not isinstance(session, str) or not session.isascii() or not session.replace("-", "").isalnum():
                problem = f"what answers at {self.url} opened no session: is it WebDriverAgent?"
                raise WdaUnreachable(problem, delivery=NOT_SENT)
            self._session = session
        return f"/session/{self._session}{path}"

    def _send(
        self,
        method: str,
        path: str,
        body: Mapping[str, Any] | None,
        seconds: float,
        most_bytes: int = MOST_BYTES,
        **nesting: int,
    ) -> Mapping[str, Any]:
        """Send one request and return its response, which has a `value`; WdaError or WdaUnreachable."""
        headers = {"Content-Type": "application/json"} if body is not None else {}
        request = HttpRequest(headers, b"" if body is None else compact(body), method)
        try:
            with self._http.exchange(request, Deadline(seconds), path=path) as response:
                status, content = response.status, response.body(most_bytes)
            members = read_json(content, _decoder, **{"containers": CONTAINERS_LIMIT, **nesting})
        except ClientError as error:
            problem = f"WebDriverAgent at {self.url}: {error}"
            if isinstance(error, PeerBroken) and error.delivery == UNKNOWN:
                raise WdaUnreadable(problem) from error
            raise WdaUnreachable(problem, delivery=error.delivery) from error
        except TooNested as error:
            raise WdaUnreadable(f"the answer of WebDriverAgent at {self.url} is more than is read: {error}") from error
        except ValueError:
            members = None
        if not isinstance(members, dict) or "value" not in members:
            raise WdaUnreadable(f"what answers at {self.url} is no WebDriverAgent (HTTP {status}); check the port")
        value = members["value"]
        name = member(value, "error")
        if isinstance(name, str):
            raise WdaError(name, str(value.get("message", "")))
        if status >= HTTPStatus.BAD_REQUEST:
            raise WdaError(f"HTTP {status}", str(value))
        return members


def member(value: Any, name: str) -> Any:
    """Return a member of a JSON object, None of any other value."""
    return value.get(name) if isinstance(value, dict) else None
