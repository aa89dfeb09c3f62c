"""The traffic of a soak: what clients do, what goes wrong behind the server, and how each outcome is called."""

from __future__ import annotations

import json
import random
import re
import socket
import struct
from collections.abc import Callable, Mapping
from typing import Any

from tests.bench import traffic
from tests.bench.traffic import Caller

OK = "ok"
LEFT = "left on purpose"

# The beginning of what a tool's error says -> what it is called. Any other error is unexplained.
KINDS: Mapping[str, str] = {
    r"\w+ was not started|\d+ calls are under way": "busy",
    r".* cannot be reached": "unreachable",
    r".* did not finish": "late",
    r".* broke off": "broken off",
    r".* answered .* badly": "malformed",
    r"The board gave an answer that makes no sense": "malformed",
    r"The board'?s? .*HTTP \d+|The board did not|This board does not offer": "turned down",
    r"The screenshot is missing": "no screenshot",
}

# (kind, target, settings) of the simulator's switches; each hits once. None lasts longer than a soak's last seconds.
FAULTS: tuple[tuple[str, str, Mapping[str, Any]], ...] = (
    ("reset_before_read", "*", {}),
    ("reset_after_read", "*", {}),
    ("reset_after_execution", "touch_gesture", {}),
    ("truncated", "*", {}),
    ("html", "*", {}),
    ("redirect", "*", {}),
    ("status", "*", {}),
    ("shutting_down", "*", {}),
    ("slow", "*", {"seconds": 0.3}),
    ("gzip", "screenshot", {}),
    ("empty_output", "screenshot", {}),
    ("not_a_picture", "screenshot", {}),
    ("tool_error", "*", {}),
    ("soft_failure", "touch_gesture", {}),
    ("oversized", "screenshot", {}),
    ("bundle", "support_bundle", {"bytes": 1 << 20, "dies_after": 300_000}),
    ("bundle", "support_bundle", {"bytes": 4 << 20}),
    ("bundle_error", "support_bundle", {}),
)


def exchange(port: int, sent: bytes) -> str:
    """Ask once and name the outcome; anything that no fault explains is named `unexplained: ...`."""
    try:
        with Caller(port) as caller:
            return outcome(json.loads(caller.ask(sent)))
    except (AssertionError, OSError, ValueError) as error:
        cut = sent is traffic.BUNDLE and "hung up" in str(error)  # Config Web died with the bundle half over
        return "bundle cut" if cut else f"unexplained: {type(error).__name__} {str(error)[:80]}"


def outcome(answer: Mapping[str, Any]) -> str:
    """What an answer came to, in a few words."""
    if "result" not in answer:
        return f"unexplained: JSON-RPC {answer.get('error')}"
    result = answer["result"]
    return _error(result["content"][0]["text"]) if result.get("isError") else OK


def _error(text: str) -> str:
    told = text.splitlines()
    for line in reversed(told):  # lines before the last may tell of calls that nobody heard of
        for pattern, kind in KINDS.items():
            if re.match(pattern, line):
                return kind
    # What the Agent says of its own failures is passed on as it is.
    return (
        "the tool failed"
        if any(re.search(r"HID device|tap the field|archive|error", line) for line in told)
        else (f"unexplained: {text[:120]!r}")
    )


def leave(port: int, sent: bytes) -> str:
    """Ask and reset the connection at once."""
    with Caller(port) as caller:
        caller.sock.sendall(sent)
        caller.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    return LEFT


def half(port: int, sent: bytes) -> str:
    """Send all but the end, and go."""
    with Caller(port) as caller:
        caller.sock.sendall(sent[:-7])
    return LEFT


def glance(port: int, sent: bytes) -> str:
    """Read the first bytes of the answer through a small window, and go."""
    with Caller(port, receive_buffer=4096) as caller:
        caller.sock.sendall(sent)
        caller.sock.recv(512)
    return LEFT


Deed = Callable[[int, bytes], str]

# How often, out of the sum, a client does what.
DEEDS: tuple[tuple[int, Deed, bytes], ...] = (
    (8, exchange, traffic.LIST),
    (8, exchange, traffic.post("server/discover")),
    (10, exchange, traffic.SHOT),
    (10, exchange, traffic.TAP),
    (8, exchange, traffic.SMALL),
    (3, exchange, traffic.BUNDLE),
    (3, leave, traffic.TAP),
    (3, leave, traffic.SHOT),
    (2, leave, traffic.BUNDLE),
    (2, half, traffic.SHOT),
    (2, glance, traffic.SHOT),
    (1, glance, traffic.BUNDLE),
)
WEIGHTS = [weight for weight, _, _ in DEEDS]


def deed(port: int, chance: random.Random) -> str:
    """Do one thing that clients do; its outcome."""
    _, do, sent = chance.choices(DEEDS, WEIGHTS)[0]
    try:
        return do(port, sent)
    except OSError as error:
        return f"unexplained: {type(error).__name__} {error}"
