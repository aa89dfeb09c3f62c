"""The waitress server: its settings with their reasons, the listeners, and the drain at SIGTERM."""

from __future__ import annotations

import contextlib
import errno
import logging
import os
import select
import signal
import socket
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import FrameType
from typing import Any

from waitress import wasyncore
from waitress.adjustments import Adjustments
from waitress.server import TcpWSGIServer
from waitress.task import ThreadedTaskDispatcher

from mcpboard.errors import AddressTaken, ConfigError
from mcpboard.net import host_port, reachable_here
from mcpboard.protocol.limits import BODY_LIMIT, STACK_BYTES
from mcpboard.serving import descriptors
from mcpboard.serving.connection import IDLE_SECONDS, Channel, most_dispensable, sweep
from mcpboard.serving.replies import PIECE

log = logging.getLogger("mcpboard")

THREADS = 8  # six for tools, two always free for ping, tools/list and /health
TOOL_CALLS = THREADS - 2
CONNECTIONS = 24  # unfinished bodies of strangers are what fills a small board: 24 x 336 KiB
GRACE_SECONDS = 4.0  # at SIGTERM; init systems kill after five or more
LEAVE_SECONDS = 0.5  # for the threads to end after that; one that waits for a backend is left to the exit
SWEEP_SECONDS = 1.0  # how late a limit of connection.py may strike
LOOK_SECONDS = 0.03  # until a newcomer that cannot be let in is looked at again
RETRY_SECONDS = 0.1  # after the system had no descriptor or memory for a newcomer
# Bytes of the kernel for what a client sends, doubled by Linux; connections inherit it from their listener. Those
# that wait to be accepted may be many, and none of them need send more before it is.
RECEIVE_BUFFER = 32 * 1024
IP_FREEBIND = 15  # Linux; not in the socket module

# What the kernel says where it has no IPv6, left out or disabled.
NO_IPV6 = frozenset({errno.EAFNOSUPPORT, errno.EADDRNOTAVAIL, errno.EPROTONOSUPPORT, errno.ENOPROTOOPT})

OUT_OF_DESCRIPTORS = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})

# errno of a listener that cannot be opened -> what to do about it.
REMEDIES: Mapping[object, str] = {
    errno.EACCES: "ports below 1024 need root; choose one above with --listen",
    errno.EAFNOSUPPORT: "the kernel has no IPv6; choose an IPv4 address with --listen",
    errno.EADDRNOTAVAIL: "no interface has that address (freebind = true waits for it)",
}

_RECEIVE_LIMIT = BODY_LIMIT + 16 * 1024  # so that our own 413, which is JSON, comes first

# What waitress would do otherwise stands behind each line.
WAITRESS: Mapping[str, Any] = {
    "threads": THREADS,
    "backlog": 128,  # connections the kernel holds while we are at the limit; Linux caps it at somaxconn
    "channel_request_lookahead": 1,  # else a call is still made for a client that left while queued
    "outbuf_high_watermark": PIECE,  # bytes; else a slow reader's whole reply is buffered
    "outbuf_overflow": 1 << 20,  # bytes; never reached in pieces of PIECE, so no temporary file
    "inbuf_overflow": _RECEIVE_LIMIT,  # bytes; no temporary file for bodies either
    "max_request_body_size": _RECEIVE_LIMIT,  # bytes; waitress allows 1 GiB
    "max_request_header_size": 16 * 1024,  # bytes; waitress allows 256 KiB
    "channel_timeout": int(IDLE_SECONDS),  # connection.py keeps it by the monotonic clock
    "cleanup_interval": 5,  # seconds
    "ident": None,  # no Server header
    "expose_tracebacks": False,
    "log_socket_errors": False,  # a client that resets is no news
}


# For each connection, besides TCP_NODELAY, which waitress sets.
SOCKET_OPTIONS = [
    # Without a size the kernel takes megabytes for a slow reader, and asks for more only when a
    # third of that is free: a reader of 20 KiB/s would look stalled.
    (socket.SOL_SOCKET, socket.SO_SNDBUF, 96 * 1024),  # bytes; the kernel doubles it
    # An urgent byte that nobody reads would wake the loop again and again.
    (socket.SOL_SOCKET, socket.SO_OOBINLINE, 1),
]
if hasattr(socket, "TCP_USER_TIMEOUT"):
    # The kernel gives up on a peer that acknowledges nothing, as when its cable was pulled.
    SOCKET_OPTIONS.append((socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, 30_000))  # milliseconds


# --- listeners -------------------------------------------------------------------------------


def listeners(addresses: Iterable[tuple[str, int]], *, freebind: bool = False) -> list[socket.socket]:
    """Return bound sockets for every (host, port); port 0 takes any free one.

    `*` means all addresses of both families, and all IPv4 ones where the kernel has no IPv6. Raises
    ConfigError with one line that says what to do, AddressTaken when another program is there.
    """
    with contextlib.ExitStack() as undo:
        opened = [undo.enter_context(_listener(host, port, freebind)) for host, port in addresses]
        undo.pop_all()
    return opened


def _listener(host: str, port: int, freebind: bool) -> socket.socket:
    try:
        if host == "*":
            return _bound(socket.AF_INET6, ("::", port), False, dual=True)
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        family, _, _, _, address = found[0]
        return _bound(socket.AddressFamily(family), address, freebind)
    except (OSError, UnicodeError) as error:  # UnicodeError: no name at all, a label of 64 characters
        number, reason = getattr(error, "errno", None), getattr(error, "strerror", None) or error
        if host == "*" and number in NO_IPV6:
            log.warning("no IPv6 here (%s): listening on all IPv4 addresses", reason)
            return _listener("0.0.0.0", port, False)
        failed = f"cannot listen on {host_port(host, port)}"
        if number == errno.EADDRINUSE:
            taken = f"{failed}: another program has it; choose another with --listen"
            raise AddressTaken(taken, port) from error
        remedy = REMEDIES.get(number, f"{reason}; check the setting listen")
        raise ConfigError(f"{failed}: {remedy}") from error


def _bound(family: int, address: Any, freebind: bool, dual: bool = False) -> socket.socket:
    with contextlib.ExitStack() as undo:
        sock = undo.enter_context(socket.socket(family, socket.SOCK_STREAM))
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, RECEIVE_BUFFER)
        # A listener takes its address at once after a restart, and alone. Windows has the first
        # anyhow, and takes SO_REUSEADDR as leave to share the port with a listener that is there.
        sock.setsockopt(socket.SOL_SOCKET, getattr(socket, "SO_EXCLUSIVEADDRUSE", socket.SO_REUSEADDR), 1)
        if family == socket.AF_INET6:
            sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0 if dual else 1)
        if freebind:
            # The gadget's interface comes and goes with every key chord; its address may not
            # be there yet, and must not be waited for.
            sock.setsockopt(socket.IPPROTO_IP, IP_FREEBIND, 1)
        sock.bind(address)
        sock.listen(WAITRESS["backlog"])  # here, so that a port taken shows now and not later
        sock.setblocking(False)
        undo.pop_all()
    return sock


def url(sock: socket.socket) -> str:
    """Return the MCP URL that reaches `sock`, with the real port, and with the interface of a link-local address."""
    host, port, *more = sock.getsockname()
    zone = f"%25{socket.if_indextoname(more[1])}" if more and more[1] else ""
    return f"http://{host_port(host + zone, port)}/mcp"


def local_url(sock: socket.socket) -> str:
    """Return the MCP URL by which programs of this machine reach `sock`, also where it listens on all addresses."""
    host, port = sock.getsockname()[:2]
    return f"http://{host_port(reachable_here(host), port)}/mcp"


# --- the server ------------------------------------------------------------------------------


# select() ends with descriptor 1023, whatever the limit of open files; Windows has nothing else.
_poll = wasyncore.poll2 if hasattr(select, "poll") else wasyncore.poll


class SparingListener(TcpWSGIServer):  # type: ignore[misc]
    """A listener that always lets newcomers in: at the limit it ends the most dispensable connection.

    waitress would leave them in the kernel's queue until somebody goes, and ask again and again
    for a connection that the system has no descriptor for.
    """

    channel_class = Channel
    # True while the limit is reached by connections that are all at work: then replies end their connection.
    crowded = False
    restless: set[SparingListener]  # those that have to look again, of all that share a loop
    _open = True
    _retry_at = 0.0

    def __init__(self, *args: object, **kwargs: object) -> None:
        self.broken_off: deque[Channel] = deque()  # by other threads, for the loop to end
        super().__init__(*args, **kwargs)

    def look(self, now: float) -> float:
        """Decide if a newcomer can be accepted; return the seconds until to look again at the latest."""
        while self.broken_off:
            self.broken_off.popleft().cut_off()
        full = len(self._map) >= self.adj.connection_limit
        self.crowded = full and most_dispensable(self._map.values(), now) is None
        self._open = now >= self._retry_at and not self.crowded
        if self._open:
            return SWEEP_SECONDS
        self.restless.add(self)  # until it is open again
        return LOOK_SECONDS

    def readable(self) -> bool:
        """Tell if the loop should look for newcomers."""
        return self.accepting and self._open

    def handle_accept(self) -> None:
        """Accept one newcomer, and end the most dispensable connection where that is one too many."""
        now = time.monotonic()
        try:
            pair = self.accept()
        except OSError as error:  # none left, or it had gone before we came
            spare = most_dispensable(self._map.values(), now)
            if error.errno in OUT_OF_DESCRIPTORS and spare is not None:
                spare.cut_off()  # and the next turn has its descriptor
            else:
                self._retry_at = now + RETRY_SECONDS
                self.restless.add(self)
            log.warning("a connection could not be accepted: %s", error.strerror or error)
            return
        if pair is None:
            return
        sock, address = pair
        try:
            self.set_socket_options(sock)
        except OSError:  # it has left already
            sock.close()
            return
        if len(self._map) >= self.adj.connection_limit:
            spare = most_dispensable(self._map.values(), now)
            if spare is not None:
                log.debug("connection ended for a newcomer")
                spare.cut_off()
        self.channel_class(self, sock, address, self.adj, map=self._map)

    def handle_error(self) -> None:
        """Log what nobody foresaw; waitress' own way closes the listener, for good."""
        log.exception("a connection could not be accepted")


class Server:
    """A waitress server whose loop we turn ourselves: sweeps on the way, drains at the end.

    `threads` and `connections` are a board's unless a role with more memory asks for others.
    """

    def __init__(
        self, app: Any, sockets: Sequence[socket.socket], threads: int = THREADS, connections: int = CONNECTIONS
    ) -> None:
        self._connections = connections
        self._map: dict[int, Any] = {}
        self._stop = threading.Event()
        self._waking = threading.RLock()  # a pull must not meet a trigger that is being closed
        # The limit counts two entries more for every listener: itself and its trigger.
        self._limit = connections + 2 * len(sockets)
        adj = Adjustments(**{**WAITRESS, "threads": threads, "connection_limit": self._limit, "sockets": list(sockets)})
        adj.socket_options = [*adj.socket_options, *SOCKET_OPTIONS]
        self._tasks = ThreadedTaskDispatcher()
        before = threading.stack_size(STACK_BYTES)
        try:
            self._tasks.set_thread_count(threads)
        finally:
            threading.stack_size(before)
        self._restless: set[SparingListener] = set()
        self._listeners = []
        for sock in sockets:
            where = (sock.family, sock.type, sock.proto, sock.getsockname())
            listener = SparingListener(
                app, self._map, True, sock, dispatcher=self._tasks, adj=adj, bind_socket=False, sockinfo=where
            )
            listener.restless = self._restless
            self._listeners.append(listener)

    def run(self) -> None:
        """Serve until `stop`; then refuse newcomers at once, and return when the pending replies have left.

        What has not left at the end of the grace is cut short.
        """
        next_sweep = 0.0
        while not self._stop.is_set():
            # Each request takes some turns, and nearly always there is nothing to decide about newcomers.
            must_look = self._restless or len(self._map) >= self._limit
            _poll(self._look() if must_look else SWEEP_SECONDS, self._map)
            now = time.monotonic()
            if now >= next_sweep:
                next_sweep = now + SWEEP_SECONDS
                for reason in sweep(self._map.values(), now):
                    log.debug("connection ended: %s", reason)
        for _ in range(self._connections + 1):  # one is accepted a turn: what had arrived by now counts as queued
            self._look()
            _poll(0, self._map)
        for listener in self._listeners:
            wasyncore.dispatcher.close(listener)  # only the socket: channels still pull the trigger
        over = time.monotonic() + GRACE_SECONDS
        while time.monotonic() < over:
            for channel in self._channels():
                if not channel.has_unsent_reply:  # its next request would come too late
                    channel.handle_close()
            if not self._channels():
                break
            _poll(0.1, self._map)
        for channel in self._channels():
            channel.handle_close()
        # Let the workers end; what is still queued is dropped. waitress' own way counts by the wall clock.
        self._tasks.set_thread_count(0)
        with self._tasks.thread_exit_cv:
            self._tasks.thread_exit_cv.wait_for(lambda: not self._tasks.threads, LEAVE_SECONDS)
        with self._waking:
            for listener in self._listeners:
                listener.trigger.close()

    def _look(self) -> float:
        """Have each listener decide about newcomers; return the seconds until to look again at the latest."""
        self._restless.clear()  # before they look: another thread may add one meanwhile
        now = time.monotonic()
        return min([listener.look(now) for listener in self._listeners])

    def stop(self) -> None:
        """Ask `run` to end; safe from any thread and from a signal handler."""
        with self._waking:
            if not self._stop.is_set():
                self._stop.set()
                self._listeners[0].pull_trigger()

    def _channels(self) -> list[Channel]:
        return [entry for entry in self._map.values() if isinstance(entry, Channel)]


def serve(
    app: Any,
    sockets: Sequence[socket.socket],
    announce: Callable[[], None],
    threads: int = THREADS,
    connections: int = CONNECTIONS,
) -> int:
    """Serve until SIGTERM or SIGINT, drain, return 0; a second of them ends the process at once.

    SIGHUP tells that the terminal has gone, and drains as well where there is one. To a service, which has
    none, it says that settings have changed; they are followed anyhow, so it changes nothing.
    `announce` is called once a signal finds us ready: who reads an address may send one.
    """
    server = Server(app, sockets, threads, descriptors.fit(connections, threads))

    def on_signal(number: int, frame: FrameType | None) -> None:
        for each in (signal.SIGTERM, signal.SIGINT):
            signal.signal(each, lambda *_: os._exit(1))
        server.stop()

    signal.signal(signal.SIGTERM, on_signal)
    signal.signal(signal.SIGINT, on_signal)
    # What nohup has set to be ignored stays so.
    if hasattr(signal, "SIGHUP") and signal.getsignal(signal.SIGHUP) != signal.SIG_IGN:
        on_terminal = _has_terminal()  # asked before any SIGHUP: afterwards there is none

        def on_hangup(number: int, frame: FrameType | None) -> None:
            if on_terminal:
                server.stop()

        signal.signal(signal.SIGHUP, on_hangup)
    announce()
    server.run()
    return 0


def _has_terminal() -> bool:
    """Tell if a terminal controls this process: then SIGHUP means that the terminal is gone."""
    try:
        os.close(os.open("/dev/tty", os.O_RDWR | os.O_NOCTTY))
    except OSError:
        return False
    return True
