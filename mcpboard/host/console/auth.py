"""Logins at the console, and the CSRF token of each form; nothing of it outlives the process."""

from __future__ import annotations

import hashlib
import hmac
import logging
import math
import secrets
import threading
from collections.abc import Callable
from dataclasses import dataclass

from werkzeug.wrappers import Request, Response

from mcpboard.net import parse_authority

log = logging.getLogger(__name__)

IDLE_SECONDS = 8 * 3600.0  # a working day without a look; a page left open polls, and so stays
MOST_LOGINS = 64  # the one that was used longest ago makes room
REPORT_SECONDS = 60.0  # between two lines about wrong tokens; a thousand a second would fill the disk
ID_BYTES = 32  # 256 bits
_DEFAULT_PORT = 80


@dataclass
class _LoginSession:
    used: float
    principal: str
    flash: str = ""  # a message for the next page


def new_id() -> str:
    """Return an id for a browser: also before the login, so that the login form has a CSRF token, too."""
    return secrets.token_urlsafe(ID_BYTES)


class LoginSessions:
    """Ids that browsers keep in a cookie: anybody's before the login, a new one after it. Safe to share.

    `principal` returns the id of whoever has the token now: a login ends with the token that opened it.
    Nobody is locked out for wrong tokens: the token has 256 bits, and its owner may come from the same address.
    """

    def __init__(self, clock: Callable[[], float], principal: Callable[[], str] = str) -> None:
        self._clock = clock
        self._principal = principal
        self._key = secrets.token_bytes(ID_BYTES)
        self._lock = threading.Lock()
        self._logins: dict[str, _LoginSession] = {}
        self._wrong = 0  # logins with a wrong token since the last line about them
        self._next_report = -math.inf

    def csrf(self, visitor: str) -> str:
        """Return the token that every form of this visitor has to carry."""
        return hmac.new(self._key, visitor.encode(), hashlib.sha256).hexdigest()

    def may_write(self, visitor: str | None, csrf: str) -> bool:
        """Return True when a form came from a page of this visitor's own."""
        return visitor is not None and hmac.compare_digest(self.csrf(visitor).encode(), csrf.encode())

    def open(self) -> str:
        """Log somebody in; the id is new, whatever the browser had before."""
        visitor = new_id()
        with self._lock:
            while len(self._logins) >= MOST_LOGINS:
                del self._logins[min(self._logins, key=lambda each: self._logins[each].used)]
            self._logins[visitor] = _LoginSession(self._clock(), self._principal())
        return visitor

    def knows(self, visitor: str | None) -> bool:
        """Return True for somebody who is logged in, who then stays so for IDLE_SECONDS more."""
        with self._lock:
            return self._find(visitor) is not None

    def close(self, visitor: str) -> None:
        """Log out: the id is worth nothing any more, whoever has kept it."""
        with self._lock:
            self._logins.pop(visitor, None)

    def set_flash(self, visitor: str, message: str) -> None:
        """Leave a message for the next page that this visitor opens."""
        with self._lock:
            if login := self._find(visitor):
                login.flash = message

    def take_flash(self, visitor: str) -> str:
        """Return the message that was left, once; an empty one when there is none."""
        message = ""
        with self._lock:
            if login := self._find(visitor):
                message, login.flash = login.flash, ""
        return message

    def note_wrong(self) -> None:
        """Count a login with a wrong token."""
        with self._lock:
            self._wrong += 1
        self.report()

    def report(self) -> None:
        """Log the wrong tokens since the last line, if that is REPORT_SECONDS old; to be called now and then."""
        with self._lock:
            now = self._clock()
            if not self._wrong or now < self._next_report:
                return
            count, self._wrong = self._wrong, 0
            self._next_report = now + REPORT_SECONDS
        log.warning("console: %d login%s with a wrong token", count, "" if count == 1 else "s")

    def _find(self, visitor: str | None) -> _LoginSession | None:
        login = self._logins.get(visitor or "")
        now = self._clock()
        if login is None or now - login.used > IDLE_SECONDS or login.principal != self._principal():
            self._logins.pop(visitor or "", None)
            return None
        login.used = now
        return login


# --- the cookie --------------------------------------------------------------------------------


def cookie_name(request: Request) -> str:
    """Return a name with our port in it: browsers send cookies to every port of an address."""
    authority = parse_authority(request.host)
    port = _DEFAULT_PORT if authority is None or authority[1] is None else authority[1]
    return f"mcpboard_console_{port}"


def visitor_of(request: Request) -> str | None:
    """Return the id in the cookie of this agent, None for a browser that has none yet."""
    return request.cookies.get(cookie_name(request)) or None


def set_visitor(request: Request, response: Response, visitor: str | None) -> None:
    """Give the browser its id until it is closed, or take it away; no script can read it."""
    if visitor is None:
        response.delete_cookie(cookie_name(request), path="/", httponly=True, samesite="Strict")
    else:
        response.set_cookie(cookie_name(request), visitor, path="/", httponly=True, samesite="Strict")
