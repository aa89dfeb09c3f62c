"""The way to the cloud through a proxy: one CONNECT over the socket, and then it is as if there were none."""

from __future__ import annotations

import http.client
import socket
from collections.abc import Callable
from urllib.parse import urlsplit

from mcpboard.net import host_port
from mcpboard.transport.deadline import Deadline, DeadlineSocket, connect

CONNECT_SECONDS = 5.0  # for each address of the proxy
LONGEST_ANSWER = 16 << 10  # bytes; the head of a proxy's answer has some hundred

Way = Callable[[str, int, Deadline], DeadlineSocket]  # a TCP connection to host and port, within a deadline


def through(proxy: str) -> Way:
    """The way through the HTTP proxy at the URL `proxy`, which has been checked."""
    parts = urlsplit(proxy)
    name, number = str(parts.hostname), parts.port or 80  # the port of http

    def way(host: str, port: int, limit: Deadline) -> DeadlineSocket:
        found = socket.getaddrinfo(name, number, type=socket.SOCK_STREAM)
        sock = connect([str(entry[4][0]) for entry in found], number, limit, CONNECT_SECONDS)
        try:
            _ask(sock, host, port)
        except BaseException:
            sock.close()
            raise
        return sock

    return way


def _ask(sock: DeadlineSocket, host: str, port: int) -> None:
    """Have the proxy connect to host and port; OSError with what it said when it does not."""
    target = host_port(host, port)
    sock.sendall(f"CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n\r\n".encode("ascii"))
    line = _head(sock).split(b"\r\n", 1)[0].decode("latin-1")
    version, _, rest = line.partition(" ")
    if not version.startswith("HTTP/1.") or not rest[:3].isdigit():
        raise OSError("the proxy of cloud_proxy does not speak HTTP")
    status = int(rest[:3])
    if not 200 <= status < 300:
        words = http.client.responses.get(status, "an unknown status")
        raise OSError(f"the proxy of cloud_proxy refused with HTTP {status} {words}")


def _head(sock: DeadlineSocket) -> bytes:
    """The proxy's answer up to its empty line, and not a byte of what follows: that is the server's."""
    head, byte = bytearray(), bytearray(1)
    while not head.endswith(b"\r\n\r\n"):
        if len(head) >= LONGEST_ANSWER or not sock.recv_into(byte):
            raise OSError("the proxy of cloud_proxy gave no whole answer")
        head += byte
    return bytes(head)
