"""What the answers of a server mean: each judge turns what a Visit found into a Verdict, and looks at nothing else."""

from __future__ import annotations

import errno
from urllib.parse import urlsplit

from mcpboard.doctor import CheckResult, failed, ok, skipped
from mcpboard.errors import NotMcp, PeerUnreachable
from mcpboard.laptop.doctor import routing
from mcpboard.laptop.doctor.image_header import size_of
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
from mcpboard.net import in_url
from mcpboard.text import one_line

EXAMPLE = "http://192.168.42.1:8080/mcp"
USUAL_PORT = 8080  # of mcpboard on a board
BESIDE_PORT = 8090  # where mcpboard stands when a stock board's Agent owns 8080
WEB_PORT = 80  # of Config Web, and of a URL that names none
HOST_AGENT = "mcpboard-host"  # how `device-host-agent` names itself in a handshake

ON_BOARD = "mcpboard doctor --board (on the board)"
HOST_DOCTOR = "device-host-agent doctor (on that computer)"
WHERE = "check address and port of the board"

# Limits of common clients (contracts: clients, rule 15).
OTHER_CLIENT = "lower the resolution of the board's video source, or use a client without that limit"
RESULT_BYTES = 1_000_000  # of base64 in one result
LONG_SIDE_PX = 2000

CLOCK_S = 300.0  # seconds apart; within that, certificates and logs still make sense
SLOW_S = 1.0  # seconds for a question that needs no phone; by cable it takes some milliseconds
CLIENTS = "clients need 2025-11-25 or newer (Python SDK: 1.23); mcpboard bridge serves older ones"


# --- the way there ---------------------------------------------------------------------------


def address(found: AddressFacts) -> CheckResult:
    """Whether the URL has the form that clients take."""
    if found.error:
        return failed(found.error, f"mcpboard doctor {_corrected(found.url)}")
    parts = urlsplit(found.url)
    if parts.scheme == "https":
        return ok(f"{found.url} (boards speak http; https needs something in front of them)")
    return ok(found.url)


def _corrected(url: str) -> str:
    """The URL that was probably meant: a bare host with the rest filled in, else the usual one."""
    host = url.partition("/")[0]
    fits = host and host.isascii() and all(c.isalnum() or c in ".:-[]" for c in host)
    if not fits or "://" in url:
        return EXAMPLE
    _, colon, port = host.rpartition(":")
    return f"http://{host}/mcp" if colon and port.isdigit() else f"http://{host}:{USUAL_PORT}/mcp"


def tcp(knock: TcpFacts) -> CheckResult:
    """Whether anything takes connections there."""
    if knock.seconds is not None:
        return ok(f"{knock.host} port {knock.port} answers in {knock.seconds * 1000:.0f} ms")
    if isinstance(knock.error, ConnectionRefusedError):
        return failed(f"{knock.host} is there, but nothing listens on port {knock.port}", ON_BOARD)
    if isinstance(knock.error, TimeoutError):
        return failed(f"{knock.host} does not answer", routing.hint(knock.host, knock.system))
    number = knock.error.errno if isinstance(knock.error, OSError) else None
    if knock.system == "darwin" and number in (errno.EHOSTUNREACH, errno.EPERM):
        return failed(
            f"macOS keeps this program off the local network, or {knock.host} is not there",
            f"sudo mcpboard relay http://{knock.host}:{knock.port}/mcp (and give clients http://127.0.0.1:8080/mcp)",
        )
    return failed(f"no connection: {one_line(str(knock.error))}", routing.hint(knock.host, knock.system))


def http(page: HttpFacts) -> CheckResult:
    """Whether what listens there speaks HTTP."""
    if page.error is None:
        return ok(f"answers, HTTP {page.status}")
    if isinstance(page.error, NotMcp):
        return failed("what listens there does not speak HTTP", WHERE)
    if isinstance(page.error, PeerUnreachable):  # TCP went well, so it was TLS that did not
        return failed("takes connections, but does not speak https; boards speak http", "write http:// in the URL")
    return failed(f"takes connections, but does not answer: {page.error}", ON_BOARD)


# --- who is there ------------------------------------------------------------------------------


def identity(found: IdentityFacts) -> CheckResult:
    """Whether it is mcpboard, by what its health page and its handshake say."""
    health, handshake = found.health.object, found.handshake
    if health.get("name") == "mcpboard" and isinstance(health.get("version"), str):
        era = f", speaks {handshake.version}" if handshake.version else ""
        return ok(f"mcpboard {one_line(health['version'])}{era}; {CLIENTS}")
    if found.agent:
        beside = _with_port(found.url, BESIDE_PORT)
        return failed(
            "the Agent of a stock board answers here; mcpboard then stands beside it", f"mcpboard doctor {beside}"
        )
    if handshake.error is None:
        return _other_server(handshake)
    if found.health.kind == "text/html":
        return failed(
            f"a web page answers here, not MCP (on a board, Config Web is on port {WEB_PORT})", _elsewhere(found.url)
        )
    cure = _token_cure(found) if handshake.error.status == 401 else _elsewhere(found.url)
    return failed(f"no board's mcpboard answers here: {handshake.error}", cure)


def _other_server(found: HandshakeFacts) -> CheckResult:
    name, version = (one_line(str(found.server.get(key, "?"))) for key in ("name", "version"))
    if name == HOST_AGENT:
        return failed(f"the host agent of a computer answers here, not a board: {name} {version}", HOST_DOCTOR)
    return failed(f"another MCP server answers here: {name} {version}", WHERE)


def _token_cure(found: IdentityFacts) -> str:
    """A host agent's port is all behind its token, so only with that does it say who it is."""
    if found.handshake.token_given:
        return "give --token-file the token of that server; a host agent's is printed by: device-host-agent mcp-token"
    return f"mcpboard doctor {found.url} --token-file FILE"


def _elsewhere(url: str) -> str:
    """Where else to look for mcpboard; never the command that has just been run."""
    port = urlsplit(url).port or WEB_PORT
    if port == USUAL_PORT:
        return (
            f"look on the board who has port {USUAL_PORT}: mcpboard doctor --board;"
            f" beside a stock Agent mcpboard is at port {BESIDE_PORT}"
        )
    return f"mcpboard doctor {_with_port(url, USUAL_PORT)}" if port == WEB_PORT else WHERE


def _with_port(url: str, port: int) -> str:
    parts = urlsplit(url)
    host = parts.hostname or ""
    literal = in_url(host)
    return f"http://{literal}:{port}/mcp"


def switch(found: IdentityFacts) -> CheckResult:
    """Whether MCP is switched on."""
    if found.health.object.get("mcp_enabled") is False:
        return failed(
            "MCP is switched off on the board",
            "set mcp_enabled = true under [conversation_settings.agent] in the board's agent.toml,"
            " or switch it on in Config Web > Advanced",
        )
    return ok("mcp_enabled is true")


def handshake(found: HandshakeFacts) -> CheckResult:
    """Whether the server lets us in and agrees on a version."""
    if found.error is None:
        return ok(f"{_admission(found)}; settled on {found.version}; {len(found.tools)} tools")
    if found.error.status == 401 and not found.token_given:
        return failed("the board wants a token", "mcpboard doctor URL --token-file FILE")
    if found.error.status == 401:
        return failed("the board wants another token", "put the token of the board's token_file into yours")
    if found.error.status in (404, 405):
        return failed(f"no handshake: {found.error}", "give the URL with the path /mcp and nothing after it")
    return failed(f"no handshake: {found.error}", ON_BOARD)


def _admission(found: HandshakeFacts) -> str:
    if not found.token_given:
        return "no token is wanted"
    if found.is_open:
        return "no token is wanted, so yours was not looked at (set token_file on the board to lock it)"
    return "the token is accepted"


def origins(found: OriginFacts) -> CheckResult:
    """Whether pages of other sites are kept out, and the board's own let in."""
    if found.foreign is None or found.same is None:
        return failed("the question of a browser was not answered", ON_BOARD)
    if found.foreign != 403:
        return failed(
            "a page of another site is let in: something in between takes the Origin header away",
            "connect without what is in between, or give the board a token_file",
        )
    if not found.by_address:
        return ok("pages of other sites are kept out; browsers have to use the board's IP address, programs need not")
    if found.same == 403:
        return failed(
            "a page of this very address is kept out: something in between rewrites the Host header",
            "use the board's own address, or mcpboard relay, which keeps the two headers together",
        )
    return ok("pages of other sites are kept out, those of this address let in")


# --- behind it -------------------------------------------------------------------------------


def backend(found: CallFacts) -> CheckResult:
    """Whether the program on the board behind `found.tool` works."""
    trouble = _trouble(found)
    if trouble is not None:
        return trouble
    return ok(f"{found.tool} answers in {found.seconds * 1000:.0f} ms")


def phone_bridge(found: CallFacts) -> CheckResult:
    """Whether the companion app on the phone is linked."""
    trouble = _trouble(found)
    if trouble is not None:
        return trouble
    status = found.result.structured if found.result else None
    if not isinstance(status, dict) or status.get("connected") is not True:
        return failed(
            "the companion app on the phone is not linked: open_url and bridge_clipboard will not work",
            "open the companion app on the phone",
        )
    platform = status.get("platform")
    return ok(f"linked ({one_line(platform)})" if isinstance(platform, str) else "linked")


def picture(found: CallFacts) -> CheckResult:
    """Whether a picture arrives, and whether common clients take it."""
    trouble = _trouble(found)
    if trouble is not None:
        return trouble
    if found.result is None or not found.result.images:
        return failed("screenshot brought no picture", ON_BOARD)
    image = found.result.images[0]
    size, encoded = size_of(image.content), -(-len(image.content) // 3) * 4
    words = f"{one_line(image.mime)}, {_pixels(size)}{encoded // 1000} kB in base64, after {found.seconds:.1f} s"
    if encoded > RESULT_BYTES:
        return failed(f"{words}: some clients refuse results over {RESULT_BYTES // 1000} kB", OTHER_CLIENT)
    if size is not None and max(size) > LONG_SIDE_PX:
        return failed(f"{words}: some clients refuse pictures over {LONG_SIDE_PX} px", OTHER_CLIENT)
    return ok(words)


def _pixels(size: tuple[int, int] | None) -> str:
    return "" if size is None else f"{size[0]} x {size[1]} px, "


def clock(page: HttpFacts) -> CheckResult:
    """Whether the server's clock and ours agree."""
    if page.date is None:
        return skipped("the server does not tell its time")
    apart = page.received - page.date
    if abs(apart) <= CLOCK_S:
        return ok("the board's clock and this one agree")
    word = "behind" if apart > 0 else "ahead of"
    return failed(
        f"the board's clock is {abs(apart):.0f} s {word} this one: its logs and https will mislead",
        f"date -u -s @{page.received:.0f} (on the board, now, as root)",
    )


def round_trip(found: PingFacts) -> CheckResult:
    """Whether a question that needs no phone is answered quickly."""
    if found.error is not None:
        return failed(f"a question was not answered: {found.error}", ON_BOARD)
    words = f"{found.median * 1000:.0f} ms for a question and its answer"
    if found.median > SLOW_S:
        return failed(f"{words}: the network is slow", "use the USB cable, or bring board and access point together")
    return ok(words)


def _trouble(found: CallFacts) -> CheckResult | None:
    """The verdict on a call that came to no good result; None for one that did."""
    if found.error is not None:
        return failed(f"{found.tool}: {found.error}", ON_BOARD)
    if found.result is None:
        return skipped(f"this server has no tool {found.tool}")
    if found.result.is_error:
        return failed(f"{found.tool}: {one_line(found.result.text)}", ON_BOARD)
    return None
