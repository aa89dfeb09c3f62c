"""A WebDriverAgent with a phone in memory: the routes that its clients use, each action counted once."""

from __future__ import annotations

import base64
import itertools
import json
import re
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import urlsplit

from requests import PreparedRequest
from responses import RequestsMock

from tests.host.drivers import lab

WIDTH, HEIGHT, SCALE = 39, 84, 3  # points, and pixels in each
LIMIT_S = 10.0
JSON = "application/json;charset=UTF-8"
SETTINGS = "com.apple.Preferences"


class WdaFault(Exception):
    """A W3C error: its code, its HTTP status, and a message."""

    def __init__(self, name: str, status: int, message: str = "") -> None:
        super().__init__(message)
        self.name, self.status, self.message = name, status, message


INVALID = WdaFault("invalid session id", 404, "Session does not exist")
UNKNOWN_ROUTE = WdaFault("unknown command", 404, "Unhandled endpoint")
NO_ALERT = WdaFault("no such alert", 404, "An attempt was made to operate on a modal dialog when one was not open")
NO_KEYBOARD = WdaFault("invalid element state", 400, "The on-screen keyboard must be present to send keys")


class FakePhone:
    """The phone and its WebDriverAgent; `old` makes it one before 6.0.0."""

    def __init__(self, *, old: bool = False) -> None:
        self.old = old
        self.app = "com.apple.springboard"
        self.text = ""
        self.keyboard = False
        self.landscape = False
        self.alert: tuple[str, list[str]] | None = None
        self.session: str | None = None
        self.sessions = 0
        self.actions: list[tuple[Any, ...]] = []
        self.requests: list[str] = []
        self.faults: dict[str, Any] = {}  # end of a path -> what happens there instead
        self.let_go = threading.Event()
        self._ids = itertools.count(1)

    @property
    def size(self) -> tuple[int, int]:
        return (HEIGHT, WIDTH) if self.landscape else (WIDTH, HEIGHT)

    def end_session(self) -> None:
        """As when WebDriverAgent is restarted."""
        self.session = None

    def respond(self, method: str, path: str, body: Mapping[str, Any]) -> Any:
        self.requests.append(f"{method} {path}")
        for ending, fault in self.faults.items():
            if path.endswith(ending):
                return fault() if callable(fault) else _raise(fault)
        inner = path
        if path.startswith("/session/"):
            _, _, session, rest = path.split("/", 3)
            if session != self.session:
                raise INVALID
            inner = "/" + rest
        route = getattr(self, ROUTES.get(f"{method} {inner}", ""), None)
        if route is None or (inner == path and f"{method} {inner}" not in WITHOUT_SESSION):
            raise UNKNOWN_ROUTE
        return route(body)

    # --- routes ---

    def status(self, _: Any) -> Any:
        return {"ready": True, "device": "iphone", "os": {"name": "iOS", "version": "17.4"}}

    def open(self, _: Any) -> Any:
        self.session = f"S-{next(self._ids)}"
        self.sessions += 1
        return {"sessionId": self.session, "capabilities": {"device": "iphone"}}

    def screenshot(self, _: Any) -> Any:
        width, height = self.size
        return base64.encodebytes(lab.png(width * SCALE, height * SCALE)).decode("ascii")

    def window(self, _: Any) -> Any:
        return dict(zip(("width", "height"), self.size, strict=True))

    def screen(self, _: Any) -> Any:
        return {"statusBarSize": {"width": WIDTH, "height": 5}, "scale": SCALE}

    def tap(self, body: Any) -> None:
        if self.old:
            raise UNKNOWN_ROUTE
        self._touch("tap", body["x"], body["y"])

    def old_tap(self, body: Any) -> None:
        if not self.old:
            raise UNKNOWN_ROUTE
        self._touch("tap", body["x"], body["y"])

    def gesture(self, body: Any) -> None:
        (finger,) = body["actions"]
        assert (finger["type"], finger["parameters"]) == ("pointer", {"pointerType": "touch"})
        moves = [each["type"] for each in finger["actions"]]
        assert moves == ["pointerMove", "pointerDown", "pointerMove", "pointerUp"]
        start, _, end, _ = finger["actions"]
        self._touch("swipe", start["x"], start["y"], end["x"], end["y"], end["duration"] / 1000)

    def drag(self, body: Any) -> None:
        self._touch("swipe", *(body[name] for name in ("fromX", "fromY", "toX", "toY", "duration")))

    def keys(self, body: Any) -> None:
        if not self.keyboard:
            raise NO_KEYBOARD
        assert all(len(each) == 1 for each in body["value"])
        self._touch("keys", "".join(body["value"]))
        self.text += "".join(body["value"])

    def launch(self, body: Any) -> None:
        self._touch("launch", body["bundleId"])
        self.app = body["bundleId"]

    def active_app(self, _: Any) -> Any:
        return {"bundleId": self.app, "name": "", "pid": 7, "processArguments": {"env": {}, "args": []}}

    def locked(self, _: Any) -> Any:
        return False

    def source(self, _: Any) -> Any:
        """The elements of one screen: a field with what was typed, a button, one that is hidden, one out of sight."""
        field = _element("TextField", (2, 10, 35, 8), label="Name", value=self.text, rawIdentifier="name")
        button = _element("Button", (4, 20, 10, 6), label="OK")
        hidden = _element(
            "Other", (0, 0, 39, 84), isVisible="0", children=[_element("StaticText", (1, 30, 9, 4), label="Seen")]
        )
        away = _element("Cell", (0, 90, 39, 10), label="Below")
        return _element("Application", (0, 0, *self.size), label=self.app, children=[field, button, hidden, away])

    def alert_text(self, _: Any) -> Any:
        if self.alert is None:
            raise NO_ALERT
        return self.alert[0]

    def alert_buttons(self, _: Any) -> Any:
        if self.alert is None:
            raise NO_ALERT
        return self.alert[1]

    def _touch(self, *action: Any) -> None:
        if self.alert is not None:
            raise WdaFault("unexpected alert open", 400, "A modal dialog was open")
        self.actions.append(action)


def _raise(fault: Exception) -> Any:
    raise fault


def _element(kind: str, rect: tuple[int, ...], **members: Any) -> dict[str, Any]:
    named = dict(zip(("x", "y", "width", "height"), rect, strict=True))
    return {"type": kind, "rect": named, "isEnabled": "1", "isVisible": "1", "label": None, "value": None, **members}


ROUTES = {
    "GET /status": "status", "POST /session": "open", "GET /screenshot": "screenshot", "GET /source": "source",
    "GET /window/size": "window", "GET /wda/screen": "screen", "POST /wda/tap": "tap", "POST /wda/tap/0": "old_tap",
    "POST /actions": "gesture", "POST /wda/dragfromtoforduration": "drag", "POST /wda/keys": "keys",
    "POST /wda/apps/launch": "launch", "GET /wda/activeAppInfo": "active_app", "GET /wda/locked": "locked",
    "GET /alert/text": "alert_text", "GET /wda/alert/buttons": "alert_buttons",
}  # fmt: skip
WITHOUT_SESSION = {
    f"{method} {path}"
    for method, path in (
        ("GET", "/status"), ("POST", "/session"), ("GET", "/screenshot"), ("GET", "/source"), ("GET", "/wda/activeAppInfo"),
        ("GET", "/wda/locked"), ("GET", "/alert/text"),
    )
}  # fmt: skip


def answer(phone: FakePhone, method: str, url: str, body: bytes | None) -> tuple[int, bytes]:
    """The status and content with which that phone's WebDriverAgent answers."""
    try:
        path = urlsplit(url).path.rstrip("/")
        value, status = phone.respond(method, path, json.loads(body or b"{}")), 200
    except WdaFault as fault:
        value = {"error": fault.name, "message": fault.message, "traceback": ""}
        status = fault.status
    if isinstance(value, bytes):
        return status, value
    return status, json.dumps({"value": value, "sessionId": phone.session}).encode()


class _Handler(BaseHTTPRequestHandler):
    phone: FakePhone

    def do_GET(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        status, content = answer(self.phone, self.command, self.path, body)
        self.send_response(status)
        self.send_header("Content-Type", JSON)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    do_POST = do_GET

    def log_message(self, *_: Any) -> None:
        """Nothing is printed."""


@contextmanager
def mocked_wda(phone: FakePhone) -> Iterator[str]:
    """The URL of the same without a socket, where only its answers matter; requests to other ports go out."""
    url = "http://127.0.0.1:8100"

    def respond(request: PreparedRequest) -> tuple[int, Mapping[str, str], bytes]:
        body = request.body.encode() if isinstance(request.body, str) else request.body
        status, content = answer(phone, str(request.method), str(request.url), body)
        return status, {"Content-Type": JSON}, content

    with RequestsMock(assert_all_requests_are_fired=False) as mock:
        mock.add_passthru(re.compile(r"http://127\.0\.0\.1:(?!8100/)"))
        for method in ("GET", "POST"):
            mock.add_callback(method, re.compile(re.escape(url)), respond)
        yield url


Fault = Callable[[], Any]


@contextmanager
def fake_wda(phone: FakePhone, port: int = 0) -> Iterator[str]:
    """The URL of that phone's WebDriverAgent."""
    handler = type("Handler", (_Handler,), {"phone": phone})
    with ThreadingHTTPServer(("127.0.0.1", port), handler) as server:
        server.daemon_threads = False
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}"
        finally:
            phone.let_go.set()
            server.shutdown()
            thread.join(LIMIT_S)
