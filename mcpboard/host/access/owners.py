"""The owner that a call is made for: its `session_id` argument, else its legacy session, else its token.

2026-07-28 has no sessions, and several clients open a new one for every call; so a call without
either is made for the principal, and a client that wants to be told apart from others with the
same token says `session_id`.
"""

from __future__ import annotations

import hashlib
import secrets
import threading
import time
from collections.abc import Callable, Collection

from mcpboard.errors import InvalidParams
from mcpboard.host.config import SESSION
from mcpboard.host.devices.leases import MCP, Owner
from mcpboard.protocol.messages import OpenSession, ToolCall
from mcpboard.protocol.sessions import Session, SessionBook

NEW = "new"  # the session_id that starts one
NAMED_PREFIX = "hs_"  # of a session_id that was started so
SHOWN = 8  # characters of a key that others may see

SEEN_SECONDS = 60.0  # how long a client without a session is named after its latest call
MOST_CLIENTS = 8  # names kept for a token: whoever invents one for each call finds room for no more
SHARED_TOKEN = (
    "Clients with the same token may count as one user and share its devices. "
    "To keep one apart, give it a token of its own: device-host-agent token add NAME"
)


class Owners:
    """The sessions of the moment, and the owner that each call is made for; safe to share between threads.

    `leasing` gives the keys of the owners that have leased a device: their sessions are never dropped.
    `hold_scope` says whether a legacy session without session_id leases for itself or for its token.
    """

    def __init__(
        self,
        leasing: Callable[[], Collection[str]],
        hold_scope: str = SESSION,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._leasing = leasing
        self._hold_scope = hold_scope
        self._clock = clock
        self._lock = threading.Lock()
        self._legacy = SessionBook()
        self._named = SessionBook()  # by session_id argument
        self._clients: dict[str, dict[str, float]] = {}  # principal -> client without a session -> its latest call

    # --- sessions ------------------------------------------------------------------------------

    def open(self, step: OpenSession) -> str:
        """Start a legacy session and return its id."""
        return self._start(self._legacy, "", step.version, step.principal, step.client)

    def knows(self, session_id: str, principal: str) -> bool:
        """Return True for a live legacy session of that principal."""
        return self._find(self._legacy, session_id, principal) is not None

    def close(self, session_id: str, principal: str) -> Owner:
        """End a session of either sort; return the owner whose leases end with it."""
        with self._lock:
            self._legacy.pop(session_id, None)
            self._named.pop(session_id, None)
        return session_owner(session_id, principal)

    def close_principal(self, principal: str) -> list[Owner]:
        """End every session of a principal whose token has gone; return the owners whose leases end with them."""
        owners = [principal_owner(principal)]
        with self._lock:
            self._clients.pop(principal, None)
            for book in (self._legacy, self._named):
                for session in [each for each in book.values() if each.principal == principal]:
                    del book[session.id]
                    owners.append(session_owner(session.id, principal))
        return owners

    def sessions(self) -> list[Session]:
        """Return every session, oldest first, the legacy ones before the others."""
        with self._lock:
            return [*self._legacy.values(), *self._named.values()]

    # --- clients that share an owner -------------------------------------------------------------

    def note_client(self, call: ToolCall) -> None:
        """Remember who made a call for which its token stands."""
        if call.session is not None and self._hold_scope == SESSION:
            return
        with self._lock:
            session = self._legacy.get(call.session or "")
            client = call.client or (session.client if session else "") or "unknown client"
            seen = self._clients.setdefault(call.principal, {})
            seen.pop(client, None)  # the latest comes last
            seen[client] = self._clock()
            if len(seen) > MOST_CLIENTS:
                del seen[next(iter(seen))]

    def clients(self, owner: Owner) -> list[str]:
        """Return who called for this owner in the last minute; nobody for one that is a session."""
        with self._lock:
            seen = self._clients.get(owner.principal, {}) if owner == principal_owner(owner.principal) else {}
            return [client for client, at in seen.items() if self._clock() - at <= SEEN_SECONDS]

    # --- the owner of a call -------------------------------------------------------------------

    def owner(self, call: ToolCall) -> tuple[Owner, str | None]:
        """Return the owner that `call` is made for, and the session_id that was started for it, if one was.

        Raises InvalidParams for a session_id that is not known, or not under this token.
        """
        session_id, principal = call.arguments.get("session_id"), call.principal
        if session_id == NEW:
            started = self._start(self._named, NAMED_PREFIX, call.request_version.header or "", principal, "")
            return session_owner(started, principal), started
        if session_id is not None:
            if self._find(self._named, str(session_id), principal) is None:
                raise InvalidParams(f'session_id is unknown or over: call again with "session_id": "{NEW}"')
            return session_owner(str(session_id), principal), None
        if call.session is not None and self._hold_scope == SESSION:
            return session_owner(call.session, principal), None
        return principal_owner(principal), None

    def note_lease(self, owner: Owner) -> bool:
        """Note that the owner's session gets a device; False when it has ended, as it may while a call waits.

        A session that had a device is worth more than one that never did, when room is made for others.
        """
        if owner == principal_owner(owner.principal):
            return True
        with self._lock:
            now = self._clock()
            session = self._legacy.find(owner.key, now) or self._named.find(owner.key, now)
            if session is not None:
                session.has_held = True
        return session is not None

    def _find(self, book: SessionBook, session_id: str, principal: str) -> Session | None:
        with self._lock:
            session = book.find(session_id, self._clock())
        return session if session is not None and session.principal == principal else None

    def _start(self, book: SessionBook, prefix: str, version: str, principal: str, client: str) -> str:
        session_id = prefix + secrets.token_urlsafe(16)  # 128 bits
        now, leasing = self._clock(), self._leasing()  # outside the lock: the leases have their own
        with self._lock:
            book.add(Session(session_id, version, principal, client, now, now), leasing)
        return session_id


def session_owner(session_id: str, principal: str) -> Owner:
    """Return the owner that one session is, labelled by the beginning of its id."""
    return Owner(MCP, session_id, session_id[:SHOWN], principal)


def principal_owner(principal: str) -> Owner:
    """Return the one implicit session of a token, labelled by a hash of its id and never by the token."""
    return Owner(MCP, f"token:{principal}", hashlib.sha256(principal.encode()).hexdigest()[:SHOWN], principal)
