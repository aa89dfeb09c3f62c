"""One look at one server: what the doctor asks of it, each question once, each within its own limit."""

from __future__ import annotations

import socket
import statistics
import time
from collections.abc import Mapping
from contextlib import closing
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
from mcpboard.transport.deadline import Deadline, connect
from mcpboard.transport.http import HttpClient

KNOCK_S = 5.0  # seconds for one TCP connection; a board at the end of a cable answers in milliseconds
LOOK_S = 10.0  # seconds for one question; a board gives its slowest backend as many for a status
PICTURE_S = 45.0  # seconds; a board gives a screenshot 40
PAGE_LIMIT = 64 << 10  # bytes of a stranger's page that are read
PINGS = 5
STRANGER = "http://elsewhere.example"  # an Origin that no board may let in


@dataclass(frozen=True)
class AddressFacts:
    """The URL as it was given, and why it cannot be used; "" when it can."""

    url: str
    error: str = ""


@dataclass(frozen=True)
class TcpFacts:
    """How a TCP connection went: seconds it took, or the error that came instead."""

    host: str
    port: int
    system: str
    seconds: float | None = None
    error: Exception | None = None


@dataclass(frozen=True)
class HttpFacts:
    """The answer to a GET; `error` instead of everything else when there was none."""

    status: int = 0
    kind: str = ""  # media type
    body: bytes = field(default=b"", repr=False)
    date: float | None = None  # the server's clock, seconds since 1970
    received: float = 0.0  # ours at the same moment
    error: ClientError | None = None

    @property
    def object(self) -> Mapping[str, Any]:
        return json_object(self.body) or {}


@dataclass(frozen=True)
class HandshakeFacts:
    """What MCP at the URL came to: the version settled on and who the server is, or the error."""

    version: str | None = None
    server: Mapping[str, Any] = field(default_factory=dict)
    tools: frozenset[str] = frozenset()
    error: ClientError | None = None
    token_given: bool = False
    is_open: bool = False  # a token was given, but without one it goes as well


@dataclass(frozen=True)
class IdentityFacts:
    """All that tells who answers there."""

    url: str
    health: HttpFacts
    handshake: HandshakeFacts
    agent: bool  # a stock board's Agent


@dataclass(frozen=True)
class OriginFacts:
    """HTTP status of the same question as browsers would send it; None where there was no answer."""

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
    """Seconds of some questions in a row, the middle one of them; the error that ended them."""

    median: float = 0.0
    error: ClientError | None = None


class ServerProbes:
    """The questions, lazily; raises nothing, for what goes wrong is what was asked for."""

    def __init__(self, url: str, token: str | None, variables: Mapping[str, str], system: str) -> None:
        self.url = url
        self.system = system
        self._token = token
        self._variables = variables

    @cached_property
    def address(self) -> AddressFacts:
        try:
            HttpClient(self.url, self._token)
        except ConfigError as error:
            return AddressFacts(self.url, str(error))
        return AddressFacts(self.url)

    @cached_property
    def link(self) -> HttpClient:
        """The way to the server; to be asked for only when `address` is without error."""
        return HttpClient(self.url, self._token)

    @cached_property
    def caught(self) -> proxies.ProxyFacts:
        scheme = urlsplit(self.link.url).scheme
        return proxies.caught(self._variables, scheme, self.link.address[0], self.system)

    @cached_property
    def route(self) -> routing.NetworkRoute:
        """A gateway may answer for an address that is not its own, so only mcpboard itself counts as an answer."""
        route = routing.look(*self.link.address, self.system)
        return replace(route, answers=self.knock.error is None and self._is_ours) if route.is_astray else route

    @property
    def _is_ours(self) -> bool:
        return self.health.object.get("name") == "mcpboard"

    @cached_property
    def knock(self) -> TcpFacts:
        host, port = self.link.address
        began = time.monotonic()
        try:
            found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
            with closing(connect([str(entry[4][0]) for entry in found], port, Deadline(2 * KNOCK_S), KNOCK_S)):
                return TcpFacts(host, port, self.system, time.monotonic() - began)
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
        is_open = given and self._is_open()
        return HandshakeFacts(self._client.version, self._client.server, tools, token_given=given, is_open=is_open)

    @cached_property
    def identity(self) -> IdentityFacts:
        catalogue = HttpFacts() if self._is_ours else self._page("/api/tools")
        agent = catalogue.status == 200 and isinstance(catalogue.object.get("tools"), list)
        return IdentityFacts(self.link.url, self.health, self.handshake, agent)

    @cached_property
    def origins(self) -> OriginFacts:
        by_address = parse_authority(urlsplit(self.link.url).netloc) is not None
        return OriginFacts(by_address, self._asked_from(self.link.origin), self._asked_from(STRANGER))

    @cached_property
    def phone_bridge(self) -> CallFacts:
        return self._call("phone_bridge_status", LOOK_S)

    @cached_property
    def device(self) -> CallFacts:
        return self._call("device_status", LOOK_S)

    @cached_property
    def screenshot(self) -> CallFacts:
        return self._call("screenshot", PICTURE_S)

    @cached_property
    def pings(self) -> PingFacts:
        """Each ping is a connection of its own, as for any client that keeps none."""
        try:
            return PingFacts(statistics.median(self._ping() for _ in range(PINGS)))
        except ClientError as error:
            return PingFacts(error=error)

    def close(self) -> None:
        """End the session that a server may keep for us."""
        if "_client" in self.__dict__:
            self._client.close()

    @cached_property
    def _client(self) -> Client:
        return Client(self.url, self._token, timeout=LOOK_S)

    def _is_open(self) -> bool:
        """Whether the same is answered without the token."""
        try:
            with Client(self.url, timeout=LOOK_S) as client:
                client.list_tools()
        except ClientError:
            return False
        return True

    def _call(self, tool: str, seconds: float) -> CallFacts:
        if tool not in self.handshake.tools:
            return CallFacts(tool)
        began = time.monotonic()
        try:
            return CallFacts(tool, self._client.call(tool, timeout=seconds), seconds=time.monotonic() - began)
        except ClientError as error:
            return CallFacts(tool, error=error)

    def _ping(self) -> float:
        began = time.monotonic()
        self._client.ping()
        return time.monotonic() - began

    def _page(self, path: str) -> HttpFacts:
        try:
            with self.link.exchange(HttpRequest({}, b"", "GET"), Deadline(LOOK_S), path=path) as arriving:
                body = b""
                for piece in arriving.plain_pieces():
                    body += piece
                    if len(body) > PAGE_LIMIT:
                        break
                kind = arriving.headers.get("content-type", "").partition(";")[0].strip().lower()
                return HttpFacts(arriving.status, kind, body, _date(arriving.headers.get("date", "")), time.time())
        except ClientError as error:
            return HttpFacts(error=error)

    def _asked_from(self, origin: str) -> int | None:
        """The status of `server/discover`, asked as a browser on a page of `origin` would."""
        body = compact({"jsonrpc": "2.0", "id": 1, "method": "server/discover"})
        headers = {"Content-Type": "application/json", "MCP-Protocol-Version": MODERN, "Origin": origin}
        try:
            with self.link.exchange(HttpRequest(headers, body), Deadline(LOOK_S)) as arriving:
                return arriving.status
        except ClientError:
            return None


def _date(text: str) -> float | None:
    try:
        return parsedate_to_datetime(text).timestamp()
    except (TypeError, ValueError, IndexError, OverflowError):
        return None
