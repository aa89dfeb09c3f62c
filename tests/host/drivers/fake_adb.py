"""An adb server that plays a script, for what the real one does too seldom; it keeps the requests that it got."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager

from mcpboard.host.drivers.android.adb import AdbClient

LIMIT_S = 10.0
PHONE = "S1"

Reply = Callable[[socket.socket], None]


def block(text: str) -> bytes:
    content = text.encode("utf-8")
    return b"%04x%s" % (len(content), content)


def okay(text: str | None = None) -> Reply:
    return raw(b"OKAY" + (b"" if text is None else block(text)))


def fail(text: str) -> Reply:
    return raw(b"FAIL" + block(text))


def raw(content: bytes) -> Reply:
    return lambda peer: peer.sendall(content)


def packets(stdout: bytes = b"", stderr: bytes = b"", exit_code: int | None = 0) -> bytes:
    """A shell's whole response; without an exit code the stream ends as that of a lost phone."""
    frames = [(1, stdout), (2, stderr), *([] if exit_code is None else [(3, bytes([exit_code]))])]
    return b"".join(bytes([kind]) + len(content).to_bytes(4, "little") + content for kind, content in frames)


def shell(stdout: bytes = b"", stderr: bytes = b"", exit_code: int | None = 0) -> Reply:
    return raw(b"OKAY" + packets(stdout, stderr, exit_code))


def silence(peer: socket.socket) -> None:
    """Say nothing until the other side gives up."""
    peer.settimeout(LIMIT_S)
    peer.recv(1)


def hang_up(peer: socket.socket) -> None:
    """End the connection without a word."""
    peer.shutdown(socket.SHUT_RDWR)


def listing(*phones: str) -> Reply:
    return okay("".join(f"{phone}\n" for phone in phones))


class FakeServer:
    """Answers each service by the longest beginning of its name in `script`; `requests` has them all in order."""

    def __init__(self, script: Mapping[str, Reply], listening: socket.socket) -> None:
        self.script = dict(script)
        self.requests: list[str] = []
        self._listening = listening
        self._open: list[socket.socket] = []
        self._threads: list[threading.Thread] = []

    @property
    def adb(self) -> AdbClient:
        return AdbClient(port=self._listening.getsockname()[1])

    @property
    def scripts(self) -> list[str]:
        """What the phone's shell was sent to run."""
        return [service.partition("raw:")[2] for service in self.requests if service.startswith("shell")]

    def serve(self) -> None:
        while True:
            try:
                peer, _ = self._listening.accept()
            except OSError:  # closed
                return
            self._open.append(peer)
            self._threads.append(threading.Thread(target=self._serve_peer, args=(peer,)))
            self._threads[-1].start()

    def _serve_peer(self, peer: socket.socket) -> None:
        with closing(peer), peer.makefile("rb") as stream:
            try:
                while length := stream.read(4):
                    service = stream.read(int(length, 16)).decode("utf-8")
                    self.requests.append(service)
                    begins = [known for known in self.script if service.startswith(known)]
                    self.script[max(begins, key=len)](peer)
                    if not service.startswith("host:transport"):
                        return
            except OSError:  # the client has gone
                return

    def end(self) -> None:
        for thread in self._threads:
            thread.join(LIMIT_S)


STANDARD: Mapping[str, Reply] = {
    "host:devices-l": listing(f"{PHONE}   device product:p model:Pixel_8 device:d transport_id:1"),
    "host:transport:": okay(),
    "host:disconnect:": okay("disconnected"),
    "shell": shell(),
}


@contextmanager
def fake_adb(script: Mapping[str, Reply] = {}, port: int = 0) -> Iterator[FakeServer]:  # noqa: B006
    """A server with one phone, but for what `script` says otherwise."""
    listening = socket.create_server(("127.0.0.1", port))
    server = FakeServer({**STANDARD, **script}, listening)
    thread = threading.Thread(target=server.serve)
    thread.start()
    try:
        yield server
    finally:
        listening.shutdown(socket.SHUT_RDWR)
        thread.join(LIMIT_S)
        listening.close()
        server.end()
