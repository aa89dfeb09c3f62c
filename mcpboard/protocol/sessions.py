"""Keep a book of legacy sessions: ids and times are passed in, nothing is generated or measured here."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from mcpboard.protocol.limits import SESSIONS_LIMIT

KEEP_SECONDS = 24 * 3600  # SDKs do not recover from a 404 by themselves, so a record outlives its use by a day


@dataclass
class Session:
    """One legacy session: who opened it, in which version, and when it was last used."""

    id: str
    version: str
    principal: str
    client: str
    opened: float
    used: float
    has_held: bool = False  # sessions that never held a device are evicted first


class SessionBook(dict[str, Session]):
    """At most SESSIONS_LIMIT sessions by id, oldest first, each kept KEEP_SECONDS after its last use.

    Not locked: the role that owns the book owns the lock and the clock.
    """

    def add(self, session: Session, holding: Collection[str] = ()) -> None:
        """Add `session`; make room first, never by dropping an id in `holding`.

        What is over goes; then, until one more fits, what never held a device and was used longest ago.
        """
        now = session.opened
        idle = [s for s in self.values() if s.id not in holding]
        over = [s for s in idle if now - s.used > KEEP_SECONDS]
        excess = len(self) - len(over) - SESSIONS_LIMIT + 1
        rest = sorted((s for s in idle if now - s.used <= KEEP_SECONDS), key=lambda s: (s.has_held, s.used))
        for dropped in over + rest[: max(0, excess)]:
            del self[dropped.id]
        self[session.id] = session

    def find(self, session_id: str, now: float) -> Session | None:
        """Return the live session of that id, marked as used; None when unknown or over."""
        session = self.get(session_id)
        if session is None or now - session.used > KEEP_SECONDS:
            return None
        session.used = now
        return session
