"""Who a call is made for: its `session_id` argument, else its legacy session, else its token.

2026-07-28 has no sessions, and several clients open a new one for every call; so a call without
either is made for the principal, and a client that wants to be told apart from others with the
same token says `session_id`.
"""

from __future__ import annotations

import hashlib
import secrets
import threading
import time
from collections.abc import Callable, Collection, Mapping
from typing import Any

from mcpboard.errors import InvalidParams
from mcpboard.host.devices.leases import MCP, Owner
from mcpboard.protocol.messages import OpenSession, ToolCall
from mcpboard.protocol.sessions import Session, SessionBook

NEW = "new"  # the session_id that mints one
PREFIX = 8  # characters of a key that others may see (mission, busy_owner)
SESSION, TOKEN = "session", "token"  # what a legacy session without session_id holds for

Holding = Callable[[], Collection[str]]


class Owners:
    """The sessions of the moment, and the owner that each call is made for; safe to share between threads.

    `holding` gives the keys of the owners that hold a device: their sessions are never dropped.
    """

    def __init__(
        self,
        holding: Holding = tuple,
        hold_scope: str = SESSION,
        clock: Callable[[], float] = time.monotonic,
        mint: Callable[[], str] = lambda: secrets.token_urlsafe(16),  # 128 bits
    ) -> None:
        self._holding = holding
        self._hold_scope = hold_scope
        self._clock = clock
        self._mint = mint
        self._lock = threading.Lock()
        self._legacy = SessionBook()
        self._named = SessionBook()  # by session_id argument

    # --- legacy sessions -----------------------------------------------------------------------

    def open(self, step: OpenSession) -> str:
        """Mint the id of a legacy session."""
        return self._enter(self._legacy, "", step.version, step.principal, step.client)

    def knows(self, session_id: str, principal: str) -> bool:
        """True for a live legacy session of that principal."""
        return self._find(self._legacy, session_id, principal) is not None

    def close(self, session_id: str, principal: str) -> Owner:
        """End a legacy session; the owner whose holds end with it."""
        with self._lock:
            self._legacy.end(session_id)
        return _session_owner(session_id, principal)

    def close_principal(self, principal: str) -> list[Owner]:
        """End every session of a principal whose token has gone; the owners whose holds end with it."""
        owners = [principal_owner(principal)]
        with self._lock:
            for book in (self._legacy, self._named):
                for session in [each for each in book.all() if each.principal == principal]:
                    book.end(session.id)
                    owners.append(_session_owner(session.id, principal))
        return owners

    def sessions(self) -> list[Session]:
        """Every session, oldest first, the legacy ones before the others."""
        with self._lock:
            return [*self._legacy.all(), *self._named.all()]

    # --- the owner of a call -------------------------------------------------------------------

    def owner(self, call: ToolCall, arguments: Mapping[str, Any]) -> tuple[Owner, str | None]:
        """Whom `call` is made for, and the session_id that was minted for it, if one was.

        Raises InvalidParams for a session_id that is not known, or not under this token.
        """
        asked = arguments.get("session_id")
        if asked == NEW:
            minted = self._enter(self._named, "hs_", call.request_version.header or "", call.principal, "")
            return _session_owner(minted, call.principal), minted
        if asked is not None:
            return self._named_owner(str(asked), call.principal), None
        if call.session is not None and self._hold_scope == SESSION:
            return _session_owner(call.session, call.principal), None
        return principal_owner(call.principal), None

    def may_hold(self, owner: Owner) -> bool:
        """False when the owner's session has ended, as it may while a call waits.

        A session that held a device is worth more than one that never did, which is remembered here.
        """
        if owner == principal_owner(owner.principal):
            return True
        with self._lock:
            now = self._clock()
            session = self._legacy.find(owner.key, now) or self._named.find(owner.key, now)
            if session is not None:
                session.has_held = True
        return session is not None

    def forget(self, session_id: str) -> None:
        """Strike out a session_id that was minted for a call which came to nothing."""
        with self._lock:
            self._named.end(session_id)

    def _named_owner(self, session_id: str, principal: str) -> Owner:
        if self._find(self._named, session_id, principal) is None:
            raise InvalidParams(f'session_id is unknown or over: call again with "session_id": "{NEW}"')
        return _session_owner(session_id, principal)

    def _find(self, book: SessionBook, session_id: str, principal: str) -> Session | None:
        with self._lock:
            found = book.find(session_id, self._clock())
        return found if found is not None and found.principal == principal else None

    def _enter(self, book: SessionBook, prefix: str, version: str, principal: str, client: str) -> str:
        session_id, now, holding = prefix + self._mint(), self._clock(), self._holding()
        with self._lock:
            book.mint(Session(session_id, version, principal, client, now, now), holding)
        return session_id


def _session_owner(session_id: str, principal: str) -> Owner:
    return Owner(MCP, session_id, session_id[:PREFIX], principal)


def principal_owner(principal: str) -> Owner:
    """The one implicit session of a token, labelled by a hash of its id and never by the token."""
    return Owner(MCP, f"token:{principal}", hashlib.sha256(principal.encode()).hexdigest()[:PREFIX], principal)
