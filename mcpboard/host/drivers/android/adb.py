"""The adb server: which phones it knows, and one shell command on one of them.

Every request has a connection and a deadline of its own, so a server that was restarted or a
phone that hangs costs one call and no more.
"""

from __future__ import annotations

import contextlib
import re
import shutil
import subprocess
import threading
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass

from mcpboard.errors import NOT_SENT, UNKNOWN, ToolFailed
from mcpboard.host.drivers.android.adb_wire import LONGEST_SERVICE, AdbConnection, AdbFailure, ShellResult
from mcpboard.transport.deadline import Deadline, DeadlineSocket, connect

STANDARD_PORT = 5037
ASK_SECONDS = 3.0  # for what the server answers by itself
JOIN_SECONDS = 4.0  # for a phone by network to be connected and to shake hands
START_SECONDS = 15.0  # for a server to start; it looks through the USB bus first

READY = "device"  # the server's word for a phone that takes commands

# State in the server's word -> what a person does about it.
CURES: Mapping[str, str] = {
    "unauthorized": "unlock the phone and accept its question 'Allow USB debugging?'; no question there: adb reconnect",
    "authorizing": "accept the question 'Allow USB debugging?' on the phone's screen",
    "offline": "the phone is attached and silent: adb reconnect offline, or pull the cable and plug it in again",
    "connecting": "wait a moment",
    "recovery": "the phone is in its recovery: adb reboot",
    "sideload": "the phone waits for an update: adb reboot",
    "bootloader": "the phone is in its boot loader: fastboot reboot",
    "no permissions": "this user may not open the USB device: apt-get install android-sdk-platform-tools-common, "
    "then plug the phone in again",
    "not found": "plug the phone in, switch USB debugging on in its developer options, then: adb devices",
}

ELSE = "look at: adb devices -l"


class AdbServerMissing(ToolFailed):
    """No adb server answers; nothing was sent."""

    def __init__(self, message: str) -> None:
        super().__init__(message, delivery=NOT_SENT)


class DeviceUnavailable(ToolFailed):
    """The server gives no way to that phone now; nothing was sent. `state` is its word for why."""

    def __init__(self, serial: str, state: str, words: str = "") -> None:
        cure = CURES.get(state, ELSE)
        super().__init__(f"device {serial} {words or state}; cure: {cure}", delivery=NOT_SENT)
        self.state = state


class DeviceSilent(ToolFailed):
    """The command's deadline is over: it may have been carried out, or may yet be."""

    def __init__(self, serial: str, seconds: float) -> None:
        super().__init__(
            f"device {serial} did not finish within {seconds:g} s: look at the screen before repeating it",
            delivery=UNKNOWN,
        )


@dataclass(frozen=True)
class AttachedDevice:
    """A phone that the server knows, by its serial number or address."""

    serial: str
    state: str
    model: str = ""

    @property
    def cure(self) -> str:
        """What a person does until it takes commands; empty where it does."""
        return "" if self.state == READY else f"cure: {CURES.get(self.state, ELSE)}"


class AdbClient:
    """The adb server at a loopback address; `start` lets it be started where none runs.

    Holds no connection, so it may be shared by every phone and thread.
    """

    def __init__(self, host: str = "127.0.0.1", port: int = STANDARD_PORT, start: bool = False) -> None:
        self.host, self.port = host, port
        self._start = start
        self._starting = threading.Lock()

    def devices(self, seconds: float = ASK_SECONDS) -> list[AttachedDevice]:
        """The phones that the server knows at this moment; NoServer."""
        return _listed(self._answer("host:devices-l", seconds))

    def connect(self, address: str, seconds: float = JOIN_SECONDS) -> None:
        """Have the server connect to a phone by network, anew where the old connection is dead; Unavailable."""
        limit = Deadline(seconds)
        self.disconnect(address)
        # The server says OKAY whatever came of it: only the text tells.
        told = self._answer(f"host:connect:{address}", limit.remaining())
        if not told.startswith(("connected to", "already connected to")):
            raise DeviceUnavailable(address, "not reachable", f"not reachable ({told.strip()})")
        with self._wire(limit) as wire, _heard(address, limit.seconds):
            wire.ask(f"host-serial:{address}:wait-for-any-device")
            wire.okay()

    def disconnect(self, address: str) -> None:
        """Have the server forget a phone by network; one that it does not know is forgotten already."""
        with self._wire(Deadline(ASK_SECONDS)) as wire, self._understood(), contextlib.suppress(AdbFailure):
            wire.ask(f"host:disconnect:{address}")

    def shell(self, serial: str, script: str, seconds: float) -> ShellResult:
        """Run a script in the phone's shell, once, to its end.

        Raises NoServer and Unavailable before anything was sent; Silent and ToolFailed with
        `UNKNOWN` afterwards. The script's own exit code is the caller's to judge.
        """
        service = f"shell,v2,raw:{script}"
        if len(service.encode("utf-8")) > LONGEST_SERVICE:
            raise ToolFailed("that is too long for one command of adb; send it in parts", delivery=NOT_SENT)
        limit = Deadline(seconds)
        with self._wire(Deadline(min(ASK_SECONDS, seconds))) as wire:
            with _heard(serial, ASK_SECONDS):
                wire.ask(f"host:transport:{serial}")
            wire.sock.deadline = limit
            with _carried_out(serial, seconds):
                wire.ask(service)
                return wire.outcome()

    @contextmanager
    def tracking(self) -> Iterator[AdbConnection]:
        """A connection on which the server tells its whole list at every change; see `changes`."""
        with self._wire(Deadline(ASK_SECONDS)) as wire, self._understood():
            wire.ask("host:track-devices-l")
            yield wire

    def _answer(self, service: str, seconds: float) -> str:
        with self._wire(Deadline(seconds)) as wire, self._understood():
            wire.ask(service)
            return wire.block()

    @contextmanager
    def _understood(self) -> Iterator[None]:
        try:
            yield
        except AdbFailure as error:
            raise AdbServerMissing(f"the adb server at {self.host}:{self.port} {error}") from None
        except TimeoutError as error:
            raise AdbServerMissing(
                f"the adb server at {self.host}:{self.port} is silent; cure: adb kill-server"
            ) from error
        except (EOFError, OSError) as error:
            raise AdbServerMissing(f"the adb server at {self.host}:{self.port} hung up; call again") from error

    @contextmanager
    def _wire(self, limit: Deadline) -> Iterator[AdbConnection]:
        with closing(self._connected(limit)) as sock:
            yield AdbConnection(sock)

    def _connected(self, limit: Deadline) -> DeadlineSocket:
        try:
            return connect([self.host], self.port, limit)
        except OSError as error:
            if not self._start:
                raise AdbServerMissing(self._cure()) from error
        with self._starting:  # one phone's call starts it for all
            try:
                return connect([self.host], self.port, limit)
            except OSError:
                self._start_server()
        try:
            return connect([self.host], self.port, limit)
        except OSError as error:
            raise AdbServerMissing(f"{self._cure()} (it was started, and does not answer yet)") from error

    def _cure(self) -> str:
        where = f"no adb server answers at {self.host}:{self.port}"
        if shutil.which("adb") is None:
            return f"{where}, and the program adb is not installed; cure: apt-get install adb, then adb start-server"
        return f"{where}; cure: adb {self._port_option()}start-server"

    def _port_option(self) -> str:
        return "" if self.port == STANDARD_PORT else f"-P {self.port} "

    def _start_server(self) -> None:
        program = shutil.which("adb")
        if program is None:
            raise AdbServerMissing(self._cure())
        silent = subprocess.DEVNULL
        command = [program, "-P", str(self.port), "start-server"]
        try:
            subprocess.run(command, stdin=silent, stdout=silent, stderr=silent, timeout=START_SECONDS, check=True)
        except (OSError, subprocess.SubprocessError) as error:
            raise AdbServerMissing(f"adb start-server failed ({error}); run it by hand to see why") from error


def changes(wire: AdbConnection) -> list[AttachedDevice]:
    """The server's next list on a tracking connection, waited for within the socket's deadline."""
    return _listed(wire.block())


# --- what the server says ------------------------------------------------------------------------


def _listed(text: str) -> list[AttachedDevice]:
    return [_attached(line) for line in text.splitlines() if line.strip()]


def _attached(line: str) -> AttachedDevice:
    """`SERIAL  state  key:value ...`; the state of a USB device that may not be opened has blanks in it."""
    serial, _, rest = line.partition(" ") if "\t" not in line else line.partition("\t")
    rest = rest.strip()
    model = re.search(r"\bmodel:(\S+)", rest)
    state = "no permissions" if rest.startswith("no permissions") else (rest.split() or ["unknown"])[0]
    return AttachedDevice(serial, state, model[1].replace("_", " ") if model else "")


@contextmanager
def _heard(serial: str, seconds: float) -> Iterator[None]:
    """What goes wrong before the phone got anything, as Unavailable."""
    try:
        yield
    except AdbFailure as error:
        raise _refused(serial, str(error)) from None
    except TimeoutError:
        raise DeviceUnavailable(serial, "silent", f"is not ready within {seconds:g} s") from None
    except (EOFError, OSError) as error:
        raise AdbServerMissing("the adb server hung up before anything was sent; call again") from error


@contextmanager
def _carried_out(serial: str, seconds: float) -> Iterator[None]:
    """What goes wrong once the phone may have begun."""
    lost = f"device {serial} was lost in the middle of the command: look at the screen before repeating it"
    try:
        yield
    except AdbFailure as error:
        raise ToolFailed(f"device {serial} {_shell_problem(str(error))}", delivery=UNKNOWN) from None
    except TimeoutError as error:
        raise DeviceSilent(serial, seconds) from error
    except (EOFError, OSError) as error:
        raise ToolFailed(lost, delivery=UNKNOWN) from error


def _refused(serial: str, words: str) -> DeviceUnavailable:
    state = next((state for state in CURES if state in words), "not found" if "unknown" in words else "refused")
    first = words.splitlines()[0] if words else "refused"
    return DeviceUnavailable(serial, state, f"cannot be used ({first})")


def _shell_problem(words: str) -> str:
    return f"gave no shell ({words}); phones before Android 7 lack what is needed" if words == "closed" else words


def is_address(serial: str) -> bool:
    """Whether a serial is an address, to which the server can connect by itself."""
    return re.fullmatch(r"[\w.-]+:\d+|\[[0-9a-fA-F:]+\]:\d+", serial) is not None
