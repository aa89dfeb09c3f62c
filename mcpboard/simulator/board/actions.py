"""The tools as they act on the simulated phone: arguments in, the Agent's output text out."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from mcpboard.simulator.board.agent_catalog import QUICK
from mcpboard.simulator.board.gestures import Arguments, gesture, place, require
from mcpboard.simulator.board.go_http import go_json
from mcpboard.simulator.board.runs import ToolFailure, ToolRun
from mcpboard.simulator.board.simulated_shell import Shell
from mcpboard.simulator.phone import moves
from mcpboard.simulator.phone.phone import Phone
from mcpboard.simulator.phone.view import Move, Place, app_named

TYPING_S = 0.01  # seconds a key needs
SEARCH_S = 2.0  # the visible search asks a model several times
FALLBACK = "Open the app and type the address with enter_text."

_NAMES = """
    enter escape backspace tab space minus equal leftbrace rightbrace backslash semicolon apostrophe grave comma dot
    slash capslock printscreen scrolllock pause insert home pageup delete end pagedown left right up down
"""
NAMED_KEYS = frozenset(_NAMES.split()) | {f"f{index}" for index in range(1, 13)}
MODIFIERS = frozenset(
    side + name for name in ("ctrl", "shift", "alt", "meta") for side in ("", "l", "r")
) | {"super", "win", "cmd"}  # fmt: skip
SHIFTS = {"shift", "lshift", "rshift"}
PRINTED = {"space": " ", "minus": "-", "equal": "=", "comma": ",", "dot": ".", "slash": "/", "semicolon": ";"}


@dataclass
class ActionContext:
    """The phone, the shell and the run that a tool works with, and the places of its taps."""

    phone: Phone
    shell: Shell
    run: ToolRun
    bridge: bool = True  # the phone's companion app is connected
    touched: list[Place] = field(default_factory=list)


def touch_gesture(context: ActionContext, arguments: Arguments) -> str:
    at = gesture(context.phone, context.run, arguments)
    if at is not None:
        context.touched.append(at)
    return "ok"


def keyboard_tap(context: ActionContext, arguments: Arguments) -> str:
    keys = arguments.get("keys", [])
    require(isinstance(keys, list) and keys, "keys array is required")
    require(len(keys) <= 6, "keys accepts at most 6 items")
    names = [str(key).lower() for key in keys]
    for key, name in zip(keys, names, strict=True):
        single = len(name) == 1 and name.isascii() and name.isalnum()
        known = single or name in NAMED_KEYS or name in MODIFIERS or name.startswith("keycode_")
        require(known, f"unknown key: {key}")
    context.run.pause(0.12 if len(names) > 1 else 0.05)
    _press(context.phone, names)
    return "ok"


def _press(phone: Phone, names: Sequence[str]) -> None:
    """Press a key or chord; those that mean nothing to this phone are swallowed, as on a real one."""
    modifiers = {name for name in names if name in MODIFIERS}
    chord = bool(modifiers - SHIFTS)
    for name in (name for name in names if name not in MODIFIERS):
        move = (CHORDS.get(name) if chord else None) or SINGLE.get(name)
        if chord and name in CLIPPED:
            CLIPPED[name](phone)
        elif move is not None:
            phone.do(move)
        elif not chord:
            letter = PRINTED.get(name, name if len(name) == 1 else "")
            phone.write(letter.upper() if modifiers else letter)


CLIPPED: Mapping[str, Callable[[Phone], object]] = {
    "c": Phone.copy, "x": Phone.cut, "v": lambda phone: phone.write(phone.clipboard),
}  # fmt: skip
CHORDS: Mapping[str, Move] = {
    "a": moves.all_marked, "h": moves.home, "leftbrace": moves.back, "tab": moves.switcher, "n": moves.shade,
    "r": moves.reloaded,
}  # fmt: skip
SINGLE: Mapping[str, Move] = {
    "backspace": moves.erased, "escape": moves.dismissed, "enter": moves.returned, "keycode_home": moves.home,
    "keycode_back": moves.back, "keycode_app_switch": moves.switcher,
}  # fmt: skip


def keyboard_text(context: ActionContext, arguments: Arguments) -> str:
    """Type; no board forwards this tool, the live page's keys come here."""
    text = arguments.get("text", "")
    require(isinstance(text, str) and text.isascii(), "keyboard_text needs a text of ASCII; use enter_text")
    context.run.pause(TYPING_S * len(text))
    context.phone.write(text)
    return "ok"


def enter_text(context: ActionContext, arguments: Arguments) -> str:
    text, focus = arguments.get("text", ""), arguments.get("focus")
    require(isinstance(text, str) and text.strip(), _suggest("text is required"))
    require(focus is not None, _suggest("focus is required: the middle of the field, 0 to 1000"))
    context.phone.tap(*place(focus, "focus"))
    context.run.pause(TYPING_S * min(len(text), 200))
    if not context.phone.write(text):
        return _suggest("no text field has the focus; look at the screen and tap one")
    return go_json({"ok": True})


def _suggest(suggestion: str) -> str:
    return go_json({"ok": False, "suggestion": suggestion})


def open_app(context: ActionContext, arguments: Arguments) -> str:
    name = str(arguments.get("app") or arguments.get("name") or "").strip()
    require(name, "app is required")
    address = name.lower().startswith(("http://", "https://"))
    require(not address, "app must be an app name or alias; use open_url for HTTP/HTTPS URLs")
    app = app_named(name)
    if context.bridge and app:
        context.phone.show(app)
        return go_json({"ok": True, "method": "open_app", "target": name, "mechanism": "ios_url_scheme"})
    # the way without a bridge: look for the icon on the screen, with a model
    context.run.pause(SEARCH_S)
    steps = ["spotlight_search", "type"]
    result: dict[str, Any] = {"ok": app != "", "target": name, "steps": steps, "vlm_calls": 2}
    if not app:
        return go_json(result | {"reason": "no matching app is visible in the results"})
    context.phone.show(app)
    return go_json(result)


def open_url(context: ActionContext, arguments: Arguments) -> str:
    url = arguments.get("url", "")
    known = isinstance(url, str) and url.startswith(("http://", "https://"))
    require(known, "url must start with http:// or https://")
    _need_bridge(context, fallback=FALLBACK)
    context.phone.do(lambda view: moves.browsed(view, url))
    return go_json({"ok": True, "method": "open_url", "target": url})


def _need_bridge(context: ActionContext, **details: Any) -> None:
    if not context.bridge:
        raise ToolFailure("precondition_failed", "bridge_not_connected", "phone bridge not connected", **details)


def bridge_clipboard(context: ActionContext, arguments: Arguments) -> str:
    action = arguments.get("action", "")
    require(action in ("read", "write"), f'unknown action "{action}", expected "read" or "write"')
    _need_bridge(context)
    if action == "read":
        return go_json({"ok": True, "text": context.phone.clipboard})
    context.phone.clipboard = str(arguments.get("text", ""))
    return go_json({"ok": True})


def quick_action(context: ActionContext, arguments: Arguments) -> str:
    action, platform = str(arguments.get("action") or ""), context.phone.platform
    if action == "list" or arguments.get("list") is True:
        listed = [
            {"id": name, "label": label, "category": "system", "platform": platform,
             "status": "reserved" if chord is None else "active"}
            for name, (label, chord) in QUICK.items()
        ]  # fmt: skip
        return go_json({"ok": True, "platform": platform, "actions": listed})
    if action not in QUICK:
        near = difflib.get_close_matches(action, QUICK, 5, 0.4)
        raise ToolFailure("invalid_input", "quick_action_unknown", f"unknown quick action: {action}",
                          action=action, platform=platform, suggestions=near)  # fmt: skip
    label, chord = QUICK[action]
    if chord is None:
        raise ToolFailure("unsupported", "quick_action_reserved", f"quick action {action} is reserved on {platform}",
                          action=action, label=label, platform=platform, status="reserved")  # fmt: skip
    context.run.pause(0.12)
    _press(context.phone, chord)
    result = {"ok": True, "action": action, "label": label, "platform": platform, "binding": "primary"}
    return go_json(result | {"tool": "keyboard_tap", "input": {"keys": chord}, "output": "ok"})


def shell(context: ActionContext, arguments: Arguments) -> str:
    return context.shell.run(context.run, arguments)


Action = Callable[[ActionContext, Arguments], str]
ACTIONS: Mapping[str, Action] = {
    "touch_gesture": touch_gesture, "keyboard_tap": keyboard_tap, "keyboard_text": keyboard_text,
    "enter_text": enter_text, "open_app": open_app, "open_url": open_url,
    "bridge_clipboard": bridge_clipboard, "quick_action": quick_action, "shell": shell,
}  # fmt: skip
