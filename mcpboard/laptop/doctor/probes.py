"""Look at one server: each probe asks one question, once and within its own limit. `rules` says what it means."""

from __future__ import annotations

import re
import statistics
import time
from collections.abc import Mapping
from contextlib import closing, suppress
from dataclasses import dataclass, field, replace
from email.utils import parsedate_to_datetime
from functools import cached_property
from typing import Any
from urllib.parse import urlsplit

from mcpboard.client import CallResult, Client
from mcpboard.errors import ClientError, ConfigError
from mcpboard.laptop.doctor import proxies, routing
from mcpboard.net import parse_authority
from mcpboard.protocol.client_session import HttpRequest
from mcpboard.protocol.tools import compact
from mcpboard.protocol.versions import MODERN
from mcpboard.text import json_object
from mcpboard.transport.deadline import Deadline, connect, resolve
from mcpboard.transport.http import HttpClient

CONNECT_S = 5.0  # seconds for one TCP connection; a board at the end of a cable answers in milliseconds
REQUEST_S = 10.0  # seconds for one question; a board gives its slowest backend as many for a status
SCREENSHOT_S = 45.0  # seconds; a board gives a screenshot 40
PAGE_LIMIT = 64 << 10  # bytes of a stranger's page that are read
PINGS = 5
FOREIGN_ORIGIN = "http://elsewhere.example"  # which no server of ours may let in

HOST_AGENT = "mcpboard-host"  # how `device-host-agent` names itself in a handshake
# What its login page says, with and without the libraries that the console needs.
CONSOLE = re.compile(rb" mcp-token\b|mcpboard\[host\]")


@dataclass(frozen=True)
class AddressFacts:
    """The URL as it was given, and why it cannot be used; "" when it can."""

    url: str
    error: str = ""


@dataclass(frozen=True)
class TcpFacts:
    """Seconds that a TCP connection took, or the error that came instead."""

    host: str
    port: int
    system: str
    seconds: float | None = None
    error: Exception | None = None


@dataclass(frozen=True)
class HttpFacts:
    """The response to a GET; `error` instead of everything else when there was none."""

    status: int = 0
    media_type: str = ""
    body: bytes = field(default=b"", repr=False)
    date: float | None = None  # the server's clock, seconds since 1970
    received: float = 0.0  # ours at the same moment
    error: ClientError | None = None

    @property
    def object(self) -> Mapping[str, Any]:
        return json_object(self.body) or {}


@dataclass(frozen=True)
class HandshakeFacts:
    """The version that MCP at the URL settled on and who the server is, or the error."""

    version: str | None = None
    server: Mapping[str, Any] = field(default_factory=dict)
    tools: frozenset[str] = frozenset()
    error: ClientError | None = None
    token_given: bool = False
    is_open: bool = False  # a token was given, but without one it goes as well


@dataclass(frozen=True)
class IdentityFacts:
    """All that tells which server answers there."""

    url: str
    health: HttpFacts
    handshake: HandshakeFacts
    stock_agent: bool = False  # a stock board's Agent
    console: bool = False  # its login page is that of a host agent, which needs no token

    @property
    def is_board(self) -> bool:
        return self.health.object.get("name") == "mcpboard"

    @property
    def is_host_agent(self) -> bool:
        return self.console or self.handshake.server.get("name") == HOST_AGENT


@dataclass(frozen=True)
class OriginFacts:
    """HTTP status of the same request as browsers would send it; None where there was no response."""

    by_address: bool  # the URL names an IP address or localhost, as a browser's page has to
    same: int | None
    foreign: int | None


@dataclass(frozen=True)
class CallFacts:
    """A read-only tool, called once: its result, the error instead, or neither when it is not on offer."""

    tool: str
    result: CallResult | None = None
    error: ClientError | None = None
    seconds: float = 0.0


@dataclass(frozen=True)
class PingFacts:
    """Seconds of some pings in a row, the median; the error that ended them."""

    median: float = 0.0
    error: ClientError | None = None


class ServerProbes:
    """The probes, lazily; they raise nothing, for what goes wrong is what was asked for."""

    def __init__(self, url: str, token: str | None, variables: Mapping[str, str], system: str) -> None:
        self.url = url
        self.system = system
        self._token = token
        self._variables = variables
        self._calls: dict[str, CallFacts] = {}

    @cached_property
    def address(self) -> AddressFacts:
        try:
            HttpClient(self.url, self._token)
        except ConfigError as error:
            return AddressFacts(self.url, str(error))
        return AddressFacts(self.url)

    @cached_property
    def http(self) -> HttpClient:
        """The HTTP client; to be used only when `address` is without error."""
        return HttpClient(self.url, self._token)

    @cached_property
    def proxy(self) -> proxies.ProxyFacts:
        scheme = urlsplit(self.http.url).scheme
        return proxies.probe(self._variables, scheme, self.http.address[0], self.system)

    @cached_property
    def route(self) -> routing.NetworkRoute:
        """A gateway may answer for an address that is not its own, so only a board's mcpboard counts as an answer."""
        route = routing.probe(*self.http.address, self.system)
        if route.is_astray:
            return replace(route, answers=self.tcp.error is None and self.health.object.get("name") == "mcpboard")
        return route

    @cached_property
    def tcp(self) -> TcpFacts:
        host, port = self.http.address
        started = time.monotonic()
        try:
            with closing(connect(resolve(host, port), port, Deadline(2 * CONNECT_S), CONNECT_S)):
                return TcpFacts(host, port, self.system, time.monotonic() - started)
        except (OSError, UnicodeError) as error:
            return TcpFacts(host, port, self.system, error=error)

    @cached_property
    def health(self) -> HttpFacts:
        return self._page("/health")

    @cached_property
    def handshake(self) -> HandshakeFacts:
        given = self._token is not None
        try:
            tools = frozenset(str(tool["name"]) for tool in self._client.list_tools())
        except ClientError as error:
            return HandshakeFacts(self._client.version, error=error, token_given=given)
        is_open = False
        if given:
            # An error is as it should be: nothing is answered without the token.
            with suppress(ClientError), Client(self.url, timeout=REQUEST_S) as client:
                client.list_tools()
                is_open = True
        return HandshakeFacts(self._client.version, self._client.server, tools, token_given=given, is_open=is_open)

    @cached_property
    def identity(self) -> IdentityFacts:
        facts = IdentityFacts(self.http.url, self.health, self.handshake)
        if facts.is_board or facts.is_host_agent:
            return facts
        tools = self._page("/api/tools")
        if tools.status == 200 and isinstance(tools.object.get("tools"), list):
            return replace(facts, stock_agent=True)
        refused = facts.handshake.error is not None
        return replace(facts, console=refused and CONSOLE.search(self._page("/login").body) is not None)

    @cached_property
    def origins(self) -> OriginFacts:
        by_address = parse_authority(urlsplit(self.http.url).netloc) is not None
        return OriginFacts(by_address, self._status_for(self.http.origin), self._status_for(FOREIGN_ORIGIN))

    def call(self, tool: str) -> CallFacts:
        """Call a tool that changes nothing, unless that was done."""
        if tool not in self.handshake.tools:
            return CallFacts(tool)
        if tool not in self._calls:
            started = time.monotonic()
            try:
                result = self._client.call(tool, timeout=SCREENSHOT_S if tool == "screenshot" else REQUEST_S)
                self._calls[tool] = CallFacts(tool, result, seconds=time.monotonic() - started)
            except ClientError as error:
                self._calls[tool] = CallFacts(tool, error=error)
        return self._calls[tool]

    @cached_property
    def pings(self) -> PingFacts:
        """Each ping is a connection of its own, as for any client that keeps none."""
        seconds = []
        try:
            for _ in range(PINGS):
                started = time.monotonic()
                self._client.ping()
                seconds.append(time.monotonic() - started)
        except ClientError as error:
            return PingFacts(error=error)
        return PingFacts(statistics.median(seconds))

    def close(self) -> None:
        """End the session that a server may keep for us."""
        if "_client" in self.__dict__:
            self._client.close()

    @cached_property
    def _client(self) -> Client:
        return Client(self.url, self._token, timeout=REQUEST_S)

    def _page(self, path: str) -> HttpFacts:
        try:
            with self.http.exchange(HttpRequest({}, b"", "GET"), Deadline(REQUEST_S), path=path) as response:
                body = b""
                for piece in response.plain_pieces():
                    body += piece
                    if len(body) > PAGE_LIMIT:  # its beginning tells enough
                        break
                received = time.time()
        except ClientError as error:
            return HttpFacts(error=error)
        date = None
        with suppress(TypeError, ValueError, IndexError, OverflowError):
            date = parsedate_to_datetime(response.headers.get("date", "")).timestamp()
        media_type = response.headers.get("content-type", "").partition(";")[0].strip().lower()
        return HttpFacts(response.status, media_type, body, date, received)

    def _status_for(self, origin: str) -> int | None:
        """Return the status of `server/discover`, sent as a browser on a page of `origin` would."""
        body = compact({"jsonrpc": "2.0", "id": 1, "method": "server/discover"})
        headers = {"Content-Type": "application/json", "MCP-Protocol-Version": MODERN, "Origin": origin}
        try:
            with self.http.exchange(HttpRequest(headers, body), Deadline(REQUEST_S)) as response:
                return response.status
        except ClientError:
            return None
