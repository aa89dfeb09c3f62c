"""A browser without a screen: it keeps cookies, sends forms as pages have them, and follows nothing by itself."""

from __future__ import annotations

import contextlib
import http.client
import re
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from html import unescape
from pathlib import Path
from urllib.parse import urlencode, urlsplit

from mcpboard import host
from mcpboard.host import config as host_config
from mcpboard.host.access.tokens import read_main_token
from mcpboard.host.console.routes import URL_MAP, url_for
from mcpboard.host.drivers.base import Driver
from mcpboard.serving import server
from tests.support.clock import Clock
from tests.support.http import LIMIT_S, Caller

FORM = "application/x-www-form-urlencoded"


def path_of(endpoint: str) -> str:
    """An address of that endpoint, of device X."""
    values = {"device_id": "X", "mark": "0", "file": "console.css"}
    rule = next(URL_MAP.iter_rules(endpoint))
    return url_for(endpoint, **{name: value for name, value in values.items() if name in rule.arguments})


@dataclass(frozen=True)
class Page:
    """What came back."""

    status: int
    headers: Mapping[str, str]
    content: bytes

    @property
    def html(self) -> str:
        return self.content.decode()

    @property
    def text(self) -> str:
        """What a person reads, in one line."""
        without = re.sub(r"<(?:script|style).*?</(?:script|style)>|<[^>]+>", " ", self.html, flags=re.DOTALL)
        return re.sub(r" (?=[.,;?])", "", re.sub(r"\s+", " ", unescape(without)).strip())

    @property
    def csrf(self) -> str:
        found = re.search(r'name="csrf" value="([0-9a-f]+)"', self.html)
        assert found, self.text
        return found[1]

    @property
    def goes_to(self) -> str:
        assert self.status == 303, (self.status, self.text)
        return self.headers["location"]

    def poll(self, of: str) -> str:
        """The address that the page polls for that part."""
        found = re.search(rf'hx-get="(/live/{of}/[^"]+)"', self.html)
        assert found, self.html
        return found[1]


@dataclass
class Browser:
    """One visitor of the console at `base`."""

    base: str  # without a slash at the end
    cookies: dict[str, str] = field(default_factory=dict, repr=False)

    def get(self, path: str, method: str = "GET", **headers: str) -> Page:
        return self._send(method, path, None, headers)

    def post(self, path: str, form: Mapping[str, str], **headers: str) -> Page:
        return self._send("POST", path, urlencode(form).encode(), {"Content-Type": FORM, **headers})

    def send(self, path: str, body: bytes, method: str = "POST", **headers: str) -> Page:
        """Any bytes."""
        return self._send(method, path, body, headers)

    def submit(self, page: str, path: str, **fields: str) -> Page:
        """Open `page` and send its form to `path`."""
        return self.post(path, {"csrf": self.get(page).csrf, **fields})

    def log_in(self, token: str) -> Browser:
        assert self.submit("/login", "/login", token=token).goes_to == "/"
        return self

    def _send(self, method: str, path: str, body: bytes | None, headers: Mapping[str, str]) -> Page:
        parts = urlsplit(self.base)
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        if self.cookies:
            sent.setdefault("Cookie", "; ".join(f"{name}={value}" for name, value in self.cookies.items()))
        with contextlib.closing(http.client.HTTPConnection(str(parts.hostname), parts.port, timeout=30)) as connection:
            connection.request(method, path, body, sent)
            response = connection.getresponse()
            content = response.read()
        self._keep(response.headers.get_all("Set-Cookie") or [])
        return Page(response.status, {name.lower(): value for name, value in response.headers.items()}, content)

    def _keep(self, cookies: list[str]) -> None:
        for each in cookies:
            name, _, value = each.partition(";")[0].partition("=")
            self.cookies[name] = value
            if not value:
                del self.cookies[name]


@dataclass
class Agent:
    """A host agent in this process, served as `run` serves it."""

    role: host.HostRole
    url: str
    folder: Path
    clock: Clock  # not turned where real seconds pass

    @property
    def base(self) -> str:
        return self.url.removesuffix("/mcp")

    @property
    def token(self) -> str:
        return read_main_token(self.folder)

    @property
    def caller(self) -> Caller:
        return Caller(self.url, self.token)

    def browser(self) -> Browser:
        """Somebody who is logged in."""
        return Browser(self.base).log_in(self.token)


@contextmanager
def agent(folder: Path, *, port: int = 0, real_time: bool = False, **devices: Driver) -> Iterator[Agent]:
    """An agent with these devices and the threads of a host; its clock is turned by hand unless asked otherwise."""
    clock = Clock()
    settings = host_config.load({"data": str(folder)}, environ={})
    extra = {name: ("fake", driver) for name, driver in devices.items()}
    sockets = server.listeners([("127.0.0.1", port)])
    made = host.build(settings, extra, time.monotonic if real_time else clock)
    with contextlib.closing(sockets[0]), contextlib.closing(made) as role:
        serving = server.Server(role.app, sockets, host.THREADS, host.CONNECTIONS)
        running = threading.Thread(target=serving.run, name="served")
        running.start()
        try:
            yield Agent(role, server.url(sockets[0]), folder, clock)
        finally:
            serving.stop()
            running.join(LIMIT_S)
            assert not running.is_alive(), "the server did not end"


def settled() -> None:
    """Return once every renewal that is under way has ended."""
    for thread in threading.enumerate():
        if thread.name.startswith("console "):
            thread.join(LIMIT_S)
            assert not thread.is_alive()
