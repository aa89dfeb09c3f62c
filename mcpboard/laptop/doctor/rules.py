"""Evaluate what a server answered: each rule turns the facts of one probe into a result, and looks at nothing else."""

from __future__ import annotations

import errno
import struct
from collections.abc import Mapping
from urllib.parse import urlsplit

from mcpboard.doctor import CheckResult, failed, ok, skipped
from mcpboard.errors import NotMcp, PeerUnreachable
from mcpboard.laptop.doctor import probes, routing
from mcpboard.net import host_port
from mcpboard.text import one_line

EXAMPLE = "http://192.168.42.1:8080/mcp"
USUAL_PORT = 8080  # of mcpboard on a board
BESIDE_PORT = 8090  # where mcpboard stands when a stock board's Agent owns 8080
WEB_PORT = 80  # of Config Web, and of a URL that names none
HOST_AGENT_PORT = 8765  # of a host agent, unless it was given another

ON_BOARD = "mcpboard doctor --board (on the board)"
ON_HOST = "device-host-agent doctor (on that computer)"
HOST_TOKEN = "device-host-agent mcp-token"
ON_SERVER = "mcpboard doctor --board (on a board), or device-host-agent doctor (on another computer)"
WHERE = "check address and port of the board"

# Limits that common clients put on the result of one call.
OTHER_CLIENT = "lower the resolution of the board's video source, or use a client without that limit"
RESULT_BYTES = 1_000_000  # of base64
LONG_SIDE_PX = 2000

CLOCK_S = 300.0  # seconds apart; within that, certificates and logs still make sense
SLOW_S = 1.0  # seconds for a question that needs no phone; by cable it takes some milliseconds
CLIENTS = "clients need 2025-11-25 or newer (Python SDK: 1.23); mcpboard bridge serves older ones"


# --- the way there ---------------------------------------------------------------------------


def address(facts: probes.AddressFacts) -> CheckResult:
    """Fail when the URL does not have the form that clients take; the remedy has the one that was probably meant."""
    if not facts.error:
        is_https = urlsplit(facts.url).scheme == "https"
        return ok(facts.url + (" (boards speak http; https needs something in front of them)" if is_https else ""))
    url, host = EXAMPLE, facts.url.partition("/")[0]
    # A bare host, of nothing that a shell would run; the rest is filled in.
    if host and "://" not in facts.url and host.isascii() and all(c.isalnum() or c in ".:-[]" for c in host):
        _, colon, port = host.rpartition(":")
        url = f"http://{host}/mcp" if colon and port.isdigit() else f"http://{host}:{USUAL_PORT}/mcp"
    return failed(facts.error, f"mcpboard doctor {url}")


def tcp(facts: probes.TcpFacts) -> CheckResult:
    """Fail when nothing takes connections there."""
    host, port, error = facts.host, facts.port, facts.error
    if facts.seconds is not None:
        return ok(f"{host} port {port} answers in {facts.seconds * 1000:.0f} ms")
    if isinstance(error, ConnectionRefusedError):
        remedy = ON_HOST if port == HOST_AGENT_PORT else ON_BOARD
        return failed(f"{host} is there, but nothing listens on port {port}", remedy)
    if isinstance(error, TimeoutError):
        return failed(f"{host} does not answer", routing.hint(host, facts.system))
    number = error.errno if isinstance(error, OSError) else None
    if facts.system == "darwin" and number in (errno.EHOSTUNREACH, errno.EPERM):
        relay = f"sudo mcpboard relay http://{host_port(host, port)}/mcp (and give clients http://127.0.0.1:8080/mcp)"
        return failed(f"macOS keeps this program off the local network, or {host} is not there", relay)
    return failed(f"no connection: {one_line(str(error))}", routing.hint(host, facts.system))


def http(facts: probes.HttpFacts) -> CheckResult:
    """Fail when what listens there does not speak HTTP."""
    if facts.error is None:
        return ok(f"answers, HTTP {facts.status}")
    if isinstance(facts.error, NotMcp):
        return failed("what listens there does not speak HTTP", WHERE)
    if isinstance(facts.error, PeerUnreachable):  # TCP went well, so it was TLS that did not
        return failed("takes connections, but does not speak https; boards speak http", "write http:// in the URL")
    return failed(f"takes connections, but does not answer: {facts.error}", ON_SERVER)


# --- who is there ------------------------------------------------------------------------------


def identity(facts: probes.IdentityFacts) -> CheckResult:
    """Fail when neither a board's mcpboard nor a host agent answers, by its pages and its handshake; say who does."""
    health, handshake, url = facts.health.object, facts.handshake, facts.url
    name, version = (one_line(str(handshake.server.get(key, "?"))) for key in ("name", "version"))
    speaks = f", speaks {handshake.version}" if handshake.version else ""
    if facts.is_board and isinstance(health.get("version"), str):
        return ok(f"mcpboard {one_line(health['version'])}{speaks}; {CLIENTS}")
    if facts.is_host_agent:
        return ok("the host agent of a computer" + (f": {name} {version}{speaks}" if handshake.server else ""))
    if facts.stock_agent:
        beside = f"mcpboard doctor {_with_port(url, BESIDE_PORT)}"
        return failed("the Agent of a stock board answers here; mcpboard then stands beside it", beside)
    if handshake.error is None:
        return failed(f"another MCP server answers here: {name} {version}", WHERE)
    if facts.health.media_type == "text/html":
        page = f"a web page answers here, not MCP (on a board, Config Web is on port {WEB_PORT})"
        return failed(page, _elsewhere(url))
    remedy = _elsewhere(url)
    if handshake.error.status == 401:
        another = f"give --token-file the token of that server; a host agent's is printed by: {HOST_TOKEN}"
        remedy = another if handshake.token_given else f"mcpboard doctor {url} --token-file FILE"
    return failed(f"no board's mcpboard answers here: {handshake.error}", remedy)


def _elsewhere(url: str) -> str:
    """Return where else to look for mcpboard; never the command that has just been run."""
    port = urlsplit(url).port or WEB_PORT
    if port == USUAL_PORT:
        beside = f"beside a stock Agent mcpboard is at port {BESIDE_PORT}"
        return f"look on the board who has port {USUAL_PORT}: mcpboard doctor --board; {beside}"
    return f"mcpboard doctor {_with_port(url, USUAL_PORT)}" if port == WEB_PORT else WHERE


def _with_port(url: str, port: int) -> str:
    return f"http://{host_port(urlsplit(url).hostname or '', port)}/mcp"


def enabled(facts: probes.IdentityFacts) -> CheckResult:
    """Fail when MCP is disabled on the board."""
    if facts.health.object.get("mcp_enabled") is not False:
        return ok("mcp_enabled is true")
    where = "under [conversation_settings.agent] in the board's agent.toml, or enable it in Config Web > Advanced"
    return failed("MCP is disabled on the board", f"set mcp_enabled = true {where}")


def handshake(facts: probes.IdentityFacts) -> CheckResult:
    """Fail when the server does not let us in, or there is no version that both speak."""
    found, error, is_host = facts.handshake, facts.handshake.error, facts.is_host_agent
    if error is None:
        token = "the token is accepted" if found.token_given else "no token is required"
        if found.is_open:
            token = "no token is required, so yours was not looked at (set token_file on the board to lock it)"
        return ok(f"{token}; settled on {found.version}; {len(found.tools)} tools")
    if error.status in (404, 405):
        return failed(f"no handshake: {error}", "give the URL with the path /mcp and nothing after it")
    if error.status != 401:
        return failed(f"no handshake: {error}", ON_HOST if is_host else ON_BOARD)
    server = "the host agent" if is_host else "the board"
    if found.token_given:
        host_token = f"put what it prints into your token file: {HOST_TOKEN} (on that computer)"
        board_token = "put the token of the board's token_file into yours"
        return failed(f"{server} requires another token", host_token if is_host else board_token)
    where = f" (with what {HOST_TOKEN} prints on that computer)" if is_host else ""
    return failed(f"{server} requires a token", f"mcpboard doctor {facts.url} --token-file FILE{where}")


def origins(facts: probes.OriginFacts) -> CheckResult:
    """Fail when pages of other sites are let in, or the server's own kept out."""
    if facts.foreign is None or facts.same is None:
        return failed("the question of a browser was not answered", ON_SERVER)
    if facts.foreign != 403:
        remedy = "connect without what is in between, or give the board a token_file"
        return failed("a page of another site is let in: something in between takes the Origin header away", remedy)
    if not facts.by_address:
        return ok("pages of other sites are kept out; browsers have to use the server's IP address, programs need not")
    if facts.same == 403:
        remedy = "use the server's own address, or mcpboard relay, which keeps the two headers together"
        return failed("a page of this very address is kept out: something in between rewrites the Host header", remedy)
    return ok("pages of other sites are kept out, those of this address let in")


# --- behind it -------------------------------------------------------------------------------


def backend(facts: probes.CallFacts) -> CheckResult:
    """Fail when the program on the board behind the tool does not work."""
    return _no_result(facts) or ok(f"{facts.tool} answers in {facts.seconds * 1000:.0f} ms")


def linked(facts: probes.CallFacts) -> CheckResult:
    """Fail when the companion app on the phone is not linked."""
    if bad := _no_result(facts):
        return bad
    status = facts.result.structured if facts.result else None
    if not isinstance(status, dict) or status.get("connected") is not True:
        unlinked = "the companion app on the phone is not linked: open_url and bridge_clipboard will not work"
        return failed(unlinked, "open the companion app on the phone")
    platform = status.get("platform")
    return ok(f"linked ({one_line(platform)})" if isinstance(platform, str) else "linked")


def screenshot(facts: probes.CallFacts) -> CheckResult:
    """Fail when no screenshot arrives, or one that common clients do not take."""
    if bad := _no_result(facts):
        return bad
    if facts.result is None or not facts.result.images:
        return failed("screenshot returned no image", ON_BOARD)
    image = facts.result.images[0]
    size, encoded = image_size(image.content), -(-len(image.content) // 3) * 4
    pixels = "" if size is None else f"{size[0]} x {size[1]} px, "
    message = f"{one_line(image.mime)}, {pixels}{encoded // 1000} kB in base64, after {facts.seconds:.1f} s"
    if encoded > RESULT_BYTES:
        return failed(f"{message}: some clients refuse results over {RESULT_BYTES // 1000} kB", OTHER_CLIENT)
    if size is not None and max(size) > LONG_SIDE_PX:
        return failed(f"{message}: some clients refuse screenshots over {LONG_SIDE_PX} px", OTHER_CLIENT)
    return ok(message)


def devices(facts: probes.CallFacts) -> CheckResult:
    """Fail when a host agent has no device, or one that is not ready; name them."""
    if bad := _no_result(facts, ON_HOST):
        return bad
    structured = facts.result.structured if facts.result else None
    listed = structured.get("devices") if isinstance(structured, Mapping) else None
    if not isinstance(listed, list) or not all(isinstance(each, Mapping) for each in listed):
        return failed("list_devices returned no list of devices", ON_HOST)
    if not listed:
        return failed("none", "device-host-agent devices add ID --kind board (on that computer)")
    states = ", ".join(one_line(f"{each.get('id')} {each.get('state')}") for each in listed)
    return ok(states) if all(each.get("state") == "ready" for each in listed) else failed(states, ON_HOST)


def clock(facts: probes.HttpFacts) -> CheckResult:
    """Fail when the server's clock and ours are far apart."""
    if facts.date is None:
        return skipped("the server does not tell its time")
    apart = facts.received - facts.date
    if abs(apart) <= CLOCK_S:
        return ok("the server's clock and this one agree")
    message = f"the server's clock is {abs(apart):.0f} s {'behind' if apart > 0 else 'ahead of'} this one"
    return failed(f"{message}: its logs and https will mislead", f"date -u -s @{facts.received:.0f} (there, as root)")


def round_trip(facts: probes.PingFacts) -> CheckResult:
    """Fail when a question that needs no phone is not answered quickly."""
    if facts.error is not None:
        return failed(f"a question was not answered: {facts.error}", ON_SERVER)
    message = f"{facts.median * 1000:.0f} ms for a question and its answer"
    if facts.median > SLOW_S:
        return failed(f"{message}: the network is slow", "use the USB cable, or bring board and access point together")
    return ok(message)


def _no_result(facts: probes.CallFacts, remedy: str = ON_BOARD) -> CheckResult | None:
    """Return the result of a check whose call came to no good result; None for a call that did."""
    if facts.error is not None:
        return failed(f"{facts.tool}: {facts.error}", remedy)
    if facts.result is None:
        return skipped(f"this server has no tool {facts.tool}")
    if facts.result.is_error:
        return failed(f"{facts.tool}: {one_line(facts.result.text)}", remedy)
    return None


# --- the size of an image ----------------------------------------------------------------------

# Start-of-frame markers of JPEG: all of C0 to CF but those for tables and arithmetic coding.
_FRAMES = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}
_BARE = frozenset(range(0xD0, 0xDA)) | {0x01}  # JPEG markers without a length


def image_size(image: bytes) -> tuple[int, int] | None:
    """Return width and height, in pixels, that the first bytes of a JPEG, PNG or GIF say; no image is decoded.

    None for anything else, and for one that is cut off.
    """
    try:
        if image.startswith(b"\x89PNG\r\n\x1a\n"):
            return struct.unpack_from(">II", image, 16)
        if image.startswith((b"GIF87a", b"GIF89a")):
            return struct.unpack_from("<HH", image, 6)
        return _jpeg_size(image) if image.startswith(b"\xff\xd8") else None
    except (struct.error, IndexError):
        return None


def _jpeg_size(image: bytes) -> tuple[int, int] | None:
    at = 2
    while image[at] == 0xFF:
        marker = image[at + 1]
        if marker in _FRAMES:
            height, width = struct.unpack_from(">HH", image, at + 5)
            return width, height
        if marker == 0xFF:  # a fill byte
            at += 1
        else:
            at += 2 if marker in _BARE else 2 + max(2, struct.unpack_from(">H", image, at + 2)[0])
    return None
