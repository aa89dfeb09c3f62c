"""The Agent and Config Web on one port, as fast as sockets allow: answers made once, no phone behind them.

`python -m tests.bench.backend` prints the port and serves until it is killed.
"""

from __future__ import annotations

import base64
import json
import random
import socket
import threading

from tests.support.gohttp import JSON, Exchange, GoServer, head, tool_answer

PICTURE_BYTES = 200_000  # a screenshot of a current phone, as JPEG
BLOCK = 1 << 20  # bytes that a bundle is written in
GZIP = b"\x1f\x8b\x08\x00".ljust(BLOCK, b"\0")
STALLED_S = 60.0  # longer than the board puts up with a reader of its own that stalls

ACTION = tool_answer('{"action_output":"{\\"ok\\":true}","format":"jpeg","data":""}')
ANSWERS = {
    "/api/tools": b'{"tools":[]}\n',
    "/api/phone-bridge/status": b'{"connected":true,"platform":"android","device_type":"phone"}\n',
}


class Backend(GoServer):
    """Serves until the block ends; `bundle_bytes` is the size of the bundles from now on."""

    def __init__(self) -> None:
        self.bundle_bytes = BLOCK
        self.show(PICTURE_BYTES)
        super().__init__(self._answer)

    def __enter__(self) -> Backend:
        return self

    def show(self, size: int) -> None:
        """Answer with a picture of that many bytes from now on."""
        data = base64.b64encode(b"\xff\xd8\xff" + random.Random(0).randbytes(size - 3)).decode()
        output = json.dumps({"format": "jpeg", "width": 590, "height": 1280, "data": data})
        self.answers = {**ANSWERS, "/api/tools/screenshot": tool_answer(output)}

    def _answer(self, went: Exchange) -> None:
        self.requests.clear()  # nobody asks for them, and a soak has many
        went.sock.settimeout(STALLED_S)
        went.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        setting, _, size = went.path[1:].partition("/")
        if setting == "bundle":  # how many bytes the next bundles have
            self.bundle_bytes = int(size)
        if setting == "picture":  # and the next screenshots
            self.show(int(size))
        if went.path == "/api/logs/support":
            went.raw(_head("application/gzip", self.bundle_bytes))
            for start in range(0, self.bundle_bytes, BLOCK):
                went.raw(GZIP[: self.bundle_bytes - start])
        else:
            body = self.answers.get(went.path, ACTION)
            went.raw(_head(JSON, len(body)) + body)


def _head(kind: str, length: int) -> bytes:
    return head(f"Content-Type: {kind}", f"Content-Length: {length}", "Connection: close")


if __name__ == "__main__":
    with Backend() as backend:
        print(backend.port, flush=True)
        threading.Event().wait()
