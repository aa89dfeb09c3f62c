"""POST /api/tools/{name}: everything that lies around a tool.

The order is the Agent's: decode, normalize, stand in line for the input devices, act, wait for the screen,
take the picture. HTTP 200 for a tool that failed.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from typing import Any

from mcpboard.simulator.board import request_body
from mcpboard.simulator.board.actions import ACTIONS, ActionContext
from mcpboard.simulator.board.agent_catalog import ROWS, AgentTool
from mcpboard.simulator.board.camera import Camera
from mcpboard.simulator.board.faults import Faults
from mcpboard.simulator.board.gestures import invalid
from mcpboard.simulator.board.go_http import GoReply, go_json, json_reply, text_error, timestamp
from mcpboard.simulator.board.runs import Ledger, SimulatedClock, ToolFailure, ToolRun
from mcpboard.simulator.board.simulated_shell import Shell
from mcpboard.simulator.phone import frames
from mcpboard.simulator.phone.phone import Phone

SHORT_WAIT_S = 0.3  # enter_text takes its picture after that, without a stability wait


class ToolRunner:
    """Run tools on the simulated phone, one caller at a time for those that move it."""

    def __init__(self, phone: Phone, faults: Faults, ledger: Ledger, clock: SimulatedClock, limit_s: float) -> None:
        self.phone, self.faults, self.ledger, self.clock = phone, faults, ledger, clock
        self._limit_s = limit_s
        self._camera = Camera(phone, faults)
        self._shell = Shell()
        self._hid = threading.Lock()  # the keyboard isolation controller's: callers block, none is refused

    def entries(self) -> list[dict[str, Any]]:
        """Return the catalog, by name; without schemas or without tools as the faults say."""
        schema = self.faults.take("old_catalogue", "tools") is None
        return [row.entry(schema=schema) for row in ROWS.values() if not self.faults.armed("missing_tool", row.name)]

    def call(self, name: str, body: bytes, gone: Callable[[], bool]) -> GoReply:
        """Return the reply to one POST; the name is looked up in any case, before the body is read."""
        row = ROWS.get(name.lower())
        if row is None or self.faults.take("missing_tool", row.name):
            return text_error(404, f"Unknown tool: {name}")
        try:
            raw = request_body.raw_input(body)
        except request_body.BadBody as error:
            return text_error(400, f"Invalid request: {error}")
        run = ToolRun(self.clock, gone, detached=row.detached, limit_s=self._limit_s if row.detached else None)
        began, outcome = run.now(), "ok"
        response: dict[str, Any] = {"tool": row.entry(), "raw_input": raw}
        try:
            response["raw_input"], arguments = _arguments(row, raw)
            output = self._output(row, arguments, ActionContext(self.phone, self._shell, run))
            response |= {"output": output, "is_error": False}
        except ToolFailure as failure:
            outcome, message = failure.code, failure.message
            told: dict[str, Any] = {"category": failure.category, "code": outcome, "message": message}
            told |= {"details": failure.details} if failure.details else {}
            response |= {"output": message, "is_error": True, "error": message}
            response |= {} if self.faults.take("no_tool_error", row.name) else {"tool_error": told}
        response |= {"duration_ms": round((run.now() - began) * 1000), "called_at": timestamp(began)}
        self.ledger.note(self.ledger.finished, (row.name, outcome))
        return json_reply(response)

    def _output(self, row: AgentTool, arguments: Mapping[str, Any], context: ActionContext) -> str:
        """Run the tool and wrap its output; a failure after the action says that the action itself was completed."""
        first = self._camera.look() if row.wrap == "full" else None
        with context.run.locked(self._hid) if row.hid else nullcontext():
            bare = self._enter(row, arguments, context.run)
            if bare is not None:
                return bare
            if row.category == "observation":
                return self._observed(row, context.run)
            down = row.category == "bridge" and self.faults.take("bridge_down", row.name)
            context.bridge = self.phone.bridge_connected and not down
            if row.name not in ACTIONS:  # listed, so that it has to be filtered out
                raise ToolFailure("unsupported", "tool_not_simulated", f"{row.name} is not simulated")
            if soft := self.faults.take("soft_failure", row.name):
                output = go_json({"ok": False, "suggestion": soft["suggestion"]})
            else:
                output = ACTIONS[row.name](context, arguments)
        if row.wrap is None or (row.category == "bridge" and self.faults.take("unwrapped", row.name)):
            return output
        try:
            return go_json(self._after(row, output, context, first))
        except ToolFailure as failure:
            message = f"{row.name} completed with output {go_json(output)}, but the picture after it failed: "
            details = {**failure.details, "action_completed": True, "action_output": output}
            raise ToolFailure(failure.category, failure.code, message + failure.message, **details) from None

    def _observed(self, row: AgentTool, run: ToolRun) -> str:
        if row.name == "screenshot":
            return go_json(self._camera.shot(row.name))
        before, ended = self._camera.look(), self._camera.settle(run)
        shot = self._camera.shot(row.name) | ended
        shot |= {"ok": True, "stable": ended["screen_stable"], "elapsed_ms": ended["stable_wait_ms"]}
        return go_json(shot | {"screen_changed": frames.changed(before, self._camera.look())})

    def _enter(self, row: AgentTool, arguments: Mapping[str, Any], run: ToolRun) -> str | None:
        """Begin the tool: it is noted, held and slowed here, and fails here when a fault says so.

        Returns the output of an old or broken Agent, which skips the tool and the post-action object.
        """
        self.ledger.note(self.ledger.calls, (row.name, dict(arguments)))
        self.linger(row.name, run)
        if fault := self.faults.take("tool_error", row.name):
            raise ToolFailure(fault["category"], fault["code"], fault["message"])
        if fault := self.faults.take("legacy_error", row.name):
            return str(fault["text"])
        return "" if self.faults.take("empty_output", row.name) else None

    def linger(self, target: str, run: ToolRun) -> None:
        """Stop at a test's hold, then at a slow fault."""
        run.check()
        run.stop_at(self.ledger.hold_on(target))
        if slow := self.faults.take("slow", target):
            run.stall(slow["seconds"])

    def _after(
        self, row: AgentTool, output: str, context: ActionContext, first: frames.Picture | None
    ) -> dict[str, Any]:
        """Wait for the screen, take the picture, and return the post-action object."""
        if self.faults.take("action_completed", row.name):
            raise ToolFailure("internal", "tool_execution_failed", "frame service: STALE_FRAME")
        keys: dict[str, Any] = {"action_output": output}
        if row.wrap == "full":
            keys |= self._camera.settle(context.run)
        else:
            context.run.pause(SHORT_WAIT_S)
        if first is not None:
            keys["screen_changed"] = frames.changed(first, self._camera.look())
        return self._camera.shot(row.name, context.touched[-1] if context.touched else None) | keys


def _arguments(row: AgentTool, raw: str) -> tuple[str, Mapping[str, Any]]:
    """Return the input as text and as an object; a bare word is an app's name, as the Agent takes it."""
    try:
        text, value = request_body.normalized(raw)
    except ValueError as error:
        if row.name != "open_app":
            raise invalid(f"invalid JSON input: {error}") from None
        return raw, {"app": raw.strip()}
    if not isinstance(value, Mapping):
        raise invalid("invalid arguments: the input must be a JSON object")
    return text, value
