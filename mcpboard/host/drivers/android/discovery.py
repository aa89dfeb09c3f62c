"""The Android phones that the adb server knows, followed by a thread.

The server tells every change at once, but not the silent death of a phone: one by network whose
address is gone stays in its list as ready. So each is also asked now and then.
"""

from __future__ import annotations

import contextlib
import logging
import socket
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from mcpboard.errors import ToolFailed
from mcpboard.host.drivers.android.adb import READY, AdbClient, AdbServerMissing, AttachedDevice, parse_devices
from mcpboard.host.drivers.android.adb_protocol import AdbConnection
from mcpboard.transport.deadline import Deadline

log = logging.getLogger(__name__)

POLL_SECONDS = 10.0  # between two rounds of asking
ALIVE_SECONDS = 2.0  # for a phone to say that it lives
ASKED_AT_ONCE = 8  # phones; a dead one keeps its thread for ALIVE_SECONDS
RETRY_SECONDS = 2.0  # for a server that is away
LIST_SECONDS = 3.0  # for a list that has begun to come whole

SILENT = "silent"  # our own word for a phone that the server takes for ready, and that does not answer

Changed = Callable[[tuple[AttachedDevice, ...]], None]


class AdbDiscovery:
    """Follows the server's list; `changed` is called from its thread with every new one. To be closed.

    `devices` are the phones of this moment, each with its state: `device`, `unauthorized`, `silent` and so on;
    `problem` is the reason why there is no list, None while the server answers. Only the thread sets them.
    """

    def __init__(
        self, server: AdbClient, changed: Changed = lambda _: None, poll_seconds: float = POLL_SECONDS
    ) -> None:
        self._adb = server
        self._changed = changed
        self._poll_seconds = poll_seconds
        self._lock = threading.Lock()
        self.devices: tuple[AttachedDevice, ...] = ()
        self.problem: str | None = None
        self._stop = threading.Event()
        self._connection: AdbConnection | None = None
        self._pool = ThreadPoolExecutor(ASKED_AT_ONCE, thread_name_prefix="adb asking")
        self._thread = threading.Thread(target=self._follow, name="adb discovery")
        self._thread.start()

    def close(self) -> None:
        """End the thread; at most a round of asking is waited for."""
        self._stop.set()
        with self._lock:
            if self._connection is not None:
                with contextlib.suppress(OSError):  # the server hung up by itself
                    self._connection.sock.shutdown(socket.SHUT_RDWR)
        self._thread.join()
        self._pool.shutdown()

    def _follow(self) -> None:
        while not self._stop.is_set():
            try:
                with self._adb.tracking() as connection:
                    self._set_connection(connection)
                    self._listen(connection)
            except ToolFailed as error:
                if not self._stop.is_set():
                    self._publish((), str(error))
            finally:
                self._set_connection(None)
            self._stop.wait(RETRY_SECONDS)

    def _set_connection(self, connection: AdbConnection | None) -> None:
        with self._lock:
            self._connection = connection
        if connection is not None and self._stop.is_set():
            raise AdbServerMissing("closing")

    def _listen(self, connection: AdbConnection) -> None:
        listed: list[AttachedDevice] = []
        while not self._stop.is_set():
            if connection.readable_within(self._poll_seconds):
                connection.sock.deadline = Deadline(LIST_SECONDS)
                listed = parse_devices(connection.read_text())
                self._publish(tuple(listed))
            else:
                self._publish(tuple(self._pool.map(self._checked, listed)))  # a dead one delays no other

    def _checked(self, phone: AttachedDevice) -> AttachedDevice:
        """Return the phone as it is when asked.

        Nothing is done about a silent one: a command may be under way there.
        """
        if phone.state != READY or self._stop.is_set():
            return phone
        try:
            self._adb.shell(phone.serial, "true", ALIVE_SECONDS)
        except ToolFailed:
            return AttachedDevice(phone.serial, SILENT, phone.model)
        return phone

    def _publish(self, devices: tuple[AttachedDevice, ...], problem: str | None = None) -> None:
        changed = (devices, problem) != (self.devices, self.problem)
        self.devices, self.problem = devices, problem
        if changed:
            log.info("adb: %s", problem or ", ".join(f"{each.serial} {each.state}" for each in devices) or "no phone")
            self._changed(devices)
