"""POST /api/tools/{name}: what lies around a tool.

The order is the Agent's: decode, normalise, stand in line for the input devices, act, wait for the screen,
take the picture. HTTP 200 for a tool that failed.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from typing import Any

from mcpboard.simulator.board import request_body
from mcpboard.simulator.board.actions import ACTIONS, ActionContext
from mcpboard.simulator.board.agent_catalog import ROWS, AgentTool
from mcpboard.simulator.board.camera import Camera
from mcpboard.simulator.board.faults import Faults
from mcpboard.simulator.board.gestures import invalid
from mcpboard.simulator.board.go_http import GoReply, go_json, json_reply, text_error, timestamp
from mcpboard.simulator.board.runs import Ledger, SimulatedPace, ToolFailure, ToolRun
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
    """Runs tools on the pretend phone, one caller at a time for those that move it."""

    def __init__(self, phone: Phone, faults: Faults, ledger: Ledger, pace: SimulatedPace, limit_s: float) -> None:
        self._phone = phone
        self._faults = faults
        self._ledger = ledger
        self._pace = pace
        self._limit_s = limit_s
        self._camera = Camera(phone, faults)
        self._shell = Shell()
        self._hid = threading.Lock()  # the keyboard isolation controller's: callers block, none is refused

    def entries(self) -> list[dict[str, Any]]:
        """The catalogue, by name; without schemas or without tools as the faults say."""
        schema = self._faults.take("old_catalogue", "tools") is None
        return [row.entry(schema=schema) for row in ROWS.values() if not self._faults.armed("missing_tool", row.name)]

    def call(self, name: str, body: bytes, gone: Callable[[], bool]) -> GoReply:
        """The answer to one POST; the name is looked up in any case, before the body is read."""
        row = ROWS.get(name.lower())
        if row is None or self._faults.take("missing_tool", row.name):
            return text_error(404, f"Unknown tool: {name}")
        try:
            raw = request_body.raw_input(body)
        except request_body.BadBody as trouble:
            return text_error(400, f"Invalid request: {trouble}")
        run = ToolRun(self._pace, gone, detached=row.detached, limit_s=self._limit_s if row.detached else None)
        return self._answer(row, raw, run)

    def _answer(self, row: AgentTool, raw: str, run: ToolRun) -> GoReply:
        began = run.now()
        answer: dict[str, Any] = {"tool": row.entry(), "raw_input": raw}
        try:
            answer["raw_input"], arguments = _arguments(row, raw)
            answer |= {"output": self._output(row, arguments, run), "is_error": False}
            outcome = "ok"
        except ToolFailure as failure:
            answer |= _failed(failure)
            if self._faults.take("no_tool_error", row.name):
                del answer["tool_error"]
            outcome = failure.code
        answer |= {"duration_ms": round((run.now() - began) * 1000), "called_at": timestamp(began)}
        self._ledger.note_finished(row.name, outcome)
        return json_reply(answer)

    def _output(self, row: AgentTool, arguments: Mapping[str, Any], run: ToolRun) -> str:
        try:
            if row.category == "observation":
                self._enter(row, arguments, run)
                return go_json(self._observe(row, run))
            return self._action(row, arguments, ActionContext(self._phone, self._shell, run))
        except BareAgent as bare:
            return bare.output

    def _action(self, row: AgentTool, arguments: Mapping[str, Any], hands: ActionContext) -> str:
        before = self._camera.look() if row.wrap == "full" else None
        output = self._act(row, arguments, hands)
        if row.wrap is None or (row.category == "bridge" and self._faults.take("unwrapped", row.name)):
            return output
        return go_json(self._wrapped(row, output, hands, before))

    def _act(self, row: AgentTool, arguments: Mapping[str, Any], hands: ActionContext) -> str:
        if not row.hid:
            return self._act_alone(row, arguments, hands)
        with hands.run.locked(self._hid):
            return self._act_alone(row, arguments, hands)

    def _act_alone(self, row: AgentTool, arguments: Mapping[str, Any], hands: ActionContext) -> str:
        self._enter(row, arguments, hands.run)
        down = row.category == "bridge" and self._faults.take("bridge_down", row.name)
        hands.bridge = self._phone.bridge_connected and not down
        if soft := self._faults.take("soft_failure", row.name):
            return go_json({"ok": False, "suggestion": soft["suggestion"]})
        return ACTIONS[row.name](hands, arguments)

    def _enter(self, row: AgentTool, arguments: Mapping[str, Any], run: ToolRun) -> None:
        """The moment a tool begins: it is noted, held and slowed here, and fails here when a fault says so."""
        self._ledger.note_call(row.name, dict(arguments))
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
        if hold := self._ledger.hold_on(target):
            hold.entered.set()
            run.until(hold.released)
        if slow := self._faults.take("slow", target):
            run.stall(slow["seconds"])

    def _observe(self, row: AgentTool, run: ToolRun) -> dict[str, Any]:
        if row.name == "screenshot":
            return self._camera.shot(row.name)
        before = self._camera.look()
        settled = self._camera.settle(run)
        stable = {"ok": True, "stable": settled.stable, "elapsed_ms": settled.elapsed_ms, **settled.keys()}
        return self._camera.shot(row.name) | stable | {"screen_changed": frames.changed(before, self._camera.look())}

    def _wrapped(
        self, row: AgentTool, output: str, hands: ActionContext, before: frames.Picture | None
    ) -> dict[str, Any]:
        """The post-action object; a failure from here on says that the action itself was completed."""
        try:
            return self._after(row, output, hands, before)
        except ToolFailure as failure:
            message = f"{row.name} completed with output {go_json(output)}, but the picture after it failed: "
            details = {**failure.details, "action_completed": True, "action_output": output}
            raise ToolFailure(failure.category, failure.code, message + failure.message, **details) from None

    def _after(
        self, row: AgentTool, output: str, hands: ActionContext, before: frames.Picture | None
    ) -> dict[str, Any]:
        if self._faults.take("action_completed", row.name):
            raise ToolFailure("internal", "tool_execution_failed", "frame service: STALE_FRAME")
        made: dict[str, Any] = {"action_output": output}
        if row.wrap == "full":
            made |= self._camera.settle(hands.run).keys()
        else:
            hands.run.pause(SHORT_WAIT_S)
        if before is not None:
            made["screen_changed"] = frames.changed(before, self._camera.look())
        return self._camera.shot(row.name, hands.touched[-1] if hands.touched else None) | made


def _arguments(row: AgentTool, raw: str) -> tuple[str, Mapping[str, Any]]:
    """The input as text and as an object; a bare word is an app's name, as the Agent takes it."""
    try:
        text, value = request_body.normalised(raw)
    except ValueError as trouble:
        if row.name != "open_app":
            raise invalid(f"invalid JSON input: {trouble}") from None
        return raw, {"app": raw.strip()}
    if not isinstance(value, Mapping):
        raise invalid("invalid arguments: the input must be a JSON object")
    return text, value


def _failed(failure: ToolFailure) -> dict[str, Any]:
    named = {"category": failure.category, "code": failure.code, "message": failure.message}
    details = {"details": failure.details} if failure.details else {}
    return {"output": failure.message, "is_error": True, "error": failure.message, "tool_error": {**named, **details}}
