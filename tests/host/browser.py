"""A browser without a screen: it keeps cookies, sends forms as pages have them, and follows nothing by itself."""

from __future__ import annotations

import re
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from html import unescape
from urllib.parse import urlencode

from mcpboard.host.console.routes import FORM, URL_MAP, url_for
from tests.support.http import LIMIT_S, Caller, Response


def path_of(endpoint: str) -> str:
    """An address of that endpoint, of device X."""
    values = {"device_id": "X", "mark": "0", "file": "console.css"}
    rule = next(URL_MAP.iter_rules(endpoint))
    return url_for(endpoint, **{name: value for name, value in values.items() if name in rule.arguments})


class Page(Response):
    """A response, read as a page."""

    @property
    def html(self) -> str:
        return self.body.decode()

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
        return self.send(path, b"", method, **headers)

    def post(self, path: str, form: Mapping[str, str], **headers: str) -> Page:
        return self.send(path, urlencode(form).encode(), **{"Content-Type": FORM, **headers})

    def send(self, path: str, body: bytes, method: str = "POST", **headers: str) -> Page:
        """Any bytes; the names of headers may be written with an underscore for each hyphen."""
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        if self.cookies:
            sent.setdefault("Cookie", "; ".join(f"{name}={value}" for name, value in self.cookies.items()))
        page = Caller(self.base).send(method, body, path, **sent)
        if "set-cookie" in page.headers:
            name, _, value = page.headers["set-cookie"].partition(";")[0].partition("=")
            self.cookies.pop(name, None)
            self.cookies |= {name: value} if value else {}
        return Page(page.status, page.headers, page.body)

    def submit(self, page: str, path: str, **fields: str) -> Page:
        """Open `page` and send its form to `path`."""
        return self.post(path, {"csrf": self.get(page).csrf, **fields})

    def log_in(self, token: str) -> Browser:
        assert self.submit("/login", "/login", token=token).goes_to == "/"
        return self


def settled() -> None:
    """Return once every renewal that is under way has ended."""
    for thread in threading.enumerate():
        if thread.name.startswith("console "):
            thread.join(LIMIT_S)
            assert not thread.is_alive()
