"""The Agent and Config Web on one port, as fast as sockets allow: answers made once, no phone behind them.

`python -m tests.bench.backend` prints the port and serves until it is killed.
"""

from __future__ import annotations

import base64
import contextlib
import json
import random
import socket
import threading

PICTURE_BYTES = 200_000  # a screenshot of a current phone, as JPEG
BLOCK = 1 << 20  # bytes that a bundle is written in
GZIP = b"\x1f\x8b\x08\x00"
STOP_S = 10.0

Answers = dict[bytes, bytes]


def _tool(name: str, output: object) -> bytes:
    told = {"tool": {"name": name}, "raw_input": "{}", "output": json.dumps(output), "is_error": False}
    return json.dumps({**told, "duration_ms": 1}).encode()


def _shot(size: int) -> bytes:
    noise = random.Random(0).randbytes(size - 3)
    data = base64.b64encode(b"\xff\xd8\xff" + noise).decode()
    return _tool("screenshot", {"format": "jpeg", "width": 590, "height": 1280, "data": data})


SHOT = _shot(PICTURE_BYTES)
ACTION = _tool("touch_gesture", {"action_output": '{"ok":true}', "format": "jpeg", "data": ""})
BRIDGE = b'{"connected":true,"platform":"android","device_type":"phone"}\n'
CATALOGUE = b'{"tools":[]}\n'

ANSWERS: Answers = {b"/api/tools/screenshot": SHOT, b"/api/tools": CATALOGUE, b"/api/phone-bridge/status": BRIDGE}


class Backend:
    """Serves until the block ends; `connections` counts what was accepted."""

    def __init__(self) -> None:
        self.connections = 0
        self.bundle_bytes = BLOCK
        self.answers = dict(ANSWERS)
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=128)
        self.port: int = self._listener.getsockname()[1]
        self._over = False
        self._threads: list[threading.Thread] = []
        self._accepting = threading.Thread(target=self._accept, name="backend")

    def __enter__(self) -> Backend:
        self._accepting.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over = True
        socket.create_connection(("127.0.0.1", self.port)).close()
        self._accepting.join(STOP_S)
        self._listener.close()
        for thread in self._threads:
            thread.join(STOP_S)

    def show(self, size: int) -> None:
        """Answer with a picture of that many bytes from now on."""
        self.answers[b"/api/tools/screenshot"] = _shot(size)

    def _accept(self) -> None:
        while True:
            sock, _ = self._listener.accept()
            if self._over:
                sock.close()
                return
            self.connections += 1
            self._threads = [thread for thread in self._threads if thread.is_alive()]
            self._threads.append(threading.Thread(target=self._serve, args=(sock,), name="backend call"))
            self._threads[-1].start()

    def _serve(self, sock: socket.socket) -> None:
        with sock, contextlib.suppress(OSError):
            sock.settimeout(60.0)
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            path = _read(sock)
            if path.startswith(b"/bundle/"):  # how many bytes the next bundles have
                self.bundle_bytes = int(path.rpartition(b"/")[2])
            if path.startswith(b"/picture/"):  # and the next screenshots
                self.show(int(path.rpartition(b"/")[2]))
            if path == b"/api/logs/support":
                self._send_bundle(sock)
            elif path:
                body = self.answers.get(path, ACTION)
                sock.sendall(_head(b"application/json", len(body)) + body)

    def _send_bundle(self, sock: socket.socket) -> None:
        left, block = self.bundle_bytes, GZIP + bytes(BLOCK - len(GZIP))
        sock.sendall(_head(b"application/gzip", left))
        while left > 0:
            sock.sendall(block[:left])
            left -= len(block)


def _read(sock: socket.socket) -> bytes:
    """The path that was asked for, once the request is here whole; nothing from a caller that left."""
    got = b""
    while b"\r\n\r\n" not in got or (got.startswith(b"POST") and not got.endswith(b"}")):
        piece = sock.recv(1 << 16)
        if not piece:
            return b""
        got += piece
    return got.split(b" ", 2)[1]


def _head(kind: bytes, length: int) -> bytes:
    lines = (b"HTTP/1.1 200 OK", b"Content-Type: " + kind, b"Content-Length: %d" % length, b"Connection: close")
    return b"\r\n".join(lines) + b"\r\n\r\n"


if __name__ == "__main__":
    with Backend() as backend:
        print(backend.port, flush=True)
        threading.Event().wait()
