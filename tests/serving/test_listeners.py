"""Where to listen: what is bound, and what is said when it cannot be."""

from __future__ import annotations

import errno
import logging
import socket
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from unittest.mock import Mock

import pytest

from mcpboard.errors import AddressTaken, ConfigError
from mcpboard.serving.server import IP_FREEBIND, listeners, url

NOBODYS_V4, NOBODYS_V6 = "192.0.2.77", "2001:db8::77"  # kept for documentation, so on no interface


Opened = Callable[..., "list[socket.socket]"]


@pytest.fixture
def opened() -> Iterator[Opened]:
    """`listeners`, whose sockets are closed after the test."""
    with ExitStack() as stack:

        def listen(*addresses: tuple[str, int], freebind: bool = False) -> list[socket.socket]:
            return [stack.enter_context(sock) for sock in listeners(addresses, freebind=freebind)]

        yield listen


def taken_port() -> socket.socket:
    return socket.create_server(("127.0.0.1", 0))


@pytest.mark.parametrize(("host", "reached", "shown"), [
    pytest.param("127.0.0.1", "127.0.0.1", "http://127.0.0.1:{}/mcp", id="IPv4"),
    pytest.param("::1", "::1", "http://[::1]:{}/mcp", id="IPv6"),
    pytest.param("localhost", "localhost", None, id="a name"),
    pytest.param("0.0.0.0", "127.0.0.1", "http://0.0.0.0:{}/mcp", id="every IPv4 address"),
    pytest.param("*", "127.0.0.1", "http://[::]:{}/mcp", id="every address, reached over IPv4"),
    pytest.param("*", "::1", "http://[::]:{}/mcp", id="every address, reached over IPv6"),
])  # fmt: skip
def test_a_socket_that_listens_and_its_url(opened: Opened, host: str, reached: str, shown: str | None) -> None:
    (sock,) = opened((host, 0))
    port = sock.getsockname()[1]
    socket.create_connection((reached, port), timeout=5).close()
    if shown is not None:
        assert url(sock) == shown.format(port)


def test_an_ipv6_wildcard_is_ipv6_alone(opened: Opened) -> None:
    (sock,) = opened(("::", 0))
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", sock.getsockname()[1]), timeout=5)


class TestTaken:
    @pytest.mark.parametrize("host", ["127.0.0.1", "0.0.0.0", "*"])
    def test_another_program_has_the_port(self, host: str, caplog: pytest.LogCaptureFixture) -> None:
        with taken_port() as other:
            port = other.getsockname()[1]
            with pytest.raises(AddressTaken, match=r"another program has it; choose another with --listen") as refusal:
                listeners([(host, port)])
        assert refusal.value.port == port
        assert f"{host}:{port}" in str(refusal.value)
        assert not caplog.records, "it is no question of IPv6"

    def test_the_sockets_opened_before_it_are_closed(self) -> None:
        with taken_port() as free:
            port = free.getsockname()[1]
        with taken_port() as other:
            with pytest.raises(AddressTaken):
                listeners([("127.0.0.1", port), ("127.0.0.1", other.getsockname()[1])])
            socket.create_server(("127.0.0.1", port)).close()


class TestRefused:
    @pytest.mark.parametrize(("host", "words"), [
        pytest.param(NOBODYS_V4, f"{NOBODYS_V4}:80: no interface has that address .freebind", id="nobody's address"),
        pytest.param(NOBODYS_V6, r"\[2001:db8::77\]:80: no interface has that address", id="nobody's IPv6 address"),
        pytest.param("x" * 64, "check the setting listen", id="no name at all"),
    ])  # fmt: skip
    def test_an_address_that_cannot_be_bound(self, host: str, words: str) -> None:
        with pytest.raises(ConfigError, match=words):
            listeners([(host, 80)])

    def test_a_name_that_nobody_knows(self, monkeypatch: pytest.MonkeyPatch) -> None:
        unknown = socket.gaierror(socket.EAI_NONAME, "Name or service not known")
        monkeypatch.setattr(socket, "getaddrinfo", Mock(side_effect=unknown))
        with pytest.raises(ConfigError, match=r"board.lan:80: Name or service not known; check the setting listen"):
            listeners([("board.lan", 80)])

    @pytest.mark.parametrize("host", ["127.0.0.1", "*"])
    def test_a_low_port_without_the_right_to_it(self, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, host: str) -> None:  # fmt: skip
        refuse(monkeypatch, {socket.AF_INET: errno.EACCES, socket.AF_INET6: errno.EACCES}, on="bind")
        with pytest.raises(ConfigError, match=r":80: ports below 1024 need root"):
            listeners([(host, 80)])
        assert not caplog.records


class TestWithoutIpv6:
    @pytest.mark.parametrize(("on", "number"), [
        pytest.param("socket", errno.EAFNOSUPPORT, id="left out of the kernel"),
        pytest.param("bind", errno.EADDRNOTAVAIL, id="switched off"),
    ])  # fmt: skip
    def test_every_address_is_every_ipv4_address_and_a_warning(
        self, opened: Opened, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, on: str, number: int
    ) -> None:
        refuse(monkeypatch, {socket.AF_INET6: number}, on)
        (sock,) = opened(("*", 0))
        assert sock.family == socket.AF_INET
        assert sock.getsockname()[0] == "0.0.0.0"
        (record,) = caplog.records
        assert (record.levelno, "no IPv6 here" in record.getMessage()) == (logging.WARNING, True)

    def test_an_ipv6_address_is_refused_in_one_line(self, monkeypatch: pytest.MonkeyPatch) -> None:
        refuse(monkeypatch, {socket.AF_INET6: errno.EAFNOSUPPORT}, on="socket")
        with pytest.raises(ConfigError, match=r"cannot listen on \[::1\]:8080: the kernel has no IPv6") as refusal:
            listeners([("::1", 8080)])
        assert "\n" not in str(refusal.value)

    def test_the_default_does_not_ask_for_it(self, opened: Opened, monkeypatch: pytest.MonkeyPatch) -> None:
        refuse(monkeypatch, {socket.AF_INET6: errno.EAFNOSUPPORT}, on="socket")
        assert opened(("0.0.0.0", 0), ("127.0.0.1", 0))


def refuse(monkeypatch: pytest.MonkeyPatch, families: dict[int, int], on: str) -> None:
    """Let the kernel refuse those address families with those errors, at `socket` or at `bind`."""

    class Refusing(socket.socket):
        def __init__(self, family: int, kind: int) -> None:
            if on == "socket" and family in families:
                raise OSError(families[family], "refused for the test")
            super().__init__(family, kind)

        def bind(self, address: object) -> None:
            if self.family in families:
                raise OSError(families[self.family], "refused for the test")
            super().bind(address)  # type: ignore[arg-type]

    monkeypatch.setattr(socket, "socket", Refusing)


class TestAddressUse:
    @pytest.mark.parametrize("windows", [False, True])
    def test_a_restart_need_not_wait_and_windows_keeps_others_away(self, opened: Opened, monkeypatch: pytest.MonkeyPatch, windows: bool) -> None:  # fmt: skip
        """Another option stands in for the one that is Windows' alone."""
        if windows:
            monkeypatch.setattr(socket, "SO_EXCLUSIVEADDRUSE", socket.SO_KEEPALIVE, raising=False)
        (sock,) = opened(("127.0.0.1", 0))
        options = [sock.getsockopt(socket.SOL_SOCKET, each) for each in (socket.SO_REUSEADDR, socket.SO_KEEPALIVE)]
        assert [bool(each) for each in options] == [not windows, windows]

    @pytest.mark.parametrize(("host", "freebind"), [(NOBODYS_V4, True), (NOBODYS_V6, True), ("127.0.0.1", False)])
    def test_an_address_that_is_not_there_yet_is_taken_when_asked_for(self, opened: Opened, host: str, freebind: bool) -> None:  # fmt: skip
        (sock,) = opened((host, 0), freebind=freebind)
        assert sock.getsockname()[0] == host
        assert bool(sock.getsockopt(socket.IPPROTO_IP, IP_FREEBIND)) is freebind
