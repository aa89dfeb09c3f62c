"""An adb server that plays a script, for what the real one does too seldom; it keeps the requests that it got."""

from __future__ import annotations

import socket
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from mcpboard.host.drivers.android.adb import AdbClient
from tests.host.drivers import LIMIT_S, Reply, answering

PHONE = "S1"


def block(text: str) -> bytes:
    content = text.encode("utf-8")
    return b"%04x%s" % (len(content), content)


def raw(content: bytes) -> Reply:
    return lambda peer: peer.sendall(content)


def okay(text: str | None = None) -> Reply:
    return raw(b"OKAY" + (b"" if text is None else block(text)))


def fail(text: str) -> Reply:
    return raw(b"FAIL" + block(text))


def listing(*phones: str) -> Reply:
    return okay("".join(f"{phone}\n" for phone in phones))


def packet(kind: int, content: bytes) -> bytes:
    return bytes([kind]) + len(content).to_bytes(4, "little") + content


def shell(stdout: bytes = b"", stderr: bytes = b"", exit_code: int | None = 0) -> Reply:
    """A shell's whole response; without an exit code the stream ends as that of a lost phone."""
    ended = b"" if exit_code is None else packet(3, bytes([exit_code]))
    return raw(b"OKAY" + packet(1, stdout) + packet(2, stderr) + ended)


def silence(peer: socket.socket) -> None:
    """Say nothing until the other side gives up."""
    peer.settimeout(LIMIT_S)
    peer.recv(1)


def hang_up(peer: socket.socket) -> None:
    """End the connection without a word."""
    peer.shutdown(socket.SHUT_RDWR)


STANDARD: Mapping[str, Reply] = {
    "host:devices-l": listing(f"{PHONE}   device product:p model:Pixel_8 device:d transport_id:1"),
    "host:transport:": okay(),
    "host:disconnect:": okay("disconnected"),
    "shell": shell(),
}


class FakeServer:
    """Answers each service by the longest beginning of its name in `script`; `requests` has them all in order."""

    def __init__(self, script: Mapping[str, Reply]) -> None:
        self.script = {**STANDARD, **script}
        self.requests: list[str] = []
        self.adb = AdbClient()

    @property
    def scripts(self) -> list[str]:
        """What the phone's shell was sent to run."""
        return [service.partition("raw:")[2] for service in self.requests if service.startswith("shell")]

    def answer(self, peer: socket.socket) -> None:
        with peer.makefile("rb") as stream:
            while length := stream.read(4):
                service = stream.read(int(length, 16)).decode("utf-8")
                self.requests.append(service)
                begins = [known for known in self.script if service.startswith(known)]
                self.script[max(begins, key=len)](peer)
                if not service.startswith("host:transport"):
                    return


@contextmanager
def fake_adb(script: Mapping[str, Reply] = {}, port: int = 0) -> Iterator[FakeServer]:  # noqa: B006
    """A server with one phone, but for what `script` says otherwise."""
    server = FakeServer(script)
    with answering(server.answer, port) as listening:
        server.adb = AdbClient(port=listening)
        yield server
