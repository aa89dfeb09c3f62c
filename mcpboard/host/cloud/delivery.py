"""Handing the outbox over: each letter until it is answered, whatever the answer."""

from __future__ import annotations

import logging

from mcpboard.errors import PeerRefused
from mcpboard.host.cloud.api import CloudApi
from mcpboard.host.cloud.backoff import WorkerClock, WorkerEvents
from mcpboard.host.cloud.enrollment import HEARTBEAT_SECONDS
from mcpboard.host.cloud.outbox import Outbox, OutboxEntry
from mcpboard.host.cloud.retry import Retry

log = logging.getLogger(__name__)

NOT_ANSWERED = frozenset({401, 403, 408, 425, 429})  # statuses, besides 5xx, after which it is told again


class Delivery:
    """One thread's work, `deliver_forever`."""

    def __init__(self, cloud: CloudApi, outbox: Outbox, bells: WorkerEvents, pace: WorkerClock) -> None:
        self.attempts = Retry("finish", bells.stopping)
        self._cloud = cloud
        self._outbox = outbox
        self._bells = bells
        self._pace = pace

    def deliver_forever(self) -> None:
        """Until `closing` rings, and once more then."""
        while True:
            last = self._bells.closing.is_set()
            self._bells.mail.clear()
            pause = self._deliver_all()
            if last:
                return
            if pause is not None:
                self._pace.wait(self._bells.closing, pause)
            elif not self._bells.closing.is_set():  # it rings the mail as well, perhaps before that was cleared
                self._pace.wait(self._bells.mail, HEARTBEAT_SECONDS)

    def _deliver_all(self) -> float | None:
        """Seconds to pause after the first letter that was not answered; None when all were."""
        for letter in self._outbox.owed():
            pause = self.attempts.make(lambda letter=letter: self._deliver(letter))  # type: ignore[misc]
            if pause is not None:
                self._outbox.postpone(letter.lease)
                return pause
        return None

    def _deliver(self, letter: OutboxEntry) -> None:
        try:
            self._cloud.finish(letter.assignment, letter.finish)
        except PeerRefused as refused:
            if refused.status is None or refused.status in NOT_ANSWERED or not 400 <= refused.status < 500:
                raise
            log.warning("the outcome of %s was not taken: HTTP %s", letter.assignment, refused.status)
        self._outbox.answered(letter.lease)
        self._bells.room.set()
