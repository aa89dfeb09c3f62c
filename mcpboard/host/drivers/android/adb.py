"""A client of the adb server: the phones that it knows, and one shell command on one of them.

Every request has a connection and a deadline of its own, so a server that was restarted or a
phone that hangs costs one call and no more.
"""

from __future__ import annotations

import contextlib
import re
import shutil
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from dataclasses import dataclass

from mcpboard.errors import NOT_SENT, UNKNOWN, ToolFailed
from mcpboard.host.drivers.android import adb_protocol as protocol
from mcpboard.host.drivers.android.adb_protocol import AdbConnection, AdbExcess, AdbFailure, ShellResult
from mcpboard.host.drivers.base import table
from mcpboard.text import well_formed
from mcpboard.transport.deadline import Deadline, connect

STANDARD_PORT = 5037
REQUEST_SECONDS = 3.0  # for what the server answers by itself
CONNECT_SECONDS = 4.0  # for a phone by network to be connected and to shake hands
START_SECONDS = 15.0  # for a server to start; it looks through the USB bus first

READY = "device"  # the server's word for a phone that takes commands

# State in the server's word -> what a person does about it.
REMEDIES = table("remedies", "adb")
OTHER_REMEDY = "look at: adb devices -l"


class AdbServerMissing(ToolFailed):
    """No adb server answers; nothing was sent."""

    def __init__(self, message: str) -> None:
        super().__init__(message, delivery=NOT_SENT)


class DeviceUnavailable(ToolFailed):
    """The server gives no way to that phone now; nothing was sent. `state` is its word for why."""

    def __init__(self, serial: str, state: str, message: str = "") -> None:
        remedy = REMEDIES.get(state, OTHER_REMEDY)
        super().__init__(f"device {serial} {message or state}; cure: {remedy}", delivery=NOT_SENT)
        self.state = state


class DeviceSilent(ToolFailed):
    """The command's deadline is over: it may have been executed, or may yet be."""


class TooMuchOutput(ToolFailed):
    """The command sent more than is read, and may run on."""


@dataclass(frozen=True)
class AttachedDevice:
    """A phone that the server knows, by its serial number or address."""

    serial: str
    state: str
    model: str = ""

    @property
    def remedy(self) -> str:
        """The text that tells a person how it takes commands; empty where it does."""
        return "" if self.state == READY else f"cure: {REMEDIES.get(self.state, OTHER_REMEDY)}"


class AdbClient:
    """The adb server at a loopback address; `start` lets it be started where none runs.

    Keeps no connection, so it may be shared by every phone and thread.
    """

    def __init__(self, host: str = "127.0.0.1", port: int = STANDARD_PORT, start: bool = False) -> None:
        self.host, self.port = host, port
        self._start = start
        self._starting = threading.Lock()

    def devices(self, seconds: float = REQUEST_SECONDS) -> list[AttachedDevice]:
        """Return the phones that the server knows at this moment; AdbServerMissing."""
        return parse_devices(self._request("host:devices-l", seconds))

    def connect(self, address: str, seconds: float = CONNECT_SECONDS) -> None:
        """Have the server connect to a phone by network, anew where the old connection is dead; DeviceUnavailable."""
        limit = Deadline(seconds)
        self.disconnect(address)
        # The server says OKAY whatever came of it: only the text tells.
        outcome = self._request(f"host:connect:{address}", limit.remaining())
        if not outcome.startswith(("connected to", "already connected to")):
            raise DeviceUnavailable(address, "not reachable", f"not reachable ({outcome.strip()})")
        with closing(self._connect(limit)) as connection, _not_sent(address, limit.seconds):
            connection.request(f"host-serial:{address}:wait-for-any-device")
            connection.expect_okay()

    def disconnect(self, address: str) -> None:
        """Have the server forget a phone by network; one that it does not know is forgotten already."""
        with (
            closing(self._connect(Deadline(REQUEST_SECONDS))) as connection,
            self._server_errors(),
            contextlib.suppress(AdbFailure),
        ):
            connection.request(f"host:disconnect:{address}")

    def shell(self, serial: str, script: str, seconds: float, most_bytes: int = protocol.TEXT_BYTES) -> ShellResult:
        """Run a script in the phone's shell, once, to its end; it may print `most_bytes`.

        Raises AdbServerMissing and DeviceUnavailable before anything was sent; DeviceSilent, TooMuchOutput
        and ToolFailed with `UNKNOWN` afterwards. The script's own exit code is the caller's to judge.
        """
        service = f"shell,v2,raw:{well_formed(script)}"
        if len(service.encode("utf-8")) > protocol.LONGEST_SERVICE:
            raise ToolFailed("that is too long for one command of adb; send it in parts", delivery=NOT_SENT)
        limit = Deadline(seconds)
        with closing(self._connect(Deadline(min(REQUEST_SECONDS, seconds)))) as connection:
            with _not_sent(serial, REQUEST_SECONDS):
                connection.request(f"host:transport:{serial}")
            connection.sock.deadline = limit
            with _maybe_executed(serial, seconds):
                connection.request(service)
                return connection.read_result(most_bytes)

    @contextmanager
    def tracking(self) -> Iterator[AdbConnection]:
        """Open a connection on which the server sends its whole list at every change, see `parse_devices`."""
        with closing(self._connect(Deadline(REQUEST_SECONDS))) as connection, self._server_errors():
            connection.request("host:track-devices-l")
            yield connection

    def _request(self, service: str, seconds: float) -> str:
        with closing(self._connect(Deadline(seconds))) as connection, self._server_errors():
            connection.request(service)
            return connection.read_text()

    def _server_errors(self) -> AbstractContextManager[None]:
        """Raise what goes wrong with a request that the server answers by itself as AdbServerMissing."""
        server = f"the adb server at {self.host}:{self.port}"
        return _errors(
            lambda error: AdbServerMissing(f"{server} {error}"),
            silent=AdbServerMissing(f"{server} is silent; cure: adb kill-server"),
            lost=AdbServerMissing(f"{server} hung up; call again"),
        )

    def _connect(self, limit: Deadline) -> AdbConnection:
        try:
            return AdbConnection(connect([self.host], self.port, limit))
        except OSError as error:
            if not self._start:
                raise AdbServerMissing(self._no_server()) from error
        # One phone's call starts it for all; the others wait no longer than for anything else.
        if not self._starting.acquire(timeout=limit.remaining()):
            raise AdbServerMissing(f"{self._no_server()} (it is being started)")
        try:
            return AdbConnection(connect([self.host], self.port, limit))
        except OSError:
            self._start_server()
        finally:
            self._starting.release()
        try:
            return AdbConnection(connect([self.host], self.port, limit))
        except OSError as error:
            raise AdbServerMissing(f"{self._no_server()} (it was started, and does not answer yet)") from error

    def _no_server(self) -> str:
        problem = f"no adb server answers at {self.host}:{self.port}"
        if shutil.which("adb") is None:
            return f"{problem}, and the program adb is not installed; cure: apt-get install adb, then adb start-server"
        port = "" if self.port == STANDARD_PORT else f"-P {self.port} "
        return f"{problem}; cure: adb {port}start-server"

    def _start_server(self) -> None:
        program = shutil.which("adb")
        if program is None:
            raise AdbServerMissing(self._no_server())
        silent = subprocess.DEVNULL
        command = [program, "-P", str(self.port), "start-server"]
        try:
            subprocess.run(command, stdin=silent, stdout=silent, stderr=silent, timeout=START_SECONDS, check=True)
        except (OSError, subprocess.SubprocessError) as error:
            raise AdbServerMissing(f"adb start-server failed ({error}); run it by hand to see why") from error


def parse_devices(listing: str) -> list[AttachedDevice]:
    """Return the phones of a list of the server's, one a line: `SERIAL  state  key:value ...`."""
    devices = []
    for line in listing.splitlines():
        if not line.strip():
            continue
        serial, _, rest = line.partition("\t" if "\t" in line else " ")
        rest = rest.strip()
        model = re.search(r"\bmodel:(\S+)", rest)
        # The state of a USB device that may not be opened has spaces in it.
        state = "no permissions" if rest.startswith("no permissions") else (rest.split() or ["unknown"])[0]
        devices.append(AttachedDevice(serial, state, model[1].replace("_", " ") if model else ""))
    return devices


def is_address(serial: str) -> bool:
    """Return true for an address, to which the server can connect by itself."""
    return re.fullmatch(r"[\w.-]+:\d+|\[[0-9a-fA-F:]+\]:\d+", serial) is not None


@contextmanager
def _errors(failed: Callable[[AdbFailure], ToolFailed], silent: ToolFailed, lost: ToolFailed) -> Iterator[None]:
    """Raise as one of these that the server answered FAIL, did not answer in time, or hung up."""
    try:
        yield
    except AdbFailure as error:
        raise failed(error) from None
    except TimeoutError as error:
        raise silent from error
    except (EOFError, OSError) as error:
        raise lost from error


def _not_sent(serial: str, seconds: float) -> AbstractContextManager[None]:
    """Raise what goes wrong before the phone got anything as DeviceUnavailable or AdbServerMissing."""

    def refused(error: AdbFailure) -> ToolFailed:
        message = str(error) or "refused"
        state = next((state for state in REMEDIES if state in message), None)
        state = state or ("not found" if "unknown" in message else "refused")
        return DeviceUnavailable(serial, state, f"cannot be used ({message.splitlines()[0]})")

    silent = DeviceUnavailable(serial, "silent", f"is not ready within {seconds:g} s")
    return _errors(refused, silent, AdbServerMissing("the adb server hung up before anything was sent; call again"))


def _maybe_executed(serial: str, seconds: float) -> AbstractContextManager[None]:
    """Raise what goes wrong once the phone may have begun, with a delivery that is unknown."""

    def failed(error: AdbFailure) -> ToolFailed:
        if isinstance(error, AdbExcess):
            return TooMuchOutput(f"device {serial} {error}", delivery=UNKNOWN)
        no_shell = "gave no shell (closed); phones before Android 7 lack what is needed"
        return ToolFailed(f"device {serial} {no_shell if str(error) == 'closed' else error}", delivery=UNKNOWN)

    silent = DeviceSilent(f"device {serial} did not finish within {seconds:g} s", delivery=UNKNOWN)
    lost = ToolFailed(f"device {serial} was lost in the middle of the command", delivery=UNKNOWN)
    return _errors(failed, silent, lost)
