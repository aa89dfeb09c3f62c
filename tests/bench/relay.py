"""The least that a bundle can cost: one thread, two sockets, base64 in between; no HTTP library, no checks.

`python -m tests.bench.relay BACKEND_PORT` prints the port and serves until it is killed.
"""

from __future__ import annotations

import binascii
import re
import socket
import sys

BLOCK = 48 * 1024  # bytes; a multiple of three


def main(backend_port: int) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        print(listener.getsockname()[1], flush=True)
        while True:
            caller, _ = listener.accept()
            with caller, socket.create_connection(("127.0.0.1", backend_port)) as backend:
                if caller.recv(1 << 16):
                    _relay(caller, backend)


def _relay(caller: socket.socket, backend: socket.socket) -> None:
    backend.sendall(b"GET /api/logs/support HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
    with backend.makefile("rb", BLOCK) as source:
        head = b"".join(iter(source.readline, b"\r\n"))
        found = re.search(rb"Content-Length: (\d+)", head)
        assert found
        caller.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % ((int(found[1]) + 2) // 3 * 4))
        while block := source.read(BLOCK):
            caller.sendall(binascii.b2a_base64(block, newline=False))


if __name__ == "__main__":
    main(int(sys.argv[1]))
