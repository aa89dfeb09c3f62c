"""A WebDriverAgent with a phone in memory: the routes that its clients use, each action counted once."""

from __future__ import annotations

import base64
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import urlsplit

from tests.host.drivers import LIMIT_S, png

WIDTH, HEIGHT, SCALE = 39, 84, 3  # points, and pixels in each
SETTINGS = "com.apple.Preferences"
WITHOUT_SESSION = ("/status", "/session", "/screenshot", "/source", "/wda/activeAppInfo", "/wda/locked", "/alert/text")


class WdaFault(Exception):
    """A W3C error: its code, its HTTP status, and a message."""

    def __init__(self, name: str, status: int, message: str = "") -> None:
        super().__init__(message)
        self.name, self.status, self.message = name, status, message


INVALID = WdaFault("invalid session id", 404, "Session does not exist")
UNKNOWN_ROUTE = WdaFault("unknown command", 404, "Unhandled endpoint")
NO_ALERT = WdaFault("no such alert", 404, "An attempt was made to operate on a modal dialog when one was not open")
NO_KEYBOARD = WdaFault("invalid element state", 400, "The on-screen keyboard must be present to send keys")
ALERT_OPEN = WdaFault("unexpected alert open", 400, "A modal dialog was open")


class FakePhone:
    """The phone and its WebDriverAgent; `old` makes it one before 6.0.0."""

    def __init__(self, *, old: bool = False) -> None:
        self.old = old
        self.app = "com.apple.springboard"
        self.text = ""
        self.keyboard = False
        self.landscape = False
        self.alert: tuple[str, list[str]] | None = None
        self.session: str | None = None  # None as when WebDriverAgent was restarted
        self.sessions = 0
        self.actions: list[tuple[Any, ...]] = []
        self.requests: list[str] = []
        self.faults: dict[str, Any] = {}  # end of a path -> what happens there instead
        self.let_go = threading.Event()

    def respond(self, method: str, path: str, body: Any) -> Any:
        self.requests.append(f"{method} {path}")
        for ending, fault in self.faults.items():
            if path.endswith(ending):
                if callable(fault):
                    return fault()
                raise fault
        route = path
        if path.startswith("/session/"):
            _, _, session, rest = path.split("/", 3)
            if session != self.session:
                raise INVALID
            route = f"/{rest}"
        elif path not in WITHOUT_SESSION:
            raise UNKNOWN_ROUTE
        return self._route(f"{method} {route}", body)

    def _route(self, route: str, body: Any) -> Any:
        size = (HEIGHT, WIDTH) if self.landscape else (WIDTH, HEIGHT)
        match route:
            case "GET /status":
                return {"ready": True, "device": "iphone", "os": {"name": "iOS", "version": "17.4"}}
            case "POST /session":
                return self.open_session()
            case "GET /screenshot":
                return base64.encodebytes(png(size[0] * SCALE, size[1] * SCALE)).decode("ascii")
            case "GET /window/size":
                return {"width": size[0], "height": size[1]}
            case "GET /wda/screen":
                return {"statusBarSize": {"width": WIDTH, "height": 5}, "scale": SCALE}
            case "GET /wda/activeAppInfo":
                return {"bundleId": self.app, "name": "", "pid": 7, "processArguments": {"env": {}, "args": []}}
            case "GET /wda/locked":
                return False
            case "GET /source":
                return self._source(size)
            case "GET /alert/text" | "GET /wda/alert/buttons":
                if self.alert is None:
                    raise NO_ALERT
                return self.alert[route.endswith("buttons")]
            case "POST /wda/tap" | "POST /wda/tap/0" if self.old == route.endswith("0"):
                return self._touch("tap", body["x"], body["y"])
            case "POST /actions":
                return self._gesture(**body)
            case "POST /wda/dragfromtoforduration":
                return self._touch("swipe", *(body[name] for name in ("fromX", "fromY", "toX", "toY", "duration")))
            case "POST /wda/keys":
                return self._type(body["value"])
            case "POST /wda/apps/launch":
                self._touch("launch", body["bundleId"])
                self.app = body["bundleId"]
                return None
        raise UNKNOWN_ROUTE

    def open_session(self) -> Any:
        self.sessions += 1
        self.session = f"S-{self.sessions}"
        return {"sessionId": self.session, "capabilities": {"device": "iphone"}}

    def _gesture(self, actions: Any) -> None:
        (finger,) = actions
        assert (finger["type"], finger["parameters"]) == ("pointer", {"pointerType": "touch"})
        moves = [each["type"] for each in finger["actions"]]
        assert moves == ["pointerMove", "pointerDown", "pointerMove", "pointerUp"]
        start, _, end, _ = finger["actions"]
        self._touch("swipe", start["x"], start["y"], end["x"], end["y"], end["duration"] / 1000)

    def _type(self, keys: list[str]) -> None:
        if not self.keyboard:
            raise NO_KEYBOARD
        assert all(len(each) == 1 for each in keys)
        self._touch("keys", "".join(keys))
        self.text += "".join(keys)

    def _touch(self, *action: Any) -> None:
        if self.alert is not None:
            raise ALERT_OPEN
        self.actions.append(action)

    def _source(self, size: tuple[int, int]) -> Any:
        """The elements of one screen: a field with what was typed, a button, one that is hidden, one out of sight."""
        children = [
            element("TextField", (2, 10, 35, 8), label="Name", value=self.text, rawIdentifier="name"),
            element("Button", (4, 20, 10, 6), label="OK"),
            element("Other", (0, 0, 39, 84), isVisible="0", children=[element("StaticText", (1, 30, 9, 4), label="Seen")]),
            element("Cell", (0, 90, 39, 10), label="Below"),
        ]  # fmt: skip
        return element("Application", (0, 0, *size), label=self.app, children=children)


def element(kind: str, rect: tuple[int, ...], **members: Any) -> dict[str, Any]:
    named = dict(zip(("x", "y", "width", "height"), rect, strict=True))
    return {"type": kind, "rect": named, "isEnabled": "1", "isVisible": "1", "label": None, "value": None, **members}


class _Handler(BaseHTTPRequestHandler):
    phone: FakePhone

    def do_GET(self) -> None:
        body, path, status = self.rfile.read(int(self.headers.get("Content-Length", 0))), urlsplit(self.path).path, 200
        try:
            value = self.phone.respond(self.command, path.rstrip("/"), json.loads(body or b"{}"))
        except WdaFault as fault:
            value, status = {"error": fault.name, "message": fault.message, "traceback": ""}, fault.status
        if not isinstance(value, bytes):
            value = json.dumps({"value": value, "sessionId": self.phone.session}).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json;charset=UTF-8")
        self.send_header("Content-Length", str(len(value)))
        self.end_headers()
        self.wfile.write(value)

    do_POST = do_GET

    def log_message(self, *_: Any) -> None:
        """Nothing is printed."""


@contextmanager
def fake_wda(phone: FakePhone, port: int = 0) -> Iterator[str]:
    """The URL of that phone's WebDriverAgent."""
    handler = type("Handler", (_Handler,), {"phone": phone})
    with ThreadingHTTPServer(("127.0.0.1", port), handler) as server:
        server.daemon_threads = False
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}"
        finally:
            phone.let_go.set()
            server.shutdown()
            thread.join(LIMIT_S)
