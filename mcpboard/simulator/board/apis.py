"""The simulated Agent and Config Web: their routes, and the faults around them."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from dataclasses import replace

from mcpboard.simulator.board import agent_catalog, bundle, live_page
from mcpboard.simulator.board.faults import Faults
from mcpboard.simulator.board.go_http import (
    NOT_FOUND,
    GoReply,
    json_reply,
    text_error,
    timestamp,
    whole,
)
from mcpboard.simulator.board.runs import Dropped, Ledger, ReceivedRequest, SimulatedClock, ToolFailure, ToolRun
from mcpboard.simulator.board.tool_runs import ToolRunner
from mcpboard.simulator.phone.phone import Phone

TOOLS_PATH = "/api/tools/"
TARGETS = {  # path -> the name that faults, holds and waits use for it
    ("agent", "/api/tools"): "tools",
    ("agent", "/api/phone-bridge/status"): "phone_bridge_status",
    ("agent", "/health"): "health",
    ("config_web", "/api/device/status"): "device_status",
    ("config_web", "/api/logs/support"): "support_bundle",
}
NOT_ALLOWED = text_error(405, "Method not allowed")
# Path -> the methods it takes; the tools have paths of their own below TOOLS_PATH.
AGENT_ROUTES = {
    "/api/tools": ("GET",), "/api/phone-bridge/status": ("GET",), "/health": ("GET",), "/": ("GET",),
    "/screen.jpg": ("GET",), "/simulator/calls": ("GET",), "/simulator/faults": ("GET", "POST"),
    "/simulator/phone": ("GET", "POST"),
}  # fmt: skip
API_VERSION = ("X-Aiden-API-Version", "1")
CONFIG_JSON = "application/json; charset=utf-8"
HTML_PAGE = b"<!DOCTYPE html><html><body><h1>It works</h1></body></html>\n"


def target_of(port: str, path: str) -> str | None:
    """Return the name that faults use for the thing behind a path; None for what no fault may touch."""
    path = path.partition("?")[0]
    if port == "agent" and path.startswith(TOOLS_PATH):
        return path[len(TOOLS_PATH) :].lower() or None
    return TARGETS.get((port, path))


class LoopbackApis:
    """Serve both ports. A request passes the faults before it, its route, then the faults on its reply."""

    def __init__(
        self, phone: Phone, tools: ToolRunner, faults: Faults, ledger: Ledger, clock: SimulatedClock, seed: int
    ) -> None:
        self._phone = phone
        self._tools = tools
        self._faults = faults
        self._ledger = ledger
        self._clock = clock
        self._seed = seed

    def reset_early(self, port: str, request_line: str) -> bool:
        """Return True when the connection is to be reset although its request was not read."""
        words = request_line.split(" ")
        target = target_of(port, words[1]) if len(words) > 1 else None
        return target is not None and self._faults.take("reset_before_read", target) is not None

    def respond(self, request: ReceivedRequest, gone: Callable[[], bool]) -> GoReply:
        """Return the reply to one request; Dropped when the connection is to be cut instead."""
        route = self._agent if request.port == "agent" else self._config_web
        target = target_of(request.port, request.path)
        if target is None:
            return route(request, gone)
        run = ToolRun(self._clock, gone)
        reply = self._replaced(target, run) or route(request, gone)
        return self._spoiled(target, reply, run)

    def _replaced(self, target: str, run: ToolRun) -> GoReply | None:
        """Return the reply of a fault that takes the place of the request's own."""
        if self._faults.take("reset_after_read", target):
            raise Dropped(reset=True)
        if self._faults.take("hang", target):
            run.hang()
        if self._faults.take("shutting_down", target):
            return text_error(503, "Server is shutting down")
        if fault := self._faults.take("status", target):
            return text_error(fault["status"], fault["text"])
        if fault := self._faults.take("redirect", target):
            return GoReply(fault["status"], headers=(("Location", fault["location"]),))
        if fault := self._faults.take("html", target):
            return GoReply(fault["status"], HTML_PAGE, "text/html; charset=utf-8")
        return None

    def _spoiled(self, target: str, reply: GoReply, run: ToolRun) -> GoReply:
        """Apply the faults to a reply that is ready."""
        if self._faults.take("reset_after_execution", target):
            raise Dropped(reset=True)
        if self._faults.take("hang_after_execution", target):
            run.hang()
        if fault := self._faults.take("oversized", target):  # the same JSON object with a filler in it
            body = whole(reply).rstrip()[:-1] + b',"filler":"' + b"x" * fault["bytes"] + b'"}\n'
            reply = replace(reply, body=body, length=None)
        if fault := self._faults.take("gzip", target):
            body = gzip.compress(whole(reply), mtime=0) if fault["honest"] else whole(reply)
            headers = (*reply.headers, ("Content-Encoding", "gzip"))
            reply = replace(reply, body=body, headers=headers, length=None)
        if fault := self._faults.take("charset", target):
            reply = replace(reply, content_type=f"application/json; charset={fault['label']}")
        if fault := self._faults.take("truncated", target):
            reply = replace(reply, body=whole(reply), framing=fault["framing"], keep=fault["keep"], length=None)
        if fault := self._faults.take("drip", target):
            reply = replace(reply, bytes_per_second=fault["bytes_per_second"])
        return reply

    def _linger(self, request: ReceivedRequest, gone: Callable[[], bool]) -> None:
        """Stop at the holds and slow faults of the routes that are no tool; a caller that leaves ends them."""
        target = target_of(request.port, request.path)
        try:
            if target is not None:
                self._tools.linger(target, ToolRun(self._clock, gone))
        except ToolFailure:
            raise Dropped(reset=False) from None

    def _agent(self, request: ReceivedRequest, gone: Callable[[], bool]) -> GoReply:
        path = request.path.partition("?")[0]
        if path.startswith(TOOLS_PATH):
            name = path[len(TOOLS_PATH) :]
            if request.method != "POST":
                return NOT_ALLOWED
            return self._tools.call(name, request.body, gone) if name and "/" not in name else NOT_FOUND
        if path not in AGENT_ROUTES:
            return NOT_FOUND
        if request.method not in AGENT_ROUTES[path]:
            return NOT_ALLOWED
        self._linger(request, gone)
        match path:
            case "/api/tools":
                return json_reply({"tools": self._tools.entries()})
            case "/api/phone-bridge/status":
                down = not self._phone.bridge_connected or self._faults.take("bridge_down", "phone_bridge_status")
                return json_reply(agent_catalog.bridge_status(
                    connected=not down, platform=self._phone.platform, device_type=self._phone.device_type,
                    heartbeat=timestamp(self._clock.now()), battery=self._phone.view().battery,
                ))  # fmt: skip
            case "/screen.jpg":
                return GoReply(200, live_page.picture(self._phone), "image/jpeg", (("Cache-Control", "no-store"),))
            case "/simulator/calls":
                calls = self._ledger.copy(self._ledger.calls)
                return json_reply({"calls": [{"name": name, "input": arguments} for name, arguments in calls]})
            case "/simulator/faults" | "/simulator/phone":
                return self._control(path, request)
            case "/health":
                return json_reply({"ok": True})
        return GoReply(200, live_page.PAGE, "text/html; charset=utf-8")

    def _control(self, path: str, request: ReceivedRequest) -> GoReply:
        """Apply a POST, then tell the state.

        Faults: POST arms one or, with `{"clear": true}`, disarms all. Phone: POST `{"landscape": true}` or
        `{"dark": true}` turns it.
        """
        try:
            post = json.loads(request.body) if request.method == "POST" else None
            if path == "/simulator/phone":
                if request.method == "POST":
                    live_page.turn(self._phone, post)
                return json_reply(live_page.state(self._phone))
            if request.method == "POST":
                if not isinstance(post, dict):
                    raise TypeError(
                        'expected an object such as {"kind": "slow", "tool": "*", "times": 1, "seconds": 2}'
                    )
                if post.get("clear"):
                    self._faults.clear()
                else:
                    self._faults.set(post.pop("kind", ""), **post)
            return json_reply({"faults": self._faults.as_json()})
        except (ValueError, TypeError, RecursionError) as error:
            return text_error(400, f"Invalid request: {error}")

    def _config_web(self, request: ReceivedRequest, gone: Callable[[], bool]) -> GoReply:
        target = target_of(request.port, request.path)
        if request.method != "GET" or target is None:
            return text_error(404, "Not Found")
        self._linger(request, gone)
        if target == "device_status":
            status = agent_catalog.device_status(self._phone.device_type)
            reply = json_reply(status, content_type=CONFIG_JSON)
        elif fault := self._faults.take("bundle_error", "support_bundle"):
            reply = json_reply({"ok": False, "error": fault["error"]}, 500, CONFIG_JSON)
        elif fault := self._faults.take("bundle", "support_bundle"):
            reply = GoReply(
                200, bundle.sized(fault["bytes"], self._seed), "application/gzip",
                length=fault["bytes"] if fault["length"] else None, keep=fault["dies_after"],
                bytes_per_second=fault["bytes_per_second"],
            )  # fmt: skip
        else:
            archive = bundle.small()
            reply = GoReply(200, archive, "application/gzip", length=len(archive))
        return replace(reply, headers=(API_VERSION, *reply.headers))
