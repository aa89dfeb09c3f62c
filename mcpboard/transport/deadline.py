"""Put a total deadline on a socket that is read in pieces."""

# A timeout of requests counts anew for every read, so a peer that drips one byte now and then keeps
# a thread for as long as it likes. Here the socket itself gets what is left before each read and
# write, which covers head, body, chunk sizes and trailer alike.

from __future__ import annotations

import contextlib
import errno
import socket
import sys
import time
from collections.abc import Callable, Iterable
from typing import Any

Clock = Callable[[], float]  # seconds, monotonic: the board's wall clock jumps when it first hears the time

CONNECT_SECONDS = 1.0  # per address on loopback; two addresses (localhost) stay within the 2 s a connection may take
LATE_SECONDS = 0.02  # that a read may end after its deadline: each change of a timeout is a system call

# A peer whose cable was pulled says nothing, and a tool may take minutes before its first byte. So
# the kernel asks an idle connection if anybody is there, and gives up on what is never acknowledged.
PROBE_AFTER_SECONDS, PROBE_SECONDS, PROBES = 10, 5, 3
DEAD_SECONDS = PROBE_AFTER_SECONDS + PROBES * PROBE_SECONDS
LIVENESS = (
    (socket.SOL_SOCKET, "SO_KEEPALIVE", 1),
    (socket.IPPROTO_TCP, "TCP_KEEPIDLE", PROBE_AFTER_SECONDS),
    (socket.IPPROTO_TCP, "TCP_KEEPALIVE", PROBE_AFTER_SECONDS),  # the same on macOS
    (socket.IPPROTO_TCP, "TCP_KEEPINTVL", PROBE_SECONDS),
    (socket.IPPROTO_TCP, "TCP_KEEPCNT", PROBES),
    (socket.IPPROTO_TCP, "TCP_USER_TIMEOUT", DEAD_SECONDS * 1000),  # milliseconds
)

IP_BOUND_IF = 25  # macOS; not in the socket module


class Deadline:
    """The moment after which a call has lasted long enough, on a clock that never jumps."""

    def __init__(self, seconds: float, clock: Clock = time.monotonic) -> None:
        self.seconds = seconds
        self._clock = clock
        self._end = clock() + seconds

    def remaining(self) -> float:
        """Return the seconds left, always more than zero; raises TimeoutError once there are none."""
        left = self._end - self._clock()
        if left <= 0:
            raise TimeoutError(f"the deadline of {self.seconds:g} s is over")
        return left

    def waited(self) -> float:
        """Return the seconds since the deadline was set."""
        return self._clock() - self._end + self.seconds


class DeadlineMixin:
    """Make a socket end its every read and write at `deadline`, however the peer drips.

    Only what `http.client` uses is covered: `recv_into` (through `makefile`) and `sendall`. A
    timeout set by anyone else is overruled. `deadline` may be replaced between two reads.
    """

    deadline: Deadline
    # False until the kernel holds every byte given to it: until then the peer cannot have the whole
    # request, and so cannot have acted on it.
    handed_over = False

    def recv_into(self, *args: Any, **kwargs: Any) -> int:
        self._set_timeout()
        return super().recv_into(*args, **kwargs)  # type: ignore[misc,no-any-return]

    def sendall(self, *args: Any, **kwargs: Any) -> None:
        self.handed_over = False
        self._set_timeout()
        super().sendall(*args, **kwargs)  # type: ignore[misc]
        self.handed_over = True

    def _set_timeout(self) -> None:
        left = self.deadline.remaining()
        timeout: float | None = self.gettimeout()  # type: ignore[attr-defined]
        if timeout is None or not left <= timeout <= left + LATE_SECONDS:
            self.settimeout(left)  # type: ignore[attr-defined]

    def hang_up(self) -> None:
        """Close now, also while a reader made by `makefile` is about, for which `close` would wait; repeatable."""
        descriptor = self.detach()  # type: ignore[attr-defined]
        if descriptor >= 0:
            socket.close(descriptor)


class DeadlineSocket(DeadlineMixin, socket.socket):
    """A TCP socket within a deadline."""

    def __init__(self, family: int, deadline: Deadline) -> None:
        super().__init__(family, socket.SOCK_STREAM)
        self.deadline = deadline

    def watch_link(self) -> None:
        """Have the kernel end a connection whose peer has been silent for DEAD_SECONDS, where the system can."""
        for level, name, value in LIVENESS:
            if hasattr(socket, name):
                # An older kernel than Python was built for, or a connection that has ended, which the next byte shows.
                with contextlib.suppress(OSError):
                    self.setsockopt(level, getattr(socket, name), value)


class TotalTimeout(float):
    """The timeout of a whole request: requests takes it for a number, and hands it down to our connection.

    The connection leaves its socket here. So whoever sent the request can tell how far it had gone when
    it failed, move the deadline, and hang up. `on_connect` is called before anything is sent, and may raise OSError.
    """

    deadline: Deadline
    on_connect: Callable[[DeadlineMixin], None]
    is_begun = False  # a connection of ours has been asked for
    sock: DeadlineMixin | None = None

    def __new__(
        cls, deadline: Deadline, on_connect: Callable[[DeadlineMixin], None] = lambda sock: None
    ) -> TotalTimeout:
        """Return a timeout that ends with `deadline`, for one request."""
        # None of zero or less would be handed down; the socket says that such a deadline is over.
        timeout = super().__new__(cls, max(deadline.seconds, LATE_SECONDS))
        timeout.deadline, timeout.on_connect = deadline, on_connect
        return timeout

    @property
    def handed_over(self) -> bool:
        """False while it is certain that the peer does not have the whole request."""
        return self.sock.handed_over if self.sock is not None else not self.is_begun

    def move(self, deadline: Deadline) -> None:
        """Have all that is still to be read come within another deadline."""
        self.deadline = deadline
        if self.sock is not None:
            self.sock.deadline = deadline

    def hang_up(self) -> None:
        """Close the connection now, if there is one; repeatable."""
        if self.sock is not None:
            self.sock.hang_up()


def resolve(host: str, port: int) -> list[str]:
    """Return the IP literals of a host, an IPv6 one with its zone (`fe80::1%3`); OSError or UnicodeError for none."""
    targets = [info[4] for info in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)]
    # The zone of (address, port, flow, zone) is a number apart; without it no link-local address can be reached.
    return [f"{target[0]}%{target[3]}" if len(target) == 4 and target[3] else str(target[0]) for target in targets]


def connect(
    addresses: Iterable[str],
    port: int,
    deadline: Deadline,
    seconds: float = CONNECT_SECONDS,
    interface: str | None = None,
) -> DeadlineSocket:
    """Return a socket connected to the first address that answers; raises the OSError of the last one that did not.

    Addresses are IP literals, so that no name service is ever waited for; each gets `seconds`. With
    `interface` the connection leaves by that network interface only.
    """
    last_error = OSError("no address to connect to")
    for address in addresses:
        try:
            return _connect_one(address, port, deadline, seconds, interface)
        except OSError as error:
            last_error = error
    raise last_error


def _connect_one(address: str, port: int, deadline: Deadline, seconds: float, interface: str | None) -> DeadlineSocket:
    sock = DeadlineSocket(socket.AF_INET6 if ":" in address else socket.AF_INET, deadline)
    try:
        # With Nagle's rule the end of a request of several segments would wait for an ACK.
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if interface is not None:
            if sys.platform == "darwin":
                sock.setsockopt(socket.IPPROTO_IP, IP_BOUND_IF, socket.if_nametoindex(interface))
            elif hasattr(socket, "SO_BINDTODEVICE"):
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, interface.encode())
            else:
                raise OSError(errno.ENOTSUP, "this system cannot keep a connection to one interface")
        sock.settimeout(min(seconds, deadline.remaining()))
        address, _, zone = address.partition("%")
        sock.connect((address, port, 0, int(zone)) if zone else (address, port))
    except BaseException:
        sock.close()
        raise
    return sock
