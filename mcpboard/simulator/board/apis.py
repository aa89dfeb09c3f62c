"""The pretend Agent and the pretend Config Web: which path gives what, and the faults around it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from mcpboard.simulator.board import agent_catalog, bundle, live_page
from mcpboard.simulator.board.faults import Faults
from mcpboard.simulator.board.go_http import (
    GoReply,
    json_reply,
    labelled_gzip,
    not_found,
    text_error,
    timestamp,
    whole,
)
from mcpboard.simulator.board.runs import Dropped, Ledger, ReceivedRequest, SimulatedPace, ToolFailure, ToolRun
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
POSTED = ("/simulator/faults", "/simulator/phone")  # routes beside the tools that take a POST
API_VERSION = ("X-Aiden-API-Version", "1")
CONFIG_JSON = "application/json; charset=utf-8"
HTML_PAGE = b"<!DOCTYPE html><html><body><h1>It works</h1></body></html>\n"


def target_of(port: str, path: str) -> str | None:
    """What faults call the thing behind a path; None for what no fault may touch."""
    path = path.partition("?")[0]
    if port == "agent" and path.startswith(TOOLS_PATH):
        return path[len(TOOLS_PATH) :].lower() or None
    return TARGETS.get((port, path))


class LoopbackApis:
    """Answers both ports. A request passes the faults before it, its route, then the faults on its reply."""

    def __init__(
        self, phone: Phone, tools: ToolRunner, faults: Faults, ledger: Ledger, pace: SimulatedPace, seed: int
    ) -> None:
        self._phone = phone
        self._tools = tools
        self._faults = faults
        self._ledger = ledger
        self._pace = pace
        self._seed = seed
        self._routes: Mapping[tuple[str, str], Callable[[ReceivedRequest], GoReply]] = {
            ("agent", "/api/tools"): self._list,
            ("agent", "/api/phone-bridge/status"): self._bridge,
            ("agent", "/health"): self._health,
            ("agent", "/"): self._page,
            ("agent", "/screen.jpg"): self._screen,
            ("agent", "/simulator/calls"): self._calls,
            ("agent", "/simulator/faults"): self._switches,
            ("agent", "/simulator/phone"): self._turns,
        }

    def reset_early(self, port: str, request_line: str) -> bool:
        """Whether the connection is to be reset although its request was not read."""
        words = request_line.split(" ")
        target = target_of(port, words[1]) if len(words) > 1 else None
        return target is not None and self._faults.take("reset_before_read", target) is not None

    def answer(self, request: ReceivedRequest, gone: Callable[[], bool]) -> GoReply:
        """The reply to one request; Dropped when the connection is to be cut instead."""
        target = target_of(request.port, request.path)
        if target is None:
            return self._route(request, gone)
        run = ToolRun(self._pace, gone)
        reply = self._instead(target, run) or self._route(request, gone)
        return self._spoiled(target, reply, run)

    def _instead(self, target: str, run: ToolRun) -> GoReply | None:
        """What a fault answers before the request gets anywhere."""
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
        """What a fault makes of a reply that is ready."""
        if self._faults.take("reset_after_execution", target):
            raise Dropped(reset=True)
        if self._faults.take("hang_after_execution", target):
            run.hang()
        if fault := self._faults.take("oversized", target):
            reply = _padded(reply, fault["bytes"])
        if fault := self._faults.take("gzip", target):
            reply = labelled_gzip(reply, honest=fault["honest"])
        if fault := self._faults.take("charset", target):
            reply = replace(reply, content_type=f"application/json; charset={fault['label']}")
        if fault := self._faults.take("truncated", target):
            reply = replace(reply, body=whole(reply), framing=fault["framing"], keep=fault["keep"], length=None)
        if fault := self._faults.take("drip", target):
            reply = replace(reply, bytes_per_second=fault["bytes_per_second"])
        return reply

    def _route(self, request: ReceivedRequest, gone: Callable[[], bool]) -> GoReply:
        if request.port == "config_web":
            return self._config_web(request, gone)
        path = request.path.partition("?")[0]
        if path.startswith(TOOLS_PATH):
            return self._tool(request, path[len(TOOLS_PATH) :], gone)
        route = self._routes.get(("agent", path))
        if route is None:
            return not_found()
        if request.method != "GET" and path not in POSTED:
            return text_error(405, "Method not allowed")
        self._linger(request, gone)
        return route(request)

    def _tool(self, request: ReceivedRequest, name: str, gone: Callable[[], bool]) -> GoReply:
        if request.method != "POST":
            return text_error(405, "Method not allowed")
        return self._tools.call(name, request.body, gone) if name and "/" not in name else not_found()

    def _linger(self, request: ReceivedRequest, gone: Callable[[], bool]) -> None:
        """Holds and slow faults of the routes that are no tool; a caller that leaves ends them."""
        target = target_of(request.port, request.path)
        try:
            if target is not None:
                self._tools.linger(target, ToolRun(self._pace, gone))
        except ToolFailure:
            raise Dropped(reset=False) from None

    def _list(self, request: ReceivedRequest) -> GoReply:
        return json_reply({"tools": self._tools.entries()})

    def _bridge(self, request: ReceivedRequest) -> GoReply:
        view = self._phone.view()
        connected = self._phone.bridge_connected and not self._faults.take("bridge_down", "phone_bridge_status")
        status = agent_catalog.bridge_status(
            connected=connected, platform=self._phone.platform, device_type=self._phone.device_type,
            heartbeat=timestamp(self._pace.clock()), battery=view.battery,
        )  # fmt: skip
        return json_reply(status)

    def _health(self, request: ReceivedRequest) -> GoReply:
        return json_reply({"ok": True})

    def _page(self, request: ReceivedRequest) -> GoReply:
        return GoReply(200, live_page.PAGE, "text/html; charset=utf-8")

    def _screen(self, request: ReceivedRequest) -> GoReply:
        return GoReply(200, live_page.picture(self._phone), "image/jpeg", (("Cache-Control", "no-store"),))

    def _calls(self, request: ReceivedRequest) -> GoReply:
        return json_reply({"calls": [{"name": name, "input": given} for name, given in self._ledger.calls]})

    def _switches(self, request: ReceivedRequest) -> GoReply:
        """GET lists the armed faults, POST arms one or, with `{"clear": true}`, disarms all."""
        if request.method == "POST":
            try:
                self._switch(json.loads(request.body))
            except (ValueError, TypeError, RecursionError) as trouble:
                return text_error(400, f"Invalid request: {trouble}")
        elif request.method != "GET":
            return text_error(405, "Method not allowed")
        return json_reply({"faults": self._faults.as_json()})

    def _turns(self, request: ReceivedRequest) -> GoReply:
        """GET tells what the phone shows, POST `{"landscape": true}` or `{"dark": true}` turns it first."""
        if request.method == "POST":
            try:
                live_page.turn(self._phone, json.loads(request.body))
            except (ValueError, RecursionError) as trouble:
                return text_error(400, f"Invalid request: {trouble}")
        elif request.method != "GET":
            return text_error(405, "Method not allowed")
        return json_reply(live_page.state(self._phone))

    def _switch(self, post: Any) -> None:
        if not isinstance(post, dict):
            raise TypeError('expected an object such as {"kind": "slow", "tool": "*", "times": 1, "seconds": 2}')
        if post.get("clear"):
            self._faults.clear()
        else:
            self._faults.set(post.pop("kind", ""), **post)

    def _config_web(self, request: ReceivedRequest, gone: Callable[[], bool]) -> GoReply:
        target = target_of(request.port, request.path)
        if request.method != "GET" or target is None:
            return text_error(404, "Not Found")
        self._linger(request, gone)
        reply = self._status() if target == "device_status" else self._bundle()
        return replace(reply, headers=(API_VERSION, *reply.headers))

    def _status(self) -> GoReply:
        return json_reply(agent_catalog.device_status(self._phone.device_type, 8080), content_type=CONFIG_JSON)

    def _bundle(self) -> GoReply:
        if fault := self._faults.take("bundle_error", "support_bundle"):
            return json_reply({"ok": False, "error": fault["error"]}, 500, CONFIG_JSON)
        fault = self._faults.take("bundle", "support_bundle")
        if fault is None:
            made = bundle.small()
            return GoReply(200, made, "application/gzip", length=len(made))
        blocks: Iterator[bytes] = bundle.sized(fault["bytes"], self._seed)
        return GoReply(
            200, blocks, "application/gzip", length=fault["bytes"] if fault["length"] else None,
            keep=fault["dies_after"], bytes_per_second=fault["bytes_per_second"],
        )  # fmt: skip


def _padded(reply: GoReply, size: int) -> GoReply:
    """The same JSON object with a filler that makes it that many bytes longer."""
    body = whole(reply).rstrip()[:-1] + b',"filler":"' + b"x" * size + b'"}\n'
    return replace(reply, body=body, length=None)
