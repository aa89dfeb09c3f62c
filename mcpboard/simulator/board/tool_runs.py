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


class BareAgent(Exception):
    """An output that skips the post-action object, as an old or broken Agent gives it."""

    def __init__(self, output: str) -> None:
        super().__init__(output)
        self.output = output


class ToolRunner:
    """Run tools on the simulated phone, one caller at a time for those that move it."""

    def __init__(self, phone: Phone, faults: Faults, ledger: Ledger, clock: SimulatedClock, limit_s: float) -> None:
        self._phone = phone
        self._faults = faults
        self._ledger = ledger
        self._clock = clock
        self._limit_s = limit_s
        self._camera = Camera(phone, faults)
        self._shell = Shell()
        self._hid = threading.Lock()  # the keyboard isolation controller's: callers block, none is refused

    def entries(self) -> list[dict[str, Any]]:
        """Return the catalog, by name; without schemas or without tools as the faults say."""
        schema = self._faults.take("old_catalogue", "tools") is None
        return [row.entry(schema=schema) for row in ROWS.values() if not self._faults.armed("missing_tool", row.name)]

    def call(self, name: str, body: bytes, gone: Callable[[], bool]) -> GoReply:
        """Return the reply to one POST; the name is looked up in any case, before the body is read."""
        row = ROWS.get(name.lower())
        if row is None or self._faults.take("missing_tool", row.name):
            return text_error(404, f"Unknown tool: {name}")
        try:
            raw = request_body.raw_input(body)
        except request_body.BadBody as error:
            return text_error(400, f"Invalid request: {error}")
        run = ToolRun(self._clock, gone, detached=row.detached, limit_s=self._limit_s if row.detached else None)
        began, outcome = run.now(), "ok"
        response: dict[str, Any] = {"tool": row.entry(), "raw_input": raw}
        try:
            response["raw_input"], arguments = _arguments(row, raw)
            try:
                output = self._output(row, arguments, ActionContext(self._phone, self._shell, run))
            except BareAgent as bare:
                output = bare.output
            response |= {"output": output, "is_error": False}
        except ToolFailure as failure:
            outcome = failure.code
            response |= {"output": failure.message, "is_error": True, "error": failure.message}
            if not self._faults.take("no_tool_error", row.name):
                details = {"details": failure.details} if failure.details else {}
                response["tool_error"] = {
                    "category": failure.category, "code": failure.code, "message": failure.message, **details,
                }  # fmt: skip
        response |= {"duration_ms": round((run.now() - began) * 1000), "called_at": timestamp(began)}
        self._ledger.note(self._ledger.finished, (row.name, outcome))
        return json_reply(response)

    def _output(self, row: AgentTool, arguments: Mapping[str, Any], context: ActionContext) -> str:
        """Run the tool and wrap its output; a failure after the action says that the action itself was completed."""
        run = context.run
        if row.category == "observation":
            self._enter(row, arguments, run)
            if row.name == "screenshot":
                return go_json(self._camera.shot(row.name))
            before = self._camera.look()
            settled = self._camera.settle(run)
            stable = {"ok": True, "stable": settled.stable, "elapsed_ms": settled.elapsed_ms, **settled.keys()}
            shot = self._camera.shot(row.name) | stable
            return go_json(shot | {"screen_changed": frames.changed(before, self._camera.look())})
        first = self._camera.look() if row.wrap == "full" else None
        with run.locked(self._hid) if row.hid else nullcontext():
            self._enter(row, arguments, run)
            down = row.category == "bridge" and self._faults.take("bridge_down", row.name)
            context.bridge = self._phone.bridge_connected and not down
            act = ACTIONS.get(row.name)
            if act is None:  # listed, so that it has to be filtered out
                raise ToolFailure("unsupported", "tool_not_simulated", f"{row.name} is not simulated")
            if soft := self._faults.take("soft_failure", row.name):
                output = go_json({"ok": False, "suggestion": soft["suggestion"]})
            else:
                output = act(context, arguments)
        if row.wrap is None or (row.category == "bridge" and self._faults.take("unwrapped", row.name)):
            return output
        try:
            return go_json(self._after(row, output, context, first))
        except ToolFailure as failure:
            message = f"{row.name} completed with output {go_json(output)}, but the picture after it failed: "
            details = {**failure.details, "action_completed": True, "action_output": output}
            raise ToolFailure(failure.category, failure.code, message + failure.message, **details) from None

    def _enter(self, row: AgentTool, arguments: Mapping[str, Any], run: ToolRun) -> None:
        """Begin the tool: it is noted, held and slowed here, and fails here when a fault says so."""
        self._ledger.note(self._ledger.calls, (row.name, dict(arguments)))
        self.linger(row.name, run)
        if fault := self._faults.take("tool_error", row.name):
            raise ToolFailure(fault["category"], fault["code"], fault["message"])
        if fault := self._faults.take("legacy_error", row.name):
            raise BareAgent(fault["text"])
        if self._faults.take("empty_output", row.name):
            raise BareAgent("")

    def linger(self, target: str, run: ToolRun) -> None:
        """Stop at a test's hold, then at a slow fault."""
        run.check()
        run.stop_at(self._ledger.hold_on(target))
        if slow := self._faults.take("slow", target):
            run.stall(slow["seconds"])

    def _after(
        self, row: AgentTool, output: str, context: ActionContext, first: frames.Picture | None
    ) -> dict[str, Any]:
        """Wait for the screen, take the picture, and return the post-action object."""
        if self._faults.take("action_completed", row.name):
            raise ToolFailure("internal", "tool_execution_failed", "frame service: STALE_FRAME")
        keys: dict[str, Any] = {"action_output": output}
        if row.wrap == "full":
            keys |= self._camera.settle(context.run).keys()
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
