"""The frames of the adb server's host protocol, as the program `adb` itself speaks it.

A request is four hexadecimal digits and a service's name; the response is OKAY, or FAIL with the
reason. A shell's output comes in packets, the last of which is the exit code.

Source: docs/dev/services.md and shell_protocol.h of the Android tree.
"""

from __future__ import annotations

import re
import socket
from dataclasses import dataclass, field

from mcpboard.transport.deadline import DeadlineSocket

LONGEST_SERVICE = 0xFFFF  # bytes, what four digits can say
TEXT_BYTES = 1 << 20  # of one command's output; the list of all packages has some 40 KiB
SCREENSHOT_BYTES = 36 << 20  # a screen of 8 million pixels has 32 before it is packed
MOST_STDERR = 4096  # bytes kept of a command's standard error

_STDOUT, _STDERR, _EXIT = 1, 2, 3  # types of packets
_PACKET_HEAD = 5  # bytes: its type and its length


@dataclass(frozen=True)
class ShellResult:
    """The output and the exit code of a command that ended on the phone."""

    stdout: bytes = field(repr=False)
    stderr: str
    exit_code: int

    @property
    def text(self) -> str:
        return self.stdout.decode("utf-8", "replace")


class AdbFailure(Exception):
    """The server answered FAIL; the message is its reason."""


class AdbExcess(AdbFailure):
    """A command sent more than is read."""


@dataclass
class AdbConnection:
    """One connection to the server, within its deadline."""

    sock: DeadlineSocket

    def close(self) -> None:
        self.sock.close()

    def request(self, service: str) -> None:
        """Send one request and read its OKAY; AdbFailure with the reason otherwise."""
        name = service.encode("utf-8")
        self.sock.sendall(b"%04x%s" % (len(name), name))
        self.expect_okay()

    def expect_okay(self) -> None:
        """Read one OKAY; AdbFailure with the reason otherwise."""
        status = self.read(4)
        if status == b"FAIL":
            raise AdbFailure(self.read_text())
        if status != b"OKAY":
            raise AdbFailure(f"answered {status!r}, so it is no adb server")

    def read_text(self) -> str:
        """Read a text behind its length."""
        digits = self.read(4)
        if not re.fullmatch(rb"[0-9a-fA-F]{4}", digits):
            raise AdbFailure(f"announced a text of {digits!r} bytes, so it is no adb server")
        return self.read(int(digits, 16)).decode("utf-8", "replace")

    def read(self, count: int) -> bytes:
        """Read exactly that many bytes; EOFError when fewer come."""
        content = bytearray(count)
        view, got = memoryview(content), 0
        while got < count:
            fresh = self.sock.recv_into(view[got:])
            if not fresh:
                raise EOFError
            got += fresh
        return bytes(content)

    def readable_within(self, seconds: float) -> bool:
        """Wait for something to come within that time, or the end; nothing is taken."""
        self.sock.settimeout(seconds)
        try:
            self.sock.recv(1, socket.MSG_PEEK)
        except TimeoutError:
            return False
        return True

    def read_result(self, most_bytes: int) -> ShellResult:
        """Read the packets of shell,v2 up to the exit code; EOFError where the stream ends without one.

        AdbExcess beyond `most_bytes`, whatever they are: a command may print for ever.
        """
        stdout, stderr, received = bytearray(), bytearray(), 0
        while True:
            packet, length = self.read(1)[0], int.from_bytes(self.read(4), "little")
            received += _PACKET_HEAD + length
            if received > most_bytes:
                raise AdbExcess(f"sent more than {most_bytes >> 20} MiB")
            content = self.read(length)
            if packet == _EXIT:
                return ShellResult(
                    bytes(stdout), stderr.decode("utf-8", "replace").strip(), content[0] if content else 1
                )
            if packet == _STDOUT:
                stdout += content
            elif packet == _STDERR and len(stderr) < MOST_STDERR:
                stderr += content[:MOST_STDERR]
