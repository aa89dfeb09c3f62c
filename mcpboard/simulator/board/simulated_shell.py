"""A simulated shell: a few commands, nothing of this machine is run or read."""

from __future__ import annotations

import itertools
import json
import shlex
import threading
from collections.abc import Mapping
from typing import Any

from mcpboard.simulator.board.gestures import invalid, number, require
from mcpboard.simulator.board.runs import ToolFailure, ToolRun

TIMEOUT_S = 30  # the Agent's default
LONGEST_TIMEOUT_S = 300
WORKDIR = "/userdata/agent"

Result = tuple[int, str, str]  # exit status, stdout, stderr


def simulate(command: str) -> Result:
    """Return exit status, output and errors of a command line; 127 for what is not known, as a shell says."""
    try:
        name, *words = shlex.split(command) or ["true"]
        match name:
            case "pwd":
                return 0, WORKDIR + "\n", ""
            case "echo":
                return 0, " ".join(words) + "\n", ""
            case "warn":
                return 0, "", " ".join(words) + "\n"
            case "uname":
                return 0, "Linux simulated-board 5.10.160 armv7l\n", ""
            case "true":
                return 0, "", ""
            case "seq":
                return 0, "".join(f"{index}\n" for index in range(1, int(words[0]) + 1)), ""
            case "exit":
                return int(words[0] if words else 0), "", ""
        return 127, "", f"sh: 1: {name}: not found\n"
    except ValueError as error:
        return 2, "", f"sh: 1: {error}\n"


class Shell:
    """Foreground commands as plain text, background ones as sessions with indented JSON."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._numbers = itertools.count(1)
        self._sessions: dict[str, str] = {}  # id -> command

    def run(self, run: ToolRun, arguments: Mapping[str, Any]) -> str:
        """Return the tool's output; ToolFailure for a non-zero exit, a timeout or missing arguments."""
        action = arguments.get("action") or ("start" if arguments.get("background") else "")
        if action and action != "start":
            return self._session(str(action), arguments)
        command = arguments.get("command", "")
        require(isinstance(command, str) and command.strip(), "Missing required parameter: command")
        if not action:
            return _foreground(run, command, arguments)
        with self._lock:
            name = f"session-{next(self._numbers)}"
            self._sessions[name] = command
        return _indented(session_id=name, running=True, pid=4000, command=command, workdir=WORKDIR, pty=False,
                         started_at=int(run.now()), message="started in background")  # fmt: skip

    def _session(self, action: str, arguments: Mapping[str, Any]) -> str:
        name = str(arguments.get("session_id", ""))
        with self._lock:
            command = self._sessions.pop(name, None) if action == "stop" else self._sessions.get(name)
        if command is None:
            raise invalid(f"unknown session: {name}")
        if action == "stop":
            return _indented(session_id=name, stopped=True, running=False, message="stopped")
        if action == "poll":
            status, out, errors = simulate(command)
            ended = {"output": out + errors, "output_truncated": False, "exit_code": status}
            return _indented(session_id=name, running=False, **ended)
        written = len(str(arguments.get("input", "")).encode())
        return _indented(session_id=name, written_bytes=written, message=action)


def _foreground(run: ToolRun, command: str, arguments: Mapping[str, Any]) -> str:
    limit = number(arguments, "timeout", TIMEOUT_S, 1, LONGEST_TIMEOUT_S)
    if command.startswith("sleep "):
        try:
            seconds = float(command.split()[1])
        except (IndexError, ValueError):
            raise ToolFailure("internal", "tool_execution_failed", "Error: exit status 1") from None
        run.pause(min(seconds, limit))
        if seconds > limit:
            message = f"Error: command timed out after {limit:g} seconds"
            raise ToolFailure("transient", "deadline_exceeded", message)
        return "(no output)"
    status, out, errors = simulate(command)
    blocks = [f"Stderr:\n{errors}"] if errors else []
    if status:
        blocks += [f"Stdout:\n{out}"] if out else []
        text = "\n".join([f"Error: exit status {status}", *blocks]).rstrip("\n")
        raise ToolFailure("internal", "tool_execution_failed", text)
    return "\n".join([*([out] if out else []), *blocks]) or "(no output)"


def _indented(**keys: Any) -> str:
    return json.dumps(keys, indent=2)
