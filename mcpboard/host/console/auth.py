"""Who is logged in at the console, and the CSRF token of each form; nothing of it outlives the process."""

from __future__ import annotations

import hashlib
import hmac
import secrets
import threading
from collections.abc import Callable
from dataclasses import dataclass

from mcpboard.net import parse_authority

IDLE_SECONDS = 8 * 3600.0  # a working day without a look; a page left open polls, and so stays
MOST_LOGINS = 64  # the one that was used longest ago makes room
ID_BYTES = 32  # 256 bits
_DEFAULT_PORT = 80


@dataclass
class _LoginSession:
    used: float
    notice: str = ""


class LoginSessions:
    """Ids that browsers keep in a cookie: anybody's before the login, a new one after it. Safe to share."""

    def __init__(self, clock: Callable[[], float], mint: Callable[[], str] = lambda: secrets.token_urlsafe(ID_BYTES)):
        self._clock = clock
        self._mint = mint
        self._key = secrets.token_bytes(ID_BYTES)
        self._lock = threading.Lock()
        self._logins: dict[str, _LoginSession] = {}

    def visitor(self) -> str:
        """An id for somebody who is not logged in, so that the login form has a CSRF token, too."""
        return self._mint()

    def csrf(self, visitor: str) -> str:
        """The token that every form of this visitor has to carry."""
        return hmac.new(self._key, visitor.encode(), hashlib.sha256).hexdigest()

    def may_write(self, visitor: str | None, csrf: str) -> bool:
        """True when a form came from a page of this visitor's own."""
        return visitor is not None and hmac.compare_digest(self.csrf(visitor).encode(), csrf.encode())

    def open(self) -> str:
        """Log somebody in; the id is new, whatever the browser had before."""
        visitor = self._mint()
        with self._lock:
            while len(self._logins) >= MOST_LOGINS:
                del self._logins[min(self._logins, key=lambda each: self._logins[each].used)]
            self._logins[visitor] = _LoginSession(self._clock())
        return visitor

    def knows(self, visitor: str | None) -> bool:
        """True for somebody who is logged in, who then stays so for IDLE_SECONDS more."""
        with self._lock:
            return self._find(visitor) is not None

    def close(self, visitor: str) -> None:
        """Log out: the id is worth nothing any more, whoever has kept it."""
        with self._lock:
            self._logins.pop(visitor, None)

    def tell(self, visitor: str, notice: str) -> None:
        """Leave a sentence for the next page that this visitor opens."""
        with self._lock:
            login = self._find(visitor)
            if login is not None:
                login.notice = notice

    def told(self, visitor: str) -> str:
        """The sentence that was left, once."""
        with self._lock:
            login = self._find(visitor)
            if login is None:
                return ""
            notice, login.notice = login.notice, ""
            return notice

    def _find(self, visitor: str | None) -> _LoginSession | None:
        login = self._logins.get(visitor or "")
        now = self._clock()
        if login is None or now - login.used > IDLE_SECONDS:
            self._logins.pop(visitor or "", None)
            return None
        login.used = now
        return login


# --- the cookie --------------------------------------------------------------------------------


def cookie_name(host: str | None) -> str:
    """A name with our port in it: browsers send cookies to every port of an address."""
    found = parse_authority(host or "")
    port = _DEFAULT_PORT if found is None or found[1] is None else found[1]
    return f"mcpboard_console_{port}"


def cookie(host: str | None, visitor: str) -> tuple[str, str]:
    """The header that gives a browser its id, until the browser is closed; no script can read it."""
    return "Set-Cookie", f"{cookie_name(host)}={visitor}; Path=/; HttpOnly; SameSite=Strict"


def no_cookie(host: str | None) -> tuple[str, str]:
    """The header that takes it away again."""
    return "Set-Cookie", f"{cookie_name(host)}=; Path=/; Max-Age=0; HttpOnly; SameSite=Strict"


def visitor_of(host: str | None, cookies: str | None) -> str | None:
    """The id in a Cookie header, whatever other programs of this address have put beside it."""
    for pair in (cookies or "").split(";"):
        name, _, value = pair.strip().partition("=")
        if name == cookie_name(host) and value:
            return value
    return None
