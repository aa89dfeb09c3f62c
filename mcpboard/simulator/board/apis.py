"""The simulated Agent and Config Web: their routes (`docs/agent-api.md`), and the faults around them."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from mcpboard.simulator.board import agent_catalog, bundle, live_page
from mcpboard.simulator.board.faults import KINDS, Fault
from mcpboard.simulator.board.go_http import JSON, NOT_FOUND, GoReply, json_reply, text_error, timestamp, whole
from mcpboard.simulator.board.runs import Dropped, ReceivedRequest, ToolFailure, ToolRun
from mcpboard.simulator.board.tool_runs import ToolRunner

TOOLS_PATH = "/api/tools/"
TARGETS = {  # path -> the name that faults, holds and waits use for it
    ("agent", "/api/tools"): "tools",
    ("agent", "/api/phone-bridge/status"): "phone_bridge_status",
    ("agent", "/health"): "health",
    ("config_web", "/api/device/status"): "device_status",
    ("config_web", "/api/logs/support"): "support_bundle",
}
NOT_ALLOWED = text_error(405, "Method not allowed")
CONFIG_JSON = f"{JSON}; charset=utf-8"
HTML = "text/html; charset=utf-8"
API_VERSION = ("X-Aiden-API-Version", "1")
HTML_PAGE = b"<!DOCTYPE html><html><body><h1>It works</h1></body></html>\n"
# Kind of fault -> the reply that comes instead of the asked one.
REPLIES: Mapping[str, Callable[[Fault], GoReply]] = {
    "shutting_down": lambda fault: text_error(503, "Server is shutting down"),
    "status": lambda fault: text_error(fault["status"], fault["text"]),
    "redirect": lambda fault: GoReply(fault["status"], headers=(("Location", fault["location"]),)),
    "html": lambda fault: GoReply(fault["status"], HTML_PAGE, HTML),
}
USUAL_BUNDLE = Fault("bundle", "support_bundle", None, {**KINDS["bundle"], "bytes": bundle.SMALL})


def target_of(port: str, path: str) -> str | None:
    """Return the name that faults use for the thing behind a path; None for what no fault may touch."""
    path = path.partition("?")[0]
    if port == "agent" and path.startswith(TOOLS_PATH):
        return path[len(TOOLS_PATH) :].lower() or None
    return TARGETS.get((port, path))


class LoopbackApis:
    """Serve both ports. A request passes the faults before it, its route, then the faults on its reply."""

    def __init__(self, tools: ToolRunner) -> None:
        self._tools, self._phone, self._faults = tools, tools.phone, tools.faults

    def reset_early(self, port: str, path: str) -> bool:
        """Return True when the connection is to be reset although its request was not read."""
        target = target_of(port, path)
        return target is not None and self._faults.take("reset_before_read", target) is not None

    def respond(self, request: ReceivedRequest, gone: Callable[[], bool]) -> GoReply:
        """Return the reply to one request; Dropped when the connection is to be cut instead."""
        route = self._agent if request.port == "agent" else self._config_web
        target = target_of(request.port, request.path)
        if target is None:
            return route(request, gone)
        run = ToolRun(self._tools.clock, gone)
        reply = self._replaced(target, run)
        if reply is None and target in TARGETS.values():  # a tool stops at holds and slow faults by itself
            try:
                self._tools.linger(target, run)
            except ToolFailure:
                raise Dropped(reset=False) from None
        return self._spoiled(target, reply or route(request, gone), run)

    def _replaced(self, target: str, run: ToolRun) -> GoReply | None:
        """Return the reply of a fault that takes the place of the request's own."""
        if self._faults.take("reset_after_read", target):
            raise Dropped(reset=True)
        if self._faults.take("hang", target):
            run.hang()
        taken = ((self._faults.take(kind, target), reply) for kind, reply in REPLIES.items())
        return next((reply(fault) for fault, reply in taken if fault), None)

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
            reply = replace(reply, body=body, headers=(*reply.headers, ("Content-Encoding", "gzip")), length=None)
        if fault := self._faults.take("charset", target):
            reply = replace(reply, content_type=f"{JSON}; charset={fault['label']}")
        if fault := self._faults.take("truncated", target):
            reply = replace(reply, body=whole(reply), framing=fault["framing"], keep=fault["keep"], length=None)
        if fault := self._faults.take("drip", target):
            reply = replace(reply, bytes_per_second=fault["bytes_per_second"])
        return reply

    def _agent(self, request: ReceivedRequest, gone: Callable[[], bool]) -> GoReply:
        path = request.path.partition("?")[0]
        if path.startswith(TOOLS_PATH):
            name = path[len(TOOLS_PATH) :]
            if request.method != "POST":
                return NOT_ALLOWED
            return self._tools.call(name, request.body, gone) if name and "/" not in name else NOT_FOUND
        calls = self._tools.ledger.copy(self._tools.ledger.calls)
        uncached = (("Cache-Control", "no-store"),)
        routes: Mapping[str, Callable[[], GoReply]] = {
            "/api/tools": lambda: json_reply({"tools": self._tools.entries()}),
            "/api/phone-bridge/status": self._bridge_status,
            "/health": lambda: json_reply({"ok": True}),
            "/": lambda: GoReply(200, live_page.PAGE, HTML),
            "/screen.jpg": lambda: GoReply(200, live_page.picture(self._phone), "image/jpeg", uncached),
            "/simulator/calls": lambda: json_reply(
                {"calls": [{"name": name, "input": given} for name, given in calls]}
            ),
            "/simulator/phone": lambda: json_reply(live_page.state(self._phone)),
            "/simulator/faults": lambda: json_reply({"faults": self._faults.as_json()}),
        }
        if path not in routes:
            return NOT_FOUND
        if request.method == "POST" and path in ("/simulator/phone", "/simulator/faults"):
            try:
                self._switch(path, json.loads(request.body))
            except (ValueError, TypeError, RecursionError) as error:
                return text_error(400, f"Invalid request: {error}")
        elif request.method != "GET":
            return NOT_ALLOWED
        return routes[path]()

    def _bridge_status(self) -> GoReply:
        down = not self._phone.bridge_connected or self._faults.take("bridge_down", "phone_bridge_status")
        return json_reply(agent_catalog.bridge_status(
            connected=not down, platform=self._phone.platform, device_type=self._phone.device_type,
            heartbeat=timestamp(self._tools.clock.now()), battery=self._phone.view().battery,
        ))  # fmt: skip

    def _switch(self, path: str, post: Any) -> None:
        """Arm a fault or, with `{"clear": true}`, disarm all; or turn the phone, `{"landscape": true}`."""
        if path == "/simulator/phone":
            live_page.turn(self._phone, post)
        elif not isinstance(post, dict):
            raise TypeError('expected an object such as {"kind": "slow", "tool": "*", "times": 1, "seconds": 2}')
        elif post.get("clear"):
            self._faults.clear()
        else:
            self._faults.set(post.pop("kind", ""), **post)

    def _config_web(self, request: ReceivedRequest, _gone: Callable[[], bool]) -> GoReply:
        target = target_of(request.port, request.path)
        if request.method != "GET" or target is None:
            return text_error(404, "Not Found")
        if target == "device_status":
            reply = json_reply(
                agent_catalog.DEVICE_STATUS | {"device_type": self._phone.device_type}, content_type=CONFIG_JSON
            )
        elif fault := self._faults.take("bundle_error", target):
            reply = json_reply({"ok": False, "error": fault["error"]}, 500, CONFIG_JSON)
        else:
            made = self._faults.take("bundle", target) or USUAL_BUNDLE
            reply = GoReply(
                200, bundle.sized(made["bytes"]), "application/gzip", length=made["bytes"] if made["length"] else None,
                keep=made["dies_after"], bytes_per_second=made["bytes_per_second"],
            )  # fmt: skip
        return replace(reply, headers=(API_VERSION, *reply.headers))
