"""Where the server listens and what is said when it cannot; how many connections it takes, and its threads."""

from __future__ import annotations

import errno
import logging
import socket
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest
from waitress.adjustments import Adjustments

from mcpboard.errors import AddressTaken, ConfigError
from mcpboard.protocol.limits import BODY_LIMIT
from mcpboard.serving import descriptors
from mcpboard.serving.descriptors import FEWEST, OWN, fit
from mcpboard.serving.server import CONNECTIONS, IP_FREEBIND, THREADS, TOOL_CALLS, WAITRESS, Server, listeners, url
from tests.serving.conftest import Lines
from tests.serving.served import Served
from tests.support.http import HOST, LIMIT_S, call, message, request

NOBODYS_V4, NOBODYS_V6 = "192.0.2.77", "2001:db8::77"  # kept for documentation, so on no interface
NO_IPV6 = {socket.AF_INET6: errno.EAFNOSUPPORT}
NO_RIGHT = {socket.AF_INET: errno.EACCES, socket.AF_INET6: errno.EACCES}

Opened = Callable[..., "list[socket.socket]"]
Refuse = Callable[[dict[int, int], str], None]


@pytest.fixture
def opened() -> Iterator[Opened]:
    """`listeners`, whose sockets are closed after the test."""
    with ExitStack() as stack:

        def listen(*hosts: str, freebind: bool = False) -> list[socket.socket]:
            return [stack.enter_context(sock) for sock in listeners([(host, 0) for host in hosts], freebind=freebind)]

        yield listen


@pytest.fixture
def refuse(monkeypatch: pytest.MonkeyPatch) -> Refuse:
    """Let the kernel refuse those address families with those errors, at `socket` or at `bind`."""

    def refusing(families: dict[int, int], on: str) -> None:
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

    return refusing


# --- listeners -------------------------------------------------------------------------------


@pytest.mark.parametrize(("host", "reached", "shown"), [
    pytest.param("127.0.0.1", "127.0.0.1", "http://127.0.0.1:{}/mcp", id="IPv4"),
    pytest.param("::1", "::1", "http://[::1]:{}/mcp", id="IPv6"),
    pytest.param("localhost", "localhost", None, id="a name"),
    pytest.param("0.0.0.0", "127.0.0.1", "http://0.0.0.0:{}/mcp", id="every IPv4 address"),
    pytest.param("*", "127.0.0.1", "http://[::]:{}/mcp", id="every address, reached over IPv4"),
    pytest.param("*", "::1", "http://[::]:{}/mcp", id="every address, reached over IPv6"),
])  # fmt: skip
def test_a_socket_that_listens_and_its_url(opened: Opened, host: str, reached: str, shown: str | None) -> None:
    (sock,) = opened(host)
    port = sock.getsockname()[1]
    socket.create_connection((reached, port), timeout=5).close()
    assert shown is None or url(sock) == shown.format(port)


def test_an_ipv6_wildcard_is_ipv6_alone(opened: Opened) -> None:
    (sock,) = opened("::")
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection((HOST, sock.getsockname()[1]), timeout=5)


@pytest.mark.parametrize("host", [HOST, "0.0.0.0", "*"])
def test_another_program_has_the_port(host: str, caplog: pytest.LogCaptureFixture) -> None:
    """It is no question of IPv6; and the sockets that were opened before it are closed."""
    with socket.create_server((HOST, 0)) as free:
        before = free.getsockname()[1]
    with socket.create_server((HOST, 0)) as other:
        port = other.getsockname()[1]
        with pytest.raises(AddressTaken, match=r"another program has it; choose another with --listen") as refusal:
            listeners([(HOST, before), (host, port)])
        socket.create_server((HOST, before)).close()
    assert refusal.value.port == port
    assert f"{host}:{port}" in str(refusal.value)
    assert not caplog.records


@pytest.mark.parametrize(("families", "on", "host", "words"), [
    pytest.param({}, "bind", NOBODYS_V4, f"{NOBODYS_V4}:80: no interface has that address .freebind", id="nobody's address"),
    pytest.param({}, "bind", NOBODYS_V6, r"\[2001:db8::77\]:80: no interface has that address", id="nobody's IPv6 address"),
    pytest.param({}, "bind", "x" * 64, "check the setting listen", id="no name at all"),
    pytest.param(NO_RIGHT, "bind", HOST, ":80: ports below 1024 need root", id="a low port without the right to it"),
    pytest.param(NO_RIGHT, "bind", "*", ":80: ports below 1024 need root", id="the same of all addresses"),
    pytest.param(NO_IPV6, "socket", "::1", r"^cannot listen on \[::1\]:80: the kernel has no IPv6.*$", id="no IPv6"),
])  # fmt: skip
def test_an_address_that_cannot_be_bound(refuse: Refuse, caplog: pytest.LogCaptureFixture, families: dict[int, int], on: str, host: str, words: str) -> None:  # fmt: skip
    if families:
        refuse(families, on)
    with pytest.raises(ConfigError, match=words):
        listeners([(host, 80)])
    assert not caplog.records


def test_a_name_that_nobody_knows(monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown(*_: object, **__: object) -> None:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", unknown)
    with pytest.raises(ConfigError, match=r"board.lan:80: Name or service not known; check the setting listen"):
        listeners([("board.lan", 80)])


@pytest.mark.parametrize(("on", "number"), [
    pytest.param("socket", errno.EAFNOSUPPORT, id="left out of the kernel"),
    pytest.param("bind", errno.EADDRNOTAVAIL, id="switched off"),
])  # fmt: skip
def test_without_ipv6_every_address_is_every_ipv4_address_and_a_warning(opened: Opened, refuse: Refuse, caplog: pytest.LogCaptureFixture, on: str, number: int) -> None:  # fmt: skip
    refuse({socket.AF_INET6: number}, on)
    assert len(opened("0.0.0.0", HOST)) == 2, "the default does not ask for it"
    assert not caplog.records
    (sock,) = opened("*")
    assert (sock.family, sock.getsockname()[0]) == (socket.AF_INET, "0.0.0.0")
    (record,) = caplog.records
    assert (record.levelno, "no IPv6 here" in record.getMessage()) == (logging.WARNING, True)


@pytest.mark.parametrize("windows", [False, True])
def test_a_restart_need_not_wait_and_windows_keeps_others_away(opened: Opened, monkeypatch: pytest.MonkeyPatch, windows: bool) -> None:  # fmt: skip
    """Another option stands in for the one that is Windows' alone."""
    if windows:
        monkeypatch.setattr(socket, "SO_EXCLUSIVEADDRUSE", socket.SO_KEEPALIVE, raising=False)
    (sock,) = opened(HOST)
    options = [sock.getsockopt(socket.SOL_SOCKET, each) for each in (socket.SO_REUSEADDR, socket.SO_KEEPALIVE)]
    assert [bool(each) for each in options] == [not windows, windows]


@pytest.mark.parametrize(("host", "freebind"), [(NOBODYS_V4, True), (NOBODYS_V6, True), (HOST, False)])
def test_an_address_that_is_not_there_yet_is_taken_when_asked_for(opened: Opened, host: str, freebind: bool) -> None:
    (sock,) = opened(host, freebind=freebind)
    assert sock.getsockname()[0] == host
    assert bool(sock.getsockopt(socket.IPPROTO_IP, IP_FREEBIND)) is freebind


# --- descriptors -----------------------------------------------------------------------------

INFINITY = -1
OPEN = 10
BOARD, AGENT = (24, 8), (256, 48)  # connections, threads


class Limits:
    """The module `resource` of a process with these limits."""

    RLIMIT_NOFILE = 7
    RLIM_INFINITY = INFINITY

    def __init__(self, soft: int, hard: int, forbidden: bool = False) -> None:
        self.now = (soft, hard)
        self.forbidden = forbidden

    def getrlimit(self, which: int) -> tuple[int, int]:
        return self.now

    def setrlimit(self, which: int, limits: tuple[int, int]) -> None:
        if self.forbidden:
            raise PermissionError
        assert limits[1] == self.now[1]
        self.now = limits


@pytest.mark.parametrize(("limits", "wanted", "fitting", "soft"), [
    pytest.param(Limits(1024, 4096), BOARD, 24, 1024, id="a board with the usual limit"),
    pytest.param(Limits(256, 4096), AGENT, 256, OPEN + OWN + 48 + 256, id="a host on macOS: raised"),
    pytest.param(Limits(256, INFINITY), AGENT, 256, OPEN + OWN + 48 + 256, id="raised without a hard limit"),
    pytest.param(Limits(INFINITY, INFINITY), AGENT, 256, INFINITY, id="no limit"),
    pytest.param(Limits(32, 32), BOARD, FEWEST, 32, id="a board with 32"),
    pytest.param(Limits(32, 40), BOARD, 40 - OPEN - OWN - 8, 40, id="a board with 32, raised to 40"),
    pytest.param(Limits(32, 4096, forbidden=True), BOARD, FEWEST, 32, id="raising is forbidden"),
    pytest.param(None, AGENT, 256, None, id="a system without such a limit"),
])  # fmt: skip
def test_connections_fit(monkeypatch: pytest.MonkeyPatch, lines: Lines, limits: Limits | None, wanted: tuple[int, int], fitting: int, soft: int) -> None:  # fmt: skip
    monkeypatch.setattr(descriptors, "resource", limits)
    monkeypatch.setattr(descriptors, "_in_use", lambda: OPEN)
    assert fit(*wanted) == fitting
    assert limits is None or limits.now[0] == soft
    if fitting < wanted[0]:
        told = f"only {fitting} connections at once, not {wanted[0]}: the limit of open files is {soft}; set it to {OPEN + OWN + sum(wanted)}"
        assert lines.next().getMessage().startswith(told)
    assert lines.none_left()


# --- waitress --------------------------------------------------------------------------------


def test_no_proxy_is_ever_trusted() -> None:
    assert not {name for name in WAITRESS if "proxy" in name or "forwarded" in name}
    assert Adjustments(**WAITRESS).trusted_proxy is None
    assert Adjustments(**WAITRESS).clear_untrusted_proxy_headers


@pytest.mark.parametrize("count", [1, 2, 3])
def test_the_limit_counts_a_listener_and_its_trigger_and_the_workers_end_with_the_server(count: int) -> None:
    """The map holds two entries a listener, which is what the arithmetic and the drain rest on."""
    before = threading.active_count()
    running = Server(lambda environ, start: [], listeners([(HOST, 0)] * count))
    workers = [thread for thread in threading.enumerate() if thread.name.startswith("waitress")]
    assert len(workers) == THREADS
    assert len(running._map) == 2 * count
    assert [each.adj.connection_limit for each in running._listeners] == [CONNECTIONS + 2 * count] * count
    running.stop()
    running.run()
    assert not running._map
    assert not running._tasks.threads, "run returns after the last of them has given back what it held"
    for worker in workers:
        worker.join(LIMIT_S)
    assert threading.active_count() == before
    running.stop()  # again, and too late: no harm


def test_a_body_as_large_as_it_may_be_makes_no_file(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[int] = []
    monkeypatch.setattr(tempfile, "TemporaryFile", lambda *_: made.append(1))
    assert served.post(message("ping").ljust(WAITRESS["max_request_body_size"] - 1)).status == 413
    assert made == []


def test_a_request_cannot_make_the_answer_to_a_ping_long(served: Served) -> None:
    """An id is echoed, and six bytes of JSON may stand for two of the request."""
    body = b'{"jsonrpc":"2.0","method":"ping","id":"' + "é".encode() * ((BODY_LIMIT - 100) // 2) + b'"}'
    response = served.post(body)
    assert response.status == 400
    assert len(response.body) < 1024


def test_ping_waits_for_no_call(served: Served) -> None:
    """More callers than threads: the surplus is told at once, and ping finds a thread."""
    with served.clients(THREADS + 4) as clients:
        for number, client in enumerate(clients):
            client.send(request(call("block", number)))
        served.limit.wait_for(TOOL_CALLS)
        assert served.pings()
        served.role.release.set()
        assert sum(client.response().is_error for client in clients) == len(clients) - TOOL_CALLS
    assert served.limit.acquired == TOOL_CALLS


def test_a_server_may_be_told_to_stop_at_any_time() -> None:
    """Also when it is ending, or has ended: its number for waking up may be somebody else's by then."""
    running = Server(lambda environ, start: [], listeners([("127.0.0.1", 0)]))
    thread = threading.Thread(target=running.run)
    thread.start()
    running.stop()
    running.stop()
    thread.join(LIMIT_S)
    running.stop()
    assert not thread.is_alive()
