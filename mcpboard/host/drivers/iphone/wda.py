"""WebDriverAgent over HTTP: a session, the routes that are used, and its errors in words.

WebDriverAgent keeps one session: a new one ends the old, and may end the app that was launched in it.
So the session that is there is shared. Where it has gone, a read is asked again in another; what
moves the phone is not, though it was turned away.

Source: the routes in WebDriverAgentLib/Commands of WebDriverAgent 5 to 9.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

from mcpboard.errors import NOT_SENT, UNKNOWN, ClientError, ToolFailed
from mcpboard.protocol.client_session import HttpRequest
from mcpboard.text import json_object, one_line
from mcpboard.transport.deadline import Deadline
from mcpboard.transport.http import HttpClient

STANDARD_URL = "http://127.0.0.1:8100"
MOST_BYTES = 64 << 20  # of one answer; a picture of a large screen in base64 is a third of that
MOST_WORDS = 500  # characters of an error; XCTest adds pages

READ_SECONDS = 10.0
ACT_SECONDS = 10.0  # for a touch, besides the time that it lasts: WebDriverAgent waits for the screen to rest
SLOW_SECONDS = 30.0  # pictures, trees and cold starts

INVALID_SESSION = "invalid session id"
UNKNOWN_COMMAND = "unknown command"
ALERT_OPEN = "unexpected alert open"

# Errors with which WebDriverAgent turns a command away before it does anything.
TURNED_AWAY = frozenset({INVALID_SESSION, UNKNOWN_COMMAND, ALERT_OPEN, "invalid argument", "unknown method"})

# What WebDriverAgent or XCTest says -> what to do about it.
CURES: Mapping[str, str] = {
    INVALID_SESSION: "another client took WebDriverAgent over; nothing was done, call again",
    "keyboard must be present": "tap into a text field first",
    "not been enabled": "trust the developer's certificate on the phone: Settings, General, VPN & Device Management",
    "device is locked": "unlock the phone",
    "FBSOpenApplicationServiceErrorDomain": "no app of that bundle id can be launched there",
}


class WdaError(ToolFailed):
    """WebDriverAgent answered with an error; `name` is its W3C code."""

    def __init__(self, name: str, message: str) -> None:
        words = one_line(f"{name}: {message}", MOST_WORDS)
        cure = "; ".join(cure for sign, cure in CURES.items() if sign in f"{name}: {message}")
        told = f"WebDriverAgent says {words}" + (f"; {cure}" if cure else "")
        super().__init__(told, delivery=NOT_SENT if name in TURNED_AWAY else UNKNOWN)
        self.name = name


class WdaUnreachable(ToolFailed):
    """WebDriverAgent gave no answer; `delivery` says whether the request got there."""


class WdaClient:
    """The WebDriverAgent at a URL. One command at a time may use the session; `status` any moment.

    Raises ConfigError for a URL that cannot be used.
    """

    def __init__(self, url: str = STANDARD_URL) -> None:
        self._link = HttpClient(url)
        self._session: str | None = None

    @property
    def url(self) -> str:
        return self._link.origin

    def get(self, path: str, seconds: float = READ_SECONDS) -> Any:
        """The value of a route that needs no session."""
        return self._send("GET", path, None, seconds)["value"]

    def read(self, path: str, seconds: float = READ_SECONDS) -> Any:
        """The value of a route of the session, asked again where the session is no more."""
        try:
            return self.get(self._path(path), seconds)
        except WdaError as error:
            if error.name != INVALID_SESSION:
                raise
        self._session = None
        return self.get(self._path(path), seconds)

    def act(self, path: str, body: Mapping[str, Any], seconds: float = ACT_SECONDS) -> None:
        """Post to a route of the session, once."""
        try:
            self._send("POST", self._path(path), body, seconds)
        except WdaError as error:
            if error.name == INVALID_SESSION:
                self._session = None
            raise

    def picture(self) -> bytes:
        """The encoded picture of the screen."""
        value = self.get("/screenshot", SLOW_SECONDS)
        try:
            return base64.b64decode("".join(str(value).split()), validate=True)
        except binascii.Error as error:
            raise ToolFailed("WebDriverAgent sent a picture that is no base64; take the screenshot again") from error

    def _path(self, path: str) -> str:
        if self._session is None:
            self._session = self._open()
        return f"/session/{self._session}{path}"

    def _open(self) -> str:
        """The session that is there, else a new one on whatever is in front: no app is launched for it."""
        answer = self._send("GET", "/status", None, READ_SECONDS)
        if not answer.get("sessionId"):
            answer = self._send("POST", "/session", {"capabilities": {"alwaysMatch": {}}}, SLOW_SECONDS)
        session = answer.get("sessionId") or _member(answer["value"], "sessionId")
        if not isinstance(session, str) or not session.isascii() or not session.replace("-", "").isalnum():
            raise WdaUnreachable(
                f"what answers at {self.url} opened no session: is it WebDriverAgent?", delivery=NOT_SENT
            )
        return session

    def _send(self, method: str, path: str, body: Mapping[str, Any] | None, seconds: float) -> Mapping[str, Any]:
        """The one answer to the one request, with its `value`; WdaError or Unreached."""
        content = b"" if body is None else json.dumps(body).encode("ascii")
        headers = {"Content-Type": "application/json"} if body is not None else {}
        try:
            with self._link.exchange(HttpRequest(headers, content, method), Deadline(seconds), path=path) as answer:
                return _checked(answer.status, answer.body(MOST_BYTES), self.url)
        except ClientError as error:
            raise WdaUnreachable(f"WebDriverAgent at {self.url}: {error}", delivery=error.delivery) from error


def _checked(status: int, content: bytes, url: str) -> Mapping[str, Any]:
    answer = json_object(content)
    if answer is None or "value" not in answer:
        raise WdaUnreachable(f"what answers at {url} is no WebDriverAgent (HTTP {status}); check the port")
    value = answer["value"]
    name = _member(value, "error")
    if isinstance(name, str):
        raise WdaError(name, str(value.get("message", "")))
    if status >= HTTPStatus.BAD_REQUEST:
        raise WdaError(f"HTTP {status}", str(value))
    return answer


def _member(value: Any, name: str) -> Any:
    return value.get(name) if isinstance(value, dict) else None
