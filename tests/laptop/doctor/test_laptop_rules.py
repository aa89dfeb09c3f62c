"""What a server's answers mean: one row for each thing that goes wrong for people."""

from __future__ import annotations

import dataclasses
import errno
import socket
import struct
from collections.abc import Callable
from typing import Any

import pytest

from mcpboard.doctor import CheckResult, CheckState
from mcpboard.errors import NotMcp, PeerBroken, PeerRefused, PeerTimeout
from mcpboard.host import SERVER
from mcpboard.host.console import NO_JINJA2
from mcpboard.laptop.doctor import probes, rules
from mcpboard.laptop.doctor.probes import (
    AddressFacts,
    CallFacts,
    HandshakeFacts,
    HttpFacts,
    IdentityFacts,
    OriginFacts,
    PingFacts,
    TcpFacts,
)
from mcpboard.protocol.results import CallResult, Picture

URL = "http://192.168.42.1:8080/mcp"
HOST_URL = "http://127.0.0.1:8765/mcp"
OURS = HttpFacts(200, "application/json", b'{"name":"mcpboard","version":"1.2","mcp_enabled":true}')
OFF = HttpFacts(200, "application/json", b'{"name":"mcpboard","version":"1.2","mcp_enabled":false}')
HTML = HttpFacts(404, "text/html", b"<html>")
TEXT = HttpFacts(404, "text/plain", b"404 page not found")
SETTLED = HandshakeFacts("2026-07-28", {"name": "other", "version": "3"}, frozenset({"x"}))
HOST_SETTLED = HandshakeFacts("2026-07-28", SERVER, frozenset({"x"}))
BROKEN = HandshakeFacts(error=NotMcp("what answers there is not MCP"))


def refused(status: int, token_given: bool = False) -> HandshakeFacts:
    return HandshakeFacts(error=PeerRefused(f"HTTP {status}", status=status), token_given=token_given)


def at_board(handshake: HandshakeFacts) -> IdentityFacts:
    return IdentityFacts(URL, OURS, handshake)


def result(
    text: str = "", images: tuple[Picture, ...] = (), structured: Any = None, is_error: bool = False
) -> CallResult:
    return CallResult((text,), images, (), structured, is_error, {})


def jpeg(width: int, height: int, size: int = 100) -> bytes:
    head = b"\xff\xd8\xff\xe0" + struct.pack(">H", 16) + b"JFIF\0" + bytes(9)
    return (head + b"\xff\xc0" + struct.pack(">HBHH", 17, 8, height, width)).ljust(size, b"\0")


def shot(width: int, height: int, size: int = 100) -> CallFacts:
    return CallFacts("screenshot", result("", (Picture(jpeg(width, height, size), "image/jpeg"),)))


def listed(*devices: tuple[str, str]) -> CallFacts:
    found = [{"id": name, "state": state} for name, state in devices]
    return CallFacts("list_devices", result(structured={"devices": found}))


TIMEOUT = PeerTimeout("no whole answer within 10 s")
REFUSED = ConnectionRefusedError(errno.ECONNREFUSED, "Connection refused")
NO_ROUTE = OSError(errno.EHOSTUNREACH, "No route to host")

ROWS = [
    pytest.param(rules.address, AddressFacts(URL), CheckState.OK, URL, id="a good URL"),
    pytest.param(rules.address, AddressFacts("192.168.42.1:8080", "no URL"), CheckState.FAILED, "no URL", id="no scheme"),
    pytest.param(rules.address, AddressFacts("https://b/mcp"), CheckState.OK, "boards speak http", id="https"),
    pytest.param(rules.tcp, TcpFacts("b", 8080, "linux", 0.004), CheckState.OK, "4 ms", id="a port that answers"),
    pytest.param(rules.tcp, TcpFacts("b", 8080, "linux", error=REFUSED), CheckState.FAILED, "nothing listens", id="a refused port"),
    pytest.param(rules.tcp, TcpFacts("b", 8080, "linux", error=TimeoutError()), CheckState.FAILED, "does not answer", id="silence"),
    pytest.param(rules.tcp, TcpFacts("b", 8080, "darwin", error=NO_ROUTE), CheckState.FAILED, "macOS keeps", id="macOS' privacy"),
    pytest.param(rules.tcp, TcpFacts("b", 8080, "linux", error=NO_ROUTE), CheckState.FAILED, "No route", id="no route"),
    pytest.param(rules.tcp, TcpFacts("b", 8080, "linux", error=socket.gaierror("?")), CheckState.FAILED, "no conn", id="no name"),
    pytest.param(rules.tcp, TcpFacts("b", 8080, "linux", error=UnicodeError("label")), CheckState.FAILED, "label", id="an odd name"),
    pytest.param(rules.http, TEXT, CheckState.OK, "HTTP 404", id="any answer is HTTP"),
    pytest.param(rules.http, HttpFacts(error=NotMcp("no HTTP")), CheckState.FAILED, "speak HTTP", id="another protocol"),
    pytest.param(rules.http, HttpFacts(error=TIMEOUT), CheckState.FAILED, "within 10 s", id="a server that hangs"),
    pytest.param(rules.identity, IdentityFacts(URL, OURS, SETTLED, False), CheckState.OK, "mcpboard 1.2", id="mcpboard"),
    pytest.param(rules.identity, IdentityFacts(URL, OFF, refused(404), False), CheckState.OK, "mcpboard 1.2", id="mcpboard, off"),
    pytest.param(rules.identity, IdentityFacts(URL, TEXT, BROKEN, True), CheckState.FAILED, "stock board", id="a stock Agent"),
    pytest.param(rules.identity, IdentityFacts(URL, TEXT, SETTLED, False), CheckState.FAILED, "other 3", id="another MCP server"),
    pytest.param(rules.identity, IdentityFacts(URL, HttpFacts(200, "application/json", b'{"name":"x","version":"1"}'), SETTLED), CheckState.FAILED, "other 3", id="another program with a version"),
    pytest.param(rules.identity, IdentityFacts(URL, HTML, BROKEN, False), CheckState.FAILED, "web page", id="a web page"),
    pytest.param(rules.identity, IdentityFacts(HOST_URL, TEXT, HOST_SETTLED), CheckState.OK, f"the host agent of a computer: mcpboard-host {SERVER['version']}, speaks 2026-07-28", id="a host agent"),
    pytest.param(rules.identity, IdentityFacts(HOST_URL, TEXT, refused(401), console=True), CheckState.OK, "the host agent of a computer", id="a host agent, by its login page"),
    pytest.param(rules.identity, IdentityFacts(URL, TEXT, refused(401), False), CheckState.FAILED, "HTTP 401", id="somebody with a token"),
    pytest.param(rules.identity, IdentityFacts(URL, TEXT, refused(404), False), CheckState.FAILED, "HTTP 404", id="somebody else"),
    pytest.param(rules.enabled, IdentityFacts(URL, OURS, SETTLED, False), CheckState.OK, "true", id="enabled"),
    pytest.param(rules.enabled, IdentityFacts(URL, OFF, BROKEN, False), CheckState.FAILED, "disabled", id="disabled"),
    pytest.param(rules.handshake, at_board(SETTLED), CheckState.OK, "no token is required; settled on 2026-07-28", id="a handshake"),
    pytest.param(rules.handshake, at_board(HandshakeFacts("2025-11-25", token_given=True)), CheckState.OK, "accepted", id="a good token"),
    pytest.param(rules.handshake, at_board(HandshakeFacts("2025-11-25", token_given=True, is_open=True)), CheckState.OK, "no token is required, so yours was not looked at", id="a token for nothing"),
    pytest.param(rules.handshake, at_board(refused(401)), CheckState.FAILED, "requires a token", id="no token"),
    pytest.param(rules.handshake, at_board(refused(401, True)), CheckState.FAILED, "another token", id="a wrong token"),
    pytest.param(rules.handshake, at_board(refused(404)), CheckState.FAILED, "HTTP 404", id="another path"),
    pytest.param(rules.handshake, at_board(refused(403)), CheckState.FAILED, "HTTP 403", id="turned away"),
    pytest.param(
        rules.handshake,
        IdentityFacts(HOST_URL, TEXT, dataclasses.replace(HOST_SETTLED, token_given=True)),
        CheckState.OK,
        "the token is accepted; settled on 2026-07-28",
        id="a host agent's token",
    ),
    pytest.param(rules.handshake, IdentityFacts(HOST_URL, TEXT, refused(401), console=True), CheckState.FAILED, "the host agent requires a token", id="a host agent, no token"),
    pytest.param(rules.handshake, IdentityFacts(HOST_URL, TEXT, refused(401, True), console=True), CheckState.FAILED, "another token", id="a host agent, a wrong token"),
    pytest.param(rules.handshake, IdentityFacts(HOST_URL, TEXT, refused(404), console=True), CheckState.FAILED, "HTTP 404", id="a host agent, another path"),
    pytest.param(rules.handshake, IdentityFacts(HOST_URL, TEXT, refused(500), console=True), CheckState.FAILED, "HTTP 500", id="a host agent that is broken"),
    pytest.param(rules.origins, OriginFacts(True, 200, 403), CheckState.OK, "let in", id="Origin as it should be"),
    pytest.param(rules.origins, OriginFacts(True, 401, 403), CheckState.OK, "let in", id="Origin, and a token"),
    pytest.param(rules.origins, OriginFacts(False, 403, 403), CheckState.OK, "IP address", id="a name in the URL"),
    pytest.param(rules.origins, OriginFacts(True, 403, 403), CheckState.FAILED, "rewrites the Host", id="Host is rewritten"),
    pytest.param(rules.origins, OriginFacts(True, 200, 200), CheckState.FAILED, "another site is let in", id="Origin is taken away"),
    pytest.param(rules.origins, OriginFacts(True, None, 403), CheckState.FAILED, "not answered", id="no answer to a browser"),
    pytest.param(rules.backend, CallFacts("t", result("{}")), CheckState.OK, "t answers", id="a backend"),
    pytest.param(rules.backend, CallFacts("t", result("it is down", is_error=True)), CheckState.FAILED, "it is down", id="a backend down"),
    pytest.param(rules.backend, CallFacts("t", error=PeerBroken("cut")), CheckState.FAILED, "cut", id="a call cut"),
    pytest.param(rules.backend, CallFacts("t"), CheckState.SKIPPED, "no tool t", id="a server without backends"),
    pytest.param(rules.linked, CallFacts("t", result(structured={"connected": True, "platform": "ios"})), CheckState.OK, "linked (ios)", id="a phone linked"),
    pytest.param(rules.linked, CallFacts("t", result(structured={"connected": True})), CheckState.OK, "linked", id="a phone of no name"),
    pytest.param(rules.linked, CallFacts("t", result(structured={"connected": False})), CheckState.FAILED, "not linked", id="no phone"),
    pytest.param(rules.linked, CallFacts("t", result(structured=None)), CheckState.FAILED, "not linked", id="nothing said of a phone"),
    pytest.param(rules.screenshot, shot(498, 1080), CheckState.OK, "498 x 1080", id="a picture"),
    pytest.param(rules.screenshot, shot(498, 1080, 760_000), CheckState.FAILED, "over 1000 kB", id="a picture too heavy"),
    pytest.param(rules.screenshot, shot(498, 1080, 749_999), CheckState.OK, "1000 kB", id="a picture that just fits"),
    pytest.param(rules.screenshot, shot(1080, 2000), CheckState.OK, "1080 x 2000", id="a picture just short enough"),
    pytest.param(rules.screenshot, shot(1080, 2001), CheckState.FAILED, "2000 px", id="a picture too long"),
    pytest.param(rules.screenshot, CallFacts("screenshot", result("", (Picture(b"RIFF", "image/webp"),))), CheckState.OK, "webp", id="a size not known"),
    pytest.param(rules.screenshot, CallFacts("screenshot", result("text")), CheckState.FAILED, "no image", id="no image"),
    pytest.param(rules.screenshot, CallFacts("screenshot", error=TIMEOUT), CheckState.FAILED, "within 10 s", id="a picture that does not come"),
    pytest.param(rules.devices, listed(), CheckState.FAILED, "none", id="a host without devices"),
    pytest.param(rules.devices, listed(("p", "ready"), ("b", "ready")), CheckState.OK, "p ready, b ready", id="devices"),
    pytest.param(rules.devices, listed(("p", "ready"), ("b", "offline")), CheckState.FAILED, "b offline", id="one not ready"),
    pytest.param(rules.devices, listed(("p\x1b[2J", "ready")), CheckState.OK, "p [2J ready", id="a device that steers terminals"),
    pytest.param(rules.devices, CallFacts("list_devices", result("[]")), CheckState.FAILED, "no list", id="no list of devices"),
    pytest.param(rules.devices, CallFacts("list_devices", error=TIMEOUT), CheckState.FAILED, "within 10 s", id="devices unknown"),
    pytest.param(rules.clock, HttpFacts(date=1000.0, received=1200.0), CheckState.OK, "agree", id="a clock"),
    pytest.param(rules.clock, HttpFacts(date=1000.0, received=1300.0), CheckState.OK, "agree", id="a clock that is just good enough"),
    pytest.param(rules.clock, HttpFacts(date=0.0, received=1e9), CheckState.FAILED, "1000000000 s behind", id="a clock that was never set"),
    pytest.param(rules.clock, HttpFacts(date=1000.0, received=0.0), CheckState.FAILED, "ahead", id="a clock ahead"),
    pytest.param(rules.clock, HttpFacts(), CheckState.SKIPPED, "time", id="a server without a clock"),
    pytest.param(rules.round_trip, PingFacts(0.004), CheckState.OK, "4 ms", id="a quick answer"),
    pytest.param(rules.round_trip, PingFacts(1.5), CheckState.FAILED, "slow", id="a slow network"),
    pytest.param(rules.round_trip, PingFacts(error=TIMEOUT), CheckState.FAILED, "not answered", id="a question lost"),
]  # fmt: skip


@pytest.mark.parametrize(("evaluate", "facts", "state", "message"), ROWS)
def test_facts_are_evaluated(
    evaluate: Callable[[Any], CheckResult], facts: object, state: CheckState, message: str
) -> None:
    result = evaluate(facts)
    assert result.state is state, result
    assert message in result.message
    assert bool(result.remedy) == (state is CheckState.FAILED)


REMEDIES = [
    pytest.param(rules.address, AddressFacts("192.168.42.1:8080", "x"), "doctor http://192.168.42.1:8080/mcp", id="the scheme"),
    pytest.param(rules.address, AddressFacts("nonsense", "x"), "doctor http://nonsense:8080/mcp", id="scheme and port"),
    pytest.param(rules.address, AddressFacts("[::1]", "x"), "doctor http://[::1]:8080/mcp", id="scheme and port, IPv6"),
    pytest.param(rules.address, AddressFacts("ftp://b", "x"), f"doctor {URL}", id="another scheme"),
    pytest.param(rules.address, AddressFacts("", "x"), f"doctor {URL}", id="nothing given"),
    pytest.param(rules.address, AddressFacts("$(reboot)", "x"), f"doctor {URL}", id="nothing that a shell would run"),
    pytest.param(rules.identity, IdentityFacts(URL, TEXT, BROKEN, True), "doctor http://192.168.42.1:8090/mcp", id="beside"),
    pytest.param(rules.identity, IdentityFacts("http://[::1]/mcp", HTML, BROKEN, False), "doctor http://[::1]:8080/mcp", id="IPv6"),
    pytest.param(rules.handshake, IdentityFacts(HOST_URL, TEXT, refused(401), console=True), f"mcpboard doctor {HOST_URL} --token-file FILE", id="a host agent's token"),
    pytest.param(rules.handshake, IdentityFacts(HOST_URL, TEXT, refused(401, True), console=True), "device-host-agent mcp-token", id="a host agent's other token"),
    pytest.param(rules.devices, CallFacts("list_devices", error=TIMEOUT), "device-host-agent doctor", id="a host's devices"),
    pytest.param(rules.devices, listed(), "device-host-agent devices add ID --kind board", id="a host without devices"),
    pytest.param(rules.tcp, TcpFacts("127.0.0.1", 8765, "linux", error=REFUSED), "device-host-agent doctor", id="no host agent"),
    pytest.param(rules.identity, IdentityFacts(URL, TEXT, refused(401), False), f"doctor {URL} --token-file FILE", id="a token"),
    pytest.param(rules.identity, IdentityFacts(URL, TEXT, refused(401, True), False), "device-host-agent mcp-token", id="another token"),
    pytest.param(rules.clock, HttpFacts(date=0.0, received=1e9), "date -u -s @1000000000", id="the clock"),
    pytest.param(rules.identity, IdentityFacts(URL, TEXT, refused(404)), "port 8080: mcpboard doctor --board; beside a stock Agent mcpboard is at port 8090", id="somebody else at the usual port"),
    pytest.param(rules.identity, IdentityFacts("http://b:9/mcp", TEXT, refused(404)), "check address and port of the board", id="somebody else at another"),
    pytest.param(rules.tcp, TcpFacts("b", 80, "darwin", error=NO_ROUTE), "mcpboard relay http://b:80/mcp", id="a relay"),
]  # fmt: skip


@pytest.mark.parametrize(("evaluate", "facts", "command"), REMEDIES)
def test_the_remedy_is_a_command_to_paste(evaluate: Callable[[Any], CheckResult], facts: object, command: str) -> None:
    assert command in evaluate(facts).remedy


STRANGERS = [
    pytest.param(HTML, BROKEN, id="a web page"),
    pytest.param(TEXT, refused(404), id="HTTP 404"),
    pytest.param(TEXT, SETTLED, id="another MCP server"),
    pytest.param(TEXT, refused(401), id="a server that wants a token"),
]
ELSEWHERE = [
    pytest.param(URL, id="the usual port"),
    pytest.param("http://b:9/mcp", id="another port"),
    pytest.param("http://b/mcp", id="no port"),
]


@pytest.mark.parametrize("url", ELSEWHERE)
@pytest.mark.parametrize(("health", "handshake"), STRANGERS)
def test_no_remedy_is_the_command_just_run(health: HttpFacts, handshake: HandshakeFacts, url: str) -> None:
    remedy = rules.identity(IdentityFacts(url, health, handshake, False)).remedy
    assert not f"{remedy} ".endswith(f"mcpboard doctor {url} ")


def test_what_a_stranger_says_cannot_steer_a_terminal() -> None:
    evil = HandshakeFacts("2026-07-28", {"name": "\x1b[2J", "version": "\n1"})
    assert rules.identity(IdentityFacts(URL, TEXT, evil, False)).message.isprintable()


SIZES = [
    pytest.param(jpeg(498, 1080), (498, 1080), id="JPEG"),
    pytest.param(b"\xff\xd8\xff\xff\xff\xc2" + struct.pack(">HBHH", 17, 8, 7, 9), (9, 7), id="JPEG with fill bytes"),
    pytest.param(b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + struct.pack(">II", 3, 4), (3, 4), id="PNG"),
    pytest.param(b"GIF89a" + struct.pack("<HH", 5, 6), (5, 6), id="GIF"),
    pytest.param(b"\x89PNG\r\n\x1a\n", None, id="PNG cut off"),
    pytest.param(b"\xff\xd8\xff", None, id="JPEG cut off"),
    pytest.param(b"\xff\xd8\xff\xe0\0\0\xff\xe0\0\0", None, id="JPEG with lengths of none"),
    pytest.param(b"\xff\xd8\0\0", None, id="no JPEG after all"),
    pytest.param(b"RIFF", None, id="another format"),
    pytest.param(b"", None, id="nothing"),
]


@pytest.mark.parametrize(("image", "size"), SIZES)
def test_the_size_of_an_image(image: bytes, size: tuple[int, int] | None) -> None:
    assert rules.image_size(image) == size


LOGIN_PAGES = [
    pytest.param(b"<pre><code>device-host-agent mcp-token</code></pre>", True, id="the login page"),
    pytest.param(b"<code>/opt/py -m mcpboard host mcp-token --data /x</code>", True, id="an agent of a module"),
    pytest.param(NO_JINJA2.encode(), True, id="a host without its console"),
    pytest.param(b"<html>Log in to the host agent of a device</html>", False, id="another page"),
]


@pytest.mark.parametrize(("page", "is_ours"), LOGIN_PAGES)
def test_a_host_agent_is_known_by_its_login_page(page: bytes, is_ours: bool) -> None:
    assert (probes.CONSOLE.search(page) is not None) == is_ours
